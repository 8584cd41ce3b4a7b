//! The conversation: messages and their blocks. Pure data.

use std::sync::Arc;

use agent_tools::{Call, Part};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message of the conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "role", content = "content", rename_all = "snake_case")]
pub enum Message {
    /// What a person, or the program in a person's place, said.
    User(Vec<Part>),
    /// What the model said.
    Assistant(Vec<Block>),
    /// The results of the calls of the assistant message before, in the order of the calls.
    Results(Vec<CallResult>),
}

impl Message {
    /// A message of the user, of text alone.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Part::text(text)])
    }

    /// The calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &Arc<Call>> {
        let blocks = match self {
            Self::Assistant(blocks) => blocks.as_slice(),
            Self::User(_) | Self::Results(_) => &[],
        };
        blocks.iter().filter_map(Block::as_call)
    }
}

/// A block of what the model said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", try_from = "Stored")]
pub enum Block {
    /// Words for people.
    Text {
        /// The words.
        text: String,
    },
    /// A tool call.
    Call {
        /// The call.
        #[serde(flatten)]
        call: Arc<Call>,
    },
    /// What only its origin understands: signed or encrypted reasoning. Kept verbatim, dropped when the origin changes.
    Opaque {
        /// Who made it.
        origin: Arc<Origin>,
        /// What a person may read of it.
        shown: String,
        /// The provider's own JSON.
        raw: Box<RawValue>,
    },
}

impl Block {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// A call.
    pub fn call(call: Call) -> Self {
        Self::Call { call: Arc::new(call) }
    }

    /// The call, where it is one.
    pub fn as_call(&self) -> Option<&Arc<Call>> {
        match self {
            Self::Call { call } => Some(call),
            Self::Text { .. } | Self::Opaque { .. } => None,
        }
    }
}

/// A block as the log has it. Raw JSON does not survive serde's tagged enums, which buffer what they read.
#[derive(Deserialize)]
struct Stored {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    origin: Option<Arc<Origin>>,
    shown: Option<String>,
    raw: Option<Box<RawValue>>,
}

impl TryFrom<Stored> for Block {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored { r#type: kind, text, id, name, arguments, origin, shown, raw } = stored;
        let block = match kind.as_str() {
            "text" => text.map(|text| Self::Text { text }),
            "call" => {
                id.zip(name).zip(arguments).map(|((id, name), arguments)| Self::call(Call { id, name, arguments }))
            }
            "opaque" => {
                origin.zip(raw).map(|(origin, raw)| Self::Opaque { origin, shown: shown.unwrap_or_default(), raw })
            }
            _ => None,
        };
        block.ok_or_else(|| format!("a block of type `{kind}` that lacks something"))
    }
}

/// Where provider-bound blocks come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The form of the interface: `anthropic`, `openai`.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The endpoint.
    pub endpoint: String,
}

/// The result of a call, as the model reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Whether the call did not do what it should.
    pub failed: bool,
    /// What the model reads.
    pub parts: Vec<Part>,
}

impl CallResult {
    /// The text of it.
    pub fn text(&self) -> String {
        self.parts.iter().map(Part::as_text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_log() {
        let origin = Arc::new(Origin { provider: "anthropic".into(), model: "m".into(), endpoint: "e".into() });
        let raw = RawValue::from_string(r#"{"b":1,  "a":"\u00e9"}"#.into()).unwrap();
        let messages = [
            Message::user("hi"),
            Message::Assistant(vec![
                Block::Opaque { origin, shown: "hm".into(), raw },
                Block::text("é"),
                Block::call(Call::new("1", "bash", "{broken")),
            ]),
            Message::Results(vec![CallResult {
                id: "1".into(),
                name: "bash".into(),
                failed: true,
                parts: vec![Part::text("no")],
            }]),
        ];
        for message in messages {
            let line = serde_json::to_string(&message).unwrap();
            let back: Message = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), line);
        }
    }
}
