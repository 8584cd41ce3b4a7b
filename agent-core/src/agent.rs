//! The agent: a value. A new model or toolset is a new agent.

use std::sync::Arc;

use agent_tools::Tools;
use agent_tools::policy::Policy;
use jiff::Timestamp;

use crate::prompt::Sections;
use crate::provider::{Effort, Provider};

/// What a turn works with. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The tools.
    pub tools: Tools,
    /// Who judges calls.
    pub policy: Arc<dyn Policy>,
    /// The system prompt.
    pub prompt: Arc<Sections>,
    /// Limits of a turn.
    pub limits: Limits,
}

/// Limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Requests in one turn.
    pub max_turns: u64,
    /// Equal calls in a row that end the turn; 0: never.
    pub loop_limit: u32,
    /// Tokens of one answer; none: the model's own limit.
    pub max_tokens: Option<u64>,
    /// How hard the model is to think; none: its own default.
    pub effort: Option<Effort>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_turns: 1000, loop_limit: 10, max_tokens: None, effort: None }
    }
}

/// The time of day. Frontends have the real one; tests a fixed one.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}
