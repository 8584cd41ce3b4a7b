//! What files held before tools changed them: kept beside the session's log, so that a person can go back.
//!
//! `changes.jsonl` has a line for each change, written before it happens; `before/N` holds the bytes of change N's file.
//! Changes that commands make are not known here, and are not undone.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_tools::{Change, Files, WriteError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

const CHANGES: &str = "changes.jsonl";
const BEFORE: &str = "before";

/// The changes of a session and of its sub-agents.
#[derive(Debug)]
pub(crate) struct History {
    directory: PathBuf,
    // A lock, because a session and its sub-agents change files at the same time; held for a line or two.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last change; none before the file was looked at.
    last: Option<u64>,
    /// The turn that changes belong to now: the number of the line that it began with.
    turn: u64,
    /// Changes of which it is not known yet what the file holds after them.
    unknown: HashMap<PathBuf, u64>,
}

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    /// A file is about to be changed.
    Change {
        n: u64,
        turn: u64,
        path: PathBuf,
        /// Its permission bits; none where there was no file.
        mode: Option<u32>,
        /// What it is to hold, as SHA-256; none where that is not known yet.
        after: Option<String>,
    },
    /// What a change came to.
    Done { n: u64, after: String },
    /// The files were put back to what they were before this turn.
    Undone { undone_from: u64 },
}

