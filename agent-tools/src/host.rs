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

    /// Tells whether an earlier answer of a person covers this call: then nobody is asked.
    async fn granted(&self, _call: &Call, _outline: &Outline) -> bool {
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
    /// Its summary failed; the conversation is as it was.
    async fn compact(&self, _trigger: &'static str) -> Result<Compaction, ToolError> {
        Ok(Compaction::NotHere)
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

/// What became of a wish to compact the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// It is shorter now.
    Done,
    /// Nothing here compacts conversations.
    NotHere,
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

impl SubTask {
    /// This to do, in a conversation of its own.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), description: String::new(), fork: false }
    }
}

/// News for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The text that the model reads.
    pub text: String,
    /// The background command that ended, where that is the news.
    pub task: Option<TaskEnd>,
}

impl Note {
    /// News with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), task: None }
    }

    /// The news that a background command has ended.
    pub fn ended(task: TaskEnd) -> Self {
        let TaskEnd { id, exit_code, output } = &task;
        let output = if output.is_empty() { String::new() } else { format!("\nOutput: {output}") };
        Self { text: format!("[bg-bash {id}] exit_code={exit_code}{output}"), task: Some(task) }
    }
}

/// How a background command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnd {
    /// Its id.
    pub id: String,
    /// Its exit status; 128 and the signal's number where a signal killed it, 124 where it ran into its limit.
    pub exit_code: i32,
    /// What it printed, cut as results are.
    pub output: String,
}
