//! Understands the events of Chat Completions, as many servers write them: every field may be missing or odd.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_tools::Call;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::super::http::wire::{Ids, Text, counted, is_damaged, is_something, object, read};
use super::super::http::{Asking, Decode, Outbox};
use super::super::sse::Event;
use super::super::{Delta, ErrorKind, ProviderError, Request, Stop, Usage};
use crate::message::{Block, Origin};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk {
    choices: Option<Vec<Option<Choice>>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    delta: Option<Piece>,
    // An answer that was not streamed has it instead of `delta`.
    message: Option<Piece>,
    finish_reason: Option<Text>,
    // Moonshot reports here.
    usage: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece {
    content: Option<Text>,
    reasoning_content: Option<Text>,
    reasoning: Option<Text>,
    refusal: Option<Text>,
    tool_calls: Option<Vec<Option<CallPiece>>>,
    function_call: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallPiece {
    index: Option<Value>,
    id: Option<Text>,
    function: Option<FunctionPiece>,
    extra_content: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionPiece {
    name: Option<Text>,
    arguments: Option<Value>,
}

/// A call as far as it was heard.
#[derive(Default)]
struct Heard {
    index: Option<Value>,
    id: String,
    name: String,
    arguments: String,
    extra_content: Option<Box<RawValue>>,
}

/// What the server wants back with the answer; the body reads it.
#[derive(Default, Serialize)]
struct Kept<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra_content: BTreeMap<&'a str, &'a RawValue>,
}

/// How the server says that the answer has ended.
#[derive(Clone, Copy)]
enum Finish {
    Stop(Stop),
    Failed,
}

pub(super) struct Decoder {
    asking: Arc<Asking>,
    origin: Arc<Origin>,
    ids: Ids,
    text: String,
    reasoning: String,
    // Under which of its two names the reasoning came.
    short_name: bool,
    calls: Vec<Heard>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    began: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.done(out);
        }
        if event.name == "error" {
            return Err(self.reported(data));
        }
        let chunk: Chunk = match read(data) {
            Ok(chunk) => chunk,
            Err(_) if !is_damaged(data) => return Ok(()),
            Err(e) => return Err(self.asking.cut(&format!("an event of the answer cannot be read ({e})"))),
        };
        self.read(chunk, data, out)
    }

    fn end(&mut self, out: &mut Outbox) -> Result<(), ProviderError> {
        if self.finish.is_none() {
            return Err(self.asking.cut("the stream ended before the answer was whole"));
        }
        self.done(out)
    }

    fn whole(&self) -> bool {
        self.finish.is_some()
    }
}

impl Decoder {
    pub(super) fn new(asking: Arc<Asking>, origin: Arc<Origin>, request: &Request<'_>) -> Self {
        Self {
            asking,
            origin,
            ids: Ids::of(request),
            text: String::new(),
            reasoning: String::new(),
            short_name: false,
            calls: Vec::new(),
            usage: None,
            finish: None,
            began: false,
        }
    }

    fn read(&mut self, chunk: Chunk, data: &str, out: &mut Outbox) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error.filter(is_something) {
            return Err(self.asking.reported(&error));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() && is_error(data) {
            return Err(self.reported(data));
        }
        if let Some(usage) = chunk.usage {
            self.account(&usage);
        }
        // One answer was asked for: further choices are none of ours.
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().flatten().next() {
            self.choose(choice, out);
        }
        Ok(())
    }

    fn choose(&mut self, choice: Choice, out: &mut Outbox) {
        if let Some(usage) = choice.usage {
            self.account(&usage);
        }
        if let Some(piece) = choice.delta.or(choice.message) {
            self.hear(piece, out);
        }
        if let Some(Text(reason)) = choice.finish_reason {
            self.finish = finish(&reason).or(self.finish);
        }
        self.began |= self.finish.is_some();
    }

    fn hear(&mut self, piece: Piece, out: &mut Outbox) {
        let given = |text: Option<Text>| text.map(|t| t.0).filter(|t| !t.is_empty());
        if let Some(text) = given(piece.reasoning_content) {
            self.think(&text, out);
        } else if let Some(text) = given(piece.reasoning) {
            self.short_name = true;
            self.think(&text, out);
        }
        for text in given(piece.content).into_iter().chain(given(piece.refusal)) {
            self.say(&text, out);
        }
        for call in piece.tool_calls.unwrap_or_default().into_iter().flatten() {
            self.call(call);
        }
        if let Some(function) = piece.function_call {
            self.call(CallPiece { index: Some(Value::from(0)), function: Some(function), ..CallPiece::default() });
        }
    }

