//! Pictures that a prompt names: they become parts of it for models that see, and a list of paths for the others.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use agent_tools::Part;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::event::Prompt;

/// The largest picture that is sent, in bytes: what the strictest provider takes.
const LARGEST: u64 = 5 << 20;
/// The most of them in a prompt.
const MOST: usize = 20;

/// What a picture begins with, and what it is then.
const KINDS: [(&[u8], &str); 5] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// A prompt of this text, with the pictures whose files `typed` names; relative paths start at `cwd`. `typed` is what a
/// person wrote of the text: what comes from a pipe names files that nobody meant. `sees`: the model takes pictures. Also
/// says what a person should know.
pub fn prompt(text: String, typed: &str, cwd: &Path, sees: bool) -> (Prompt, Vec<String>) {
    let (mut pictures, mut told) = (Vec::new(), Vec::new());
    for path in named(typed).into_iter().map(|name| cwd.join(name)).filter(|path| path.is_file()) {
        if pictures.len() >= MOST {
            told.push(format!("{} is left out: {MOST} pictures are the most", path.display()));
            continue;
        }
        match read(&path) {
            Ok((media_type, bytes)) => {
                told.push(format!(
                    "with the picture {} ({media_type}, {} kB)",
                    path.display(),
                    bytes.len().div_ceil(1000)
                ));
                pictures.push((path, media_type, bytes));
            }
            Err(why) => told.push(format!("{} is not shown to the model: {why}", path.display())),
        }
    }
    if pictures.is_empty() {
        return (Prompt::text(text), told);
    }
    if sees {
        let image = |(_, media_type, bytes): (PathBuf, &str, Vec<u8>)| Part::Image {
            media_type: media_type.into(),
            data: STANDARD.encode(bytes),
        };
        let parts = std::iter::once(Part::text(text)).chain(pictures.into_iter().map(image)).collect();
        return (Prompt { parts }, told);
    }
    (Prompt::text(text + &listed(&pictures)), told)
}

/// The block that a skill can find the pictures by.
fn listed(pictures: &[(PathBuf, &str, Vec<u8>)]) -> String {
    let mut block =
        "\n\n<attached-images>\nYou do not see these pictures; a skill for pictures can read them.\n".to_owned();
    for (number, (path, ..)) in pictures.iter().enumerate() {
        // Writing into a String does not fail.
        let _ = writeln!(block, "[Image #{}] => {}", number + 1, path.display());
    }
    block + "</attached-images>"
}

/// The kind and the bytes of a picture; else why it is not sent.
fn read(path: &Path) -> Result<(&'static str, Vec<u8>), String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|e| e.to_string())?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it has more than {} MiB; make it smaller", LARGEST >> 20));
    }
    let kind = KINDS.iter().find(|(begins, _)| bytes.starts_with(begins));
    let kind = kind.filter(|(_, kind)| *kind != "image/webp" || bytes.get(8..12) == Some(b"WEBP"));
    kind.map(|(_, kind)| (*kind, bytes)).ok_or_else(|| "it is no PNG, JPEG, GIF or WebP inside".into())
}

/// The words that may be paths of pictures: as they stand, in quotes, or with escaped blanks as a terminal pastes them.
fn named(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            ('"' | '\'' | '`', None) if word.is_empty() => quote = Some(c),
            (c, Some(end)) if c == end => {
                quote = None;
                words.push(std::mem::take(&mut word));
            }
            (c, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    let plain = |word: &String| {
        let word = word.trim_start_matches(['@', '(', '[', '<']);
        let word = word.trim_end_matches([',', '.', ';', ':', '?', '!', ')', ']', '>']);
        word.strip_prefix("file://").unwrap_or(word).to_owned()
    };
    let mut names: Vec<String> = words.iter().map(plain).filter(|word| is_picture(word)).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn is_picture(name: &str) -> bool {
    let ending = Path::new(name).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    matches!(ending.as_deref(), Some("png" | "jpg" | "jpeg" | "gif" | "webp"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn names_are_found_as_people_write_them() {
        for (text, expect) in [
            ("what is wrong in shot.png?", &["shot.png"][..]),
            ("compare @a.JPG, (b.webp) and 'my shot.gif'.", &["a.JPG", "b.webp", "my shot.gif"]),
            (r"/tmp/Screen\ Shot.png what is it", &["/tmp/Screen Shot.png"]),
            ("file:///x/a.png a.png a.png", &["/x/a.png", "a.png"]),
            ("it's fine, don't look at readme.md or png", &[]),
            ("\"a.png", &["a.png"]),
            ("", &[]),
        ] {
            assert_eq!(named(text), expect, "{text}");
        }
    }

    #[test]
    fn pictures_are_parts_for_models_that_see_and_paths_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let png = [KINDS[0].0, b"rest"].concat();
        fs::write(dir.path().join("a.png"), &png).unwrap();
        fs::write(dir.path().join("no.png"), "<html>").unwrap();
        File::create(dir.path().join("big.png")).unwrap().set_len(LARGEST + 1).unwrap();
        let text = "look at a.png, no.png, big.png and gone.png";
        let (seen, told) = prompt(text.into(), text, dir.path(), true);
        let [Part::Text { text: words }, Part::Image { media_type, data }] = &seen.parts[..] else {
            panic!("{seen:?}")
        };
        assert_eq!((words.as_str(), media_type.as_str()), (text, "image/png"));
        assert_eq!(STANDARD.decode(data).unwrap(), png);
        assert!(told[0].contains("a.png (image/png, 1 kB)"), "{told:?}");
        assert!(told[1].ends_with("it is no PNG, JPEG, GIF or WebP inside"), "{told:?}");
        assert!(told[2].ends_with("it has more than 5 MiB; make it smaller") && told.len() == 3, "{told:?}");
        let (listed, _) = prompt(text.into(), text, dir.path(), false);
        let [Part::Text { text: words }] = &listed.parts[..] else { panic!("{listed:?}") };
        let path = dir.path().join("a.png");
        assert!(words.ends_with(&format!("\n[Image #1] => {}\n</attached-images>", path.display())), "{words}");
        let (piped, told) = prompt(text.into(), "", dir.path(), true);
        assert_eq!((piped.parts.len(), told.len()), (1, 0), "what is piped names nothing");
    }
}
