//! Understands the events of Responses: items by number or id, whole at their end or only at the end of all.

use std::sync::Arc;

use agent_tools::Call;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::http::wire::{Ids, Text, counted, is_damaged, is_something, read};
use super::super::http::{Asking, Decode, Outbox};
use super::super::sse::Event;
use super::super::{Delta, ErrorKind, ProviderError, Request, Stop, Usage};
use crate::message::{Block, Origin};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Told {
    r#type: Option<Text>,
    output_index: Option<u64>,
    item_id: Option<Text>,
    summary_index: Option<u64>,
    item: Option<Box<RawValue>>,
    delta: Option<Text>,
    text: Option<Text>,
    refusal: Option<Text>,
    arguments: Option<Value>,
    response: Option<Whole>,
    error: Option<Value>,
}

/// A whole response.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Whole {
    status: Option<Text>,
    output: Option<Vec<Box<RawValue>>>,
    usage: Option<Value>,
    error: Option<Value>,
    incomplete_details: Option<Value>,
}

/// An item as the server has it at its end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: Option<Text>,
    id: Option<Text>,
    call_id: Option<Text>,
    name: Option<Text>,
    arguments: Option<Value>,
    content: Option<Vec<Piece>>,
    summary: Option<Vec<Piece>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece {
    text: Option<Text>,
    refusal: Option<Text>,
}

/// An item as far as it was heard.
struct Heard {
    index: Option<u64>,
    id: String,
    kind: Kind,
    /// It was heard to its end.
    ended: bool,
}

enum Kind {
    Words(String),
    Call(Call),
    Reasoning {
        shown: String,
        raw: Option<Box<RawValue>>,
    },
    /// What only the server's own tools make.
    Other,
}

pub(super) struct Decoder {
    asking: Arc<Asking>,
    origin: Arc<Origin>,
    ids: Ids,
    items: Vec<Heard>,
}

impl Kind {
    fn of(r#type: &str) -> Self {
        match r#type {
            "message" => Self::words(),
            "function_call" => Self::call(),
            "reasoning" => Self::reasoning(),
            _ => Self::Other,
        }
    }

    fn words() -> Self {
        Self::Words(String::new())
    }

    fn call() -> Self {
        Self::Call(Call { id: String::new(), name: String::new(), arguments: String::new() })
    }

    fn reasoning() -> Self {
        Self::Reasoning { shown: String::new(), raw: None }
    }

    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Decode for Decoder {
    fn event(&mut self, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.end(out);
        }
        let told: Told = match read(data) {
            Ok(told) => told,
            Err(_) if event.name == "error" => return Err(self.asking.reported(&Value::from(data))),
            Err(_) if !is_damaged(data) => return Ok(()),
            Err(e) => return Err(self.unreadable(&e)),
        };
        self.read(told, event, out)
    }

    fn end(&mut self, _: &mut Outbox) -> Result<(), ProviderError> {
        Err(self.asking.cut("the stream ended before the answer was whole (no response.completed came)"))
    }
}

impl Decoder {
    pub(super) fn new(asking: Arc<Asking>, origin: Arc<Origin>, request: &Request<'_>) -> Self {
        Self { asking, origin, ids: Ids::of(request), items: Vec::new() }
    }

    fn read(&mut self, told: Told, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError> {
        let kind = told.r#type.as_ref().map_or(event.name, |text| &text.0).to_owned();
        match kind.strip_prefix("response.").unwrap_or(&kind) {
            "output_text.delta" | "refusal.delta" => self.say(told, out),
            "output_text.done" | "refusal.done" => self.said(told, out),
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                let delta = told.delta.unwrap_or_default().0;
                self.think(told.output_index, told.item_id, &delta, out);
            }
            "reasoning_summary_part.added" if told.summary_index.is_some_and(|index| index > 0) => {
                self.think(told.output_index, told.item_id, "\n\n", out);
            }
            "function_call_arguments.delta" => self.argue(told),
            "function_call_arguments.done" => self.argued(told),
            "output_item.added" => self.item(told.output_index, told.item.as_deref(), false, out)?,
            "output_item.done" => self.item(told.output_index, told.item.as_deref(), true, out)?,
            status @ ("completed" | "done" | "incomplete" | "failed") => {
                return self.conclude(told.response.unwrap_or_default(), status, out);
            }
            "error" => return Err(self.reported(told.error, event.data)),
            _ if told.error.as_ref().is_some_and(is_something) => return Err(self.reported(told.error, event.data)),
            "" => return self.whole(event.data, out),
            // Beginnings, what the server's own tools do, and what may be added to the form.
            _ => {}
        }
        Ok(())
    }

