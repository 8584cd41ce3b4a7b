//! The request as Messages want it, written in one pass, with the marks of the prompt cache.

use std::borrow::Cow;

use agent_tools::{Call, Declaration, Part};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::http::wire::{Picture, Shown, object, plain};
use super::super::quirks::{self, Level, Quirks};
use super::super::{Model, Request};
use crate::message::{Block, CallResult, Message, Origin};

/// The largest answer where none is known: this form wants a number.
const MAX_TOKENS: u64 = 8192;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<Content<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<Tool<'a>>>,
    messages: Vec<Turn<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Level,
}

impl<'a> Body<'a> {
    pub(super) fn new(model: &'a Model, request: &Request<'a>, origin: &'a Origin, quirks: &Quirks) -> Self {
        let most = model.max_output.unwrap_or(MAX_TOKENS.max(request.max_tokens.unwrap_or(0)));
        let system = Some(request.system).filter(|s| !s.trim().is_empty());
        let mut system: Vec<_> =
            system.map(|text| Marked::new(Content::Text { text: text.into() })).into_iter().collect();
        let mut tools: Vec<_> = request.tools.iter().map(|t| Marked::new(Tool(t))).collect();
        mark(system.last_mut());
        mark(tools.last_mut());
        let max_tokens = request.max_tokens.map_or(most, |wanted| wanted.min(most));
        let (thinking, output_config) = thinking(quirks, quirks.level(request.effort), max_tokens);
        Self {
            model: &model.name,
            max_tokens,
            system,
            tools,
            messages: turns(request.messages, origin, model.sees),
            stream: true,
            thinking,
            output_config,
        }
    }
}

/// How the model is told to think that hard.
fn thinking(quirks: &Quirks, level: Option<Level>, max_tokens: u64) -> (Option<Thinking>, Option<OutputConfig>) {
    let Some(effort) = level else { return (None, None) };
    let open = |kind| (Some(Thinking { r#type: kind, budget_tokens: None }), Some(OutputConfig { effort }));
    match quirks.thinking {
        quirks::Thinking::Adaptive => open("adaptive"),
        quirks::Thinking::Enabled => open("enabled"),
        quirks::Thinking::Budget => {
            let thinking =
                budget(effort, max_tokens).map(|tokens| Thinking { r#type: "enabled", budget_tokens: Some(tokens) });
            (thinking, None)
        }
    }
}

/// How many tokens of an answer may be thought; none where too few would be left for the answer itself.
fn budget(level: Level, max_tokens: u64) -> Option<u64> {
    /// Less is refused.
    const LEAST: u64 = 1024;
    let wanted = match level {
        Level::Minimal => LEAST,
        Level::Low => 2048,
        Level::Medium => 8192,
        Level::High => 16_384,
        Level::Xhigh => 24_576,
        Level::Max => 31_999,
    };
    Some(wanted.min(max_tokens.saturating_sub(LEAST))).filter(|tokens| *tokens >= LEAST)
}

/// Something that the prompt may be cached up to.
#[derive(Serialize)]
struct Marked<T> {
    #[serde(flatten)]
    inner: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Ephemeral>,
}

impl<T> Marked<T> {
    fn new(inner: T) -> Self {
        Self { inner, cache_control: None }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct Ephemeral {}

fn mark<T>(last: Option<&mut Marked<T>>) {
    if let Some(last) = last {
        last.cache_control = Some(Ephemeral {});
    }
}

struct Tool<'a>(&'a Declaration);

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            name: &'a str,
            description: &'a str,
            input_schema: &'a Value,
        }
        let Declaration { name, description, schema } = self.0;
        Fields { name, description, input_schema: schema }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Piece<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

/// A block of a message: our own words, or the server's, verbatim.
#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'a> {
    Ours(Marked<Content<'a>>),
    Theirs(&'a RawValue),
}

impl<'a> From<Content<'a>> for Piece<'a> {
    fn from(content: Content<'a>) -> Self {
        Self::Ours(Marked::new(content))
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The conversation with each side's messages in a row joined, and the last two of the user marked for the cache.
fn turns<'a>(messages: &'a [Message], origin: &Origin, sees: bool) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let (role, content): (Role, Vec<Piece<'a>>) = match message {
            Message::User(parts) => (Role::User, contents(parts, sees).map(Piece::from).collect()),
            Message::Results(results) => (Role::User, results.iter().map(|r| result(r, sees).into()).collect()),
            Message::Assistant(blocks) => (Role::Assistant, answer(blocks, origin)),
        };
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(Turn { role, content }),
        }
    }
    for turn in turns.iter_mut().rev().filter(|t| t.role == Role::User).take(2) {
        match turn.content.last_mut() {
            Some(Piece::Ours(last)) => mark(Some(last)),
            Some(Piece::Theirs(_)) | None => {}
        }
    }
    turns
}

/// Nothing for an answer of reasoning alone: servers refuse those.
fn answer<'a>(blocks: &'a [Block], wanted: &Origin) -> Vec<Piece<'a>> {
    let pieces: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => said(text.as_str()).map(Piece::from),
            Block::Call { call } => Some(called(call).into()),
            Block::Opaque { origin, raw, .. } => (**origin == *wanted).then_some(Piece::Theirs(raw)),
        })
        .collect();
    if pieces.iter().any(|p| matches!(p, Piece::Ours(_))) { pieces } else { Vec::new() }
}