    fn think(&mut self, text: &str, out: &mut Outbox) {
        self.began = true;
        self.reasoning.push_str(text);
        out.thinking(text);
    }

    fn say(&mut self, text: &str, out: &mut Outbox) {
        self.began = true;
        let text = if self.text.is_empty() { text.trim_start_matches(['\n', '\r']) } else { text };
        self.text.push_str(text);
        out.text(text);
    }

    fn call(&mut self, piece: CallPiece) {
        self.began = true;
        let id = piece.id.map(|t| t.0).unwrap_or_default();
        let FunctionPiece { name, arguments } = piece.function.unwrap_or_default();
        let name = name.map(|t| t.0).unwrap_or_default();
        let at = self.which(piece.index.as_ref(), &id, &name).unwrap_or_else(|| {
            self.calls.push(Heard { index: piece.index, ..Heard::default() });
            self.calls.len() - 1
        });
        let heard = &mut self.calls[at];
        if heard.id.is_empty() {
            heard.id = id;
        }
        if heard.name.is_empty() {
            heard.name = name;
        }
        match arguments {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if heard.arguments.is_empty() => heard.arguments = text,
            Some(Value::String(text)) => heard.arguments.push_str(&text),
            Some(whole) => heard.arguments = whole.to_string(),
        }
        heard.extra_content = piece.extra_content.or(heard.extra_content.take());
    }

    /// Which call a piece belongs to; none: it begins a new one. Numbers are labels, and some servers give all calls the
    /// same, or none: then a new id or a new name begins a call, and what has neither belongs to the last.
    fn which(&self, index: Option<&Value>, id: &str, name: &str) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let by_id = || self.calls.iter().rposition(|c| !id.is_empty() && c.id == id);
        let Some(index) = index else {
            let repeated = |c: &Heard| id.is_empty() && c.name == name && object(&c.arguments) == "{}";
            return match (id, name) {
                ("", "") => last,
                _ => by_id().or(last.filter(|at| repeated(&self.calls[*at]))),
            };
        };
        match self.calls.iter().rposition(|c| c.index.as_ref() == Some(index)) {
            Some(at) => {
                let heard = &self.calls[at];
                let differs = |new: &str, old: &str| !new.is_empty() && !old.is_empty() && new != old;
                let another = !name.is_empty() && differs(id, &heard.id) || id.is_empty() && differs(name, &heard.name);
                (!another).then_some(at)
            }
            None if name.is_empty() => by_id().or(last.filter(|_| id.is_empty())),
            None => None,
        }
    }

    fn account(&mut self, usage: &Value) {
        self.usage = counted(usage, "prompt_tokens", "completion_tokens").or(self.usage);
    }

    fn done(&mut self, out: &mut Outbox) -> Result<(), ProviderError> {
        if !self.began {
            return Err(self.asking.cut("the stream ended before the answer began"));
        }
        let stop = match self.finish.unwrap_or(Finish::Stop(Stop::End)) {
            Finish::Stop(stop) => stop,
            Finish::Failed => {
                let why = "the server ended the answer with an error that it does not name";
                return Err(self.asking.error(ErrorKind::Server, why));
            }
        };
        self.blocks(stop, out)?;
        if let Some(usage) = self.usage {
            out.push(Delta::Usage(usage));
        }
        out.stop(stop);
        Ok(())
    }

    /// The answer for the transcript. The calls of one that was cut are left out: the last may look whole and not be.
    fn blocks(&mut self, stop: Stop, out: &mut Outbox) -> Result<(), ProviderError> {
        let mut calls = if stop == Stop::End { std::mem::take(&mut self.calls) } else { Vec::new() };
        for call in &mut calls {
            call.id = self.ids.unique(std::mem::take(&mut call.id));
        }
        if let Some(block) = self.kept(&calls)? {
            out.block(block);
        }
        if !self.text.is_empty() {
            out.block(Block::text(std::mem::take(&mut self.text)));
        }
        for Heard { id, name, arguments, .. } in calls {
            let arguments = if arguments.trim().is_empty() { "{}".into() } else { arguments };
            out.block(Block::call(Call { id, name, arguments }));
        }
        Ok(())
    }

    fn kept(&self, calls: &[Heard]) -> Result<Option<Block>, ProviderError> {
        let reasoning = Some(self.reasoning.as_str()).filter(|r| !r.is_empty());
        let (short, long) = if self.short_name { (reasoning, None) } else { (None, reasoning) };
        let signed = calls.iter().filter_map(|c| Some((c.id.as_str(), c.extra_content.as_deref()?)));
        let kept = Kept { reasoning_content: long, reasoning: short, extra_content: signed.collect() };
        if reasoning.is_none() && kept.extra_content.is_empty() {
            return Ok(None);
        }
        let raw = to_raw_value(&kept).map_err(|e| self.asking.error(ErrorKind::Invalid, &e.to_string()))?;
        Ok(Some(Block::Opaque { origin: self.origin.clone(), shown: self.reasoning.clone(), raw }))
    }

    fn reported(&self, data: &str) -> ProviderError {
        let value = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
        self.asking.reported(value.get("error").filter(|e| is_something(e)).unwrap_or(&value))
    }
}

