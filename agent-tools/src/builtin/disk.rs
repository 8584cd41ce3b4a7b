//! Files on the disk.
//!
//! All of it happens away from the runtime's threads, one hop a call. What is left out on purpose: the directory is not
//! synced after a rename (a crash of the machine may bring the old file back, never a torn one); a file with several
//! hard links gets a file of its own, because writing in place could tear it; nothing is locked, because two changes
//! never run at once and [`WriteError::Changed`] catches strangers.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rustix::fs::{Access, Gid, OFlags, Uid};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::builtin::alike;
use crate::context::{Files, Opened, WriteError};

/// How much is read of a file that claims to be empty, as those below `/proc` do.
const UNSIZED: u64 = 16 << 20;
/// How many links are followed to a file, as the kernel has it.
const LINKS: usize = 40;
/// How many names of a directory are looked at for one that looks the same.
const NAMES: usize = 10_000;

/// Files on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

#[async_trait]
impl Files for Disk {
    async fn open(&self, path: &Path) -> io::Result<Opened> {
        let path = path.to_owned();
        away(move |_| open(&path)).await?
    }

    async fn replace(&self, path: &Path, expected: Option<&[u8]>, contents: &[u8]) -> Result<(), WriteError> {
        let (path, expected, contents) = (path.to_owned(), expected.map(<[u8]>::to_vec), contents.to_vec());
        away(move |wanted| replace(&path, expected.as_deref(), &contents, wanted)).await?
    }
}

/// Does work that blocks on a thread where that harms nobody. It goes on when the future is dropped, but
/// can see that nobody waits for it any more.
pub(super) async fn away<T: Send + 'static>(work: impl FnOnce(&Wanted) -> T + Send + 'static) -> io::Result<T> {
    let waiting = Arc::new(());
    let wanted = Wanted(Arc::downgrade(&waiting));
    let done = tokio::task::spawn_blocking(move || work(&wanted)).await;
    drop(waiting);
    done.map_err(io::Error::other)
}

/// Tells work whether somebody still waits for it.
pub(super) struct Wanted(Weak<()>);

impl Wanted {
    /// # Errors
    /// [`ErrorKind::Interrupted`] once nobody waits any more.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.strong_count() > 0 { Ok(()) } else { Err(ErrorKind::Interrupted.into()) }
    }
}

fn open(path: &Path) -> io::Result<Opened> {
    let file = open_regular(path).map_err(|error| with_near_name(path, error))?;
    let len = file.metadata()?.len();
    let most = if len == 0 { UNSIZED } else { len };
    Ok(Opened { reader: Box::new(file.take(most)), len })
}

/// Looks before it opens, since opening a device can do something, and again after it, since the path may lead
/// elsewhere by then.
fn open_regular(path: &Path) -> io::Result<File> {
    must_be_regular(&fs::metadata(path)?)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    must_be_regular(&file.metadata()?)?;
    Ok(file)
}

fn must_be_regular(found: &Metadata) -> io::Result<()> {
    let kind = found.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let what = match kind {
        k if k.is_fifo() => "a named pipe",
        k if k.is_socket() => "a socket",
        _ => "a device",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

/// Where nothing is found: an error that names a file whose name looks the same, where there is one.
fn with_near_name(path: &Path, error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    near_name(path).map_or(error, |name| io::Error::new(ErrorKind::NotFound, NearName(name)))
}

fn near_name(path: &Path) -> Option<String> {
    let missing = path.file_name()?.to_str()?;
    let looks = alike::folded(missing);
    let names = fs::read_dir(path.parent()?).ok()?.take(NAMES).flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).find(|name| name != missing && alike::folded(name) == looks)
}

/// A file of another name that looks the same.
#[derive(Debug, thiserror::Error)]
#[error(
    "There is \"{0}\", whose name looks the same but has other characters (spaces, accents); use exactly that name"
)]
struct NearName(String);

fn replace(path: &Path, expected: Option<&[u8]>, contents: &[u8], wanted: &Wanted) -> Result<(), WriteError> {
    let target = final_target(path)?;
    let before = regular_if_any(&target)?;
    if before.is_some() != expected.is_some() {
        return Err(WriteError::Changed);
    }
    let directory = target.parent().unwrap_or(Path::new("/"));
    match &before {
        // A rename asks only the directory; a file that may not be written is not to be replaced either.
        Some(_) => rustix::fs::access(&target, Access::WRITE_OK).map_err(io::Error::from)?,
        None => fs::create_dir_all(directory)?,
    }
    let mut temporary = beside(directory, before.as_ref())?;
    for piece in contents.chunks(1 << 20) {
        wanted.check()?;
        temporary.as_file_mut().write_all(piece)?;
    }
    temporary.as_file().sync_data()?;
    if let Some(expected) = expected
        && !holds(&target, expected)?
    {
        return Err(WriteError::Changed);
    }
    wanted.check()?;
    put(temporary, &target, before.is_some())
}

fn put(temporary: NamedTempFile, target: &Path, replaces: bool) -> Result<(), WriteError> {
    let done = if replaces { temporary.persist(target) } else { temporary.persist_noclobber(target) };
    match done {
        Ok(_) => Ok(()),
        Err(e) if e.error.kind() == ErrorKind::AlreadyExists => Err(WriteError::Changed),
        Err(e) => Err(e.error.into()),
    }
}

