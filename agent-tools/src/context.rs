//! What a call works with: the place, the files, the policy, the program around it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use crate::call::Call;
use crate::host::{Alone, Host};
use crate::jobs::Jobs;
use crate::place::Place;
use crate::policy::{Mode, Policy};

/// What a call works with. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// Where the session is.
    pub place: Arc<Place>,
    /// Files: the disk, or an editor's unsaved buffers over it.
    pub files: Arc<dyn Files>,
    /// Who judges calls.
    pub policy: Arc<dyn Policy>,
    /// The program around the tools.
    pub host: Arc<dyn Host>,
    /// What outlives a call. Dropping the last context of a session ends it.
    pub jobs: Arc<Jobs>,
    /// What the call at hand may do at most; none outside of a call. The gate sets it: a path is looked at again when it
    /// is opened, and by then links may lead elsewhere.
    pub permitted: Option<Mode>,
}

impl ToolContext {
    /// A context over the disk with nobody around. There is no default policy: an embedder must name one.
    pub fn new(cwd: impl Into<PathBuf>, policy: impl Policy + 'static) -> Self {
        #[cfg(feature = "builtin")]
        let files: Arc<dyn Files> = Arc::new(crate::builtin::Disk);
        #[cfg(not(feature = "builtin"))]
        let files: Arc<dyn Files> = Arc::new(NoFiles);
        Self {
            place: Arc::new(Place::new(cwd)),
            files,
            policy: Arc::new(policy),
            host: Arc::new(Alone),
            jobs: Arc::new(Jobs::default()),
            permitted: None,
        }
    }
}

/// Files as the tools read and write them. Paths are absolute, with their links followed: an implementation follows none,
/// so that what is opened is what was judged. `policy::zone::locate` gives such a path.
#[async_trait]
pub trait Files: Send + Sync {
    /// Opens a regular file for reading. Never waits for another process: a pipe, a socket, a device or a
    /// directory is an error.
    ///
    /// # Errors
    /// Those of the disk; [`io::ErrorKind::NotFound`] where there is nothing, [`io::ErrorKind::IsADirectory`],
    /// [`io::ErrorKind::InvalidInput`] for what is no regular file.
    async fn open(&self, path: &Path) -> io::Result<Opened>;

    /// Replaces the contents of a file, whole or not at all, or makes it and its parents. Keeps mode, owner where
    /// possible. `expected` is what it held when the change was worked out (none: there was
    /// no file).
    ///
    /// # Errors
    /// [`WriteError::Changed`] where the file does not hold `expected` any more; those of the disk.
    async fn replace(&self, path: &Path, expected: Option<&[u8]>, contents: &[u8]) -> Result<(), WriteError>;
}

/// A file that is open for reading.
pub struct Opened {
    /// Its bytes, from the start.
    pub reader: Box<dyn Read + Send>,
    /// How many bytes it had when it was opened.
    pub len: u64,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It changed after the change was worked out.
    #[error("the file was changed by someone else meanwhile")]
    Changed,
    /// The disk said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// No files at all: what a context has when the crate is built without its tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

#[async_trait]
impl Files for NoFiles {
    async fn open(&self, _path: &Path) -> io::Result<Opened> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn replace(&self, _path: &Path, _expected: Option<&[u8]>, _contents: &[u8]) -> Result<(), WriteError> {
        Err(io::Error::from(io::ErrorKind::Unsupported).into())
    }
}

/// The leave to run a call. Only the gate makes one.
pub struct Permit<'a> {
    call: &'a Call,
    mode: Mode,
}

impl<'a> Permit<'a> {
    pub(crate) fn new(call: &'a Call, mode: Mode) -> Self {
        Self { call, mode }
    }

    /// The call that was let through.
    pub fn call(&self) -> &Call {
        self.call
    }

    /// The ceiling and what this call was let do besides.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same leave for what goes on when the call was answered.
    #[cfg(feature = "builtin")]
    pub(crate) fn lasting(&self) -> Lasting {
        Lasting { call: self.call.clone(), mode: self.mode }
    }
}

/// A leave that outlasts its call: a background command has it.
#[cfg(feature = "builtin")]
pub(crate) struct Lasting {
    call: Call,
    mode: Mode,
}

#[cfg(feature = "builtin")]
impl Lasting {
    pub(crate) fn permit(&self) -> Permit<'_> {
        Permit { call: &self.call, mode: self.mode }
    }
}
