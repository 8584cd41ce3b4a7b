//! Opens what a path names without following any link: what was judged is what is opened, whoever swaps it meanwhile.
//!
//! Only below `/proc` links are followed: they lead where whoever follows them stands, and all that is there is judged
//! as the system's.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// Opens something only to look what it is and to go on from it: a device does nothing, a pipe does not wait.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// For files: what turns out to be a pipe or a terminal is not waited for.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a file for reading, by its absolute path. It may be no regular file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    opened(path, READ)
}

/// Opens anything, a link too, so that one can ask what it is.
pub(super) fn look(path: &Path) -> io::Result<File> {
    opened(path, LOOK)
}

/// Opens a directory.
pub(super) fn directory(path: &Path) -> io::Result<File> {
    opened(path, LOOK | OFlags::DIRECTORY)
}

/// Opens a directory to list it.
pub(super) fn listed(path: &Path) -> io::Result<rustix::fs::Dir> {
    Ok(rustix::fs::Dir::read_from(opened(path, OFlags::RDONLY | OFlags::DIRECTORY)?)?)
}

/// Opens a directory, made with its parents where it is missing.
pub(super) fn made_directory(path: &Path) -> io::Result<File> {
    Ok(File::from(step_by_step(path, LOOK | OFlags::DIRECTORY, true)?))
}

/// Opens a file for reading that lies in this directory.
pub(super) fn open_in(directory: &File, name: &Path) -> io::Result<File> {
    Ok(File::from(one_step(directory, name, READ)?))
}

/// As [`look`], in this directory.
pub(super) fn look_in(directory: &File, name: &Path) -> io::Result<File> {
    Ok(File::from(one_step(directory, name, LOOK)?))
}

fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    if path.starts_with("/proc") {
        return Ok(File::from(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?));
    }
    #[cfg(target_os = "linux")]
    match rustix::fs::openat2(
        CWD,
        path,
        flags | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
        rustix::fs::ResolveFlags::NO_SYMLINKS,
    ) {
        // An old kernel, or a filter around us that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {}
        done => return Ok(File::from(done?)),
    }
    Ok(File::from(step_by_step(path, flags, false)?))
}

fn step_by_step(path: &Path, flags: OFlags, make: bool) -> rustix::io::Result<OwnedFd> {
    let in_proc = path.starts_with("/proc");
    let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let last = if slash { flags | OFlags::DIRECTORY } else { flags };
    let mut steps = path.components().filter(|step| *step != Component::RootDir).peekable();
    let mut at = rustix::fs::open("/", LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    if steps.peek().is_none() {
        return rustix::fs::open("/", flags | OFlags::CLOEXEC, Mode::empty());
    }
    while let Some(step) = steps.next() {
        let (name, more) = (Path::new(&step), steps.peek().is_some());
        let flags = if more { LOOK | OFlags::DIRECTORY } else { last };
        let flags = if in_proc { flags } else { flags | OFlags::NOFOLLOW };
        let open = || rustix::fs::openat(&at, name, flags | OFlags::CLOEXEC, Mode::empty());
        at = match open() {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(e),
                }
                open()?
            }
            done => done?,
        };
    }
    Ok(at)
}

fn one_step(directory: &File, name: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_with_and_without_help_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("d/e")).unwrap();
        fs::write(root.join("d/f"), "f").unwrap();
        symlink("d", root.join("to_d")).unwrap();
        symlink("f", root.join("d/to_f")).unwrap();
        for (path, opens) in [
            ("d/f", true),
            ("d/e", true),
            ("d/e/", true),
            ("", true),
            ("d/f/", false),
            ("d/f/x", false),
            ("d/none", false),
            ("none/f", false),
            ("d/to_f", false),
            ("to_d/f", false),
            ("to_d", false),
            ("to_d/e", false),
        ] {
            let path = root.join(path);
            assert_eq!(open(&path).is_ok(), opens, "{}", path.display());
            assert_eq!(step_by_step(&path, READ, false).is_ok(), opens, "{}, step by step", path.display());
            assert_eq!(directory(&path).is_ok(), opens && path.is_dir(), "{}, as a directory", path.display());
        }
        assert!(look(&root.join("d/to_f")).unwrap().metadata().unwrap().is_symlink());
        assert!(made_directory(&root.join("to_d/new")).is_err() && !root.join("d/new").exists());
        assert!(made_directory(&root.join("d/new/er")).is_ok() && root.join("d/new/er").is_dir());
    }
}
