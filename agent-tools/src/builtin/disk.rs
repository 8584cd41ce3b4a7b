//! Files on the disk.
//!
//! No link is followed: a path is judged with its links followed, and what was judged is what is opened, whoever puts a
//! link in its place meanwhile. All of it happens away from the runtime's threads, one hop a call. What is left out on purpose: the directory is not
//! synced after a rename (a crash of the machine may bring the old file back, never a torn one); a file with several
//! hard links gets a file of its own, because writing in place could tear it; nothing is locked, because two changes
//! never run at once and [`WriteError::Changed`] catches strangers.

use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, RawMode, Uid};
use rustix::io::Errno;

use crate::builtin::{alike, direct};
use crate::context::{Files, Opened, WriteError};

/// How much is read of a file that claims to be empty, as those below `/proc` do.
const UNSIZED: u64 = 16 << 20;
/// How many names are tried for a temporary file.
const TRIES: usize = 100;
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

/// Looks before it opens, since opening a device can do something, and again after it, since it may be another one by
/// then. Follows no link.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    must_be_regular(&direct::look(path)?.metadata()?)?;
    let file = direct::open(path)?;
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
    if kind.is_symlink() {
        return Err(Errno::LOOP.into());
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
    let names = direct::listed(path.parent()?).ok()?.take(NAMES).flatten();
    let names = names.filter_map(|entry| entry.file_name().to_str().map(str::to_owned).ok());
    names.into_iter().find(|name| name != missing && alike::folded(name) == looks)
}

/// A file of another name that looks the same.
#[derive(Debug, thiserror::Error)]
#[error(
    "There is \"{0}\", whose name looks the same but has other characters (spaces, accents); use exactly that name"
)]
struct NearName(String);

fn replace(path: &Path, expected: Option<&[u8]>, contents: &[u8], wanted: &Wanted) -> Result<(), WriteError> {
    must_name_a_file(path)?;
    let (parent, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
    let found = if_any(direct::directory(parent))?;
    let before = found.as_ref().map(|directory| regular_if_any(directory, name.as_ref())).transpose()?.flatten();
    if before.is_some() != expected.is_some() {
        return Err(WriteError::Changed);
    }
    let directory = found.map_or_else(|| direct::made_directory(parent), Ok)?;
    let spot = Spot { directory: &directory, name: name.as_ref() };
    if before.is_some() {
        // A rename asks only the directory; a file that may not be written is not to be replaced either.
        rustix::fs::accessat(spot.directory, spot.name, Access::WRITE_OK, AtFlags::empty()).map_err(io::Error::from)?;
    }
    let mut temporary = spot.beside(before.as_ref())?;
    for piece in contents.chunks(1 << 20) {
        wanted.check()?;
        temporary.file.write_all(piece)?;
    }
    temporary.file.sync_data()?;
    if let Some(expected) = expected
        && !spot.holds(expected)?
    {
        return Err(WriteError::Changed);
    }
    wanted.check()?;
    temporary.put(spot.name, before.is_some())
}

fn if_any<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn regular_if_any(directory: &File, name: &Path) -> io::Result<Option<Metadata>> {
    let Some(found) = if_any(direct::look_in(directory, name))? else { return Ok(None) };
    let found = found.metadata()?;
    must_be_regular(&found).map(|()| Some(found))
}

/// `x/`, `x/.` and `x/..` name directories; `Path` would take the first two for `x`.
fn must_name_a_file(path: &Path) -> io::Result<()> {
    let last = path.as_os_str().as_encoded_bytes().rsplit(|b| *b == b'/').next();
    match last {
        None | Some(b"" | b"." | b"..") => Err(ErrorKind::IsADirectory.into()),
        Some(_) => Ok(()),
    }
}

/// The place of a file: a directory that is open, so that nobody can put another one in its place, and a name in it.
#[derive(Clone, Copy)]
struct Spot<'a> {
    directory: &'a File,
    name: &'a Path,
}

impl<'a> Spot<'a> {
    /// A temporary file in the same directory, with the mode and, where we may, the owner of the file that it will
    /// replace.
    fn beside(self, before: Option<&Metadata>) -> io::Result<Temporary<'a>> {
        // The system takes the umask off the mode of a new file; an old file's is set exactly, below.
        let mode = if before.is_some() { 0o600 } else { 0o666 };
        let temporary = Temporary::new(self.directory, mode)?;
        if let Some(before) = before {
            let owned = give(&temporary.file, before)?;
            let mode = before.mode() & if owned { 0o7777 } else { 0o777 };
            temporary.file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(temporary)
    }

    /// Whether the file holds exactly these bytes.
    fn holds(self, expected: &[u8]) -> io::Result<bool> {
        if regular_if_any(self.directory, self.name)?.is_none() {
            return Ok(false);
        }
        let Some(file) = if_any(direct::open_in(self.directory, self.name))? else { return Ok(false) };
        must_be_regular(&file.metadata()?)?;
        holds(file, expected)
    }
}

/// A file that is removed when it is dropped, unless it was put in the place of another.
struct Temporary<'a> {
    directory: &'a File,
    name: String,
    file: File,
}

impl<'a> Temporary<'a> {
    fn new(directory: &'a File, mode: RawMode) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            // Each of these is made with keys of its own: a source of chance.
            let chance = RandomState::new().hash_one(TRIES);
            let name = format!(".agent-{chance:016x}.tmp");
            match rustix::fs::openat(directory, &name, flags, Mode::from_bits_retain(mode)) {
                Ok(file) => return Ok(Self { directory, name, file: file.into() }),
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn put(self, name: &Path, replaces: bool) -> Result<(), WriteError> {
        let done = if replaces {
            rustix::fs::renameat(self.directory, &self.name, self.directory, name)
        } else {
            self.put_anew(name)
        };
        match done {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(WriteError::Changed),
            Err(e) => Err(io::Error::from(e).into()),
        }
    }

    /// Puts it where nothing is: never over what came there meanwhile.
    fn put_anew(&self, name: &Path) -> rustix::io::Result<()> {
        let (from, to) = (self.directory, self.directory);
        #[cfg(target_os = "linux")]
        match rustix::fs::renameat_with(from, &self.name, to, name, rustix::fs::RenameFlags::NOREPLACE) {
            // Some file systems cannot do that.
            Err(Errno::NOSYS | Errno::INVAL) => {}
            done => return done,
        }
        rustix::fs::linkat(from, &self.name, to, name, AtFlags::empty())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // It is gone already where it was put in its place; elsewhere nobody is left to tell.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
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
fn holds(mut file: File, expected: &[u8]) -> io::Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
