//! A session for others to read: as Markdown for people, as JSON for programs. Keys of known kinds are masked. Pure.

use agent_tools::diff::Diff;
use agent_tools::text::{clipped, counted};
use agent_tools::{Call, Part, masked};
use serde_json::{Map, Value, json};

use super::{Loaded, SessionId};
use crate::message::{Block, CallResult, Message};

/// So much of a result is shown to people, in lines.
const RESULT_LINES: usize = 40;

/// The longest line of it, in characters.
const LINE: usize = 500;

/// The longest argument that is shown beside a call, in characters.
const ARGUMENT: usize = 200;

/// What is exported.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Exported<'s> {
    /// The session's id.
    pub id: &'s SessionId,
    /// All that was said in it.
    pub loaded: &'s Loaded,
    /// With what only the model's provider understands: signed and encrypted reasoning.
    pub opaque: bool,
}

impl<'s> Exported<'s> {
    /// A session without what only its provider understands.
    pub fn new(id: &'s SessionId, loaded: &'s Loaded) -> Self {
        Self { id, loaded, opaque: false }
    }
}

/// The session as one JSON object: who it is, what it cost, its messages.
pub fn json(exported: Exported<'_>) -> Value {
    let Exported { id, loaded, opaque } = exported;
    let total = loaded.usage.total;
    let messages: Vec<Value> = loaded.messages.iter().map(|message| message_json(message, opaque)).collect();
    json!({
        "session_id": id.as_str(),
        "name": loaded.name,
        "cwd": loaded.cwd,
        "turns": loaded.turns,
        "usage": {
            "total_input_tokens": total.input_tokens,
            "total_output_tokens": total.output_tokens,
            "total_cache_read_tokens": total.cache_read_input_tokens,
            "total_cache_creation_tokens": total.cache_creation_input_tokens,
            "agent_request_count": loaded.usage.requests,
            "total_cost": loaded.usage.cost,
        },
        "messages": messages,
    })
}

fn message_json(message: &Message, opaque: bool) -> Value {
    let content: Vec<Value> = match message {
        Message::User(parts) => parts.iter().map(plain).collect(),
        Message::Assistant(blocks) => blocks.iter().filter_map(|block| block_json(block, opaque)).collect(),
        Message::Results(results) => results.iter().map(plain).collect(),
    };
    json!({"role": role(message), "content": content})
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::Results(_) => "results",
    }
}

/// A value as the log has it, with its keys masked.
fn plain(value: &impl serde::Serialize) -> Value {
    // Plain texts and numbers always make JSON.
    mask(serde_json::to_value(value).unwrap_or_default())
}

fn block_json(block: &Block, opaque: bool) -> Option<Value> {
    match block {
        Block::Call { call } => {
            Some(json!({"type": "call", "id": call.id, "name": call.name, "input": mask(arguments(call))}))
        }
        Block::Text { .. } => Some(plain(block)),
        // Masking would break what is signed.
        Block::Opaque { .. } if opaque => serde_json::to_value(block).ok(),
        Block::Opaque { shown, .. } if shown.is_empty() => None,
        Block::Opaque { shown, .. } => Some(json!({"type": "thinking", "thinking": masked(shown)})),
    }
}

/// The arguments of a call, as text where they are no JSON.
fn arguments(call: &Call) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::String(call.arguments.clone()))
}

fn mask(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked(&text).into_owned()),
        Value::Array(values) => Value::Array(values.into_iter().map(mask).collect()),
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(key, value)| (key, mask(value))).collect()),
        other => other,
    }
}

/// The session as a page: who said what, calls with their arguments in short, results folded, changes as diffs.
pub fn markdown(exported: Exported<'_>) -> String {
    let mut page = head(&exported);
    for message in &exported.loaded.messages {
        match message {
            Message::User(parts) => page.push_str(&format!("\n## User\n\n{}\n", parts_text(parts))),
            Message::Assistant(blocks) => assistant(&mut page, blocks),
            Message::Results(results) => results.iter().for_each(|result| page.push_str(&folded(result))),
        }
    }
    page
}

