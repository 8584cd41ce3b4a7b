//! What is known of git repositories without asking git: where they keep things, and what their settings say.

mod index;

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

use crate::place::Place;
use index::gitlinks;

/// How many files of settings are read at most; they may name each other.
const FILES: usize = 512;
/// How much of each is read, in bytes.
const SIZE: u64 = 1024 * 1024;
/// How many repositories are looked into at most, and how many directories for them.
const REPOSITORIES: usize = 64;
const DIRECTORIES: usize = 512;

/// A repository, or what git may take for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Where git keeps things.
    pub(crate) git: PathBuf,
    /// The directory that it was found by.
    pub(crate) top: PathBuf,
}

impl Repository {
    /// What has a directory here that only looks like a repository makes git go on further up: such are found, too.
    fn at(top: &Path) -> Option<Self> {
        git_directory(top).map(|git| Self { git, top: top.to_owned() })
    }

    /// Whether it has no working tree around it.
    pub(crate) fn is_bare(&self) -> bool {
        self.git == self.top
    }

    /// Whether it names remotes the way that was usual before they were settings.
    pub(crate) fn has_old_remotes(&self) -> bool {
        let any = |name| fs::read_dir(self.common().join(name)).is_ok_and(|mut entries| entries.next().is_some());
        any("remotes") || any("branches")
    }

    /// Where it keeps what all of its working trees share.
    fn common(&self) -> PathBuf {
        let named = fs::read_to_string(self.git.join("commondir"));
        named.map_or_else(|_| self.git.clone(), |dir| self.git.join(dir.trim()))
    }
}

/// All that git may take for the repository of this directory: the innermost first. One that is broken is passed over
/// by git, so those around it count as well.
pub(crate) fn around(dir: &Path) -> Vec<Repository> {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    dir.ancestors().filter_map(Repository::at).collect()
}

/// These with the repositories that lie in them as submodules, which git looks into by itself; none where it cannot be
/// told which these are.
pub(crate) fn with_submodules(repositories: Vec<Repository>) -> Option<Vec<Repository>> {
    let mut found = repositories;
    let mut at = 0;
    while let Some(repository) = found.get(at).cloned() {
        for link in gitlinks(&repository.git)? {
            let inner = Repository::at(&repository.top.join(link));
            found.extend(inner.filter(|inner| !found.contains(inner)).into_iter().collect::<Vec<_>>());
        }
        at += 1;
        if found.len() > REPOSITORIES {
            return None;
        }
    }
    Some(found)
}

/// Whether a file that holds keys is kept by what git may take for the repository of this directory; none where that
/// cannot be told.
pub(crate) fn keeps_keys(dir: &Path) -> Option<bool> {
    let kept: Option<Vec<bool>> = around(dir).iter().map(|repository| index::keeps_keys(&repository.git)).collect();
    Some(kept?.contains(&true))
}

/// The git directory of the repository whose top this is, be it bare.
pub(crate) fn git_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    if let Some(link) = read(&git).ok().flatten() {
        return Some(top.join(link.strip_prefix("gitdir:")?.trim()));
    }
    (top.join("HEAD").symlink_metadata().is_ok() && top.join("objects").is_dir()).then(|| top.to_owned())
}

/// The settings of repositories.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The texts of the files, those among them that others include.
    pub(crate) texts: Vec<String>,
    /// Something could not be read, or was too much.
    pub(crate) partial: bool,
}

impl Settings {
    /// Reads what these repositories, and what was kept of their submodules, are set to.
    pub(crate) fn of(repositories: &[Repository], place: &Place) -> Self {
        let mut settings = Self::default();
        let mut waiting = Vec::new();
        for repository in repositories {
            let common = repository.common();
            waiting.extend(kept_submodules(&common).into_iter().map(|dir| dir.join("config")));
            waiting.extend([common.join("config.worktree"), repository.git.join("config.worktree")]);
            waiting.push(common.join("config"));
        }
        let mut seen = HashSet::new();
        while let Some(file) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            settings.partial |= seen.len() > FILES;
            if settings.partial {
                break;
            }
            settings.add(&file, place, &mut waiting);
        }
        settings
    }

    fn add(&mut self, file: &Path, place: &Place, waiting: &mut Vec<PathBuf>) {
        let Ok(text) = read(file) else {
            self.partial = true;
            return;
        };
        let Some(text) = text else { return };
        let base = file.parent().unwrap_or(&place.cwd);
        for path in included(&text) {
            match path.strip_prefix('~') {
                Some(rest) if rest.starts_with('/') => waiting.push(place.absolute(&path)),
                Some(_) => self.partial = true,
                None => waiting.push(base.join(path)),
            }
        }
        self.texts.push(text);
    }

    /// All that is set, one after the other.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Setting> + '_ {
        self.texts.iter().flat_map(|text| settings(text))
    }
}