impl History {
    /// The history in a session's directory. Nothing is made before the first change.
    pub(crate) fn new(directory: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self { directory: directory.into(), state: Mutex::default() })
    }

    /// Changes from now on belong to the turn that began with this line of the log.
    pub(crate) fn begin(&self, turn: u64) {
        self.state().turn = turn;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is about to be changed.
    pub(crate) async fn keep(self: &Arc<Self>, change: &Change) -> io::Result<()> {
        let before = change.before.clone();
        let plain = match (&change.before, &change.old) {
            (Some(bytes), Some(text)) => bytes == text.as_bytes(),
            (None, _) | (_, None) => change.before.is_none(),
        };
        let after = plain.then(|| hash(change.new.as_bytes()));
        let (history, path) = (self.clone(), change.path.clone());
        spawn_blocking(move || history.write(path, before, after)).await.map_err(io::Error::other)?
    }

    fn write(&self, path: PathBuf, before: Option<Vec<u8>>, after: Option<String>) -> io::Result<()> {
        let mode =
            fs::metadata(&path).ok().filter(|_| before.is_some()).map(|about| about.permissions().mode() & 0o7777);
        let mut state = self.state();
        let n = match state.last {
            Some(last) => last,
            None => self.lines()?.iter().map(Line::number).max().unwrap_or(0),
        } + 1;
        if let Some(bytes) = before {
            let blob = self.blob(n);
            if let Some(parent) = blob.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(blob)?;
            file.write_all(&bytes)?;
        }
        if after.is_none() {
            state.unknown.insert(path.clone(), n);
        }
        self.append(&Line::Change { n, turn: state.turn, path, mode, after })?;
        state.last = Some(n);
        Ok(())
    }

    /// A change is done: what the file holds now is told, where that was not known before.
    pub(crate) async fn done(self: &Arc<Self>, path: &Path) -> io::Result<()> {
        let Some(n) = self.state().unknown.remove(path) else { return Ok(()) };
        let (history, path) = (self.clone(), path.to_owned());
        let tell = move || {
            let after = hash(&fs::read(path)?);
            let _state = history.state();
            history.append(&Line::Done { n, after })
        };
        spawn_blocking(tell).await.map_err(io::Error::other)?
    }

    fn blob(&self, n: u64) -> PathBuf {
        self.directory.join(BEFORE).join(n.to_string())
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let path = self.directory.join(CHANGES);
        let mut file = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(path)?;
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        file.write_all(text.as_bytes())
    }

    /// The lines so far; what is torn is left out.
    fn lines(&self) -> io::Result<Vec<Line>> {
        let file = match File::open(self.directory.join(CHANGES)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut lines = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            lines.extend(serde_json::from_slice::<Line>(&line?).ok());
        }
        Ok(lines)
    }

    /// What going back to before this turn does to files, sorted by path.
    pub(crate) fn back_to(&self, turn: u64) -> io::Result<Vec<Undo>> {
        let mut undos: BTreeMap<PathBuf, Undo> = BTreeMap::new();
        for change in live(self.lines()?).into_iter().filter(|change| change.turn >= turn) {
            let before = change.mode.map(|mode| Before { blob: self.blob(change.n), mode });
            let undo = undos.entry(change.path.clone()).or_insert_with(|| Undo {
                path: change.path,
                before,
                state: UndoState::Undoable,
                after: None,
            });
            undo.after = change.after;
        }
        let mut undos: Vec<Undo> = undos.into_values().collect();
        for undo in &mut undos {
            undo.state = undo.look()?;
        }
        Ok(undos)
    }

    /// Puts files back. Nothing is done where somebody else has changed one since, unless it is `forced`: then what it
    /// holds is kept first. Says how each stood.
    pub(crate) async fn undo(self: &Arc<Self>, turn: u64, forced: bool, files: &dyn Files) -> io::Result<Vec<Undo>> {
        let undos = self.back_to(turn)?;
        if !forced && undos.iter().any(|undo| undo.state == UndoState::Changed) {
            return Ok(undos);
        }
        for undo in undos.iter().filter(|undo| undo.state != UndoState::Already) {
            self.put_back(undo, files).await?;
        }
        if !undos.is_empty() {
            let _state = self.state();
            self.append(&Line::Undone { undone_from: turn })?;
        }
        Ok(undos)
    }

    async fn put_back(self: &Arc<Self>, undo: &Undo, files: &dyn Files) -> io::Result<()> {
        let now = held(&undo.path)?;
        if undo.state == UndoState::Changed {
            self.write(undo.path.clone(), now.clone(), None)?;
        }
        let Some(before) = &undo.before else {
            return match fs::remove_file(&undo.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let bytes = fs::read(&before.blob)?;
        files.replace(&undo.path, now.as_deref(), &bytes).await.map_err(|error| match error {
            WriteError::Io(error) => error,
            error => io::Error::other(error.to_string()),
        })?;
        fs::set_permissions(&undo.path, fs::Permissions::from_mode(before.mode))
    }
}

impl Line {
    fn number(&self) -> u64 {
        match self {
            Self::Change { n, .. } | Self::Done { n, .. } => *n,
            Self::Undone { .. } => 0,
        }
    }
}

/// A change that was not undone.
struct Live {
    n: u64,
    turn: u64,
    path: PathBuf,
    mode: Option<u32>,
    after: Option<String>,
}

fn live(lines: Vec<Line>) -> Vec<Live> {
    let mut changes: Vec<Live> = Vec::new();
    let mut at: HashMap<u64, usize> = HashMap::new();
    for line in lines {
        match line {
            Line::Change { n, turn, path, mode, after } => {
                at.insert(n, changes.len());
                changes.push(Live { n, turn, path, mode, after });
            }
            Line::Done { n, after } => {
                if let Some(change) = at.get(&n).and_then(|at| changes.get_mut(*at)) {
                    change.after = Some(after);
                }
            }
            Line::Undone { undone_from } => {
                changes.retain(|change| change.turn < undone_from);
                at = changes.iter().enumerate().map(|(at, change)| (change.n, at)).collect();
            }
        }
    }
    changes
}

/// What going back does to one file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Undo {
    /// The file.
    pub path: PathBuf,
    /// How it stands.
    pub state: UndoState,
    before: Option<Before>,
    after: Option<String>,
}

#[derive(Debug, Clone)]
struct Before {
    blob: PathBuf,
    mode: u32,
}

/// Whether a file can be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoState {
    /// It holds what the tools left.
    Undoable,
    /// It holds what it held before them.
    Already,
    /// Somebody else has changed it since.
    Changed,
}

impl Undo {
    fn look(&self) -> io::Result<UndoState> {
        let now = held(&self.path)?;
        let before = self.before.as_ref().map(|before| fs::read(&before.blob)).transpose()?;
        let ours = match (&now, &self.after) {
            (Some(bytes), Some(after)) => hash(bytes) == *after,
            (None, _) | (_, None) => false,
        };
        Ok(if now == before {
            UndoState::Already
        } else if ours {
            UndoState::Undoable
        } else {
            UndoState::Changed
        })
    }
}