/// Whether an event without choices is an error in its own right.
fn is_error(data: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(data) else { return false };
    let says = |name: &str| value.get(name).and_then(Value::as_str) == Some("error");
    says("object") || says("type") || value.get("detail").is_some() || value.get("message").is_some()
}

/// What a finish reason means, however it is spelled; none for an empty one, which some servers send all along.
fn finish(reason: &str) -> Option<Finish> {
    let finish = match reason.trim().to_ascii_lowercase().as_str() {
        "" | "null" => return None,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "max_length" => Finish::Stop(Stop::MaxTokens),
        "content_filter" | "content-filter" | "refusal" | "safety" | "sensitive" => Finish::Stop(Stop::Refused),
        "error" | "network_error" => Finish::Failed,
        _ => Finish::Stop(Stop::End),
    };
    Some(finish)
}

#[cfg(test)]
mod tests {
    use super::super::super::http::{Endpoint, played};
    use super::super::super::samples::origin;
    use super::*;
    use crate::message::Message;

    /// Plays the data of events; `|` ends the stream. The deltas in short form, or the error.
    fn play(events: &[&str]) -> String {
        let endpoint = Endpoint::new("http://h");
        let asking = Arc::new(Asking::new(&endpoint, "http://h", "m"));
        let origin = origin("m");
        let history = [Message::Assistant(vec![Block::call(Call::new("old", "bash", "{}"))])];
        let decoder = Decoder::new(asking, origin, &Request::new("", &history, &[]));
        played(decoder, events)
    }

