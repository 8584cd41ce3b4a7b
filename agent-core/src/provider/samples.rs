//! Pieces of conversations, for the tests of all forms of interface.

use std::sync::Arc;

use agent_tools::{Call, Part};
use serde_json::value::RawValue;

use crate::message::{Block, CallResult, Message, Origin};

pub(super) fn origin(model: &str) -> Arc<Origin> {
    Arc::new(Origin { provider: "p".into(), model: model.into(), endpoint: "e".into() })
}

/// What a model of this name wants back.
pub(super) fn opaque(model: &str, raw: &str) -> Block {
    let raw = RawValue::from_string(raw.into()).unwrap_or_default();
    Block::Opaque { origin: origin(model), shown: String::new(), raw }
}

pub(super) fn call(id: &str, arguments: &str) -> Block {
    Block::call(Call::new(id, "bash", arguments))
}

pub(super) fn result(id: &str, parts: Vec<Part>) -> CallResult {
    CallResult { id: id.into(), name: "bash".into(), failed: false, parts }
}

pub(super) fn results(id: &str, parts: Vec<Part>) -> Message {
    Message::Results(vec![result(id, parts)])
}

pub(super) fn picture() -> Part {
    Part::Image { media_type: "image/png".into(), data: "AAAA".into() }
}
