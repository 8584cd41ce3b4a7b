//! Back to before a turn: the conversation, the files that tools changed, or both.

use std::io;

use super::{Session, load};
use crate::history::{Undo, UndoState};

/// What goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Back {
    /// The conversation and the files.
    #[default]
    Both,
    /// The conversation alone.
    Conversation,
    /// The files alone.
    Files,
}

/// Why nothing went back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// There is no such turn.
    #[error("there is no turn {turn}: this session has {turns}")]
    NoTurn {
        /// The turn that was named.
        turn: usize,
        /// How many there are.
        turns: usize,
    },
    /// Somebody else has changed files since.
    #[error("{} of the files were changed by somebody else since, so nothing was put back", undos.iter().filter(|undo| undo.state == UndoState::Changed).count())]
    Changed {
        /// All files that the turns changed, and how each stands.
        undos: Vec<Undo>,
    },
    /// The session's log is kept nowhere.
    #[error("this session is kept nowhere, so its conversation cannot go back")]
    NotKept,
    /// The disk, or the log.
    #[error("going back: {0}")]
    Failed(String),
}

impl From<io::Error> for RewindError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Session {
    /// What going back to before this turn (the first being 1) does to files. Changes that commands made are not known,
    /// and stay.
    ///
    /// # Errors
    /// There is no such turn; the disk.
    pub fn files_before(&self, turn: usize) -> Result<Vec<Undo>, RewindError> {
        let line = self.line_of(turn)?;
        Ok(self.history.as_ref().map(|history| history.back_to(line)).transpose()?.unwrap_or_default())
    }

    /// Goes back to before this turn, the first being 1. Nothing is done where a file was changed by somebody else since,
    /// unless it is `forced`: then what the file holds is kept in the session's directory first. Says what became of the
    /// files. What was spent stays spent.
    ///
    /// # Errors
    /// See [`RewindError`].
    pub async fn rewind(&mut self, turn: usize, back: Back, forced: bool) -> Result<Vec<Undo>, RewindError> {
        let line = self.line_of(turn)?;
        let undos = match (back, &self.history) {
            (Back::Both | Back::Files, Some(history)) => {
                let undos = history.undo(line, forced, &*self.files).await?;
                if !forced && undos.iter().any(|undo| undo.state == UndoState::Changed) {
                    return Err(RewindError::Changed { undos });
                }
                undos
            }
            (Back::Conversation, _) | (Back::Both | Back::Files, None) => Vec::new(),
        };
        match back {
            Back::Both | Back::Conversation => self.forget(turn, line)?,
            Back::Files => {}
        }
        Ok(undos)
    }

    fn line_of(&self, turn: usize) -> Result<u64, RewindError> {
        let start = turn.checked_sub(1).and_then(|at| self.turns.get(at));
        start.map(|start| start.line).ok_or(RewindError::NoTurn { turn, turns: self.turns.len() })
    }

    /// Makes the conversation what it was before this line: from the log, since it may have been compacted meanwhile.
    fn forget(&mut self, turn: usize, line: u64) -> Result<(), RewindError> {
        if self.journal.reader()?.is_none() {
            return Err(RewindError::NotKept);
        }
        self.journal.rewind(turn as u64, line)?;
        let log = self.journal.reader()?.ok_or(RewindError::NotKept)?;
        let loaded = load::read(log).map_err(|error| RewindError::Failed(error.to_string()))?;
        self.results.clear();
        self.read_plan();
        self.take_up(loaded);
        Ok(())
    }
}