fn called(call: &Call) -> Content<'_> {
    // Checked to be an object before; kept in the order of its keys.
    let input = serde_json::from_str(object(&call.arguments)).unwrap_or_default();
    Content::ToolUse { id: plain(&call.id), name: plain(&call.name), input }
}

fn result(result: &CallResult, sees: bool) -> Content<'_> {
    let content = contents(&result.parts, sees).collect();
    Content::ToolResult { tool_use_id: plain(&result.id), content, is_error: result.failed }
}

fn contents(parts: &[Part], sees: bool) -> impl Iterator<Item = Content<'_>> {
    parts.iter().filter_map(move |part| match Shown::of(part, sees)? {
        Shown::Text(text) => said(text),
        Shown::Picture(Picture { media_type, data }) => {
            Some(Content::Image { source: Source { r#type: "base64", media_type, data } })
        }
    })
}

/// A text; none where there is nothing in it: servers refuse those.
fn said<'a>(text: impl Into<Cow<'a, str>>) -> Option<Content<'a>> {
    Some(text.into()).filter(|text| !text.trim().is_empty()).map(|text| Content::Text { text })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::Effort;
    use super::super::super::samples::{self, call, opaque, origin, picture};
    use super::*;

    fn result(id: &str, failed: bool, text: &str) -> CallResult {
        CallResult { failed, ..samples::result(id, vec![Part::text(text)]) }
    }

    fn body(request: &Request<'_>) -> Value {
        let model = Model { sees: true, ..Model::new("anthropic", "m") };
        body_of(&model, request)
    }

    fn body_of(model: &Model, request: &Request<'_>) -> Value {
        serde_json::to_value(Body::new(model, request, &origin("m"), &Quirks::of(model, "http://h"))).unwrap()
    }

    /// Compares the messages, the marks of the cache left out.
    fn check(messages: &[Message], expect: &Value) {
        let mut sent = body(&Request::new("s", messages, &[]))["messages"].take();
        for block in sent.as_array_mut().unwrap().iter_mut().flat_map(|m| m["content"].as_array_mut().unwrap()) {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        assert_eq!(sent, *expect);
    }

    #[test]
    fn messages_are_written_as_servers_take_them() {
        check(
            &[
                Message::user("go"),
                Message::User(vec![Part::text(" "), Part::Image { media_type: "image/png".into(), data: "AA".into() }]),
                Message::Assistant(vec![Block::text("\n"), call("f:1", r#"{"b": 1, "a": 2}"#), call("2", "{broken")]),
                Message::Results(vec![result("f:1", false, "ok"), result("2", true, "")]),
                Message::user("and"),
            ],
            &json!([
                {"role": "user", "content": [
                    {"type": "text", "text": "go"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "f_1", "name": "bash", "input": {"b": 1, "a": 2}},
                    {"type": "tool_use", "id": "2", "name": "bash", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "f_1", "content": [{"type": "text", "text": "ok"}]},
                    {"type": "tool_result", "tool_use_id": "2", "is_error": true},
                    {"type": "text", "text": "and"},
                ]},
            ]),
        );
    }

    #[test]
    fn an_answer_without_words_and_calls_is_not_sent() {
        let thought = || opaque("m", r#"{"type":"redacted_thinking","data":"x"}"#);
        for blocks in [vec![], vec![Block::text("")], vec![thought()], vec![thought(), Block::text(" ")]] {
            check(
                &[Message::user("a"), Message::Assistant(blocks), Message::user("b")],
                &json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]),
            );
        }
    }

    #[test]
    fn thinking_goes_back_to_its_origin_verbatim_and_in_order() {
        let raw = r#"{"type":"thinking","thinking":"h\u00e9  m","signature":"a=="}"#;
        let redacted = r#"{"type":"redacted_thinking","data":"REDACT=="}"#;
        let blocks = |model: &str| vec![opaque(model, raw), Block::text("t"), opaque(model, redacted), call("1", "{}")];
        let (model, origin) = (Model::new("anthropic", "m"), origin("m"));
        let quirks = Quirks::of(&model, "http://h");
        let write = |model_of: &str| {
            let messages = [Message::Assistant(blocks(model_of))];
            serde_json::to_string(&Body::new(&model, &Request::new("", &messages, &[]), &origin, &quirks)).unwrap()
        };
        let own = write("m");
        let text = r#"{"type":"text","text":"t"}"#;
        assert!(own.contains(&format!(r#""content":[{raw},{text},{redacted},{{"type":"tool_use""#)), "{own}");
        assert!(!write("other").contains("thinking"));
    }

    #[test]
    fn what_stays_the_same_is_marked_for_the_cache() {
        let tool =
            |name: &str| Declaration { name: name.into(), description: "d".into(), schema: json!({"type": "object"}) };
        let (a, b) = (tool("a"), tool("b"));
        let messages = [
            Message::user("1"),
            Message::Assistant(vec![call("1", "{}")]),
            Message::Results(vec![result("1", false, "x"), result("2", false, "y")]),
            Message::Assistant(vec![Block::text("t")]),
            Message::user("2"),
        ];
        let tools = [&a, &b];
        let sent = body(&Request::new("sys", &messages, &tools));
        let marked = json!({"type": "ephemeral"});
        for (path, expect) in [
            ("/system/0/cache_control", Some(&marked)),
            ("/tools/0/cache_control", None),
            ("/tools/1/cache_control", Some(&marked)),
            ("/messages/0/content/0/cache_control", None),
            ("/messages/2/content/0/cache_control", None),
            ("/messages/2/content/1/cache_control", Some(&marked)),
            ("/messages/4/content/0/cache_control", Some(&marked)),
        ] {
            assert_eq!(sent.pointer(path), expect, "{path}\n{sent:#}");
        }
        assert_eq!(sent["tools"][0], json!({"name": "a", "description": "d", "input_schema": {"type": "object"}}));
    }

    #[test]
    fn limits_and_effort_are_sent_where_known() {
        for (max_output, wanted, expect) in [
            (None, None, 8192),
            (None, Some(100), 100),
            (None, Some(9000), 9000),
            (Some(500), None, 500),
            (Some(500), Some(900), 500),
        ] {
            let mut model = Model::new("anthropic", "m");
            model.max_output = max_output;
            let mut request = Request::new("", &[], &[]);
            request.max_tokens = wanted;
            let body = body_of(&model, &request);
            assert_eq!(body["max_tokens"], expect);
            assert_eq!((body.get("thinking"), body.get("system"), body.get("tools")), (None, None, None));
        }
    }

    #[test]
    fn effort_is_written_as_each_model_takes_it() {
        let adaptive = |level: &str| (json!({"type": "adaptive"}), json!({"effort": level}));
        let budget = |tokens: u64| (json!({"type": "enabled", "budget_tokens": tokens}), json!(null));
        let nothing = || (json!(null), json!(null));
        for (name, effort, max_tokens, expect) in [
            ("claude-sonnet-5-5", Effort::High, None, adaptive("high")),
            ("claude-opus-4-8", Effort::Xhigh, None, adaptive("xhigh")),
            ("claude-opus-4-6", Effort::Xhigh, None, adaptive("high")),
            ("claude-opus-4-6", Effort::Max, None, adaptive("max")),
            ("claude-haiku-4-5", Effort::High, None, budget(16_384)),
            ("claude-sonnet-4-20250514", Effort::Low, None, budget(2048)),
            ("claude-3-7-sonnet-latest", Effort::Max, Some(4096), budget(3072)),
            ("claude-3-7-sonnet-latest", Effort::Max, Some(2000), nothing()),
            ("claude-3-haiku", Effort::High, None, nothing()),
            ("deepseek-v4-pro", Effort::Medium, None, (json!({"type": "enabled"}), json!({"effort": "high"}))),
            ("strange", Effort::High, None, nothing()),
        ] {
            let mut model = Model::new("anthropic", name);
            model.max_output = Some(64_000);
            let mut request = Request::new("", &[], &[]);
            (request.effort, request.max_tokens) = (Some(effort), max_tokens);
            let body = body_of(&model, &request);
            assert_eq!((body["thinking"].clone(), body["output_config"].clone()), expect, "{name} {effort:?}");
        }
    }

    #[test]
    fn who_does_not_see_is_told_of_pictures() {
        let note = json!({"type": "text", "text": "[picture image/png, not shown: this model does not see pictures]"});
        let messages = [Message::User(vec![picture()]), Message::Assistant(vec![call("1", "{}")])];
        let seen = Message::Results(vec![samples::result("1", vec![picture()])]);
        let messages = [&messages[..], &[seen]].concat();
        let sent = body_of(&Model::new("anthropic", "m"), &Request::new("", &messages, &[]));
        let mut said = sent["messages"][0]["content"][0].clone();
        said.as_object_mut().unwrap().remove("cache_control");
        assert_eq!((said, &sent["messages"][2]["content"][0]["content"][0]), (note.clone(), &note));
    }
}
