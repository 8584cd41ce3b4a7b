//! Which session a frontend works in: a new one, an earlier one, a copy of it, or one that leaves nothing.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{Setup, SetupError, SetupErrorKind};
use crate::session::{
    self, FindError, Journal, JsonLines, LoadError, Loaded, Nowhere, Session, SessionId, Sessions, Store,
};
use crate::settings::rules;

/// Which session is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Which one.
    pub which: Which,
    /// A copy of it.
    pub fork: bool,
}

/// One of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Which {
    /// A new one.
    #[default]
    New,
    /// The one that was used last; a new one where there is none.
    Last,
    /// This one: its id, its name, or the path of its log.
    Named(String),
}

/// A session to go on with.
pub struct Earlier {
    directory: PathBuf,
    loaded: Loaded,
    /// Its log, for this process alone; none where it is only read.
    log: Option<JsonLines>,
}

impl Earlier {
    /// What its log came to.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Finds and reads the session to go on with; none for a new one. Changes nothing, but keeps other processes from it.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub fn earlier(setup: &Setup, wanted: &Wanted) -> Result<Option<Earlier>, SetupError> {
    let sessions = setup.sessions();
    let directory = match &wanted.which {
        Which::Named(name) => Some(named(name, &sessions)?),
        Which::Last => sessions.latest(),
        Which::New => None,
    };
    directory.map(|directory| read(setup, directory, wanted.fork)).transpose()
}

/// Opens the session to go on with, or a new one, with what the person has allowed for good. `scratch`: its files lie there, and not where sessions are kept.
///
/// # Errors
/// Its copy cannot be written.
pub fn open(
    setup: &Setup,
    wanted: &Wanted,
    earlier: Option<Earlier>,
    scratch: Option<&Path>,
) -> Result<Session, SetupError> {
    let sessions = setup.sessions();
    let mut session = match earlier {
        Some(earlier) => resume(setup, &sessions, earlier, wanted.fork, scratch)?,
        None => fresh(setup, &sessions, scratch),
    };
    match rules::load(&setup.rules_file()) {
        Ok(rules) => session.grant(&rules),
        Err(problem) => setup.tell(&[problem]),
    }
    Ok(session)
}

fn fresh(setup: &Setup, sessions: &Sessions, scratch: Option<&Path>) -> Session {
    let mut id = SessionId::new(setup.clock.now());
    while sessions.directory(&id).exists() {
        id = SessionId::new(setup.clock.now());
    }
    let directory = sessions.directory(&id);
    let journal = journal(setup, id, store(setup, &directory));
    Session::new(setup.place(Some(files_in(&directory, scratch))), journal)
}

/// The directory of the session that a person means.
///
/// # Errors
/// There is none, or several may be meant.
pub fn named(meant: &str, sessions: &Sessions) -> Result<PathBuf, SetupError> {
    let directory = sessions.find(meant).map_err(|error| match error {
        FindError::Nothing(_) => wrong(error.to_string()),
        FindError::Several { .. } => SetupError::new(SetupErrorKind::NoSession, error).hint("name more of its id"),
    })?;
    let path = Path::new(meant);
    // Any other file beside a log is not that log.
    if path.is_file() && path.file_name() != Sessions::log(&directory).file_name() {
        return Err(wrong(format!("{meant} is no session")));
    }
    Ok(directory)
}

fn wrong(problem: String) -> SetupError {
    SetupError::new(SetupErrorKind::NoSession, problem)
        .hint("name a session's id or name, or the path of its log.jsonl; `agent sessions` lists them")
}

/// Where a session keeps its own files.
fn files_in(directory: &Path, scratch: Option<&Path>) -> PathBuf {
    scratch.unwrap_or(directory).to_owned()
}

fn resume(
    setup: &Setup,
    sessions: &Sessions,
    earlier: Earlier,
    fork: bool,
    scratch: Option<&Path>,
) -> Result<Session, SetupError> {
    let Earlier { directory, loaded, log } = earlier;
    setup.tell(&loaded.repairs);
    tell_of_another_place(setup, &loaded);
    let (id, directory, store) = if fork {
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
        setup.tell(&[format!("this session was begun in {there}; it goes on in {here}")]);
    }
}

/// A copy of a session: its id, its directory and its log.
fn copied(
    setup: &Setup,
    sessions: &Sessions,
    from: &Path,
    loaded: &Loaded,
) -> Result<(SessionId, PathBuf, Box<dyn Store>), SetupError> {
    let id = SessionId::new(setup.clock.now());
    let directory = sessions.directory(&id);
    if setup.keeps {
        let failed = |e| SetupError::new(SetupErrorKind::Failed, format!("copying the session: {e}"));
        Sessions::copy(from, loaded.bytes, &directory).map_err(failed)?;
    }
    let store = store(setup, &directory);
    Ok((id, directory, store))
}

/// Reads a session. A file without a single numbered line is somebody else's, and is not written to.
fn read(setup: &Setup, directory: PathBuf, fork: bool) -> Result<Earlier, SetupError> {
    let path = Sessions::log(&directory);
    let reading = |error: io::Error| match error.kind() {
        io::ErrorKind::ResourceBusy => in_use(&directory),
        _ => SetupError::usage(format!("reading the session {error}"))
            .hint("--fork goes on in a copy of a session, --no-session keeps nothing of what comes"),
    };
    let (log, file) = if fork || !setup.keeps {
        (None, File::open(&path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display()))))
    } else {
        let log = JsonLines::open(&path, telling(setup)).map_err(reading)?;
        let file = log.file();
        (Some(log), file)
    };
    let loaded = session::read(file.map_err(reading)?).map_err(|error| match error {
        LoadError::NoSession => wrong(format!("{} is no session: {error}", path.display())),
        LoadError::Read(_) | LoadError::Newer { .. } => {
            SetupError::usage(format!("reading the session {}: {error}", path.display()))
        }
    })?;
    Ok(Earlier { directory, loaded, log })
}

/// Another process has the session.
pub fn in_use(directory: &Path) -> SetupError {
    let id = directory.file_name().unwrap_or_default().to_string_lossy();
    SetupError::new(SetupErrorKind::InUse, format!("session {id} is in use by another process"))
        .hint("--fork goes on in a copy of it")
}

fn telling(setup: &Setup) -> impl Fn(&str) + Send + Sync + use<> {
    let tell = setup.tell.clone();
    move |line| tell(&[line.to_owned()])
}

fn store(setup: &Setup, directory: &Path) -> Box<dyn Store> {
    if !setup.keeps {
        return Box::new(Nowhere);
    }
    Box::new(JsonLines::new(Sessions::log(directory)).telling(telling(setup)))
}

fn journal(setup: &Setup, id: SessionId, store: Box<dyn Store>) -> Journal {
    Journal::new(id, store, setup.clock.clone(), setup.world.cwd.to_string_lossy())
}
