//! The request as Chat Completions want it, written in one pass.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use agent_tools::{Call, Declaration, Part};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::super::http::wire::{object, plain};
use super::super::{Effort, Model, Request};
use crate::message::{Block, CallResult, Message, Origin};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl<'a> Body<'a> {
    pub(super) fn new(model: &'a Model, request: &Request<'a>, origin: &'a Origin, new_limit: bool) -> Self {
        let limit = match (request.max_tokens, model.max_output) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, most) => wanted.or(most),
        };
        let (max_tokens, max_completion_tokens) = if new_limit { (None, limit) } else { (limit, None) };
        Self {
            model: &model.name,
            messages: Messages { system: request.system, messages: request.messages, origin },
            tools: request.tools.iter().map(|t| Tool { r#type: "function", function: Function(t) }).collect(),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            max_tokens,
            max_completion_tokens,
            reasoning_effort: request.effort,
        }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

struct Function<'a>(&'a Declaration);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &self.0.name)?;
        map.serialize_entry("description", &self.0.description)?;
        map.serialize_entry("parameters", &self.0.schema)?;
        map.end()
    }
}

struct Messages<'a> {
    system: &'a str,
    messages: &'a [Message],
    origin: &'a Origin,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        if !self.system.is_empty() {
            list.serialize_element(&Said { role: "system", content: Content::Text(self.system.into()) })?;
        }
        // Reasoning is wanted back while its answer is under way, and ignored or refused afterwards.
        let last_user = self.messages.iter().rposition(|m| matches!(m, Message::User(_)));
        for (at, message) in self.messages.iter().enumerate() {
            match message {
                Message::User(parts) if parts.is_empty() => {}
                Message::User(parts) => {
                    list.serialize_element(&Said { role: "user", content: Content::of(parts) })?;
                }
                Message::Assistant(blocks) => {
                    let under_way = last_user.is_none_or(|user| at > user);
                    if let Some(answer) = Answer::of(blocks, self.origin, under_way) {
                        list.serialize_element(&answer)?;
                    }
                }
                Message::Results(results) => write_results(&mut list, results)?,
            }
        }
        list.end()
    }
}

/// One message a result; pictures follow in a message of the user, since only those may have them.
fn write_results<L: SerializeSeq>(list: &mut L, results: &[CallResult]) -> Result<(), L::Error> {
    for result in results {
        let content = texts(&result.parts, "");
        list.serialize_element(&ToolMessage { role: "tool", tool_call_id: &result.id, content })?;
    }
    let pictures = results.iter().flat_map(|r| &r.parts).filter(|p| !matches!(p, Part::Text { .. }));
    let pictures: Vec<_> = pictures.filter_map(Piece::of).collect();
    if pictures.is_empty() {
        return Ok(());
    }
    let note = Piece::Text { text: "The pictures of the results above:" };
    let content = Content::Pieces([note].into_iter().chain(pictures).collect());
    list.serialize_element(&Said { role: "user", content })
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Piece<'a>>),
}

