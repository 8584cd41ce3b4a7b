//! The two toolsets: what each calls the mechanisms of [`crate::builtin`].

mod full;
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
    /// Eleven tools: search, todo list, plans and sub-agents besides.
    Full,
}

impl Toolset {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Lean, Self::Full];

    /// Its word in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
            Self::Full => "full",
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
    /// Declare the shell (`bashTool`); `lean` only.
    pub shell: bool,
    /// Declare the file tools (`editTools`); `lean` only.
    pub files: bool,
    /// The skills; the tool for them is declared where there is one.
    pub skills: Arc<Catalogue>,
    /// How much of a result the model reads (`maxOutput`), in the toolset's unit.
    pub max_output: usize,
    /// How long a command may run.
    pub timeout: Duration,
    /// Commands run in a login shell (`loginShell`).
    pub login_shell: bool,
}

impl Parts {
    /// All tools, no skills, and the limits that the toolset has where nobody says otherwise.
    pub fn of(toolset: Toolset) -> Self {
        let (max_output, seconds) = match toolset {
            Toolset::Lean => (10_000, 30),
            Toolset::Full => (51_200, 600),
        };
        let (skills, timeout) = (Arc::default(), Duration::from_secs(seconds));
        Self { shell: true, files: true, skills, max_output, timeout, login_shell: false }
    }
}

/// The tools of a toolset.
pub fn tools(toolset: Toolset, parts: &Parts) -> Tools {
    match toolset {
        Toolset::Lean => lean::tools(parts),
        Toolset::Full => full::tools(parts),
    }
}
