//! What a command prints, for clients that show it in a terminal of their own: `_meta.terminal_info`,
//! `_meta.terminal_output_delta`, `_meta.terminal_exit`. Pure.

use std::collections::HashMap;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    Meta, Terminal, TerminalId, ToolCall, ToolCallContent, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_tools::{Details, ToolOutput};
use serde_json::{Value, json};

/// The terminals of the calls that are open.
#[derive(Debug, Default)]
pub struct Terminals {
    /// The last lines that each was told.
    told: HashMap<String, String>,
}

impl Terminals {
    /// A call that has a terminal.
    pub fn begin(&mut self, mut call: ToolCall, cwd: &Path) -> ToolCall {
        let id = call.tool_call_id.0.to_string();
        call.content = vec![terminal(&id)];
        call.meta = meta("terminal_info", json!({"terminal_id": id, "cwd": cwd}));
        self.told.insert(id, String::new());
        call
    }

    /// What a call printed since, as its last lines tell; none where it has no terminal.
    pub fn output(&mut self, id: &str, tail: &str) -> Option<ToolCallUpdate> {
        let before = self.told.get_mut(id)?;
        let news = behind(before, tail);
        tail.clone_into(before);
        Some(printed(id, &news))
    }

    /// The end of a call, with what was not told yet.
    pub fn end(&mut self, mut update: ToolCallUpdate, output: &ToolOutput) -> ToolCallUpdate {
        let id = update.tool_call_id.0.to_string();
        let (Some(told), Details::Shell(exit)) = (self.told.remove(&id), &output.details) else { return update };
        let text = output.text();
        let rest = match (told.is_empty(), text.rfind(&told)) {
            (false, Some(at)) => text[at + told.len()..].to_owned(),
            (false, None) => format!("\n{text}"),
            (true, _) => text,
        };
        let mut both = printed(&id, &rest).meta.unwrap_or_default();
        let code = exit.exit_code;
        both.insert(
            "terminal_exit".into(),
            json!({"terminal_id": id, "exit_code": code, "signal": exit.signal.map(|s| s.to_string())}),
        );
        update.fields.content = Some(vec![terminal(&id)]);
        update.meta = Some(both);
        update
    }
}

fn terminal(id: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(TerminalId::new(id.to_owned())))
}

fn printed(id: &str, text: &str) -> ToolCallUpdate {
    // A terminal goes back to the left with each line.
    let data = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let mut update = ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new());
    update.meta = meta("terminal_output_delta", json!({"terminal_id": id, "data": data}));
    update
}

fn meta(name: &str, value: Value) -> Option<Meta> {
    let mut meta = Meta::new();
    meta.insert(name.into(), value);
    Some(meta)
}

/// What of the last lines comes behind those of before.
fn behind(before: &str, tail: &str) -> String {
    if before.is_empty() {
        return tail.to_owned();
    }
    let starts = before.char_indices().map(|(at, _)| at);
    let overlap = starts.map(|at| &before[at..]).find(|end| tail.starts_with(end));
    match overlap {
        Some(end) => tail[end.len()..].to_owned(),
        None => format!("\n[…]\n{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_told() {
        for (before, tail, expect) in [
            ("", "a\nb\n", "a\nb\n"),
            ("a\nb\n", "a\nb\nc\n", "c\n"),
            ("a\nb\n", "b\nc\n", "c\n"),
            ("abab", "ababab", "ab"),
            ("aé", "éb", "b"),
            ("x\n", "y\n", "\n[…]\ny\n"),
            ("same", "same", ""),
        ] {
            assert_eq!(behind(before, tail), expect, "{before:?} {tail:?}");
        }
    }
}
