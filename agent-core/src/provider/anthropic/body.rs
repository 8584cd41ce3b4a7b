//! The request as Messages want it, written in one pass, with the marks of the prompt cache.

use std::borrow::Cow;

use agent_tools::{Call, Declaration, Part};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::http::wire::{object, plain};
use super::super::{Effort, Model, Request};
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
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Effort,
}

impl<'a> Body<'a> {
    pub(super) fn new(model: &'a Model, request: &Request<'a>, origin: &'a Origin) -> Self {
        let most = model.max_output.unwrap_or(MAX_TOKENS.max(request.max_tokens.unwrap_or(0)));
        let system = Some(request.system).filter(|s| !s.trim().is_empty());
        let mut system: Vec<_> =
            system.map(|text| Marked::new(Content::Text { text: text.into() })).into_iter().collect();
        let mut tools: Vec<_> = request.tools.iter().map(|t| Marked::new(Tool(t))).collect();
        mark(system.last_mut());
        mark(tools.last_mut());
        Self {
            model: &model.name,
            max_tokens: request.max_tokens.map_or(most, |wanted| wanted.min(most)),
            system,
            tools,
            messages: turns(request.messages, origin),
            stream: true,
            thinking: request.effort.map(|_| Thinking { r#type: "adaptive" }),
            output_config: request.effort.map(|effort| OutputConfig { effort }),
        }
    }
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
fn turns<'a>(messages: &'a [Message], origin: &Origin) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let (role, content): (Role, Vec<Piece<'a>>) = match message {
            Message::User(parts) => (Role::User, contents(parts).map(Piece::from).collect()),
            Message::Results(results) => (Role::User, results.iter().map(|r| result(r).into()).collect()),
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
            Block::Text { text } => said(text).map(Piece::from),
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

fn result(result: &CallResult) -> Content<'_> {
    let content = contents(&result.parts).collect();
    Content::ToolResult { tool_use_id: plain(&result.id), content, is_error: result.failed }
}

fn contents(parts: &[Part]) -> impl Iterator<Item = Content<'_>> {
    parts.iter().filter_map(|part| match part {
        Part::Text { text } => said(text),
        Part::Image { media_type, data } => {
            Some(Content::Image { source: Source { r#type: "base64", media_type, data } })
        }
        // A kind of part that this form has no words for.
        _ => None,
    })
}

/// A text; none where there is nothing in it: servers refuse those.
fn said(text: &str) -> Option<Content<'_>> {
    (!text.trim().is_empty()).then_some(Content::Text { text: text.into() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn origin(model: &str) -> Arc<Origin> {
        Arc::new(Origin { provider: "anthropic".into(), model: model.into(), endpoint: "e".into() })
    }

    fn opaque(model: &str, raw: &str) -> Block {
        Block::Opaque { origin: origin(model), shown: String::new(), raw: RawValue::from_string(raw.into()).unwrap() }
    }

    fn call(id: &str, arguments: &str) -> Block {
        Block::call(Call::new(id, "bash", arguments))
    }

    fn result(id: &str, failed: bool, text: &str) -> CallResult {
        CallResult { id: id.into(), name: "bash".into(), failed, parts: vec![Part::text(text)] }
    }

    fn body(request: &Request<'_>) -> Value {
        let (model, origin) = (Model::new("anthropic", "m"), origin("m"));
        serde_json::to_value(Body::new(&model, request, &origin)).unwrap()
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
        let write = |model_of: &str| {
            let messages = [Message::Assistant(blocks(model_of))];
            serde_json::to_string(&Body::new(&model, &Request::new("", &messages, &[]), &origin)).unwrap()
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
            let body = serde_json::to_value(Body::new(&model, &request, &origin("m"))).unwrap();
            assert_eq!(body["max_tokens"], expect);
            assert_eq!((body.get("thinking"), body.get("system"), body.get("tools")), (None, None, None));
        }
        let mut request = Request::new("", &[], &[]);
        request.effort = Some(Effort::High);
        let body = body(&request);
        assert_eq!(
            (&body["thinking"], &body["output_config"]),
            (&json!({"type": "adaptive"}), &json!({"effort": "high"}))
        );
    }
}