impl<'a> Content<'a> {
    fn of(parts: &'a [Part]) -> Self {
        if parts.iter().all(|p| matches!(p, Part::Text { .. })) {
            return Self::Text(texts(parts, "\n"));
        }
        Self::Pieces(parts.iter().filter_map(Piece::of).collect())
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

impl<'a> Piece<'a> {
    fn of(part: &'a Part) -> Option<Self> {
        match part {
            Part::Text { text } => Some(Self::Text { text }),
            Part::Image { media_type, data } => {
                Some(Self::ImageUrl { image_url: ImageUrl { url: DataUrl { media_type, data } } })
            }
            // A kind of part that this form has no words for.
            _ => None,
        }
    }
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

struct DataUrl<'a> {
    media_type: &'a str,
    data: &'a str,
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.media_type, self.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the model said. `content` is null beside calls, as the servers themselves write it.
#[derive(Serialize)]
struct Answer<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Called<'a>>,
}

impl<'a> Answer<'a> {
    /// Nothing for an answer without words and calls: servers refuse those.
    fn of(blocks: &'a [Block], origin: &Origin, under_way: bool) -> Option<Self> {
        let mut kept = blocks.iter().find_map(|b| Kept::of(b, origin)).unwrap_or_default();
        let calls = blocks.iter().filter_map(Block::as_call);
        let tool_calls: Vec<_> = calls.map(|c| Called::of(c, kept.extra_content.remove(c.id.as_str()))).collect();
        let content = words(blocks);
        if content.is_none() && tool_calls.is_empty() {
            return None;
        }
        let wanted = under_way && !tool_calls.is_empty();
        let kept = if wanted { kept } else { Kept::default() };
        let Kept { reasoning_content, reasoning, .. } = kept;
        Some(Self { role: "assistant", content, reasoning_content, reasoning, tool_calls })
    }
}

#[derive(Serialize)]
struct Called<'a> {
    id: &'a str,
    r#type: &'static str,
    function: CalledFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

impl<'a> Called<'a> {
    fn of(call: &'a Call, extra_content: Option<&'a RawValue>) -> Self {
        let function = CalledFunction { name: plain(&call.name), arguments: object(&call.arguments) };
        Self { id: &call.id, r#type: "function", function, extra_content }
    }
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

/// What a server wants back of its answer: the JSON of an opaque block, made by the decoder.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kept<'a> {
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    /// By the id of the call: Gemini signs its calls so.
    #[serde(borrow)]
    extra_content: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Kept<'a> {
    fn of(block: &'a Block, wanted: &Origin) -> Option<Self> {
        match block {
            Block::Opaque { origin, raw, .. } if **origin == *wanted => serde_json::from_str(raw.get()).ok(),
            Block::Opaque { .. } | Block::Text { .. } | Block::Call { .. } => None,
        }
    }
}

fn words(blocks: &[Block]) -> Option<Cow<'_, str>> {
    let texts = blocks.iter().filter_map(|b| match b {
        Block::Text { text } if !text.is_empty() => Some(text.as_str()),
        Block::Text { .. } | Block::Call { .. } | Block::Opaque { .. } => None,
    });
    joined(texts, "\n")
}

fn texts<'a>(parts: &'a [Part], between: &str) -> Cow<'a, str> {
    joined(parts.iter().map(Part::as_text).filter(|t| !t.is_empty()), between).unwrap_or_default()
}