impl fmt::Display for Undo {
    /// What is done to the file, for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.state, &self.before) {
            (UndoState::Already, _) => "is as it was",
            (UndoState::Undoable, Some(_)) => "is put back",
            (UndoState::Undoable, None) => "is removed: it was made since",
            (UndoState::Changed, _) => "was changed by somebody else since",
        };
        write!(f, "{} {what}", self.path.display())
    }
}

/// What a file holds; none where there is none. A device or a pipe in its place is not read.
fn held(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(about) if about.is_file() && about.size() <= 1 << 30 => fs::read(path).map(Some),
        Ok(_) => Err(io::Error::other(format!("{} is no file any more", path.display()))),
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use agent_tools::builtin::Disk;

    use super::*;

    /// Turns of changes (`name=text`, from what is there) and of strangers' (`!name=text`), then back to before a turn:
    /// what is there then.
    async fn check(steps: &[(u64, &str)], back: u64, forced: bool, expect: &[(&str, Option<&str>)]) {
        let dir = tempfile::tempdir().unwrap();
        let history = History::new(dir.path().join("session"));
        for (turn, step) in steps {
            let (name, text) = step.split_once('=').unwrap();
            let path = dir.path().join(name.trim_start_matches('!'));
            if !name.starts_with('!') {
                history.begin(*turn);
                let before = fs::read(&path).ok();
                let old = before.clone().map(|bytes| String::from_utf8(bytes).unwrap());
                history.keep(&Change::new(&path, before, old, text)).await.unwrap();
            }
            fs::write(path, text).unwrap();
        }
        history.undo(back, forced, &Disk).await.unwrap();
        for (name, text) in expect {
            assert_eq!(fs::read_to_string(dir.path().join(name)).ok().as_deref(), *text, "{steps:?} {back} {name}");
        }
        if forced {
            let again = history.back_to(back).unwrap();
            assert!(again.is_empty(), "{again:?}");
        }
    }

    #[tokio::test]
    async fn files_are_what_they_were_before_the_turn() {
        for (steps, back, forced, expect) in [
            (&[(0, "!a=0"), (1, "a=1"), (5, "a=2"), (5, "b=1")][..], 1, false, &[("a", Some("0")), ("b", None)][..]),
            (&[(0, "!a=0"), (1, "a=1"), (5, "a=2"), (5, "b=1")], 5, false, &[("a", Some("1")), ("b", None)]),
            (&[(1, "a=1"), (0, "!a=mine")], 1, false, &[("a", Some("mine"))]),
            (&[(1, "a=1"), (0, "!a=mine")], 1, true, &[("a", None)]),
            (&[(0, "!a=0"), (1, "a=1"), (0, "!a=0")], 1, false, &[("a", Some("0"))]),
            (&[(0, "!a=0"), (1, "a=1"), (1, "a=2"), (1, "a=0")], 1, true, &[("a", Some("0"))]),
            (&[(1, "a=1")], 2, false, &[("a", Some("1"))]),
        ] {
            check(steps, back, forced, expect).await;
        }
    }

    #[tokio::test]
    async fn what_was_undone_is_not_undone_again_and_modes_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let (path, history) = (dir.path().join("a"), History::new(dir.path().join("session")));
        fs::write(&path, "0").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let change = |before: &str, new: &str| Change::new(&path, Some(before.into()), Some(before.into()), new);
        history.begin(3);
        history.keep(&change("0", "1")).await.unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "1").unwrap();
        history.undo(3, false, &Disk).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        // Another process goes on, and the last line was torn meanwhile.
        let file = OpenOptions::new().append(true).open(dir.path().join("session/changes.jsonl"));
        file.unwrap().write_all(b"{\"n\":7,\"tu\n").unwrap();
        let history = History::new(dir.path().join("session"));
        history.begin(9);
        history.keep(&change("0", "2")).await.unwrap();
        fs::write(&path, "2").unwrap();
        let undos = history.undo(1, false, &Disk).await.unwrap();
        assert_eq!((undos.len(), fs::read_to_string(&path).unwrap().as_str()), (1, "0"));
    }
}
