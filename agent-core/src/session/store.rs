//! Where logs are kept: JSON lines on the disk, memory, nowhere.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{SessionId, Sessions};

/// Makes what was appended survive a crash of the machine; to be run on another thread.
pub type Syncing = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Where the lines of a log go.
pub trait Store: Send + Sync {
    /// Appends whole lines: all, or none where the disk lets itself be put right. A failure does not stop later ones.
    ///
    /// # Errors
    /// Those of the disk.
    fn append(&mut self, lines: &str) -> io::Result<()>;

    /// Makes what was appended survive a crash of the machine.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// The same for what was appended so far, as work for another thread. None where there is nothing to do.
    fn syncing(&self) -> Option<Syncing> {
        None
    }

    /// What was appended so far, from its beginning; none where it cannot be read again.
    ///
    /// # Errors
    /// Those of the disk.
    fn reader(&self) -> io::Result<Option<Box<dyn ReadSeek>>> {
        Ok(None)
    }

    /// Where the log of a sub-agent's session goes, and the directory of its other files. Nowhere by default.
    fn sibling(&self, _id: &SessionId) -> (Box<dyn Store>, Option<PathBuf>) {
        (Box::new(Nowhere), None)
    }
}

/// Something to read, from its beginning as often as one likes.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Whom a store tells what a person should know and no failure says.
type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// A file of JSON lines, for this process alone: it is locked while it is open. It and its directories are made with the
/// first line.
pub struct JsonLines {
    path: PathBuf,
    file: Option<File>,
    state: State,
    /// The directory's entry of the file is not known to be on the disk.
    fresh: bool,
    tell: Tell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The last line may lack its end.
    Opened,
    /// All lines are whole.
    Whole,
    /// A write failed: the file is opened anew before the next.
    Failed,
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("path", &self.path).field("state", &self.state).finish_non_exhaustive()
    }
}

impl JsonLines {
    /// A log at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None, state: State::Whole, fresh: false, tell: Arc::new(|_| {}) }
    }

    /// A log that is there. Nothing of it is changed before the first line is appended.
    ///
    /// # Errors
    /// It cannot be opened for writing, or another process has it ([`io::ErrorKind::ResourceBusy`]).
    pub fn open(path: impl Into<PathBuf>, tell: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        let mut log = Self::new(path).telling(tell);
        let file = writing().open(&log.path).map_err(|error| log.named(&error))?;
        log.lock(&file)?;
        (log.file, log.state) = (Some(file), State::Opened);
        Ok(log)
    }

    /// Tells what a person should know: a log that was deleted and made anew, a disk without locks.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), ..self }
    }

    /// The log's file, at its beginning.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn file(&self) -> io::Result<File> {
        let file = self.file.as_ref().map_or_else(|| File::open(&self.path), File::try_clone);
        file.and_then(|mut file| file.rewind().map(|()| file)).map_err(|error| self.named(&error))
    }

    fn write(&mut self, lines: &str) -> io::Result<()> {
        let mut file = self.ready()?;
        let before = file.metadata()?.len();
        let written = file.write_all(lines.as_bytes());
        if written.is_err() {
            self.state = State::Failed;
            // Half a line helps nobody. Where even this fails it is ended before the next one.
            let _ = file.set_len(before);
        }
        self.file = Some(file);
        written
    }

    /// The open file, ready for a whole line.
    fn ready(&mut self) -> io::Result<File> {
        let mut file = match self.file.take() {
            Some(file) if is_deleted(&file) => self.made_anew(file)?,
            Some(file) if self.state != State::Failed => file,
            // Closed before it is opened again: our own lock would keep us out.
            failed => {
                drop(failed);
                self.create()?
            }
        };
        if self.state == State::Opened {
            end_torn_line(&mut file)?;
            self.state = State::Whole;
        }
        Ok(file)
    }

    /// Opens the file, or makes it.
    fn create(&mut self) -> io::Result<File> {
        if let Some(parent) = self.path.parent() {
            private_directories(parent)?;
        }
        self.fresh |= !self.path.exists();
        let file = writing().create(true).open(&self.path)?;
        self.lock(&file)?;
        self.state = State::Opened;
        Ok(file)
    }

    /// Somebody deleted the log, and perhaps its directory, while we held it open: what it had is still ours to write.
    fn made_anew(&mut self, mut deleted: File) -> io::Result<File> {
        let written = self.create().and_then(|mut file| {
            deleted.rewind()?;
            // Where another file took its place, as some editors do it, we go on in that.
            if file.metadata()?.len() == 0
                && let Err(error) = io::copy(&mut deleted, &mut file)
            {
                file.set_len(0)?;
                return Err(error);
            }
            Ok(file)
        });
        if written.is_err() {
            // Held on to, for the next try.
            self.file = Some(deleted);
        } else {
            (self.tell)(&format!("the session's log {} was deleted; it was made anew", self.path.display()));
        }
        written
    }

    fn lock(&self, file: &File) -> io::Result<()> {
        match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                let busy = "it is in use by another process";
                Err(self.named(&io::Error::new(io::ErrorKind::ResourceBusy, busy)))
            }
            Err(TryLockError::Error(error)) => {
                (self.tell)(&format!(
                    "the disk of {} has no locks ({error}): go on with this session in one process at a time",
                    self.path.display()
                ));
                Ok(())
            }
        }
    }

    fn named(&self, error: &io::Error) -> io::Error {
        named(&self.path, error)
    }
}

