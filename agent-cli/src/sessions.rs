//! Which session a run has: a new one, an earlier one, a copy of it, or one that leaves nothing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::session::{self, Journal, JsonLines, LoadError, Loaded, Nowhere, Sessions, Store};
use agent_core::{Clock, Session, SessionId};
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

/// A session to go on with.
pub struct Earlier {
    directory: PathBuf,
    loaded: Loaded,
}

/// Finds and reads the session to go on with; none for a new one. Changes nothing.
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
    directory.map(read).transpose()
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

fn named(name: &str, sessions: &Sessions) -> Result<PathBuf, CliError> {
    let directory = sessions.find(name).ok_or_else(|| wrong(format!("there is no session {name}")))?;
    let path = Path::new(name);
    // Any other file beside a log is not that log.
    if name.contains('/') && path.is_file() && path.file_name() != Sessions::log(&directory).file_name() {
        return Err(wrong(format!("{name} is no session")));
    }
    Ok(directory)
}

fn wrong(problem: String) -> CliError {
    CliError::usage(problem).hint("name a session's id, or the path of its log.jsonl")
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
    let Earlier { directory, loaded } = earlier;
    tell(&loaded.repairs);
    let (id, directory) = if setup.args.fork {
        let id = SessionId::new(RealClock.now());
        let copy = sessions.directory(&id);
        if !setup.args.no_session {
            Sessions::copy(&directory, &copy).map_err(|e| CliError::failed(format!("copying the session: {e}")))?;
        }
        (id, copy)
    } else {
        (SessionId::named(directory.file_name().unwrap_or_default().to_string_lossy()), directory)
    };
    let store = store(setup, &directory);
    let journal = journal(setup, id, store).after(loaded.seq);
    Ok(Session::resumed(setup.place(Some(files_in(&directory, scratch))), journal, loaded))
}

/// Reads a session. A file without a single numbered line is somebody else's, and is not written to.
fn read(directory: PathBuf) -> Result<Earlier, CliError> {
    let path = Sessions::log(&directory);
    let loaded = File::open(&path).map_err(LoadError::from).and_then(session::read);
    let loaded = loaded.map_err(|error| match error {
        LoadError::NoSession => wrong(format!("{} is no session: {error}", path.display())),
        _ => CliError::usage(format!("reading the session {}: {error}", path.display())),
    })?;
    Ok(Earlier { directory, loaded })
}

fn store(setup: &Setup, directory: &Path) -> Box<dyn Store> {
    if setup.args.no_session { Box::new(Nowhere) } else { Box::new(JsonLines::new(Sessions::log(directory))) }
}

fn journal(setup: &Setup, id: SessionId, store: Box<dyn Store>) -> Journal {
    Journal::new(id, store, Arc::new(RealClock), setup.world.cwd.to_string_lossy())
}
