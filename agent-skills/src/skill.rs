//! One skill: what is known of it, and its text when it is wanted.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::front_matter::{self, Page};

/// How much of a file is read to list it, in bytes.
const HEAD: u64 = 64 * 1024;
/// How long a description gets, in characters: the limit of the Agent Skills format.
const DESCRIPTION: usize = 1024;

/// A skill as the catalogue lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name: that of the file without `.md`, or of the folder. It holds no control characters.
    pub name: String,
    /// What it is for, on one line of at most 1024 characters; empty where the file does not say.
    pub description: String,
    /// The file.
    pub path: PathBuf,
    /// The directory that the skill's own paths are relative to: the one that holds the file.
    pub base: PathBuf,
    /// The directory of skills that it was found in.
    pub found_in: PathBuf,
    /// The front matter's `name`, where it is another one.
    pub declared_name: Option<String>,
    /// The front matter's `license`, on one line.
    pub license: Option<String>,
    /// The front matter's `compatibility`, on one line.
    pub compatibility: Option<String>,
    /// The front matter's `allowed-tools`, on one line. It is for people to read: it gives no rights.
    pub allowed_tools: Option<String>,
}

impl Skill {
    /// Reads the file as it is now, front matter included, and at most `limit_bytes` of it.
    ///
    /// What is not UTF-8 becomes `U+FFFD`; a character that the limit would cut in two is left out.
    ///
    /// # Errors
    /// When the file is gone, is not a regular file any more, or cannot be read.
    pub fn load(&self, limit_bytes: u64) -> io::Result<String> {
        Ok(read_start(&self.path, limit_bytes)?.text)
    }

    /// The same of a file that is open already: for those who mind which file that is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load_from(file: impl io::Read, limit_bytes: u64) -> io::Result<String> {
        Ok(start_of(file, 0, limit_bytes)?.text)
    }

    /// Reads the head of a skill's file. Beside the skill come the doubts about it, each a sentence.
    pub(crate) fn read(name: &str, path: PathBuf, base: PathBuf, found_in: PathBuf) -> io::Result<(Self, Vec<String>)> {
        let start = read_start(&path, HEAD)?;
        let page = front_matter::read(&start.text);
        let declared_name =
            page.front.name.0.as_deref().map(one_line).filter(|declared| !declared.is_empty() && declared != name);
        let doubts = doubts(name, declared_name.as_deref(), &start, &page);
        let line = |text: Option<String>| text.as_deref().map(one_line).filter(|text| !text.is_empty());
        let skill = Self {
            name: name.to_owned(),
            description: description(page.front.description.0.as_deref(), page.body),
            path,
            base,
            found_in,
            declared_name,
            license: line(page.front.license.0),
            compatibility: line(page.front.compatibility.0),
            allowed_tools: line(page.front.allowed_tools.0),
        };
        Ok((skill, doubts))
    }
}

fn doubts(name: &str, declared: Option<&str>, start: &Start, page: &Page<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    if start.text.trim().is_empty() {
        doubts.push("it is empty".to_owned());
    }
    if !start.valid {
        doubts.push("it is not valid UTF-8; the bytes that are not show as U+FFFD".to_owned());
    }
    if !name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
        doubts.push(format!("the name {name:?} has characters other than letters, digits, `-`, `_` and `.`"));
    }
    if let Some(declared) = declared {
        doubts.push(format!(
            "its front matter calls it {declared:?}, but its name is {name:?}, that of its file or folder"
        ));
    }
    doubts.extend(page.fault.as_ref().map(ToString::to_string));
    if page.front.description.0.as_deref().is_some_and(|text| one_line(text).chars().count() > DESCRIPTION) {
        doubts
            .push(format!("its description is longer than {DESCRIPTION} characters; the rest is left out of the list"));
    }
    doubts
}

fn description(front: Option<&str>, body: &str) -> String {
    let front = front.map(one_line).filter(|text| !text.is_empty());
    let text = front.or_else(|| heading(body)).or_else(|| first_line(body)).unwrap_or_default();
    text.chars().take(DESCRIPTION).collect()
}

/// The text of the first heading outside of code.
fn heading(body: &str) -> Option<String> {
    let mut code = false;
    body.lines().find_map(|line| {
        code ^= line.trim_start().starts_with("```");
        let text = line.trim_start_matches('#');
        let marked = !code && text.len() < line.len() && text.starts_with([' ', '\t']);
        marked.then(|| one_line(text.trim_end().trim_end_matches('#'))).filter(|text| !text.is_empty())
    })
}

fn first_line(body: &str) -> Option<String> {
    body.lines().map(one_line).find(|line| !line.is_empty())
}

/// Blanks and line ends as one blank each, control characters gone.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[derive(Debug)]
struct Start {
    text: String,
    valid: bool,
}

fn read_start(path: &Path, limit_bytes: u64) -> io::Result<Start> {
    let (file, length) = open_regular(path)?;
    start_of(file, length, limit_bytes)
}

fn start_of(file: impl io::Read, length: u64, limit_bytes: u64) -> io::Result<Start> {
    // Room for all of it and a byte more: read at once, and not in pieces that double.
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(limit_bytes) + 1).unwrap_or(0));
    file.take(limit_bytes).read_to_end(&mut bytes)?;
    let cut = bytes.len() as u64 == limit_bytes;
    Ok(decode(bytes, cut))
}

/// Looks before it opens: to open a pipe would wait for its other end. Beside the file comes its length.
fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((File::open(path)?, found.len()))
}

fn decode(mut bytes: Vec<u8>, cut: bool) -> Start {
    if cut
        && let Err(e) = std::str::from_utf8(&bytes)
        && e.error_len().is_none()
    {
        bytes.truncate(e.valid_up_to());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Start { text, valid: true },
        Err(e) => Start { text: String::from_utf8_lossy(e.as_bytes()).into_owned(), valid: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_bounded_line_without_control_characters() {
        for (front, body, expect) in [
            (Some(" a\n\t b\r\n"), "# H", "a b"),
            (Some("a\u{1b}[31mb\u{7}"), "", "a[31mb"),
            (Some("  \n"), "# H\ntext", "H"),
            (None, "\n\nintro\n## The `title` ##\n", "The `title`"),
            (None, "```sh\n# a comment\n```\n", "```sh"),
            (None, "```sh\n# a comment\n```\n# Real\n", "Real"),
            (None, "#hashtag\n", "#hashtag"),
            (None, "#\n\ntext", "#"),
            (None, " \n first\nsecond", "first"),
            (None, "", ""),
        ] {
            assert_eq!(description(front, body), expect, "{front:?} {body:?}");
        }
        assert_eq!(description(Some(&"é".repeat(3000)), "").chars().count(), 1024);
    }

    #[test]
    fn a_cut_character_is_no_fault_and_a_wrong_byte_is() {
        for (bytes, cut, text, valid) in [
            (&b"ab\xc3"[..], true, "ab", true),
            (b"ab\xc3", false, "ab\u{fffd}", false),
            (b"a\xe9b", true, "a\u{fffd}b", false),
            (b"", true, "", true),
        ] {
            let start = decode(bytes.to_vec(), cut);
            assert_eq!((start.text.as_str(), start.valid), (text, valid), "{bytes:?}");
        }
    }
}
