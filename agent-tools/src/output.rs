//! What a call came to: parts for the model, details for people.

use std::path::PathBuf;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::ToolError;
use crate::secrets;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It did what it should. A command that ran to its end is `Ok` whatever its exit status.
    Ok,
    /// It failed; the text says why.
    Failed,
    /// A person said no.
    Rejected,
    /// A policy said no.
    Blocked,
}

/// A piece of what the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its media type, `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
}

impl Part {
    /// A part of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, empty for what is none.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text { text } => text,
            Self::Image { .. } => "",
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolOutput {
    /// How it ended.
    pub status: Status,
    /// What the model reads.
    pub parts: Vec<Part>,
    /// What people see besides.
    pub details: Details,
}

impl ToolOutput {
    /// A result of this status and text.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, parts: vec![Part::text(text)], details: Details::None }
    }

    /// A good result.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(Status::Ok, text)
    }

    /// A failure, worded by `Display`.
    pub fn failed(error: &ToolError) -> Self {
        Self::new(Status::Failed, error.to_string())
    }

    /// Adds details.
    #[must_use]
    pub fn with(mut self, details: Details) -> Self {
        self.details = details;
        self
    }

    /// All text parts together.
    pub fn text(&self) -> String {
        self.parts.iter().map(Part::as_text).collect()
    }

    /// Masks keys in the text, and tells of it in a last line.
    pub(crate) fn mask(&mut self, own: &[String]) {
        let mut keys = 0;
        for part in &mut self.parts {
            if let Part::Text { text } = part
                && let Some((masked, count)) = secrets::mask(text, own)
            {
                *text = masked;
                keys += count;
            }
        }
        if keys > 0 {
            self.append_line(&format!("[{keys} secret(s) masked; the setting maskSecrets: false shows them]"));
        }
    }

    /// Appends a line of its own to the text: begins a new line if the text does not end with one.
    pub fn append_line(&mut self, line: &str) {
        if let Some(Part::Text { text }) = self.parts.iter_mut().rev().find(|p| matches!(p, Part::Text { .. })) {
            crate::text::append_line(text, line);
        } else {
            self.parts.push(Part::text(line));
        }
    }
}

/// What people see of a result, besides the text.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Details {
    /// Nothing.
    None,
    /// A file was changed.
    Change(Change),
    /// A command ran.
    Shell(Exit),
    /// The todo list.
    Todos(Vec<Todo>),
    /// Whatever a stranger's tool wants to show.
    Structured(Box<RawValue>),
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The absolute path.
    pub path: PathBuf,
    /// The bytes that the file had before, for undoing; none where there was no file.
    pub before: Option<Vec<u8>>,
    /// The text that it had before; none where there was no file.
    pub old: Option<String>,
    /// The text that it has now.
    pub new: String,
}

impl Change {
    /// A change from `before` (its bytes and text) to `new`.
    pub fn new(path: impl Into<PathBuf>, before: Option<Vec<u8>>, old: Option<String>, new: impl Into<String>) -> Self {
        Self { path: path.into(), before, old, new: new.into() }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Change", 2)?;
        s.serialize_field("path", &self.path.to_string_lossy())?;
        s.serialize_field("created", &self.old.is_none())?;
        s.end()
    }
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exit {
    /// Its exit status, where it exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that killed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// It ran into its time limit.
    pub timed_out: bool,
    /// How long it ran.
    #[serde(serialize_with = "milliseconds", rename = "elapsedMs")]
    pub elapsed: Duration,
}

fn milliseconds<S: Serializer>(d: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// An item of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}
