//! Which session a run has: a new one, an earlier one, a copy of it, or one that leaves nothing.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::session::{self, FindError, Journal, JsonLines, LoadError, Loaded, Nowhere, Sessions, Store};
use agent_core::{Block, Clock, Message, Session, SessionId};
use jiff::Timestamp;

use crate::error::CliError;
use crate::setup::Setup;
use crate::view::tell;

/// The real clock.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// More than the last line of a log is long that tells of an end, in bytes.
const TAIL: u64 = 4096;

/// A session to go on with.
pub struct Earlier {
    directory: PathBuf,
    loaded: Loaded,
    /// Its log, for this process alone; none where it is only read.
    log: Option<JsonLines>,
}

/// Finds and reads the session to go on with; none for a new one. Changes nothing, but keeps other processes from it.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub fn earlier(setup: &Setup) -> Result<Option<Earlier>, CliError> {
    let sessions = setup.sessions();
    let directory = match &setup.args.resume {
        Some(name) => Some(named(name, &sessions)?),
        None if wants_last(setup) => sessions.latest(),
        None => None,
    };
    directory.map(|directory| read(setup, directory)).transpose()
}

/// The last session is wanted, whichever that is.
fn wants_last(setup: &Setup) -> bool {
    setup.args.continue_last || setup.args.fork
}

/// Opens the session to go on with, or a new one. `scratch`: its files lie there, and not where sessions are kept.
///
/// # Errors
/// Its copy cannot be written.
pub fn open(setup: &Setup, earlier: Option<Earlier>, scratch: Option<&Path>) -> Result<Session, CliError> {
    let sessions = setup.sessions();
    if earlier.is_none() && wants_last(setup) {
        tell(&["this project has no earlier session: this is a new session".into()]);
    }
    match earlier {
        Some(earlier) => resume(setup, &sessions, earlier, scratch),
        None => Ok(fresh(setup, &sessions, scratch)),
    }
}

/// The answer of a session whose last turn came to its end; none where something is left to do.
pub fn answered(session: &Session) -> Option<String> {
    let log = Sessions::log(session.place.store.as_deref()?);
    let mut file = File::open(log).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let last: serde_json::Value = serde_json::from_slice(last).ok()?;
    let Message::Assistant(blocks) = session.messages().last()? else { return None };
    let said = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Call { .. } | Block::Opaque { .. } => None,
    };
    (last["type"] == "stop" && last["reason"] == "end_turn").then(|| blocks.iter().filter_map(said).collect())
}

/// The directory of the session that a person means.
///
/// # Errors
/// There is none, or several may be meant.
pub fn named(meant: &str, sessions: &Sessions) -> Result<PathBuf, CliError> {
    let directory = sessions.find(meant).map_err(|error| match error {
        FindError::Nothing(_) => wrong(error.to_string()),
        _ => CliError::usage(error).hint("name more of its id"),
    })?;
    let path = Path::new(meant);
    // Any other file beside a log is not that log.
    if path.is_file() && path.file_name() != Sessions::log(&directory).file_name() {
        return Err(wrong(format!("{meant} is no session")));
    }
    Ok(directory)
}

fn wrong(problem: String) -> CliError {
    CliError::usage(problem)
        .hint("name a session's id or name, or the path of its log.jsonl; `agent sessions` lists them")
}

fn fresh(setup: &Setup, sessions: &Sessions, scratch: Option<&Path>) -> Session {
    let id = SessionId::new(RealClock.now());
    let directory = sessions.directory(&id);
    let journal = journal(setup, id, store(setup, &directory));
    Session::new(setup.place(Some(files_in(&directory, scratch))), journal)
}

/// Where a session keeps its own files.
fn files_in(directory: &Path, scratch: Option<&Path>) -> PathBuf {
    scratch.unwrap_or(directory).to_owned()
}

fn resume(setup: &Setup, sessions: &Sessions, earlier: Earlier, scratch: Option<&Path>) -> Result<Session, CliError> {
    let Earlier { directory, loaded, log } = earlier;
    tell(&loaded.repairs);
    tell_of_another_place(setup, &loaded);
    let (id, directory, store) = if setup.args.fork {
        copied(setup, sessions, &directory, &loaded)?
    } else {
        let id = SessionId::named(directory.file_name().unwrap_or_default().to_string_lossy());
        let store: Box<dyn Store> = log.map_or_else(|| -> Box<dyn Store> { Box::new(Nowhere) }, |log| Box::new(log));
        (id, directory, store)
    };
    let journal = journal(setup, id, store).after(loaded.seq);
    Ok(Session::resumed(setup.place(Some(files_in(&directory, scratch))), journal, loaded))
}

/// A session that was begun elsewhere, in another directory or on another machine, goes on here.
fn tell_of_another_place(setup: &Setup, loaded: &Loaded) {
    let here = setup.world.cwd.to_string_lossy();
    if let Some(there) = loaded.cwd.as_deref().filter(|there| *there != here) {
        tell(&[format!("this session was begun in {there}; it goes on in {here}")]);
    }
}

/// A copy of a session: its id, its directory and its log.
fn copied(
    setup: &Setup,
    sessions: &Sessions,
    from: &Path,
    loaded: &Loaded,
) -> Result<(SessionId, PathBuf, Box<dyn Store>), CliError> {
    let id = SessionId::new(RealClock.now());
    let directory = sessions.directory(&id);
    if !setup.args.no_session {
        let copied = Sessions::copy(from, loaded.bytes, &directory);
        copied.map_err(|e| CliError::failed(format!("copying the session: {e}")))?;
    }
    let store = store(setup, &directory);
    Ok((id, directory, store))
}

/// Reads a session. A file without a single numbered line is somebody else's, and is not written to.
fn read(setup: &Setup, directory: PathBuf) -> Result<Earlier, CliError> {
    let path = Sessions::log(&directory);
    let only_read = setup.args.fork || setup.args.no_session;
    let reading = |error: io::Error| match error.kind() {
        io::ErrorKind::ResourceBusy => in_use(&directory),
        _ => CliError::usage(format!("reading the session {error}"))
            .hint("--fork goes on in a copy of a session, --no-session keeps nothing of what comes"),
    };
    let (log, file) = if only_read {
        (None, File::open(&path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))))
    } else {
        let log = JsonLines::open(&path, tell_one).map_err(reading)?;
        let file = log.file();
        (Some(log), file)
    };
    let loaded = session::read(file.map_err(reading)?).map_err(|error| match error {
        LoadError::NoSession => wrong(format!("{} is no session: {error}", path.display())),
        _ => CliError::usage(format!("reading the session {}: {error}", path.display())),
    })?;
    Ok(Earlier { directory, loaded, log })
}

/// Another process has the session.
pub fn in_use(directory: &Path) -> CliError {
    let id = directory.file_name().unwrap_or_default().to_string_lossy();
    CliError::usage(format!("session {id} is in use by another process")).hint("--fork goes on in a copy of it")
}

fn tell_one(line: &str) {
    tell(&[line.to_owned()]);
}

fn store(setup: &Setup, directory: &Path) -> Box<dyn Store> {
    if setup.args.no_session {
        return Box::new(Nowhere);
    }
    Box::new(JsonLines::new(Sessions::log(directory)).telling(tell_one))
}

fn journal(setup: &Setup, id: SessionId, store: Box<dyn Store>) -> Journal {
    Journal::new(id, store, Arc::new(RealClock), setup.world.cwd.to_string_lossy())
}
