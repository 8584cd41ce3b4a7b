//! The two toolsets: what each calls the mechanisms of [`crate::builtin`].

mod lean;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use agent_skills::Catalogue;

use crate::tools::Tools;

/// A set of tools with names, arguments and wording of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolset {
    /// Five small tools.
    Lean,
}

impl Toolset {
    /// All there are.
    pub const ALL: [Self; 1] = [Self::Lean];

    /// Its word in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
        }
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Toolset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|t| t.name() == text)
            .ok_or_else(|| format!("`{text}` is no toolset; there are: {}", known()))
    }
}

/// What a toolset is made from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Parts {
    /// Declare the shell (`bashTool`).
    pub shell: bool,
    /// Declare the file tools (`editTools`).
    pub files: bool,
    /// The skills; the tool for them is declared where there is one.
    pub skills: Arc<Catalogue>,
    /// How much of a result the model reads (`maxOutput`), in the toolset's unit.
    pub max_output: usize,
    /// How long a command may run.
    pub timeout: Duration,
}

impl Default for Parts {
    /// All tools, no skills, the limits of toolset `lean`: 10,000 characters, 30 seconds.
    fn default() -> Self {
        Self { shell: true, files: true, skills: Arc::default(), max_output: 10_000, timeout: Duration::from_secs(30) }
    }
}

/// The tools of a toolset.
pub fn tools(toolset: Toolset, parts: &Parts) -> Tools {
    match toolset {
        Toolset::Lean => lean::tools(parts),
    }
}