/// A log is only ever appended to.
fn writing() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn is_deleted(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

#[cfg(not(unix))]
fn is_deleted(_file: &File) -> bool {
    // An open file cannot be deleted there.
    false
}

/// An error with the path that it is about.
pub(super) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A log whose last line was torn by a crash gets its newline, so that the next line is whole.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" { file.write_all(b"\n") } else { Ok(()) }
}

/// Sessions hold what people wrote and files contain: for their owner alone.
pub(super) fn private_directories(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl Store for JsonLines {
    fn sibling(&self, id: &SessionId) -> (Box<dyn Store>, Option<PathBuf>) {
        let Some(project) = self.path.parent().and_then(Path::parent) else { return (Box::new(Nowhere), None) };
        let directory = project.join(id.as_str());
        let log = Self { tell: self.tell.clone(), ..Self::new(Sessions::log(&directory)) };
        (Box::new(log), Some(directory))
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        self.write(lines).map_err(|error| self.named(&error))
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|error| self.named(&error))?;
        if std::mem::take(&mut self.fresh) {
            sync_entry(&self.path);
        }
        Ok(())
    }

    fn reader(&self) -> io::Result<Option<Box<dyn ReadSeek>>> {
        Ok(Some(Box::new(self.file()?)))
    }

    fn syncing(&self) -> Option<Syncing> {
        let file = self.file.as_ref()?.try_clone();
        let path = self.path.clone();
        Some(Box::new(move || file.and_then(|file| file.sync_data()).map_err(|error| named(&path, &error))))
    }
}

/// A new file survives a crash of the machine with its directory's entry. Not every disk can promise that.
fn sync_entry(path: &Path) {
    if let Some(Ok(directory)) = path.parent().map(File::open) {
        let _ = directory.sync_all();
    }
}

/// Lines in memory, for tests.
#[derive(Debug, Clone, Default)]
pub struct Memory(
    // A lock, because a test reads the lines while the session owns the store.
    Arc<std::sync::Mutex<String>>,
);

impl Memory {
    /// All lines so far.
    pub fn lines(&self) -> String {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Store for Memory {
    fn reader(&self) -> io::Result<Option<Box<dyn ReadSeek>>> {
        Ok(Some(Box::new(io::Cursor::new(self.lines()))))
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_str(lines);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps nothing (`--no-session`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Store for Nowhere {
    fn append(&mut self, _lines: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A log in a directory of its own, and what it told.
    fn log() -> (tempfile::TempDir, JsonLines, Arc<Mutex<Vec<String>>>) {
        let folder = tempfile::tempdir().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let sink = told.clone();
        let log = JsonLines::new(folder.path().join("deep/log.jsonl"));
        let log = log.telling(move |text| sink.lock().unwrap().push(text.to_owned()));
        (folder, log, told)
    }

    #[test]
    fn a_failed_append_leaves_no_half_line_and_stops_no_later_one() {
        let (_folder, mut log, _) = log();
        log.append("{\"a\":1}\n").unwrap();
        log.sync().unwrap();
        // A file that takes no more, as on a full disk; half a line got there before.
        fs::write(&log.path, "{\"a\":1}\n{\"b").unwrap();
        log.file = Some(File::open(&log.path).unwrap());
        let error = log.append("{\"b\":2}\n").unwrap_err();
        assert!(error.to_string().starts_with(&log.path.display().to_string()), "{error}");
        log.append("{\"c\":3}\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "{\"a\":1}\n{\"b\n{\"c\":3}\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_each_time() {
        let (folder, mut log, _) = log();
        fs::create_dir(folder.path().join("deep")).unwrap();
        std::os::unix::fs::symlink("/dev/full", &log.path).unwrap();
        for _ in 0..2 {
            let error = log.append("{}\n").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
        }
        fs::remove_file(&log.path).unwrap();
        log.append("{}\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "{}\n");
    }

    #[test]
    fn one_process_has_a_log() {
        let (_folder, mut log, _) = log();
        log.append("{}\n").unwrap();
        let busy = JsonLines::open(&log.path, |_| {}).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy, "{busy}");
        let path = log.path.clone();
        let syncing = log.syncing().unwrap();
        drop(log);
        syncing().unwrap();
        let mut next = JsonLines::open(&path, |_| {}).unwrap();
        let mut text = String::new();
        next.file().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}\n");
        next.append("{}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n{}\n");
    }

    #[test]
    fn opening_changes_nothing() {
        let (folder, ..) = log();
        let path = folder.path().join("poem");
        assert!(JsonLines::open(&path, |_| {}).is_err());
        assert!(!path.exists());
        fs::write(&path, "roses are red").unwrap();
        drop(JsonLines::open(&path, |_| {}).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "roses are red");
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_was_deleted_is_made_anew_with_all_it_had() {
        let (folder, mut log, told) = log();
        log.append("{\"a\":1}\n").unwrap();
        fs::remove_dir_all(folder.path().join("deep")).unwrap();
        log.append("{\"b\":2}\n").unwrap();
        log.append("{\"c\":3}\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(told.lock().unwrap().len(), 1);

        // Where it cannot be made anew yet, nothing is lost until it can.
        fs::remove_dir_all(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep"), "in the way").unwrap();
        log.append("{\"d\":4}\n").unwrap_err();
        fs::remove_file(folder.path().join("deep")).unwrap();
        log.append("{\"e\":5}\n").unwrap();
        assert_eq!(fs::read_to_string(&log.path).unwrap(), "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"e\":5}\n");
    }
}
