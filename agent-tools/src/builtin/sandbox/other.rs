//! Systems without Landlock: on macOS a command is started through Seatbelt, elsewhere nothing confines it.

use std::io;

use super::seatbelt::{self, Front};
use super::{Limits, NotStarted, Report};

/// What this system offers.
pub(super) fn offered() -> Report {
    if cfg!(target_os = "macos") {
        return Report { by: Some("seatbelt (untested)".into()), lacking: None, holds: true };
    }
    Report::none("this system has no sandbox that is known here")
}

/// What stands in front of the command.
pub(in crate::builtin) fn front(limits: Option<&Limits>) -> Option<Front> {
    limits.map(seatbelt::front)
}

/// What a session's commands are started with; here they need nothing in common.
#[derive(Debug, Default)]
pub(in crate::builtin) struct Keeper;

impl Keeper {
    /// Nothing here can be told by what it was started from.
    pub(in crate::builtin) fn end_all(&self) {}

    /// Starts a command that is wrapped already.
    ///
    /// # Errors
    /// Those of the start.
    pub(in crate::builtin) fn start<T>(
        &self,
        _limits: Option<Limits>,
        start: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, NotStarted> {
        Ok(start()?)
    }
}