fn regular_if_any(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) => must_be_regular(&found).map(|()| Some(found)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Where links lead in the end, whether or not there is a file.
fn final_target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        must_name_a_file(&path)?;
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("/")).join(to),
            // EINVAL: there is something, and it is no link.
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => return Ok(path),
            Err(e) => return Err(e),
        }
    }
    Err(Errno::LOOP.into())
}

/// `x/`, `x/.` and `x/..` name directories; `Path` would take the first two for `x`.
fn must_name_a_file(path: &Path) -> io::Result<()> {
    let last = path.as_os_str().as_encoded_bytes().rsplit(|b| *b == b'/').next();
    match last {
        None | Some(b"" | b"." | b"..") => Err(ErrorKind::IsADirectory.into()),
        Some(_) => Ok(()),
    }
}

/// A temporary file in the same directory, with the mode and, where we may, the owner of the file that it will replace.
fn beside(directory: &Path, before: Option<&Metadata>) -> io::Result<NamedTempFile> {
    // The system takes the umask off the mode of a new file; an old file's is set exactly, below.
    let mode = if before.is_some() { 0o600 } else { 0o666 };
    let mut builder = Builder::new();
    builder.prefix(".agent-").suffix(".tmp").permissions(Permissions::from_mode(mode));
    let temporary = builder.tempfile_in(directory).map_err(without_path)?;
    if let Some(before) = before {
        let owned = give(temporary.as_file(), before)?;
        let mode = before.mode() & if owned { 0o7777 } else { 0o777 };
        temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(temporary)
}

/// Gives a file the owner and group of another, or the group alone. Tells whether both are the same now.
fn give(file: &File, like: &Metadata) -> io::Result<bool> {
    let ours = file.metadata()?;
    if (ours.uid(), ours.gid()) == (like.uid(), like.gid()) {
        return Ok(true);
    }
    let (owner, group) = (Uid::from_raw(like.uid()), Gid::from_raw(like.gid()));
    let all = rustix::fs::fchown(file, Some(owner), Some(group)).is_ok();
    if !all {
        // Somebody else's file in our directory: keeping at least the group is worth a try, no more.
        let _ = rustix::fs::fchown(file, None, Some(group));
    }
    Ok(all)
}

/// Whether a file holds exactly these bytes. Reads at most one byte more.
fn holds(path: &Path, expected: &[u8]) -> io::Result<bool> {
    let mut file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    let mut piece = vec![0; 1 << 16];
    let mut rest = expected;
    loop {
        let most = piece.len().min(rest.len() + 1);
        let read = file.read(&mut piece[..most])?;
        if read == 0 {
            return Ok(rest.is_empty());
        }
        match rest.strip_prefix(&piece[..read]) {
            Some(after) => rest = after,
            None => return Ok(false),
        }
    }
}

/// The error of the system alone: the name of a temporary file tells nobody anything.
fn without_path(error: io::Error) -> io::Error {
    let code = std::error::Error::source(&error).and_then(|e| e.downcast_ref::<io::Error>()?.raw_os_error());
    code.map_or(error, io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_can_stop() {
        let (stopped, stops) = mpsc::channel();
        let work = away(move |wanted| {
            while wanted.check().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stopped.send(()).unwrap();
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), work).await.is_err());
        stops.recv_timeout(Duration::from_secs(10)).expect("it goes on for ever");
    }

    #[test]
    fn nothing_is_written_once_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let nobody = Wanted(Weak::new());
        let refused = replace(&path, Some(b"old"), b"new", &nobody);
        assert!(matches!(refused, Err(WriteError::Io(e)) if e.kind() == ErrorKind::Interrupted));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }

    #[tokio::test]
    async fn only_what_was_expected_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for (there, expected, replaced) in [
            (Some("old"), Some("old"), true),
            (Some("old"), Some("ol"), false),
            (Some("old"), Some("old!"), false),
            (Some("old"), None, false),
            (Some(""), Some(""), true),
            (None, None, true),
            (None, Some("old"), false),
        ] {
            let path = dir.path().join("f");
            there.map_or_else(|| drop(fs::remove_file(&path)), |text| fs::write(&path, text).unwrap());
            let done = Disk.replace(&path, expected.map(str::as_bytes), b"new").await;
            assert_eq!(done.is_ok(), replaced, "{there:?} {expected:?}");
            assert!(replaced || matches!(done, Err(WriteError::Changed)));
            let text = fs::read_to_string(&path).ok();
            assert_eq!(text.as_deref(), if replaced { Some("new") } else { there }, "{there:?} {expected:?}");
        }
    }

    #[test]
    fn names_of_directories_are_no_files() {
        for (path, is_file) in
            [("/a/b", true), ("/a/b/", false), ("/a/b/.", false), ("/a/..", false), ("/", false), ("/a/.b", true)]
        {
            assert_eq!(must_name_a_file(Path::new(path)).is_ok(), is_file, "{path}");
        }
    }
}
