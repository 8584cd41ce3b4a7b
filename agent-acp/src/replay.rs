//! What was said in a session, told again to a client that opens it: through the same words as live.

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{
    ContentChunk, Diff, MessageId, SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_core::{Block, CallResult, Message};
use agent_tools::{Call, CallKind, Outline, Part, Todo, ToolContext, Tools};
use serde_json::Value;

use crate::translate::{called, parts, plan, text};

/// What the model is told by the program in a person's place begins with one of these.
const BY_THE_PROGRAM: [&str; 3] = ["[sub-agent ", "[bg-bash ", "<context-snapshot>"];

/// Names for calls and messages that no other of the session has.
#[derive(Debug, Default)]
pub struct Names {
    /// How often the ids of calls came: some servers begin anew with each answer.
    calls: HashMap<String, u32>,
    /// The calls that are open: the provider's id, and ours.
    open: HashMap<String, Open>,
    messages: u64,
}

/// A call that is open.
#[derive(Debug, Clone)]
struct Open {
    name: String,
    /// It shows a diff already, which its text must not replace.
    diff: bool,
    /// The todo list that it writes.
    todos: Option<Vec<Todo>>,
}

impl Names {
    /// The name of a call that begins.
    pub fn begin(&mut self, id: &str) -> String {
        let times = self.calls.entry(id.to_owned()).or_default();
        *times += 1;
        let name = if *times == 1 { id.to_owned() } else { format!("{id}#{times}") };
        self.open.insert(id.to_owned(), Open { name: name.clone(), diff: false, todos: None });
        name
    }

    fn shows(&mut self, id: &str, diff: bool, todos: Option<Vec<Todo>>) {
        if let Some(open) = self.open.get_mut(id) {
            (open.diff, open.todos) = (diff, todos);
        }
    }

    /// The name of a call that goes on.
    pub fn of(&self, id: &str) -> String {
        self.open.get(id).map_or_else(|| id.to_owned(), |open| open.name.clone())
    }

    /// The name of a call that ends.
    pub fn end(&mut self, id: &str) -> String {
        self.ended(id).name
    }

    fn ended(&mut self, id: &str) -> Open {
        self.open.remove(id).unwrap_or_else(|| Open { name: id.to_owned(), diff: false, todos: None })
    }

    /// The message that words belong to now.
    pub fn message(&self) -> String {
        format!("m{}", self.messages)
    }

    /// What comes from now on belongs to another message.
    pub fn next_message(&mut self) {
        self.messages += 1;
    }

    /// A piece of a message.
    pub fn chunk(&self, words: impl Into<String>) -> ContentChunk {
        ContentChunk::new(text(words)).message_id(MessageId::new(self.message()))
    }
}

/// A message as the client is told it.
pub fn message(message: &Message, names: &mut Names, tools: &Tools, cx: &ToolContext) -> Vec<SessionUpdate> {
    match message {
        Message::User(parts) => said(parts, names),
        Message::Assistant(blocks) => answered(blocks, names, tools, cx),
        Message::Results(results) => results.iter().flat_map(|result| came_to(result, names)).collect(),
    }
}

fn said(parts: &[Part], names: &mut Names) -> Vec<SessionUpdate> {
    let words = parts.iter().map(Part::as_text);
    let words = words.filter(|words| !words.is_empty() && !BY_THE_PROGRAM.iter().any(|begin| words.starts_with(begin)));
    let chunks: Vec<_> = words.map(|words| SessionUpdate::UserMessageChunk(names.chunk(words))).collect();
    names.next_message();
    chunks
}

fn answered(blocks: &[Block], names: &mut Names, tools: &Tools, cx: &ToolContext) -> Vec<SessionUpdate> {
    let mut updates = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } => updates.push(SessionUpdate::AgentMessageChunk(names.chunk(text))),
            Block::Opaque { shown, .. } if shown.is_empty() => {}
            Block::Opaque { shown, .. } => updates.push(SessionUpdate::AgentThoughtChunk(names.chunk(shown))),
            Block::Call { call } => {
                let outline = outline(call, tools, cx);
                let mut told = called(&names.begin(&call.id), call, &outline);
                told.content = diffs(call, &outline);
                names.shows(&call.id, !told.content.is_empty(), todos(call, &outline));
                updates.push(SessionUpdate::ToolCall(told));
            }
        }
    }
    names.next_message();
    updates
}

fn outline(call: &Call, tools: &Tools, cx: &ToolContext) -> Outline {
    let opened = tools.open(call, cx).map(|opened| opened.outline().clone());
    opened.unwrap_or_else(|_| Outline::new(CallKind::Other, call.name.clone()))
}

fn came_to(result: &CallResult, names: &mut Names) -> Vec<SessionUpdate> {
    let status = if result.failed { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let fields = ToolCallUpdateFields::new().status(status);
    let Open { name, diff, todos } = names.ended(&result.id);
    let content: Vec<ToolCallContent> = parts(&result.parts).collect();
    let fields = if diff && !result.failed { fields } else { fields.content(content) };
    let plan = todos.filter(|_| !result.failed).map(|todos| SessionUpdate::Plan(plan(&todos)));
    std::iter::once(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(name, fields))).chain(plan).collect()
}

/// The todo list that a call writes, as its arguments say.
fn todos(call: &Call, outline: &Outline) -> Option<Vec<Todo>> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok().filter(|_| outline.kind == CallKind::Todo)?;
    serde_json::from_value(arguments.get("todos")?.clone()).ok()
}

/// What a call was to change, as its arguments say: whole files are not kept in the log.
fn diffs(call: &Call, outline: &Outline) -> Vec<ToolCallContent> {
    let (Some(location), true) = (outline.locations.first(), outline.kind.changes_files()) else { return Vec::new() };
    let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else { return Vec::new() };
    let diff = |old: Option<&Value>, new: Option<&Value>| {
        let new = new?.as_str()?;
        let old = old.and_then(Value::as_str).map(str::to_owned);
        Some(ToolCallContent::Diff(Diff::new(location.path.clone(), new).old_text(old)))
    };
    let whole = diff(None, arguments.get("content"));
    let one = diff(arguments.get("old_string"), arguments.get("new_string"));
    let many = arguments.get("edits").and_then(Value::as_array).into_iter().flatten();
    let many = many.filter_map(|edit| diff(edit.get("old"), edit.get("new")));
    whole.into_iter().chain(one).chain(many).collect()
}
