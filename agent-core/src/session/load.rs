//! From the lines of a log to a conversation. Pure; what is torn or unknown is left out and told.

use std::collections::HashMap;

use agent_tools::{Call, Part};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::UsageReport;
use crate::message::{CallResult, Message};
use crate::provider::Usage;

/// What a log came to.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The conversation.
    pub messages: Vec<Message>,
    /// What it has cost.
    pub usage: UsageReport,
    /// The last line's number.
    pub seq: u64,
    /// What was mended, in words for a person.
    pub repairs: Vec<String>,
}

/// Just enough of a line to know it.
#[derive(Deserialize)]
struct Head {
    r#type: String,
    #[serde(default)]
    seq: u64,
}

#[derive(Deserialize)]
struct ResultLine {
    tool_use_id: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
struct MessageLine<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct UsageLine {
    total_input_tokens: u64,
    total_output_tokens: u64,
    agent_request_count: u64,
}

/// Rebuilds a conversation from a log. Never fails: a line that is no record is skipped and told.
pub fn load(log: &[u8]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut results = HashMap::new();
    for (number, line) in log.split(|b| *b == b'\n').enumerate() {
        let line = line.trim_ascii();
        if !line.is_empty() && take(&mut loaded, &mut results, line).is_none() {
            loaded.repairs.push(format!("line {} is damaged and was skipped", number + 1));
        }
    }
    answer_open(&mut loaded, &results);
    loaded
}

fn take(loaded: &mut Loaded, results: &mut HashMap<String, ResultLine>, line: &[u8]) -> Option<()> {
    let head: Head = serde_json::from_slice(line).ok()?;
    loaded.seq = loaded.seq.max(head.seq);
    match head.r#type.as_str() {
        "message" => {
            let message = message(&serde_json::from_slice(line).ok()?)?;
            if !matches!(message, Message::Results(_)) {
                answer_open(loaded, results);
            }
            loaded.messages.push(message);
        }
        "tool_result" => {
            let result: ResultLine = serde_json::from_slice(line).ok()?;
            results.insert(result.tool_use_id.clone(), result);
        }
        "usage" => {
            let usage: UsageLine = serde_json::from_slice(line).ok()?;
            loaded.usage.requests = usage.agent_request_count;
            loaded.usage.total = Usage {
                input_tokens: usage.total_input_tokens,
                output_tokens: usage.total_output_tokens,
                ..Usage::default()
            };
        }
        _ => {}
    }
    Some(())
}

fn message(line: &MessageLine<'_>) -> Option<Message> {
    let content = line.content.get();
    match line.role.as_str() {
        "user" => serde_json::from_str(content).ok().map(Message::User),
        "assistant" => serde_json::from_str(content).ok().map(Message::Assistant),
        "results" => serde_json::from_str(content).ok().map(Message::Results),
        _ => None,
    }
}

/// Answers the calls of the last message, unless the message that follows does: from the result lines that made it to
/// the log, else as cut off.
fn answer_open(loaded: &mut Loaded, results: &HashMap<String, ResultLine>) {
    let Some(last) = loaded.messages.last() else { return };
    let answers: Vec<CallResult> = last.calls().map(|call| found(call, results)).collect();
    if answers.is_empty() {
        return;
    }
    loaded.repairs.push(format!("{} call(s) without a result were answered", answers.len()));
    loaded.messages.push(Message::Results(answers));
}

fn found(call: &Call, results: &HashMap<String, ResultLine>) -> CallResult {
    results.get(&call.id).map_or_else(
        || unanswered(call),
        |line| CallResult {
            id: call.id.clone(),
            name: call.name.clone(),
            failed: line.status != "ok",
            parts: vec![Part::text(line.content.clone())],
        },
    )
}

/// The result of a call that was cut off.
pub(crate) fn unanswered(call: &Call) -> CallResult {
    CallResult {
        id: call.id.clone(),
        name: call.name.clone(),
        failed: true,
        parts: vec![Part::text(
            "[cut off: the session ended while this call ran; it may have done a part of its work]",
        )],
    }
}