/// The directories that git keeps submodules in. Their names may have several parts.
fn kept_submodules(common: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![common.join("modules")];
    let mut looked = 0;
    while let Some(dir) = left.pop() {
        looked += 1;
        if looked > DIRECTORIES {
            break;
        }
        if dir.join("HEAD").exists() {
            left.push(dir.join("modules"));
            found.push(dir);
            continue;
        }
        let inner = fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
    }
    found
}

/// The text of a file; none where there is no such file, an error where it is not one that is read.
fn read(file: &Path) -> Result<Option<String>, ErrorKind> {
    let about = match fs::metadata(file) {
        Ok(about) => about,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error.kind()),
    };
    if !about.is_file() || about.len() > SIZE {
        return Err(ErrorKind::InvalidData);
    }
    let bytes = fs::read(file).map_err(|error| error.kind())?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn included(text: &str) -> Vec<String> {
    let included = settings(text).into_iter();
    let included = included.filter(|s| matches!(s.section.as_str(), "include" | "includeif") && s.key == "path");
    included.map(|setting| setting.value).collect()
}

/// One setting: `section.name.key`. Section and key are in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) section: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Takes a file of settings apart the way git does. What git would refuse is passed over.
pub(crate) fn settings(text: &str) -> Vec<Setting> {
    let text = text.replace("\r\n", "\n");
    let mut chars = text.chars().peekable();
    let (mut section, mut name) = (String::new(), String::new());
    let mut all = Vec::new();
    while let Some(c) = chars.next() {
        if c == '#' || c == ';' {
            chars.by_ref().find(|c| *c == '\n');
        } else if c == '[' {
            (section, name) = header(&mut chars);
        } else if c.is_ascii_alphabetic() {
            let mut key = String::from(c);
            while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                key.push(c);
            }
            while chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
            let value = chars.next_if_eq(&'=').map_or_else(|| "true".into(), |_| value(&mut chars));
            key.make_ascii_lowercase();
            all.push(Setting { section: section.clone(), name: name.clone(), key, value });
        }
    }
    all
}

/// The rest of `[section]`, `[section "name"]` or `[section.name]`.
fn header(chars: &mut Peekable<Chars<'_>>) -> (String, String) {
    let mut section = String::new();
    let mut name = String::new();
    while let Some(c) = chars.next() {
        match c {
            ']' | '\n' => break,
            '"' => {
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    name.extend(if c == '\\' { chars.next() } else { Some(c) });
                }
            }
            c if c.is_whitespace() => {}
            c => section.push(c.to_ascii_lowercase()),
        }
    }
    match section.split_once('.') {
        Some((section, rest)) if name.is_empty() => (section.to_owned(), rest.to_owned()),
        _ => (section, name),
    }
}

/// A value up to the end of its line: quotes, backslashes and comments are taken out.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut value = String::new();
    let (mut kept, mut in_quotes) = (0, false);
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            '#' | ';' if !in_quotes => {
                chars.by_ref().find(|c| *c == '\n');
                break;
            }
            '"' => {
                in_quotes = !in_quotes;
                kept = value.len();
            }
            '\\' => {
                match chars.next() {
                    Some('\n') | None => {}
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(c) => value.push(c),
                }
                kept = value.len();
            }
            c if c.is_whitespace() && !in_quotes => {
                if !value.is_empty() {
                    value.push(c);
                }
            }
            c => {
                value.push(c);
                kept = value.len();
            }
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, expect) in [
            ("[remote \"up\"]\n\turl = /a b # c\n", "remote|up|url|/a b"),
            ("[INCLUDE] Path=\"x]y\"", "include||path|x]y"),
            ("[includeIf \"gitdir:/\\\"x\"]path = a\\\nb\n", "includeif|gitdir:/\"x|path|ab"),
            ("[a.B.c]\nkey\n", "a|b.c|key|true"),
            ("[a]\r\n  k = \"v \" ; no\r\n", "a||k|v "),
            ("# [x] y = z\n[s] k = a\\tb\\\\", "s||k|a\tb\\"),
        ] {
            let ours: Vec<String> =
                settings(text).iter().map(|s| [&*s.section, &s.name, &s.key, &s.value].join("|")).collect();
            assert_eq!(ours, [expect], "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_as_a_whole_is_told() {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir_all(at.path().join(".git")).unwrap();
        let place = Place::new(at.path());
        let read = |text: String| {
            fs::write(at.path().join(".git/config"), text).unwrap();
            Settings::of(&around(at.path()), &place)
        };
        assert!(!read("[a] b = c\n".into()).partial);
        assert!(!read("[include] path = missing\n".into()).partial);
        assert!(read(format!("[a] b = {}\n", "x".repeat(1024 * 1024))).partial);
        assert!(read("[include] path = ~somebody/x\n".into()).partial);
        assert!(read("[include] path = /dev/zero\n".into()).partial);
    }
}