fn head(exported: &Exported<'_>) -> String {
    let Exported { id, loaded, .. } = exported;
    let title = loaded.name.as_deref().unwrap_or(id.as_str());
    let total = loaded.usage.total;
    let cost = loaded.usage.cost.map_or("cost unknown".into(), |cost| format!("{cost:.4} US dollars"));
    let place = loaded.cwd.as_deref().map(|cwd| format!("- Directory: {}\n", code(cwd))).unwrap_or_default();
    format!(
        "# {}\n\n- Session: {}\n{place}- {}, {}, {} tokens in, {} tokens out, {cost}\n",
        masked(title),
        code(id.as_str()),
        counted(usize::try_from(loaded.turns).unwrap_or(usize::MAX), "turn"),
        counted(usize::try_from(loaded.usage.requests).unwrap_or(usize::MAX), "request"),
        total.input_tokens,
        total.output_tokens,
    )
}

fn parts_text(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text { text } => masked(text).into_owned(),
        Part::Image { media_type, .. } => format!("*[picture, {media_type}]*"),
        // A kind of part that pages have no words for.
        _ => "*[something that is no text]*".into(),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("\n\n")
}

fn assistant(page: &mut String, blocks: &[Block]) {
    page.push_str("\n## Assistant\n");
    for block in blocks {
        match block {
            Block::Text { text } => page.push_str(&format!("\n{}\n", masked(text))),
            Block::Call { call } => page.push_str(&call_text(call)),
            Block::Opaque { shown, .. } if shown.is_empty() => {}
            Block::Opaque { shown, .. } => page.push_str(&fold("Thinking", &masked(shown), "")),
        }
    }
}

/// A call: its name, its short arguments in one line, its long ones in blocks, changes as diffs.
fn call_text(call: &Call) -> String {
    let fields = match mask(arguments(call)) {
        Value::Object(fields) => fields,
        other => Map::from_iter([("arguments".to_owned(), other)]),
    };
    let (diff, fields) = changes(fields);
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let is_short = |text: &str| text.chars().count() <= ARGUMENT && !text.contains('\n');
    let (short, long): (Vec<_>, Vec<_>) =
        fields.iter().map(|(key, value)| (key, shown(value))).partition(|(_, text)| is_short(text));
    let short: Vec<String> = short.iter().map(|(key, text)| format!("{key} {}", code(text))).collect();
    let mut text = format!("\n**{}** {}\n", call.name, short.join(", "));
    long.iter().for_each(|(key, value)| text.push_str(&fold(key, value, "")));
    diff.iter().for_each(|diff| text.push_str(&fenced(diff, "diff")));
    text
}

/// What a call replaces, as diffs, and its other arguments.
fn changes(mut fields: Map<String, Value>) -> (Vec<String>, Map<String, Value>) {
    let replaced = |fields: &Map<String, Value>| {
        [("old_string", "new_string"), ("old", "new")].iter().find_map(|(old, new)| {
            let diff = Diff::between(fields.get(*old)?.as_str()?, fields.get(*new)?.as_str()?);
            Some((diff.text, [*old, *new]))
        })
    };
    if let Some((diff, keys)) = replaced(&fields) {
        keys.iter().for_each(|key| drop(fields.shift_remove(*key)));
        return (vec![diff], fields);
    }
    let edits = fields.get("edits").and_then(Value::as_array);
    let diffs: Option<Vec<String>> =
        edits.and_then(|edits| edits.iter().map(|edit| Some(replaced(edit.as_object()?)?.0)).collect());
    if diffs.is_some() {
        fields.shift_remove("edits");
    }
    (diffs.unwrap_or_default(), fields)
}

