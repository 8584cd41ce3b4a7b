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
            add(loaded, results, message);
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

/// Adds a message where a server takes it: a conversation begins with a person, and each call has exactly one result,
/// right after it.
fn add(loaded: &mut Loaded, results: &HashMap<String, ResultLine>, message: Message) {
    match message {
        Message::Results(given) => answer(loaded, results, given),
        Message::Assistant(_) if loaded.messages.is_empty() => {
            loaded.repairs.push("an answer without a prompt was left out".into());
        }
        Message::User(_) | Message::Assistant(_) => {
            answer_open(loaded, results);
            loaded.messages.push(message);
        }
    }
}

/// Answers the calls of the last message that nothing answered.
fn answer_open(loaded: &mut Loaded, results: &HashMap<String, ResultLine>) {
    answer(loaded, results, Vec::new());
}

/// Answers the calls of the last message: with what was given, else from the result lines that made it to the log, else
/// as cut off. What answers no call is left out.
fn answer(loaded: &mut Loaded, results: &HashMap<String, ResultLine>, mut given: Vec<CallResult>) {
    let calls = loaded.messages.last().into_iter().flat_map(Message::calls);
    let mut open = 0;
    let mut answers = Vec::new();
    for call in calls {
        answers.push(match given.iter().position(|result| result.id == call.id) {
            Some(at) => given.remove(at),
            None => {
                open += 1;
                found(call, results)
            }
        });
    }
    if open > 0 {
        loaded.repairs.push(format!("{open} call(s) without a result were answered"));
    }
    if !given.is_empty() {
        loaded.repairs.push(format!("{} result(s) without a call were left out", given.len()));
    }
    if !answers.is_empty() {
        loaded.messages.push(Message::Results(answers));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Block;

    /// A log of these messages in short form: `user`, `calls a b`, `says`, `results a b`, `line a` for the line of a
    /// result, and `torn`.
    fn log(lines: &[&str]) -> String {
        let record = |line: &str| {
            let (kind, ids) = line.split_once(' ').unwrap_or((line, ""));
            let ids = ids.split_whitespace();
            let message = match kind {
                "user" => Message::user("u"),
                "says" => Message::Assistant(vec![Block::text("t")]),
                "calls" => Message::Assistant(ids.map(|id| Block::call(Call::new(id, "bash", "{}"))).collect()),
                "results" => {
                    let result = |id: &str| CallResult {
                        id: id.into(),
                        name: "bash".into(),
                        failed: false,
                        parts: vec![Part::text("whole")],
                    };
                    Message::Results(ids.map(result).collect())
                }
                "line" => {
                    let id: String = ids.collect();
                    return format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"line","status":"ok"}}"#);
                }
                _ => return r#"{"type":"message","role":"assist"#.to_owned(),
            };
            let mut record = serde_json::to_value(&message).unwrap();
            record["type"] = "message".into();
            record.to_string()
        };
        lines.iter().map(|line| record(line) + "\n").collect()
    }

    fn shown(message: &Message) -> String {
        match message {
            Message::User(_) => "user".into(),
            Message::Assistant(blocks) if message.calls().next().is_none() => format!("says {}", blocks.len()),
            Message::Assistant(_) => message.calls().map(|call| format!("call {} ", call.id)).collect(),
            Message::Results(results) => {
                let text = |r: &CallResult| if r.failed { "cut off".to_owned() } else { r.text() };
                results.iter().map(|r| format!("{}={} ", r.id, text(r))).collect()
            }
        }
        .trim_end()
        .to_owned()
    }

    #[test]
    fn each_call_has_one_result_right_after_it() {
        for (lines, expect, repairs) in [
            (&["user", "calls a b", "results a b", "says"][..], "user|call a call b|a=whole b=whole|says 1", 0),
            (&["user", "calls a b", "results b", "says"], "user|call a call b|a=cut off b=whole|says 1", 1),
            (&["user", "calls a a", "results a a"], "user|call a call a|a=whole a=whole", 0),
            (&["user", "calls a b", "line b"], "user|call a call b|a=cut off b=line", 1),
            (&["user", "calls a", "line a", "user"], "user|call a|a=line|user", 1),
            (&["user", "torn", "results a", "says"], "user|says 1", 2),
            (&["user", "results a", "says"], "user|says 1", 1),
            (&["user", "calls a", "results a", "results a"], "user|call a|a=whole", 1),
            (&["user", "calls a", "results z"], "user|call a|a=cut off", 2),
            (&["user", "says", "results a", "user"], "user|says 1|user", 1),
            (&["torn", "calls a", "results a", "user", "says"], "user|says 1", 3),
            (&["results a"], "", 1),
        ] {
            let loaded = load(log(lines).as_bytes());
            let found: Vec<String> = loaded.messages.iter().map(shown).collect();
            assert_eq!(found.join("|"), expect, "{lines:?} {:?}", loaded.repairs);
            assert_eq!(loaded.repairs.len(), repairs, "{lines:?} {:?}", loaded.repairs);
        }
    }
}