    /// An answer that was not streamed.
    fn whole(&mut self, data: &str, out: &mut Outbox) -> Result<(), ProviderError> {
        let whole: Whole = read(data).map_err(|e| self.unreadable(&e))?;
        if whole.output.is_none() { Ok(()) } else { self.conclude(whole, "completed", out) }
    }

    /// Where a piece belongs: to the item of its number or id, else to the last one of its kind that has not ended, else
    /// to a new one.
    fn at(&mut self, index: Option<u64>, id: Option<Text>, kind: Kind) -> usize {
        let id = id.unwrap_or_default().0;
        let another = |heard: &Heard| heard.ended && !id.is_empty() && !heard.id.is_empty() && heard.id != id;
        let find = |fits: &dyn Fn(&Heard) -> bool| {
            self.items.iter().rposition(|heard| heard.kind.is_like(&kind) && fits(heard))
        };
        let found = find(&|heard| index.is_some() && heard.index == index && !another(heard))
            .or_else(|| find(&|heard| !id.is_empty() && heard.id == id))
            .or_else(|| find(&|heard| index.is_none() && id.is_empty() && !heard.ended));
        found.unwrap_or_else(|| {
            self.items.push(Heard { index, id, kind, ended: false });
            self.items.len() - 1
        })
    }

    fn say(&mut self, told: Told, out: &mut Outbox) {
        let at = self.at(told.output_index, told.item_id, Kind::words());
        if let Kind::Words(words) = &mut self.items[at].kind {
            let delta = told.delta.unwrap_or_default().0;
            words.push_str(&delta);
            out.text(&delta);
        }
    }

    /// A text at its end: said now where no piece of it came before.
    fn said(&mut self, told: Told, out: &mut Outbox) {
        let at = self.at(told.output_index, told.item_id, Kind::words());
        let text = told.text.or(told.refusal).unwrap_or_default().0;
        if let Kind::Words(words) = &mut self.items[at].kind
            && words.is_empty()
        {
            words.push_str(&text);
            out.text(&text);
        }
    }

    fn think(&mut self, index: Option<u64>, id: Option<Text>, text: &str, out: &mut Outbox) {
        let at = self.at(index, id, Kind::reasoning());
        if let Kind::Reasoning { shown, .. } = &mut self.items[at].kind {
            shown.push_str(text);
            out.thinking(text);
        }
    }

    fn argue(&mut self, told: Told) {
        let at = self.at(told.output_index, told.item_id, Kind::call());
        if let Kind::Call(call) = &mut self.items[at].kind {
            call.arguments.push_str(&told.delta.unwrap_or_default().0);
        }
    }

    fn argued(&mut self, told: Told) {
        let at = self.at(told.output_index, told.item_id, Kind::call());
        if let Kind::Call(call) = &mut self.items[at].kind {
            replace(&mut call.arguments, arguments(told.arguments));
        }
    }