/// A result, folded, its beginning and its end.
fn folded(result: &CallResult) -> String {
    let text = parts_text(&result.parts);
    let title = format!("{} of {}", if result.failed { "Failure" } else { "Result" }, result.name);
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= RESULT_LINES {
        return fold(&title, &text, "");
    }
    let half = RESULT_LINES / 2;
    let left_out = format!("[{} left out]", counted(lines.len() - 2 * half, "line"));
    let kept = [&lines[..half], &[left_out.as_str()], &lines[lines.len() - half..]].concat();
    fold(&title, &kept.join("\n"), &format!(", {}", counted(lines.len(), "line")))
}

fn fold(title: &str, text: &str, remark: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| clipped(line, LINE)).collect();
    format!("\n<details><summary>{title}{remark}</summary>\n{}\n</details>\n", fenced(&lines.join("\n"), ""))
}

/// A block of code, in a fence that is longer than any within.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_ticks(text).max(2) + 1);
    format!("\n{fence}{language}\n{text}\n{fence}\n")
}

fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_ticks(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;
    use crate::message::Origin;

    const KEY: &str = "ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3";

    fn session() -> Loaded {
        let origin = Arc::new(Origin { provider: "p".into(), model: "m".into(), endpoint: "e".into() });
        let raw = RawValue::from_string(r#"{"signature":"s"}"#.into()).unwrap();
        let edit = json!({"path": "a.rs", "old_string": "one\n", "new_string": "two\n"}).to_string();
        let long: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let result = |id: &str, text: &str| CallResult {
            id: id.into(),
            name: "Bash".into(),
            failed: id == "2",
            parts: vec![Part::text(text)],
        };
        Loaded {
            messages: vec![
                Message::user(format!("use {KEY}")),
                Message::Assistant(vec![
                    Block::Opaque { origin, shown: "hm".into(), raw },
                    Block::text("On it."),
                    Block::call(Call::new("1", "Bash", json!({"command": format!("echo `x` {KEY}")}).to_string())),
                    Block::call(Call::new("2", "Edit", edit)),
                ]),
                Message::Results(vec![result("1", &long), result("2", "```no```")]),
                Message::Assistant(vec![Block::text("Done.")]),
            ],
            name: Some("mine".into()),
            turns: 1,
            ..Loaded::default()
        }
    }

    #[test]
    fn people_read_a_page() {
        let loaded = session();
        let page = markdown(Exported::new(&SessionId::named("s1"), &loaded));
        for expect in [
            "# mine\n\n- Session: `s1`\n- 1 turn, 0 requests, 0 tokens in, 0 tokens out, 0.0000 US dollars\n\n## User\n\nuse [masked",
            "\n\n## Assistant\n\n<details><summary>Thinking</summary>\n\n```\nhm\n```\n\n</details>\n\nOn it.\n\n**Bash** command",
            "**Bash** command ``echo `x` [masked: a key of GitHub]``\n\n**Edit** path `a.rs`\n\n```diff\n-1 one\n+1 two\n```\n\n<det",
            "<summary>Result of Bash, 100 lines</summary>\n\n```\nline 0\n",
            "line 19\n[60 lines left out]\nline 80\n",
            "line 99\n```\n\n</details>\n\n<details><summary>Failure of Bash</summary>\n\n````\n```no```\n````\n\n</details>\n\n## Ass",
            "## Assistant\n\nDone.\n",
        ] {
            assert!(page.contains(expect), "{expect}\nis not in\n{page}");
        }
        assert!(!page.contains(KEY));
    }

    #[test]
    fn programs_read_an_object() {
        let loaded = session();
        let id = SessionId::named("s1");
        let exported = Exported::new(&id, &loaded);
        let object = json(exported);
        assert_eq!(object["session_id"], "s1");
        let said = &object["messages"][1]["content"];
        assert_eq!(said[0], json!({"type": "thinking", "thinking": "hm"}));
        assert_eq!(said[2]["input"], json!({"command": "echo `x` [masked: a key of GitHub]"}));
        let all = object.to_string();
        assert!(!all.contains(KEY) && !all.contains("signature"), "{all}");
        assert!(json(Exported { opaque: true, ..exported }).to_string().contains("signature"));
    }
}
