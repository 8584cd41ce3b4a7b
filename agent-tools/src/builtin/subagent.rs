//! Hands a task to another agent.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::host::SubTask;
use crate::output::ToolOutput;
use crate::text::clipped;
use crate::tool::{Declaration, Prepared, Tool};

/// How much of a prompt stands for a description that is missing, in characters.
const SHOWN: usize = 60;

/// Hands a task to another agent, through the host. What that agent calls is judged call by call.
#[derive(Debug)]
pub struct SubAgent;

/// The arguments of `SubAgent`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// What it is to do. Without `fork` it sees nothing of this conversation: name all paths, names and limits.
    prompt: String,
    /// A few words for the person who watches.
    #[serde(default)]
    description: String,
    /// Start it with this conversation.
    #[serde(default)]
    fork: bool,
}

#[async_trait]
impl Tool for SubAgent {
    type Input = Input;
    type Work = SubTask;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Input>("SubAgent", include_str!("../toolset/full/sub_agent.md").trim_end())
    }

    fn outline(&self, input: &Input, _cx: &ToolContext) -> Outline {
        let words: Vec<&str> = input.prompt.split_whitespace().collect();
        let title = if input.description.trim().is_empty() { words.join(" ") } else { input.description.clone() };
        Outline::new(CallKind::Agent, clipped(&title, SHOWN))
    }

    async fn prepare(&self, input: Input, _cx: &ToolContext) -> Result<Prepared<SubTask>, ToolError> {
        let Input { prompt, description, fork } = input;
        if prompt.trim().is_empty() {
            return Err(ToolError::new("no prompt provided for sub-agent"));
        }
        Ok(Prepared::new(SubTask { prompt, description, fork }))
    }

    async fn run(&self, task: SubTask, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        cx.host.delegate(task).await.map(ToolOutput::ok)
    }
}