    fn content(text: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{"content":{}}}}}]}}"#, serde_json::to_string(text).unwrap())
    }

    fn calls(pieces: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{pieces}]}}}}]}}"#)
    }

    fn ends(reason: &str) -> String {
        format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
    }

    fn check(events: &[&str], expect: &str) {
        assert_eq!(play(events), expect, "{events:#?}");
    }

    #[test]
    fn texts_and_ends_in_the_forms_that_servers_give_them() {
        let (x, y, stop) = (&*content("x"), &*content("y"), &*ends("stop"));
        check(&[x, y, stop, "[DONE]"], "t:xy [xy] End");
        check(&[x, stop, "|"], "t:x [x] End");
        check(&[x, "[DONE]"], "t:x [x] End");
        check(&[x, &ends("eos_token"), "[DONE]"], "t:x [x] End");
        check(&[x, &ends("length"), "[DONE]"], "t:x [x] MaxTokens");
        check(&[x, &ends("MAX_TOKENS"), "[DONE]"], "t:x [x] MaxTokens");
        check(&[x, &ends("content_filter"), "[DONE]"], "t:x [x] Refused");
        check(
            &[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":""}]}"#, "|"],
            "Cut: the stream ended before the answer was whole.",
        );
        check(&[&content("\n\n"), &content("\nx\n"), stop, "|"], "t:x\n [x\n] End");
        check(
            &[
                r#"{"choices":[{}]}"#,
                r#"{"choices":[null]}"#,
                r#"{"choices":[]}"#,
                "{}",
                x,
                r#"{"choices":[{"finish_reason":"stop"}]}"#,
                "[DONE]",
            ],
            "t:x [x] End",
        );
        check(
            &[r#"{"choices":[{"delta":{"content":null,"tool_calls":null,"refusal":null}}]}"#, x, stop, "|"],
            "t:x [x] End",
        );
        check(
            &[r#"{"choices":[{"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}"#, "|"],
            "t:whole [whole] End",
        );
        check(&[stop, "[DONE]"], "End");
        check(&["<think>", &content("<think>a</think>b"), stop, "|"], "t:<think>a</think>b [<think>a</think>b] End");
    }

    #[test]
    fn an_answer_that_is_not_whole_is_an_error() {
        let x = &*content("x");
        check(&["|"], "Cut: the stream ended before the answer was whole.");
        check(&["[DONE]"], "Cut: the stream ended before the answer began.");
        check(&[x, "|"], "Cut: the stream ended before the answer was whole.");
        check(&[x, "{not json at all", &ends("stop"), "|"], "t:x [x] End");
        check(
            &[x, r#"{"choices":[{"delta":{"con"#, &ends("stop"), "|"],
            "Cut: an event of the answer cannot be read (EOF while parsing a string at line 1 column 26).",
        );
        check(&[x, &ends("error"), "|"], "Server: the server ended the answer with an error that it does not name.");
        check(
            &[x, r#"{"error":{"message":"mock overloaded","type":"server_error","code":503}}"#],
            "Server: the server reported an error: mock overloaded.",
        );
        check(&[r#"{"error":"boom"}"#], "Server: the server reported an error: boom.");
        check(&[r#"{"object":"error","message":"bad","code":429}"#], "RateLimited: the server reported an error: bad.");
        check(&[r#"{"error":null,"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#, "|"], "t:x [x] End");
    }

    #[test]
    fn calls_are_put_together_from_any_pieces() {
        let end = &*ends("tool_calls");
        let f = |head: &str, name: &str, arguments: &str| {
            format!(r#"{{{head}"function":{{"name":"{name}","arguments":"{arguments}"}}}}"#)
        };
        let a0 = &*calls(&f(r#""index":0,"id":"a","#, "bash", "{"));
        let more0 = &*calls(r#"{"index":0,"function":{"arguments":"}"}}"#);
        for (pieces, expect) in [
            (vec![a0, more0, end, "|"], "a=bash({}) End"),
            // Stop is said, but there is a call.
            (vec![a0, more0, &*ends("stop"), "|"], "a=bash({}) End"),
            // Two in one piece, without numbers.
            (
                vec![&*calls(&format!("{},{}", f(r#""id":"a","#, "x", "1"), f(r#""id":"b","#, "y", "2"))), end, "|"],
                "a=x(1) b=y(2) End",
            ),
            // Without numbers, continued; the id repeated or not.
            (
                vec![
                    &*calls(&f(r#""id":"a","#, "x", "1")),
                    &*calls(r#"{"function":{"arguments":"2"}}"#),
                    &*calls(&f(r#""id":"b","#, "y", "3")),
                    &*calls(r#"{"id":"b","function":{"arguments":"4"}}"#),
                    end,
                    "|",
                ],
                "a=x(12) b=y(34) End",
            ),
            // Numbers with a gap.
            (
                vec![
                    &*calls(&f(r#""index":0,"id":"a","#, "x", "1")),
                    &*calls(&f(r#""index":3,"id":"b","#, "y", "2")),
                    end,
                    "|",
                ],
                "a=x(1) b=y(2) End",
            ),
            // All with the same number.
            (
                vec![
                    &*calls(&f(r#""index":0,"id":"a","#, "x", "1")),
                    &*calls(&f(r#""index":0,"id":"b","#, "x", "2")),
                    &*calls(r#"{"index":0,"function":{"arguments":"3"}}"#),
                    end,
                    "|",
                ],
                "a=x(1) b=x(23) End",
            ),
            // A new id with each piece of the same call.
            (
                vec![
                    &*calls(&f(r#""index":0,"id":"a","#, "x", "1")),
                    &*calls(r#"{"index":0,"id":"zz","function":{"arguments":"2"}}"#),
                    end,
                    "|",
                ],
                "a=x(12) End",
            ),
            // Interleaved.
            (
                vec![
                    &*calls(&f(r#""index":0,"id":"a","#, "x", "1")),
                    &*calls(&f(r#""index":1,"id":"b","#, "y", "2")),
                    &*calls(r#"{"index":0,"function":{"arguments":"3"}}"#),
                    end,
                    "|",
                ],
                "a=x(13) b=y(2) End",
            ),
            // Ids missing, null, twice the same, or one of an earlier answer.
            (
                vec![
                    &*calls(&f(r#""index":0,"#, "x", "1")),
                    &*calls(&f(r#""index":1,"id":null,"#, "x", "2")),
                    end,
                    "|",
                ],
                "call_1=x(1) call_2=x(2) End",
            ),
            (
                vec![
                    &*calls(&f(r#""index":0,"id":"a","#, "x", "1")),
                    &*calls(&f(r#""index":1,"id":"a","#, "x", "2")),
                    &*calls(&f(r#""index":2,"id":"old","#, "x", "3")),
                    end,
                    "|",
                ],
                "a=x(1) call_2=x(2) call_3=x(3) End",
            ),
            // The name repeated with each piece.
            (vec![&*calls(&f("", "x", "{")), &*calls(&f("", "x", "}")), end, "|"], "call_1=x({}) End"),
            // Arguments empty, missing, null, or an object.
            (
                vec![
                    &*calls(&f(r#""id":"a","#, "x", "")),
                    &*calls(
                        r#"{"id":"b","function":{"name":"y","arguments":null}},{"id":"c","function":{"name":"z"}}"#,
                    ),
                    end,
                    "|",
                ],
                "a=x({}) b=y({}) c=z({}) End",
            ),
            (
                vec![&*calls(r#"{"id":"a","function":{"name":"x","arguments":{"b":1,"a":[2]}}}"#), end, "|"],
                r#"a=x({"b":1,"a":[2]}) End"#,
            ),
            // The way of old.
            (
                vec![
                    r#"{"choices":[{"delta":{"function_call":{"name":"x","arguments":"{"}}}]}"#,
                    r#"{"choices":[{"delta":{"function_call":{"arguments":"}"}}}]}"#,
                    &*ends("function_call"),
                    "|",
                ],
                "call_1=x({}) End",
            ),
            // Broken arguments are the model's to hear of; cut ones are not run.
            (vec![a0, end, "|"], "a=bash({) End"),
            (vec![a0, &*ends("length"), "|"], "MaxTokens"),
            (vec![a0, more0, &*ends("length"), "|"], "MaxTokens"),
            (vec![a0, more0, "|"], "Cut: the stream ended before the answer was whole."),
        ] {
            check(&pieces, expect);
        }
    }

    #[test]
    fn reasoning_is_kept_for_its_origin() {
        let say = |field: &str| format!(r#"{{"choices":[{{"delta":{{"{field}":"hm","content":""}}}}]}}"#);
        let (long, short) = (say("reasoning_content"), say("reasoning"));
        check(
            &[&long, &long, &content("A."), &ends("stop"), "|"],
            r#"r:hmhm t:A. {"reasoning_content":"hmhm"} [A.] End"#,
        );
        check(&[&short, &content("A."), &ends("stop"), "|"], r#"r:hm t:A. {"reasoning":"hm"} [A.] End"#);
        let signed = calls(
            r#"{"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}}"#,
        );
        check(
            &[&signed, &ends("stop"), "|"],
            r#"{"extra_content":{"a":{"google":{"thought_signature":"s=="}}}} a=x({}) End"#,
        );
    }

    #[test]
    fn usage_is_read_wherever_it_stands() {
        let x = &*content("x");
        let usage = |u: &str| format!(r#"{{"choices":[],"usage":{u}}}"#);
        for (u, expect) in [
            (
                r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}"#,
                "t:x [x] 6+4/3 End",
            ),
            (r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":9}"#, "t:x [x] 1+9/3 End"),
            (r#"{"prompt_tokens":10.0,"completion_tokens":null,"prompt_tokens_details":null}"#, "t:x [x] 10+0/0 End"),
            ("{}", "t:x [x] End"),
            ("null", "t:x [x] End"),
        ] {
            check(&[x, &ends("stop"), &usage(u), "[DONE]"], expect);
        }
        check(
            &[
                r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop","usage":{"prompt_tokens":2,"completion_tokens":1}}]}"#,
                "|",
            ],
            "t:x [x] 2+0/1 End",
        );
    }
}
