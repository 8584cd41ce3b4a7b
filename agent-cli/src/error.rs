//! Errors for a person at a shell: what we were doing, why it failed, a hint; and the exit code.

use std::fmt;

use agent_core::setup::{SetupError, SetupErrorKind};

/// The exit codes of `agent`. They are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Done = 0,
    /// The model or the network failed, or the answer was cut or refused.
    Failed = 1,
    /// Wrong usage or settings.
    Usage = 2,
    /// A limit was reached: turns, cost, equal calls.
    Limit = 3,
    /// The model ended the turn after its last call had been blocked.
    Blocked = 4,
    /// Interrupted.
    Interrupted = 130,
}

/// An error that ends the program.
#[derive(Debug)]
pub struct CliError {
    /// The exit code.
    pub exit: Exit,
    /// What went wrong, as a full sentence without a final dot after a path.
    pub message: String,
    /// What to do about it, a line each.
    pub hints: Vec<String>,
}

impl CliError {
    /// Wrong usage or settings: exit code 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), hints: Vec::new() }
    }

    /// Something failed: exit code 1.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Failed, ..Self::usage(message) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        for hint in &self.hints {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CliError {}

impl From<SetupError> for CliError {
    fn from(error: SetupError) -> Self {
        let exit = match error.kind {
            SetupErrorKind::Usage | SetupErrorKind::NoModel | SetupErrorKind::NoSession | SetupErrorKind::InUse => {
                Exit::Usage
            }
            SetupErrorKind::Failed => Exit::Failed,
        };
        Self { exit, message: error.message, hints: error.hints }
    }
}
