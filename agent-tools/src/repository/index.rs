//! Which files a repository keeps: the names in git's index.
//!
//! The form is that of git's documentation (gitformat-index), versions 2 to 4, with SHA-1 names of objects.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::policy::zone;

/// The largest index that is read, in bytes.
const LARGEST: u64 = 32 << 20;
/// What stands before a name: times, numbers, size and object, then two bytes of flags.
const FIXED: usize = 62;
/// Where among it stands what is kept: a file, a link, another repository.
const MODE: usize = 24;

/// Whether the repository in this git directory keeps a file that holds keys; none where that cannot be told.
pub(super) fn keeps_keys(git: &Path) -> Option<bool> {
    let Some(bytes) = read(git)? else { return Some(false) };
    any_name(&bytes, |name, _| is_key(name))
}

/// The other repositories that the one in this git directory keeps, by their paths; none where that cannot be told.
pub(super) fn gitlinks(git: &Path) -> Option<Vec<PathBuf>> {
    const LINK: u32 = 0o160_000;
    let Some(bytes) = read(git)? else { return Some(Vec::new()) };
    let mut links = Vec::new();
    any_name(&bytes, |name, mode| {
        if mode == LINK {
            links.push(PathBuf::from(OsStr::from_bytes(name)));
        }
        false
    })?;
    Some(links)
}

/// The index, if there is one; nothing where it is not one that is read.
fn read(git: &Path) -> Option<Option<Vec<u8>>> {
    let path = git.join("index");
    let Ok(about) = fs::metadata(&path) else { return Some(None) };
    if !about.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then_some(Some(bytes))
}

fn is_key(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    zone::is_sensitive_name(OsStr::from_bytes(name))
}

/// Whether this holds of any name in an index, and of what is kept by it; none where the index is not understood.
fn any_name(index: &[u8], mut holds: impl FnMut(&[u8], u32) -> bool) -> Option<bool> {
    let word = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (word(4)?, word(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..count {
        let mode = word(at + MODE)?;
        let flags = index.get(at + FIXED - 2)?;
        let extended = version > 2 && flags & 0x40 != 0;
        let start = at + FIXED + if extended { 2 } else { 0 };
        let end;
        if version == 4 {
            let (dropped, rest) = number(index, start)?;
            name.truncate(name.len().checked_sub(dropped)?);
            end = rest + memchr::memchr(0, index.get(rest..)?)?;
            name.extend_from_slice(&index[rest..end]);
            at = end + 1;
        } else {
            end = start + memchr::memchr(0, index.get(start..)?)?;
            name.clear();
            name.extend_from_slice(&index[start..end]);
            // One to eight bytes of zero, up to a multiple of eight.
            at += (end - at) / 8 * 8 + 8;
        }
        if holds(&name, mode) {
            return Some(true);
        }
    }
    whole(index, at).then_some(false)
}

/// Whether nothing behind the names, which end here, says that there are more in another file.
fn whole(index: &[u8], mut at: usize) -> bool {
    /// The sum at the end.
    const SUM: usize = 20;
    while at + SUM < index.len() {
        let Some([name @ .., a, b, c, d]) = index.get(at..at + 8) else { return false };
        if name == b"link" {
            return false;
        }
        at += 8 + u32::from_be_bytes([*a, *b, *c, *d]) as usize;
    }
    at + SUM == index.len()
}

/// A number of git's variable length (that of offsets in packs), and where it ends.
fn number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::repository::keeps_keys;

    fn git(dir: &Path, args: &[&str]) {
        let out =
            Command::new("git").args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// A real repository in each form of the index, with these files added.
    fn kept(version: &str, files: &[&str], look: impl Fn(&Path)) {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"]);
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        git(dir.path(), &["add", "-f", "."]);
        git(dir.path(), &["update-index", "--index-version", version]);
        look(dir.path());
    }

    #[test]
    fn keys_are_found_in_every_form_of_the_index() {
        let many: Vec<String> = (0..300).map(|n| format!("src/deep/file-{n}.rs")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let with = |more: &[&'static str]| [&many[..], more].concat();
        for version in ["2", "4"] {
            for (files, expect) in [
                (with(&[]), false),
                (with(&[".env"]), true),
                (with(&[".env.example", ".environment", "tokenizer.rs"]), false),
                (with(&["src/deep/server.pem"]), true),
                (with(&["zz/token.json"]), true),
                (vec![], false),
            ] {
                kept(version, &files, |dir| {
                    assert_eq!(keeps_keys(dir), Some(expect), "{version} {:?}", files.last());
                    fs::create_dir_all(dir.join("new/below")).unwrap();
                    assert_eq!(keeps_keys(&dir.join("new/below")), Some(expect));
                    // What only looks like a repository is passed over by git.
                    fs::create_dir_all(dir.join("new/.git")).unwrap();
                    assert_eq!(keeps_keys(&dir.join("new/below")), Some(expect));
                });
            }
        }
    }

    #[test]
    fn what_is_no_index_is_not_understood_and_what_is_no_repository_keeps_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(keeps_keys(dir.path()), Some(false));
        fs::create_dir(dir.path().join(".git")).unwrap();
        for bytes in [&b"DIRC"[..], b"", b"DIRC\0\0\0\x02\0\0\0\x01", b"DIRC\0\0\0\x09\0\0\0\0"] {
            fs::write(dir.path().join(".git/index"), bytes).unwrap();
            assert_eq!(keeps_keys(dir.path()), None, "{bytes:?}");
        }
    }
}
