//! The request as Responses want it: the conversation as a list of items.

use std::borrow::Cow;

use agent_tools::{Call, Declaration, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::http::wire::{PICTURES, Picture, Shown, limit, object, pictures, plain, texts};
use super::super::quirks::{Level, Quirks};
use super::super::{Model, Request};
use crate::message::{Block, CallResult, Message, Origin};

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: Level,
    summary: &'static str,
}

impl<'a> Body<'a> {
    pub(super) fn new(model: &'a Model, request: &Request<'a>, origin: &Origin, quirks: &Quirks) -> Self {
        // A model that never reasons refuses to be asked for what it thought.
        let include: &[_] = if quirks.never_reasons() { &[] } else { &["reasoning.encrypted_content"] };
        Self {
            model: &model.name,
            instructions: request.system,
            input: items(request.messages, origin, model.sees, quirks.pictures_in_results),
            tools: request.tools.iter().map(|declaration| Tool::of(declaration)).collect(),
            stream: true,
            store: false,
            include,
            max_output_tokens: limit(model, request),
            reasoning: quirks.level(request.effort).map(|effort| Reasoning { effort, summary: "auto" }),
        }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    // Else the server makes every argument required.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn of(declaration: &'a Declaration) -> Self {
        let Declaration { name, description, schema } = declaration;
        Self { r#type: "function", name, description, parameters: schema, strict: false }
    }
}

/// An item of the conversation: our own words, or the server's, verbatim.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Ours(Ours<'a>),
    Theirs(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ours<'a> {
    Message { role: &'static str, content: Vec<Piece<'a>> },
    FunctionCall { call_id: &'a str, name: Cow<'a, str>, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: Output<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Pieces(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    InputText { text: Cow<'a, str> },
    OutputText { text: Cow<'a, str> },
    InputImage { image_url: Picture<'a> },
}

impl<'a> From<Shown<'a>> for Piece<'a> {
    fn from(shown: Shown<'a>) -> Self {
        match shown {
            Shown::Text(text) => Self::InputText { text },
            Shown::Picture(image_url) => Self::InputImage { image_url },
        }
    }
}

fn items<'a>(messages: &'a [Message], origin: &Origin, sees: bool, in_results: bool) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::User(parts) if parts.is_empty() => {}
            Message::User(parts) => items.push(user(pieces(parts, sees).collect())),
            Message::Assistant(blocks) => answer(&mut items, blocks, origin),
            Message::Results(results) => write_results(&mut items, results, sees, in_results),
        }
    }
    items
}

fn user(content: Vec<Piece<'_>>) -> Item<'_> {
    Item::Ours(Ours::Message { role: "user", content })
}

fn pieces(parts: &[Part], sees: bool) -> impl Iterator<Item = Piece<'_>> {
    parts.iter().filter_map(move |part| Shown::of(part, sees)).map(Piece::from)
}

/// Each block in its place. Reasoning that nothing follows is left out: the server refuses it.
fn answer<'a>(items: &mut Vec<Item<'a>>, blocks: &'a [Block], wanted: &Origin) {
    let begin = items.len();
    let mut whole = begin;
    for block in blocks {
        match block {
            Block::Text { text } if text.is_empty() => continue,
            Block::Text { text } => {
                let content = vec![Piece::OutputText { text: text.into() }];
                items.push(Item::Ours(Ours::Message { role: "assistant", content }));
            }
            Block::Call { call } => items.push(called(call)),
            Block::Opaque { origin, raw, .. } => {
                if **origin == *wanted && is_whole(raw) {
                    items.push(Item::Theirs(raw));
                }
                continue;
            }
        }
        whole = items.len();
    }
    items.truncate(whole);
}

/// Whether reasoning says what it was: else it is a mere pointer to what the server did not keep.
fn is_whole(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Kept {
        encrypted_content: Option<String>,
        content: Option<Vec<serde::de::IgnoredAny>>,
    }
    serde_json::from_str::<Kept>(raw.get())
        .is_ok_and(|kept| kept.encrypted_content.is_some() || kept.content.is_some_and(|content| !content.is_empty()))
}

fn called(call: &Call) -> Item<'_> {
    let arguments = object(&call.arguments);
    Item::Ours(Ours::FunctionCall { call_id: &call.id, name: plain(&call.name), arguments })
}

