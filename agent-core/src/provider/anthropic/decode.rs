//! Understands the events of Messages; unknown ones are skipped, missing ones are borne.

use std::sync::Arc;

use agent_tools::Call;
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::super::http::wire::{Ids, Text, is_damaged, read, tokens};
use super::super::http::{Asking, Decode, Outbox};
use super::super::sse::Event;
use super::super::{Delta, ErrorKind, ProviderError, Request, Stop, Usage};
use crate::message::{Block, Origin};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    r#type: Option<Text>,
    index: Option<Value>,
    delta: Option<Piece>,
    content_block: Option<Map<String, Value>>,
    message: Option<Whole>,
    usage: Option<Value>,
    error: Option<Value>,
    // An answer that was not streamed has the fields of its message at the top.
    content: Option<Vec<Map<String, Value>>>,
    stop_reason: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece {
    text: Option<Text>,
    thinking: Option<Text>,
    signature: Option<Text>,
    partial_json: Option<Text>,
    stop_reason: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Whole {
    usage: Option<Value>,
}

/// A block as far as it was heard.
struct Heard {
    index: Value,
    kind: Kind,
}

enum Kind {
    Text(String),
    /// Reasoning: the server's own block, and what came for it.
    Thinking {
        block: Map<String, Value>,
        thinking: String,
        signature: String,
    },
    Call(Call),
    /// To be given back as it is.
    Redacted(Map<String, Value>),
    Unknown,
}

impl Kind {
    fn of(mut block: Map<String, Value>) -> Self {
        let text = |block: &Map<String, Value>, name: &str| {
            block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        match block.get("type").and_then(Value::as_str) {
            Some("text") => Self::Text(text(&block, "text")),
            Some("thinking") => {
                let (thinking, signature) = (text(&block, "thinking"), text(&block, "signature"));
                Self::Thinking { block, thinking, signature }
            }
            Some("redacted_thinking") => Self::Redacted(block),
            Some("tool_use") => {
                let input = block.remove("input").filter(|i| i.as_object().is_some_and(|o| !o.is_empty()));
                let arguments = input.map_or(String::new(), |i| i.to_string());
                Self::Call(Call { id: text(&block, "id"), name: text(&block, "name"), arguments })
            }
            Some(_) | None => Self::Unknown,
        }
    }
}

pub(super) struct Decoder {
    asking: Arc<Asking>,
    origin: Arc<Origin>,
    ids: Ids,
    blocks: Vec<Heard>,
    usage: Usage,
    stop: Stop,
    began: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError> {
        let data = event.data.trim();
        let told: Told = match read(data) {
            Ok(told) => told,
            Err(_) if event.name == "error" => return Err(self.asking.reported(&Value::from(data))),
            Err(_) if !is_damaged(data) => return Ok(()),
            Err(e) => return Err(self.asking.cut(&format!("an event of the answer cannot be read ({e})"))),
        };
        self.read(told, event, out)
    }

    fn end(&mut self, _: &mut Outbox) -> Result<(), ProviderError> {
        Err(self.asking.cut("the stream ended before the answer was whole"))
    }
}

impl Decoder {
    pub(super) fn new(asking: Arc<Asking>, origin: Arc<Origin>, request: &Request<'_>) -> Self {
        let ids = Ids::of(request);
        Self { asking, origin, ids, blocks: Vec::new(), usage: Usage::default(), stop: Stop::End, began: false }
    }

    fn read(&mut self, told: Told, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError> {
        let kind = told.r#type.as_ref().map_or(event.name, |t| &t.0);
        match kind {
            "content_block_delta" => self.hear(told.index, told.delta.unwrap_or_default(), out),
            "content_block_start" => self.begin(told.index, told.content_block.unwrap_or_default(), out),
            "message_start" => {
                self.began = true;
                self.account(told.message.and_then(|m| m.usage).as_ref(), out);
            }
            "message_delta" => {
                self.account(told.usage.as_ref(), out);
                self.ends_for(told.delta.and_then(|d| d.stop_reason));
            }
            "message_stop" => return self.done(out),
            "message" => return self.whole_message(told, out),
            "error" => return Err(self.reported(told.error, event.data)),
            // Pings, the ends of blocks, and what may be added to the form.
            _ if told.error.is_some() => return Err(self.reported(told.error, event.data)),
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, index: Option<Value>, block: Map<String, Value>, out: &mut Outbox) {
        self.began = true;
        let kind = Kind::of(block);
        match &kind {
            Kind::Text(text) => out.text(text),
            Kind::Thinking { thinking, .. } => out.thinking(thinking),
            Kind::Call(_) | Kind::Redacted(_) | Kind::Unknown => {}
        }
        self.blocks.push(Heard { index: index.unwrap_or_default(), kind });
    }

    /// A piece of a block. One that was never begun begins with it.
    fn hear(&mut self, index: Option<Value>, piece: Piece, out: &mut Outbox) {
        self.began = true;
        let index = index.unwrap_or_default();
        let at = self.blocks.iter().rposition(|b| b.index == index).unwrap_or_else(|| {
            let kind = if piece.text.is_some() { Kind::Text(String::new()) } else { Kind::Unknown };
            self.blocks.push(Heard { index, kind });
            self.blocks.len() - 1
        });
        let given = |text: Option<Text>| text.map(|t| t.0).unwrap_or_default();
        match &mut self.blocks[at].kind {
            Kind::Text(text) => {
                let more = given(piece.text);
                text.push_str(&more);
                out.text(&more);
            }
            Kind::Thinking { thinking, signature, .. } => {
                let more = given(piece.thinking);
                thinking.push_str(&more);
                signature.push_str(&given(piece.signature));
                out.thinking(&more);
            }
            Kind::Call(call) => call.arguments.push_str(&given(piece.partial_json)),
            Kind::Redacted(_) | Kind::Unknown => {}
        }
    }

    fn ends_for(&mut self, reason: Option<Text>) {
        self.stop = match reason.unwrap_or_default().0.as_str() {
            "" => self.stop,
            "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
            "refusal" => Stop::Refused,
            _ => Stop::End,
        };
    }

    fn account(&mut self, usage: Option<&Value>, out: &mut Outbox) {
        let Some(usage) = usage else { return };
        let Usage { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens } =
            &mut self.usage;
        for (name, slot) in [
            ("input_tokens", input_tokens),
            ("output_tokens", output_tokens),
            ("cache_read_input_tokens", cache_read_input_tokens),
            ("cache_creation_input_tokens", cache_creation_input_tokens),
        ] {
            // Some servers send zeros with the last piece for what they told with the first.
            *slot = tokens(usage, name).filter(|n| *n > 0).unwrap_or(*slot);
        }
        out.push(Delta::Usage(self.usage));
    }

    fn whole_message(&mut self, told: Told, out: &mut Outbox) -> Result<(), ProviderError> {
        self.account(told.usage.as_ref(), out);
        self.ends_for(told.stop_reason);
        for block in told.content.unwrap_or_default() {
            self.begin(None, block, out);
        }
        self.done(out)
    }

    fn done(&mut self, out: &mut Outbox) -> Result<(), ProviderError> {
        if !self.began {
            return Err(self.asking.cut("the stream ended before the answer began"));
        }
        for heard in std::mem::take(&mut self.blocks) {
            if let Some(block) = self.block(heard.kind)? {
                out.block(block);
            }
        }
        out.stop(self.stop);
        Ok(())
    }

    /// A block for the transcript. The calls of an answer that was cut are left out: the last may look whole and not be.
    fn block(&mut self, kind: Kind) -> Result<Option<Block>, ProviderError> {
        Ok(match kind {
            Kind::Text(text) if text.is_empty() => None,
            Kind::Text(text) => Some(Block::text(text)),
            Kind::Call(call) if self.stop != Stop::End || call.name.is_empty() => None,
            Kind::Call(Call { id, name, arguments }) => {
                let arguments = if arguments.trim().is_empty() { "{}".into() } else { arguments };
                Some(Block::call(Call { id: self.ids.unique(id), name, arguments }))
            }
            Kind::Thinking { mut block, thinking, signature } => {
                let shown = thinking.clone();
                let had_signature = block.contains_key("signature") || !signature.is_empty();
                block.insert("thinking".into(), thinking.into());
                if had_signature {
                    block.insert("signature".into(), signature.into());
                }
                Some(self.opaque(&block, shown)?)
            }
            Kind::Redacted(block) => Some(self.opaque(&block, String::new())?),
            Kind::Unknown => None,
        })
    }

    fn opaque(&self, block: &Map<String, Value>, shown: String) -> Result<Block, ProviderError> {
        let raw = to_raw_value(block).map_err(|e| self.asking.error(ErrorKind::Invalid, &e.to_string()))?;
        Ok(Block::Opaque { origin: self.origin.clone(), shown, raw })
    }

    fn reported(&self, error: Option<Value>, data: &str) -> ProviderError {
        let error = error.filter(|e| !e.is_null());
        self.asking.reported(&error.or_else(|| serde_json::from_str(data).ok()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::http::{Endpoint, played};
    use super::super::super::samples::origin;
    use super::*;

    /// Plays events; `|` ends the stream. The deltas in short form, or the error.
    fn play(events: &[&str]) -> String {
        let endpoint = Endpoint::new("http://h");
        let asking = Arc::new(Asking::new(&endpoint, "http://h", "m"));
        let origin = origin("m");
        played(Decoder::new(asking, origin, &Request::new("", &[], &[])), events)
    }

    const START: &str = r#"{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":1}}}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;

    fn begin(index: u32, block: &str) -> String {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
    }

    fn text(index: u32) -> String {
        begin(index, r#"{"type":"text","text":""}"#)
    }

    fn tool(index: u32) -> String {
        begin(index, r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#)
    }

    fn piece(index: u32, field: &str, text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"x","{field}":{text}}}}}"#)
    }

    fn ends(index: u32) -> String {
        format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
    }

    fn reason(reason: &str) -> String {
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#)
    }

    fn check(events: &[&str], expect: &str) {
        assert_eq!(play(events), expect, "{events:#?}");
    }

    #[test]
    fn blocks_are_put_together_in_order() {
        let input = |t: &str| piece(1, "partial_json", t);
        check(
            &[
                START,
                r#"{"type":"ping"}"#,
                &text(0),
                &piece(0, "text", "a"),
                r#"{"type":"surprise"}"#,
                &piece(0, "text", "b"),
                &ends(0),
                &tool(1),
                &input("{\"a\""),
                &input(":1}"),
                &ends(1),
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7,"input_tokens":0}}"#,
                STOP,
            ],
            "5+3+2/1 t:ab 5+3+2/7 [ab] t1=bash({\"a\":1}) End",
        );
        check(&[&tool(1), &ends(1), &reason("tool_use"), STOP], "t1=bash({}) End");
        check(
            &[&begin(0, r#"{"type":"tool_use","id":"","name":"x","input":{"b":1,"a":2}}"#), STOP],
            r#"call_0=x({"b":1,"a":2}) End"#,
        );
        check(
            &[
                &begin(0, r#"{"type":"server_tool_use","id":"s"}"#),
                &piece(0, "partial_json", "{}"),
                &text(1),
                &piece(1, "text", "x"),
                STOP,
            ],
            "t:x [x] End",
        );
    }

    #[test]
    fn reasoning_is_kept_as_it_came() {
        let think = begin(0, r#"{"type":"thinking","thinking":"","signature":""}"#);
        check(
            &[
                &think,
                &piece(0, "thinking", "h\"m"),
                &piece(0, "signature", "a="),
                &piece(0, "signature", "="),
                &ends(0),
                &text(1),
                &piece(1, "text", "x"),
                STOP,
            ],
            r#"r:h"m t:x {"type":"thinking","thinking":"h\"m","signature":"a=="} [x] End"#,
        );
        check(
            &[&begin(0, r#"{"type":"thinking","thinking":""}"#), &piece(0, "thinking", "x"), STOP],
            r#"r:x {"type":"thinking","thinking":"x"} End"#,
        );
        check(
            &[&begin(0, r#"{"type":"redacted_thinking","data":"REDACT=="}"#), &ends(0), &tool(1), STOP],
            r#"{"type":"redacted_thinking","data":"REDACT=="} t1=bash({}) End"#,
        );
    }

    #[test]
    fn the_reason_decides_whether_calls_count() {
        let call = [&*tool(0), &*piece(0, "partial_json", "{\"command\":\"ls\"}"), &*ends(0)];
        for (why, expect) in [
            ("end_turn", "t1=bash({\"command\":\"ls\"}) End"),
            ("tool_use", "t1=bash({\"command\":\"ls\"}) End"),
            ("pause_turn", "t1=bash({\"command\":\"ls\"}) End"),
            ("max_tokens", "MaxTokens"),
            ("model_context_window_exceeded", "MaxTokens"),
            ("refusal", "Refused"),
        ] {
            check(&[call[0], call[1], call[2], &reason(why), STOP], expect);
        }
    }

    #[test]
    fn odd_streams_are_borne() {
        let early = piece(4, "text", "early");
        check(
            &[START, &early, &text(0), &piece(0, "text", "fine"), &ends(0), &reason("end_turn"), STOP],
            "5+3+2/1 t:earlyfine [early] [fine] End",
        );
        check(&[&piece(9, "partial_json", "{}"), &ends(3), STOP], "End");
        check(&["noise", "{junk", &text(0), &piece(0, "text", "x"), STOP], "t:x [x] End");
        check(
            &[
                r#"{"type":"message","content":[{"type":"text","text":"whole"},{"type":"tool_use","id":"a","name":"b","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#,
            ],
            "1+0/2 t:whole [whole] a=b({}) End",
        );
    }

    #[test]
    fn an_answer_that_is_not_whole_is_an_error() {
        check(
            &[START, &text(0), &piece(0, "text", "x"), &reason("end_turn"), "|"],
            "Cut: the stream ended before the answer was whole.",
        );
        check(&[STOP], "Cut: the stream ended before the answer began.");
        check(
            &[START, r#"{"type":"content_block_delta","ind"#],
            "Cut: an event of the answer cannot be read (EOF while parsing a string at line 1 column 34).",
        );
        check(
            &[START, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#],
            "Server: the server reported an error: Overloaded.",
        );
        check(
            &[r#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#],
            "TooLong: the server reported an error: prompt is too long: 9 > 8. The conversation is too long for the model",
        );
    }
}