/// Texts joined, without a copy where there is only one.
fn joined<'a>(mut texts: impl Iterator<Item = &'a str>, between: &str) -> Option<Cow<'a, str>> {
    let mut all = Cow::Borrowed(texts.next()?);
    for text in texts {
        let all = all.to_mut();
        all.push_str(between);
        all.push_str(text);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::*;

    fn origin(model: &str) -> Arc<Origin> {
        Arc::new(Origin { provider: "openai".into(), model: model.into(), endpoint: "e".into() })
    }

    fn opaque(model: &str, raw: &str) -> Block {
        Block::Opaque { origin: origin(model), shown: String::new(), raw: RawValue::from_string(raw.into()).unwrap() }
    }

    fn call(id: &str, arguments: &str) -> Block {
        Block::call(Call::new(id, "bash", arguments))
    }

    fn result(id: &str, parts: Vec<Part>) -> Message {
        Message::Results(vec![CallResult { id: id.into(), name: "bash".into(), failed: false, parts }])
    }

    fn picture() -> Part {
        Part::Image { media_type: "image/png".into(), data: "AAAA".into() }
    }

    fn body(messages: &[Message]) -> Value {
        let (model, origin) = (Model::new("openai", "m"), origin("m"));
        serde_json::to_value(Body::new(&model, &Request::new("sys", messages, &[]), &origin, false)).unwrap()
    }

    fn check(messages: &[Message], expect: &Value) {
        assert_eq!(body(messages)["messages"].as_array().unwrap()[1..], *expect.as_array().unwrap());
    }

    #[test]
    fn messages_are_written_as_servers_take_them() {
        check(&[Message::user("hi")], &json!([{"role": "user", "content": "hi"}]));
        check(
            &[Message::User(vec![Part::text("look"), picture()])],
            &json!([{"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]}]),
        );
        check(
            &[
                Message::Assistant(vec![
                    Block::text("on it"),
                    call("1", "{\"command\": \"ls\"}"),
                    call("2", "{broken"),
                ]),
                result("1", vec![Part::text("a\n"), picture()]),
            ],
            &json!([
                {"role": "assistant", "content": "on it", "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}},
                    {"id": "2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "1", "content": "a\n"},
                {"role": "user", "content": [
                    {"type": "text", "text": "The pictures of the results above:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
            ]),
        );
    }

    #[test]
    fn an_answer_without_words_and_calls_is_not_sent() {
        let reasoned = || opaque("m", r#"{"reasoning_content":"hm"}"#);
        for blocks in [vec![], vec![Block::text("")], vec![reasoned()], vec![reasoned(), Block::text("")]] {
            check(&[Message::Assistant(blocks)], &json!([]));
        }
        check(
            &[Message::Assistant(vec![call("1", "")])],
            &json!([{"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}]),
        );
    }

    #[test]
    fn reasoning_goes_back_to_its_origin_while_its_answer_is_under_way() {
        let answer =
            |model: &str| Message::Assistant(vec![opaque(model, r#"{"reasoning_content":"h\u00e9"}"#), call("1", "")]);
        let sent = |messages: &[Message], at: usize| body(messages)["messages"][at + 1]["reasoning_content"].clone();
        assert_eq!(sent(&[Message::user("go"), answer("m")], 1), json!("hé"));
        assert_eq!(sent(&[Message::user("go"), answer("other")], 1), Value::Null);
        assert_eq!(sent(&[Message::user("go"), answer("m"), Message::user("next")], 1), Value::Null);
        let said = Message::Assistant(vec![opaque("m", r#"{"reasoning_content":"x"}"#), Block::text("t")]);
        assert_eq!(sent(&[Message::user("go"), said], 1), Value::Null);
    }

    #[test]
    fn signatures_of_calls_go_back_verbatim() {
        let raw = r#"{"extra_content":{"1":{"google":{"thought_signature":"abc=="}}}}"#;
        let answer = Message::Assistant(vec![opaque("m", raw), call("1", ""), call("2", "")]);
        let sent = &body(&[answer, Message::user("next")])["messages"][1]["tool_calls"];
        assert_eq!(sent[0]["extra_content"], json!({"google": {"thought_signature": "abc=="}}));
        assert_eq!(sent[1]["extra_content"], Value::Null);
    }

    #[test]
    fn limits_tools_and_effort_are_sent_where_known() {
        let (mut model, origin) = (Model::new("openai", "m"), origin("m"));
        let declaration =
            Declaration { name: "bash".into(), description: "d".into(), schema: json!({"type": "object"}) };
        let tools = [&declaration];
        let mut request = Request::new("", &[], &tools);
        let write = |model: &Model, request: &Request<'_>, new| {
            serde_json::to_value(Body::new(model, request, &origin, new)).unwrap()
        };
        let bare = write(&model, &request, false);
        assert_eq!((&bare["max_tokens"], &bare["reasoning_effort"]), (&Value::Null, &Value::Null));
        assert_eq!(
            bare["tools"],
            json!([{"type": "function", "function":
            {"name": "bash", "description": "d", "parameters": {"type": "object"}}}])
        );
        assert_eq!((&bare["stream"], &bare["stream_options"]), (&json!(true), &json!({"include_usage": true})));
        model.max_output = Some(100);
        request.effort = Some(Effort::Xhigh);
        assert_eq!(write(&model, &request, false)["max_tokens"], 100);
        request.max_tokens = Some(50);
        let new = write(&model, &request, true);
        assert_eq!((&new["max_completion_tokens"], &new["max_tokens"]), (&json!(50), &Value::Null));
        assert_eq!(new["reasoning_effort"], "xhigh");
    }

    #[test]
    fn a_long_history_is_written_in_little_time() {
        let turn = |n: usize| {
            let id = format!("c{n}");
            [
                Message::Assistant(vec![call(&id, "{\"command\":\"cat a.txt\"}")]),
                result(&id, vec![Part::text("x".repeat(300))]),
            ]
        };
        let messages: Vec<Message> = (0..300).flat_map(turn).collect();
        let (model, origin) = (Model::new("openai", "m"), origin("m"));
        let best = (0..20)
            .map(|_| {
                let begin = Instant::now();
                let bytes = serde_json::to_vec(&Body::new(&model, &Request::new("s", &messages, &[]), &origin, false));
                assert!(bytes.unwrap().len() > 100_000);
                begin.elapsed()
            })
            .min();
        // Under 0.3 ms when optimised; this build is not, and the machine may be busy.
        assert!(best.unwrap() < Duration::from_millis(50), "{best:?}");
    }
}