/// One item a result; where results have no pictures, those follow in a message of the user.
fn write_results<'a>(items: &mut Vec<Item<'a>>, results: &'a [CallResult], sees: bool, in_results: bool) {
    for result in results {
        let has_picture = pieces(&result.parts, sees).any(|piece| matches!(piece, Piece::InputImage { .. }));
        let output = if has_picture && in_results {
            Output::Pieces(pieces(&result.parts, sees).collect())
        } else {
            Output::Text(texts(&result.parts, sees, ""))
        };
        items.push(Item::Ours(Ours::FunctionCallOutput { call_id: &result.id, output }));
    }
    let mut left = pictures(results, sees).filter(|_| !in_results).map(|image_url| Piece::InputImage { image_url });
    if let Some(first) = left.next() {
        let note = Piece::InputText { text: PICTURES.into() };
        items.push(user([note, first].into_iter().chain(left).collect()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::Effort;
    use super::super::super::samples::{call, opaque, origin, picture, results};
    use super::*;

    fn written(model: &Model, url: &str, request: &Request<'_>) -> String {
        let quirks = Quirks::of(model, url);
        serde_json::to_string(&Body::new(model, request, &origin("m"), &quirks)).unwrap()
    }

    fn body(sees: bool, url: &str, messages: &[Message]) -> Value {
        let model = Model { sees, ..Model::new("responses", "m") };
        serde_json::from_str(&written(&model, url, &Request::new("sys", messages, &[]))).unwrap()
    }

    fn check(messages: &[Message], expect: &Value) {
        assert_eq!(body(true, "http://h", messages)["input"], *expect);
    }

    #[test]
    fn messages_are_items() {
        check(
            &[Message::User(vec![Part::text("look"), picture()])],
            &json!([{"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            ]}]),
        );
        check(
            &[
                Message::Assistant(vec![Block::text("on it"), call("1", "{\"a\": 1}"), call("2", "{broken")]),
                results("1", vec![Part::text("a"), Part::text("b")]),
                results("2", vec![Part::text("x"), picture()]),
            ],
            &json!([
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "on it"}]},
                {"type": "function_call", "call_id": "1", "name": "bash", "arguments": "{\"a\": 1}"},
                {"type": "function_call", "call_id": "2", "name": "bash", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "ab"},
                {"type": "function_call_output", "call_id": "2", "output": [
                    {"type": "input_text", "text": "x"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                ]},
            ]),
        );
        for nothing in [Message::User(vec![]), Message::Assistant(vec![]), Message::Assistant(vec![Block::text("")])] {
            check(&[nothing], &json!([]));
        }
    }

    #[test]
    fn pictures_stand_where_the_server_and_the_model_take_them() {
        let messages = [results("1", vec![Part::text("x"), picture()])];
        let sent = body(true, "https://api.deepseek.com", &messages);
        assert_eq!(sent["input"][0]["output"], "x");
        assert_eq!(sent["input"][1]["content"][0]["text"], PICTURES);
        assert_eq!(sent["input"][1]["content"][1]["image_url"], "data:image/png;base64,AAAA");
        let blind = body(false, "http://h", &messages);
        let note = "x\n[picture image/png, not shown: this model does not see pictures]";
        assert_eq!(blind["input"], json!([{"type": "function_call_output", "call_id": "1", "output": note}]));
    }

    #[test]
    fn reasoning_goes_back_to_its_origin_verbatim_and_in_its_place() {
        const RAW: &str = r#"{"type":"reasoning","id":"rs_1","summary":[ ],"encrypted_content":"g\u00e4=="}"#;
        const OPEN: &str = r#"{"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}]}"#;
        const POINTER: &str = r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":null}"#;
        let model = Model::new("responses", "m");
        let write = |of: &str, raw: &str, after: &[Block]| {
            let blocks = [&[opaque(of, raw)], after].concat();
            written(&model, "http://h", &Request::new("", &[Message::Assistant(blocks)], &[]))
        };
        let with_call = |raw: &str| format!(r#""input":[{raw},{{"type":"function_call""#);
        for (raw, of, sent) in [(RAW, "m", true), (OPEN, "m", true), (POINTER, "m", false), (RAW, "other", false)] {
            let body = write(of, raw, &[call("1", "{}")]);
            assert_eq!(body.contains(&with_call(raw)), sent, "{body}");
            assert_eq!(body.contains("rs_") || body.contains("reasoning_text"), sent, "{body}");
        }
        assert!(write("m", RAW, &[]).contains(r#""input":[]"#));
        assert!(write("m", RAW, &[Block::text("")]).contains(r#""input":[]"#));
        let trailing = write("m", RAW, &[Block::text("t"), opaque("m", RAW)]);
        assert_eq!(trailing.matches("rs_1").count(), 1, "{trailing}");
    }

    #[test]
    fn limits_tools_and_effort_are_sent_where_known() {
        let declaration =
            Declaration { name: "bash".into(), description: "d".into(), schema: json!({"type": "object"}) };
        let tools = [&declaration];
        for (name, effort, reasoning, include) in [
            ("gpt-5.5", Some(Effort::High), json!({"effort": "high", "summary": "auto"}), true),
            ("gpt-5.5", None, json!(null), true),
            ("gpt-4.1", Some(Effort::High), json!(null), false),
            ("strange", Some(Effort::High), json!(null), true),
        ] {
            let mut model = Model::new("responses", name);
            model.max_output = Some(100);
            let mut request = Request::new("sys", &[], &tools);
            (request.effort, request.max_tokens) = (effort, Some(50));
            let sent: Value = serde_json::from_str(&written(&model, "https://api.openai.com/v1", &request)).unwrap();
            let include = if include { json!(["reasoning.encrypted_content"]) } else { json!(null) };
            assert_eq!((&sent["reasoning"], &sent["include"]), (&reasoning, &include), "{name}");
            assert_eq!((&sent["max_output_tokens"], &sent["instructions"]), (&json!(50), &json!("sys")));
            assert_eq!((&sent["store"], &sent["stream"]), (&json!(false), &json!(true)));
            let tool = json!({"type": "function", "name": "bash", "description": "d",
                "parameters": {"type": "object"}, "strict": false});
            assert_eq!(sent["tools"], json!([tool]));
        }
    }
}
