//! Where logs are kept: JSON lines on the disk, memory, nowhere; and the sessions of a project.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::SessionId;

/// What a copy of a session has of it: what its conversation, its plans and taking its changes back depend on.
const COPIED: &[&str] = &["log.jsonl", "todo.md", "plan.md", "plan.draft", "summary.md", "changes.jsonl", "before"];

/// Where the lines of a log go.
pub trait Store: Send + Sync {
    /// Appends whole lines, all or as many as the disk takes.
    ///
    /// # Errors
    /// Those of the disk.
    fn append(&mut self, lines: &str) -> io::Result<()>;

    /// Makes what was appended survive a crash of the machine.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&mut self) -> io::Result<()>;

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
pub trait ReadSeek: io::Read + io::Seek {}

impl<T: io::Read + io::Seek> ReadSeek for T {}

/// A file of JSON lines. It and its directories are made with the first line.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: Option<File>,
}

impl JsonLines {
    /// A log at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), file: None }
    }

    fn open(&self) -> io::Result<File> {
        if let Some(parent) = self.path.parent() {
            private_directories(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        end_torn_line(&mut file)?;
        Ok(file)
    }

    /// Where this fails a part of a line may be there: the file is opened again next time, which ends that line.
    fn write(&mut self, lines: &str) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        file.write_all(lines.as_bytes())?;
        self.file = Some(file);
        Ok(())
    }

    fn named(&self, error: &io::Error) -> io::Error {
        named(&self.path, error)
    }
}

/// An error with the path that it is about.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Copies a file or a directory of files, where there is one.
fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    let copied = if from.is_dir() { copy_directory(from, to) } else { fs::copy(from, to).map(drop) };
    match copied {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => Ok(()),
        copied => copied.map_err(|error| named(to, &error)),
    }
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    private_directories(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A log whose last line was torn by a crash gets its newline, so that the next line is whole.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    use io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last != *b"\n" { file.write_all(b"\n") } else { Ok(()) }
}

/// Sessions hold what people wrote and files contain: for their owner alone.
fn private_directories(path: &Path) -> io::Result<()> {
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
        (Box::new(Self::new(Sessions::log(&directory))), Some(directory))
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        self.write(lines).map_err(|error| self.named(&error))
    }

    fn reader(&self) -> io::Result<Option<Box<dyn ReadSeek>>> {
        let file = File::open(&self.path).map_err(|error| self.named(&error))?;
        Ok(Some(Box::new(file)))
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_data);
        synced.map_err(|error| self.named(&error))
    }
}

/// Lines in memory, for tests.
#[derive(Debug, Clone, Default)]
pub struct Memory(
    // A lock, because a test reads the lines while the session owns the store.
    std::sync::Arc<std::sync::Mutex<String>>,
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

/// The sessions of a project: `<root>/<project key>/<session id>/log.jsonl`.
#[derive(Debug, Clone)]
pub struct Sessions {
    project: PathBuf,
    all: PathBuf,
}

impl Sessions {
    /// The sessions of the project that lies in `cwd`, below `root`.
    pub fn of(root: &Path, cwd: &Path) -> Self {
        Self { project: root.join(project_key(cwd)), all: root.to_owned() }
    }

    /// The directory of a session.
    pub fn directory(&self, id: &SessionId) -> PathBuf {
        self.project.join(id.as_str())
    }

    /// The log of a session's directory.
    pub fn log(directory: &Path) -> PathBuf {
        directory.join("log.jsonl")
    }

    /// Copies a session's log and the files that its future depends on; a copy has none of what tools printed.
    ///
    /// # Errors
    /// Those of the disk, with the path.
    pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
        private_directories(to).map_err(|error| named(to, &error))?;
        for name in COPIED {
            copy_if_there(&from.join(name), &to.join(name))?;
        }
        Ok(())
    }

    /// The session that was used last, those of sub-agents aside.
    pub fn latest(&self) -> Option<PathBuf> {
        let used =
            |directory: &PathBuf| -> Option<SystemTime> { Self::log(directory).metadata().ok()?.modified().ok() };
        let entries = fs::read_dir(&self.project).ok()?;
        let own = entries.flatten().filter(|e| !SessionId::named(e.file_name().to_string_lossy()).is_child());
        let with_time = own.filter_map(|e| Some((used(&e.path())?, e.path())));
        with_time.max().map(|(_, path)| path)
    }

    /// The directory of the session that a person names: by the path of its log or directory, or by its id, in this
    /// project or in any other.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let path = Path::new(name);
        if name.contains('/') {
            let directory = if path.is_dir() { path } else { path.parent()? };
            return path.exists().then(|| directory.to_owned());
        }
        let is_session = |directory: &PathBuf| Self::log(directory).is_file();
        let own = self.project.join(name);
        if is_session(&own) {
            return Some(own);
        }
        let projects = fs::read_dir(&self.all).ok()?;
        projects.flatten().map(|project| project.path().join(name)).find(is_session)
    }
}

/// A directory's name for its sessions: its path with `-` for what is no letter, digit, dot or underscore.
pub fn project_key(cwd: &Path) -> String {
    let mut key = String::from("-");
    for c in cwd.to_string_lossy().chars() {
        let kept = if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
        if kept != '-' || !key.ends_with('-') {
            key.push(kept);
        }
    }
    if key.len() > 1 { key.trim_end_matches('-').to_owned() } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_torn_by_a_full_disk_is_ended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/log.jsonl");
        let mut store = JsonLines::new(&path);
        store.append("{\"a\":1}\n").unwrap();
        store.sync().unwrap();
        // A file that takes no more, as on a full disk; half a line got there before.
        fs::write(&path, "{\"a\":1}\n{\"b").unwrap();
        store.file = Some(File::open(&path).unwrap());
        let error = store.append("{\"b\":2}\n").unwrap_err();
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        store.append("{\"c\":3}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"b\n{\"c\":3}\n");
    }

    #[test]
    fn project_keys() {
        for (cwd, key) in [
            ("/home/me/code/app", "-home-me-code-app"),
            ("/tmp/a b/c:d", "-tmp-a-b-c-d"),
            ("///tmp///a--b///", "-tmp-a-b"),
            ("/", "-"),
        ] {
            assert_eq!(project_key(Path::new(cwd)), key);
        }
    }
}
