//! What tools tell and ask the program around them.

use std::future::pending;

use async_trait::async_trait;

use crate::call::{Call, Outline};
use crate::error::ToolError;
use crate::output::Change;

/// The program around the tools. Every method has a default: a lone embedder implements nothing,
/// and then nobody can be asked (what would need a question is refused).
#[async_trait]
pub trait Host: Send + Sync {
    /// A call was found and decoded; nothing has happened yet. Told by [`crate::dispatch`] alone.
    async fn called(&self, _call: &Call, _outline: &Outline) {}

    /// Tells whether a person can answer a question. Where nobody can, nothing is asked.
    fn attended(&self) -> bool {
        false
    }

    /// Asks a person. `change` is what would be written, where that is known.
    async fn ask(&self, _call: &Call, _outline: &Outline, _why: &str, _change: Option<&Change>) -> Answer {
        Answer::Reject
    }

    /// The call is about to change the world: the last chance to keep what was there before.
    ///
    /// # Errors
    /// An error stops the call before it did anything.
    async fn started(&self, _call: &Call, _change: Option<&Change>) -> Result<(), ToolError> {
        Ok(())
    }

    /// The last lines that a running call printed. Never waits; may be dropped.
    fn progress(&self, _call: &Call, _tail: &str) {}

    /// Becomes ready when the call is to stop.
    async fn cancelled(&self) {
        pending::<()>().await;
    }

    /// Hands a task to another agent; answers with the text that the model reads.
    ///
    /// # Errors
    /// Where there is no other agent.
    async fn delegate(&self, _task: SubTask) -> Result<String, ToolError> {
        Err(ToolError::new("sub-agents are not available here; do the work yourself"))
    }

    /// Compacts the conversation.
    ///
    /// # Errors
    /// Where there is no conversation, or its summary failed.
    async fn compact(&self, _trigger: &'static str) -> Result<(), ToolError> {
        Err(ToolError::new("there is no conversation to compact"))
    }

    /// Something that the model is told before its next request.
    fn note(&self, _note: Note) {}
}

/// Nobody around: questions are refused, news go nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Host for Alone {}

/// A person's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// For the rest of the session, as far as the call's grants say.
    Session,
    /// No.
    Reject,
}

/// Work for another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubTask {
    /// What it is to do.
    pub prompt: String,
    /// A few words for people.
    pub description: String,
    /// Whether it starts with the conversation so far.
    pub fork: bool,
}

/// News for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The text.
    pub text: String,
}

impl Note {
    /// News with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}
