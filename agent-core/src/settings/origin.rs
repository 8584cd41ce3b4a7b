//! Where a value comes from, and what is said of it when it is wrong.

use std::fmt;
use std::path::PathBuf;

use super::Key;

/// Where a value comes from. Later ones win.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The user's settings file.
    User(PathBuf),
    /// The project's settings file: it may tighten, not widen.
    Project(PathBuf),
    /// A variable of the environment.
    Env(String),
    /// A flag.
    Flag(String),
}

impl Source {
    fn is_file(&self) -> bool {
        matches!(self, Self::User(_) | Self::Project(_))
    }

    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::User(_) => 1,
            Self::Project(_) => 2,
            Self::Env(_) => 3,
            Self::Flag(_) => 4,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(path) | Self::Project(path) => path.display().fmt(f),
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Settings that cannot be used: a person has to mend them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{at}{}: {problem}", if at.is_file() { "cannot use the settings of " } else { "" }, Line(*line))]
#[non_exhaustive]
pub struct SettingsError {
    /// Whose.
    pub at: Source,
    /// The line in the file, the first being 1.
    pub line: Option<u64>,
    /// The setting, where it is one.
    pub key: Option<String>,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl SettingsError {
    pub(super) fn new(at: &Source, line: Option<u64>, problem: impl Into<String>) -> Self {
        Self { at: at.clone(), line, key: None, problem: plain(&problem.into()) }
    }

    pub(super) fn of(at: &Source, key: &Key, line: Option<u64>, problem: &str) -> Self {
        Self { at: at.clone(), line, key: Some(key.name.into()), problem: plain(problem) }
    }
}

/// Something that a person should know of the settings, though they can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Whose.
    pub source: Source,
    /// The line in the file, the first being 1.
    pub line: Option<u64>,
    /// What.
    pub text: String,
}

impl Warning {
    pub(super) fn new(source: &Source, line: Option<u64>, text: &str) -> Self {
        Self { source: source.clone(), line, text: plain(text) }
    }
}

/// Files of strangers are quoted here: what would control a terminal is replaced, what is long is cut.
fn plain(text: &str) -> String {
    let mut plain: String = text.chars().take(400).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if plain.len() < text.len() {
        plain.push('…');
    }
    plain
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.source, Line(self.line), self.text)
    }
}

struct Line(Option<u64>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ", line {line}"))
    }
}