    /// An item as the server has it, at its beginning or its end.
    fn item(
        &mut self,
        index: Option<u64>,
        raw: Option<&RawValue>,
        ended: bool,
        out: &mut Outbox,
    ) -> Result<(), ProviderError> {
        let Some(raw) = raw else { return Ok(()) };
        let item: Item = read(raw.get()).map_err(|e| self.unreadable(&e))?;
        let kind = Kind::of(item.r#type.as_ref().map_or("", |text| &text.0));
        // An item without a number is the last that was begun, or a new one.
        let at = self.at(index, item.id.as_ref().map(|id| Text(id.0.clone())), kind);
        let heard = &mut self.items[at];
        replace(&mut heard.id, item.id.as_ref().map(|id| id.0.clone()).unwrap_or_default());
        heard.ended |= ended;
        fill(&mut heard.kind, item, raw, ended, out);
        Ok(())
    }

    /// The end, with the whole answer once more, or for the first time.
    fn conclude(&mut self, whole: Whole, event: &str, out: &mut Outbox) -> Result<(), ProviderError> {
        let status = whole.status.map(|text| text.0).filter(|text| !text.is_empty());
        let stop = self.stop(status.as_deref().unwrap_or(event), whole.error, whole.incomplete_details.as_ref())?;
        for (position, raw) in (0_u64..).zip(whole.output.unwrap_or_default()) {
            self.absorb(position, &raw, out)?;
        }
        self.blocks(stop, out);
        if let Some(usage) = whole.usage.and_then(|usage| usage_of(&usage)) {
            out.push(Delta::Usage(usage));
        }
        out.stop(stop);
        Ok(())
    }

    /// An item of the whole answer: what was heard of it without a number stands at its position.
    fn absorb(&mut self, position: u64, raw: &RawValue, out: &mut Outbox) -> Result<(), ProviderError> {
        let at = usize::try_from(position).ok().and_then(|at| self.items.get_mut(at));
        if let Some(heard) = at.filter(|heard| heard.index.is_none()) {
            heard.index = Some(position);
        }
        self.item(Some(position), Some(raw), true, out)
    }

    fn stop(&self, status: &str, error: Option<Value>, why: Option<&Value>) -> Result<Stop, ProviderError> {
        if let Some(error) = error.filter(is_something) {
            return Err(self.asking.reported(&error));
        }
        let reason = why.and_then(|why| why.get("reason")).and_then(Value::as_str).unwrap_or_default();
        let unnamed = |what: &str| self.asking.error(ErrorKind::Server, what);
        match (status, reason) {
            ("failed" | "cancelled", _) => Err(unnamed("the response failed, and the server does not say why")),
            ("incomplete", "max_output_tokens" | "max_tokens") => Ok(Stop::MaxTokens),
            ("incomplete", "content_filter") => Ok(Stop::Refused),
            ("incomplete", "") => Err(unnamed("the response is incomplete, and the server does not say why")),
            ("incomplete", reason) => Err(unnamed(&format!("the response is incomplete: {reason}"))),
            _ => Ok(Stop::End),
        }
    }

    /// The answer for the transcript. The calls of one that was cut are left out: the last may look whole and not be.
    fn blocks(&mut self, stop: Stop, out: &mut Outbox) {
        let mut items = std::mem::take(&mut self.items);
        if items.iter().all(|heard| heard.index.is_some()) {
            items.sort_by_key(|heard| heard.index);
        }
        for Heard { id, kind, .. } in items {
            match kind {
                Kind::Words(words) if words.is_empty() => {}
                Kind::Words(words) => out.block(Block::text(words)),
                Kind::Call(call) if stop == Stop::End => out.block(Block::call(self.finished(call, id))),
                Kind::Reasoning { shown, raw: Some(raw) } => {
                    out.block(Block::Opaque { origin: self.origin.clone(), shown, raw });
                }
                Kind::Call(_) | Kind::Reasoning { .. } | Kind::Other => {}
            }
        }
    }

    fn finished(&mut self, mut call: Call, item_id: String) -> Call {
        call.id = self.ids.unique(if call.id.is_empty() { item_id } else { call.id });
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".into();
        }
        call
    }

    fn reported(&self, error: Option<Value>, data: &str) -> ProviderError {
        let error = error.filter(is_something).or_else(|| serde_json::from_str(data).ok());
        self.asking.reported(&error.unwrap_or_else(|| Value::from(data)))
    }

    fn unreadable(&self, error: &serde_json::Error) -> ProviderError {
        self.asking.cut(&format!("an event of the answer cannot be read ({error})"))
    }
}

/// Takes over what the server says of an item.
fn fill(kind: &mut Kind, item: Item, raw: &RawValue, ended: bool, out: &mut Outbox) {
    match kind {
        Kind::Words(words) => {
            let all = joined(item.content, "");
            let rest = all.strip_prefix(words.as_str()).unwrap_or_default();
            out.text(rest);
            words.push_str(rest);
        }
        Kind::Call(call) => {
            let given = |text: Option<Text>| text.unwrap_or_default().0;
            replace(&mut call.id, given(item.call_id));
            replace(&mut call.name, given(item.name));
            replace(&mut call.arguments, arguments(item.arguments));
        }
        Kind::Reasoning { shown, raw: kept } => {
            if shown.is_empty() {
                shown.push_str(&joined(item.summary.filter(|parts| !parts.is_empty()).or(item.content), "\n\n"));
                out.thinking(shown);
            }
            if ended {
                *kept = Some(raw.to_owned());
            }
        }
        Kind::Other => {}
    }
}

fn joined(pieces: Option<Vec<Piece>>, between: &str) -> String {
    let text = |piece: Piece| piece.text.or(piece.refusal).unwrap_or_default().0;
    pieces.unwrap_or_default().into_iter().map(text).collect::<Vec<_>>().join(between)
}

