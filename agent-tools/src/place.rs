//! Where a session is. Below policy and context, so that neither needs the other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
#[cfg(feature = "builtin")]
use std::sync::OnceLock;

/// Where a session is: everything that a program would otherwise ask the process for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Place {
    /// The working directory, absolute. Relative paths of the model start here.
    pub cwd: PathBuf,
    /// Further directories that count as workspace (`--add-dir`), absolute.
    pub roots: Vec<PathBuf>,
    /// The home directory, where there is one: `~/` in a path.
    pub home: Option<PathBuf>,
    /// The session's own directory, where there is one.
    pub store: Option<PathBuf>,
    /// The agent's own settings and keys: sensitive, whatever lies around them.
    pub private: Vec<PathBuf>,
    /// The whole environment that commands get. The agent's own keys are not in it.
    pub env: Vec<(OsString, OsString)>,
    /// How commands are confined.
    pub sandbox: Sandbox,
    /// What was found at the first question.
    #[cfg(feature = "builtin")]
    pub(crate) settled: OnceLock<Settled>,
}

/// Directories with their links followed, as they were at the first question: a command must not move the workspace or
/// the session by laying a link in its place.
#[cfg(feature = "builtin")]
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) workspace: Vec<PathBuf>,
    pub(crate) store: Option<PathBuf>,
}

impl Place {
    /// A place with only a working directory: no home, no store, an empty environment.
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: cwd.into(), ..Self::default() }
    }

    /// The path that a model's text means: `~/` is the home directory, relative paths start at the working directory.
    /// `..` and links are left as they are.
    pub fn absolute(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/").or(if path == "~" { Some("") } else { None }), &self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => self.cwd.join(path),
        }
    }

    /// The directories that count as workspace.
    pub fn workspace(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.cwd.as_path()).chain(self.roots.iter().map(PathBuf::as_path))
    }
}

/// How commands are confined by the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// The best that the kernel offers.
    #[default]
    Auto,
    /// No command runs without it.
    Require,
    /// None.
    Off,
}