/// Takes over a text that is not empty.
fn replace(place: &mut String, text: String) {
    if !text.is_empty() {
        *place = text;
    }
}

/// Arguments are text; some servers write the object itself.
fn arguments(value: Option<Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(object) => object.to_string(),
    }
}

fn usage_of(usage: &Value) -> Option<Usage> {
    counted(usage, "input_tokens", "output_tokens").or_else(|| counted(usage, "prompt_tokens", "completion_tokens"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::super::http::{Endpoint, played};
    use super::super::super::samples::origin;
    use super::*;
    use crate::message::Message;

    /// Plays the data of events; `|` ends the stream. The deltas in short form, or the error.
    fn play(events: &[&str]) -> String {
        let asking = Arc::new(Asking::new(&Endpoint::new("http://h"), "http://h", "m"));
        let origin = origin("m");
        let history = [Message::Assistant(vec![Block::call(Call::new("old", "bash", "{}"))])];
        let decoder = Decoder::new(asking, origin, &Request::new("", &history, &[]));
        played(decoder, events)
    }

    fn check(events: &[&str], expect: &str) {
        assert_eq!(play(events), expect, "{events:#?}");
    }

    fn event(kind: &str, fields: &str) -> String {
        format!(r#"{{"type":"response.{kind}",{fields}}}"#)
    }

    fn text(head: &str, delta: &str) -> String {
        event("output_text.delta", &format!(r#"{head}"delta":"{delta}""#))
    }

    fn completed(output: &str) -> String {
        event("completed", &format!(r#""response":{{"status":"completed","output":[{output}]}}"#))
    }

    const DONE: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

    #[test]
    fn texts_come_in_pieces_at_their_end_or_at_the_end_of_all() {
        let (x, y) =
            (&*text(r#""output_index":0,"item_id":"a","#, "x"), &*text(r#""output_index":0,"item_id":"b","#, "y"));
        let bare = &*text("", "x");
        let item = r#"{"type":"message","id":"a","content":[{"type":"output_text","text":"xy"}]}"#;
        let added = &*event("output_item.added", r#""output_index":0,"item":{"type":"message","id":"a","content":[]}"#);
        let done = &*event("output_item.done", &format!(r#""output_index":0,"item":{item}"#));
        check(&[x, x, DONE], "t:xx [xx] End");
        check(&[added, x, done, &completed(item)], "t:xy [xy] End");
        // Other ids in each event, or nothing to tell items by.
        check(&[x, y, DONE], "t:xy [xy] End");
        check(&[bare, bare, DONE], "t:xx [xx] End");
        check(&[bare, &completed(item)], "t:xy [xy] End");
        check(&[done, &completed(item)], "t:xy [xy] End");
        check(&[&completed(item)], "t:xy [xy] End");
        check(&[&event("output_text.done", r#""text":"xy""#), DONE], "t:xy [xy] End");
        check(&[x, &event("output_text.done", r#""output_index":0,"text":"x""#), DONE], "t:x [x] End");
        check(&[&event("refusal.delta", r#""delta":"no""#), DONE], "t:no [no] End");
        // Two items.
        let second = &*text(r#""output_index":1,"item_id":"c","#, "z");
        check(&[x, second, DONE], "t:xz [x] [z] End");
        // Not streamed.
        check(
            &[&format!(r#"{{"object":"response","status":"completed","output":[{item}],"error":null}}"#)],
            "t:xy [xy] End",
        );
        check(&[DONE], "End");
        check(&[r#"{"type":"response.in_progress"}"#, "{}", "noise", x, DONE], "t:x [x] End");
    }

    #[test]
    fn calls_are_put_together_from_any_pieces() {
        let added = |index: &str, id: &str, name: &str| {
            let item =
                format!(r#"{{"type":"function_call","id":"i{id}","call_id":"{id}","name":"{name}","arguments":""}}"#);
            event("output_item.added", &format!(r#"{index}"item":{item}"#))
        };
        let delta =
            |head: &str, text: &str| event("function_call_arguments.delta", &format!(r#"{head}"delta":"{text}""#));
        let done =
            |head: &str, text: &str| event("function_call_arguments.done", &format!(r#"{head}"arguments":{text}"#));
        let whole = |id: &str, arguments: &str| {
            format!(r#"{{"type":"function_call","id":"i{id}","call_id":"{id}","name":"x","arguments":{arguments}}}"#)
        };
        let (a0, b1) = (&*added(r#""output_index":0,"#, "a", "x"), &*added(r#""output_index":1,"#, "b", "y"));
        let (d0, d1) = (&*delta(r#""output_index":0,"#, "1"), &*delta(r#""output_index":1,"#, "2"));
        for (events, expect) in [
            (vec![a0, d0, d0, DONE], "a=x(11) End"),
            (vec![a0, b1, d0, d1, d0, DONE], "a=x(11) b=y(2) End"),
            (vec![b1, a0, d1, d0, DONE], "a=x(1) b=y(2) End"),
            // By id alone; without either.
            (vec![&*added("", "a", "x"), &*delta(r#""item_id":"ia","#, "1"), DONE], "a=x(1) End"),
            (vec![&*added("", "a", "x"), &*delta("", "1"), &*delta("", "2"), DONE], "a=x(12) End"),
            // Only at their end; twice is once.
            (vec![a0, &*done(r#""output_index":0,"#, r#""{}""#), DONE], "a=x({}) End"),
            (vec![a0, d0, &*done(r#""output_index":0,"#, r#""1""#), DONE], "a=x(1) End"),
            (vec![a0, &*done(r#""output_index":0,"#, r#"{"b":1}"#), DONE], r#"a=x({"b":1}) End"#),
            // Only in the item, or at the end of all.
            (vec![&*event("output_item.done", &format!(r#""item":{}"#, whole("a", r#""1""#))), DONE], "a=x(1) End"),
            (vec![&*completed(&whole("a", r#""1""#))], "a=x(1) End"),
            (vec![a0, d0, &*completed(&whole("a", r#""1""#))], "a=x(1) End"),
            (
                vec![
                    &*event("output_item.done", &format!(r#""item":{}"#, whole("a", r#""1""#))),
                    &*completed(&whole("a", r#""1""#)),
                ],
                "a=x(1) End",
            ),
            // Nothing given is an empty object; ids are made where they are missing or taken.
            (vec![a0, DONE], "a=x({}) End"),
            (vec![&*completed(&whole("a", "null"))], "a=x({}) End"),
            (
                vec![&*completed(
                    r#"{"type":"function_call","name":"x"},{"type":"function_call","call_id":"old","name":"x"}"#,
                )],
                "call_1=x({}) call_2=x({}) End",
            ),
            // What an own tool of the server did is none of ours.
            (vec![&*completed(r#"{"type":"web_search_call","id":"w"}"#)], "End"),
            // A cut one is not run.
            (
                vec![
                    a0,
                    d0,
                    &*event("incomplete", r#""response":{"incomplete_details":{"reason":"max_output_tokens"}}"#),
                ],
                "MaxTokens",
            ),
        ] {
            check(&events, expect);
        }
    }

    #[test]
    fn reasoning_is_kept_verbatim_in_its_place() {
        const ITEM: &str = r#"{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"a\/=="}"#;
        let delta =
            |text: &str| event("reasoning_summary_text.delta", &format!(r#""output_index":0,"delta":"{text}""#));
        let part = event("reasoning_summary_part.added", r#""output_index":0,"summary_index":1"#);
        let done = event("output_item.done", &format!(r#""output_index":0,"item":{ITEM}"#));
        let x = text(r#""output_index":1,"#, "x");
        check(&[&delta("h"), &delta("m"), &done, &x, DONE], &format!("r:hm t:x {ITEM} [x] End"));
        check(&[&delta("a"), &part, &delta("b"), &done, DONE], &format!("r:a\n\nb {ITEM} End"));
        check(&[&x, &completed(&format!("{ITEM},{{\"type\":\"message\"}}"))], &format!("t:x r:hm {ITEM} [x] End"));
        // Only heard of: there is nothing to send back.
        check(&[&delta("h"), DONE], "r:h End");
    }

    #[test]
    fn ends_and_errors_are_told_apart() {
        let x = &*text("", "x");
        let ends = |kind: &str, fields: &str| event(kind, &format!(r#""response":{{{fields}}}"#));
        for (last, expect) in [
            (ends("incomplete", r#""incomplete_details":{"reason":"max_output_tokens"}"#), "t:x [x] MaxTokens"),
            (
                ends("incomplete", r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#),
                "t:x [x] Refused",
            ),
            (
                ends("completed", r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#),
                "t:x [x] MaxTokens",
            ),
            (
                ends("incomplete", r#""incomplete_details":{"reason":"tired"}"#),
                "Server: the response is incomplete: tired.",
            ),
            (
                ends("incomplete", r#""incomplete_details":null"#),
                "Server: the response is incomplete, and the server does not say why.",
            ),
            (
                ends("failed", r#""error":{"code":"rate_limit_exceeded","message":"slow down"}"#),
                "RateLimited: the server reported an error: slow down.",
            ),
            (
                ends("failed", r#""error":{"code":"context_length_exceeded","message":"too much"}"#),
                "TooLong: the server reported an error: too much. The conversation is too long for the model",
            ),
            (ends("failed", r#""error":null"#), "Server: the response failed, and the server does not say why."),
            (
                r#"{"type":"error","code":"server_error","message":"boom","param":null}"#.to_owned(),
                "Server: the server reported an error: boom.",
            ),
            (
                r#"{"type":"error","error":{"message":"boom","code":503}}"#.to_owned(),
                "Server: the server reported an error: boom.",
            ),
            (
                r#"{"error":{"message":"boom","code":429}}"#.to_owned(),
                "RateLimited: the server reported an error: boom.",
            ),
            ("|".to_owned(), "Cut: the stream ended before the answer was whole (no response.completed came)."),
            ("[DONE]".to_owned(), "Cut: the stream ended before the answer was whole (no response.completed came)."),
            (
                r#"{"type":"response.output_te"#.to_owned(),
                "Cut: an event of the answer cannot be read (EOF while parsing a string at line 1 column 27).",
            ),
        ] {
            check(&[x, &last], expect);
        }
    }

    #[test]
    fn usage_is_read_at_the_end() {
        let ends = |usage: &str| event("completed", &format!(r#""response":{{"usage":{usage}}}"#));
        for (usage, expect) in [
            (r#"{"input_tokens":10,"output_tokens":3,"input_tokens_details":{"cached_tokens":4}}"#, "6+4/3 End"),
            (r#"{"input_tokens":10,"output_tokens":3,"cached_tokens":4}"#, "6+4/3 End"),
            (r#"{"prompt_tokens":10,"completion_tokens":3}"#, "10+0/3 End"),
            ("null", "End"),
        ] {
            check(&[&ends(usage)], expect);
        }
    }

    /// Any event of this form, from a server that may number and name its items as it likes, or not at all.
    fn any_event() -> impl Strategy<Value = String> {
        let index = prop_oneof![Just(""), Just(r#""output_index":0,"#), Just(r#""output_index":1,"#)];
        let id = prop_oneof![Just(""), Just(r#""item_id":"a","#), Just(r#""item_id":"b","#)];
        let item = prop_oneof![
            Just(r#"{"type":"message","id":"a"}"#),
            Just(r#"{"type":"message","content":[{"text":"xx"}]}"#),
            Just(r#"{"type":"function_call","id":"b","call_id":"c","name":"f","arguments":"{}"}"#),
            Just(r#"{"type":"reasoning","id":"a","summary":[{"text":"r"}]}"#),
        ];
        let kind = prop::sample::select(vec![
            "output_text.delta",
            "output_text.done",
            "refusal.delta",
            "reasoning_text.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.added",
            "output_item.done",
        ]);
        (kind, index, id, item).prop_map(|(kind, index, id, item)| {
            event(kind, &format!(r#"{index}{id}"item":{item},"delta":"x","text":"xx","arguments":"y""#))
        })
    }

    proptest! {
        #[test]
        fn what_is_said_is_what_is_kept_in_whatever_order_it_comes(
            events in prop::collection::vec(any_event(), 0..12),
            whole in any::<bool>(),
        ) {
            let asking = Arc::new(Asking::new(&Endpoint::new("http://h"), "http://h", "m"));
            let mut decoder = Decoder::new(asking, origin("m"), &Request::new("", &[], &[]));
            let mut out = Outbox::default();
            let last = completed(if whole { r#"{"type":"message","content":[{"text":"xx"}]}"# } else { "" });
            for data in events.iter().chain([&last]) {
                decoder.event(Event { name: "", data }, &mut out).unwrap();
            }
            let (mut said, mut kept, mut ids) = (0, 0, HashSet::new());
            for delta in out.drain() {
                match delta {
                    Delta::Text(text) => said += text.len(),
                    Delta::Block(Block::Text { text }) => kept += text.len(),
                    Delta::Block(Block::Call { call }) => prop_assert!(ids.insert(call.id.clone()), "{}", call.id),
                    Delta::Block(Block::Opaque { .. }) | Delta::Thinking(_) | Delta::Usage(_) | Delta::Stop(_) => {}
                }
            }
            prop_assert_eq!(said, kept);
        }
    }
}
