//! Keeps the todo list: in the conversation, as the result, and in the session's `todo.md`.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::own_files::{self, TODO};
use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::{Details, Todo, ToolOutput};
use crate::text::Cut;
use crate::tool::{Declaration, Prepared, Tool};

const PENDING: &str = "pending";
const IN_PROGRESS: &str = "in_progress";
const COMPLETED: &str = "completed";

/// Keeps the todo list.
#[derive(Debug)]
pub struct TodoWrite {
    cut: Cut,
}

impl TodoWrite {
    /// Shows of the list what `cut` leaves; the file has all of it.
    pub fn new(cut: Cut) -> Self {
        Self { cut }
    }
}

/// The arguments of `TodoWrite`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The whole list; it replaces the one before.
    todos: Vec<Item>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Item {
    /// What is to be done.
    content: String,
    /// How far it is.
    #[schemars(extend("enum" = ["pending", "in_progress", "completed"]))]
    status: String,
}

impl Input {
    fn title(&self) -> String {
        let done = self.todos.iter().filter(|item| item.status == COMPLETED).count();
        format!("{done}/{}", self.todos.len())
    }
}

#[async_trait]
impl Tool for TodoWrite {
    type Input = Input;
    type Work = Vec<Todo>;

    fn declaration(&self) -> Declaration {
        Declaration::of::<Input>("TodoWrite", include_str!("../toolset/full/todo_write.md").trim_end())
    }

    fn outline(&self, input: &Input, _cx: &ToolContext) -> Outline {
        Outline::new(CallKind::Todo, input.title())
    }

    async fn prepare(&self, input: Input, _cx: &ToolContext) -> Result<Prepared<Vec<Todo>>, ToolError> {
        input.todos.into_iter().enumerate().map(checked).collect::<Result<_, _>>().map(Prepared::new)
    }

    async fn run(&self, todos: Vec<Todo>, _permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let list: String = todos.iter().map(line).collect();
        own_files::save(TODO, &list, &cx.place).await?;
        let text = if list.is_empty() { "The todo list is empty.".into() } else { self.cut.told(list) };
        Ok(ToolOutput::ok(text).with(Details::Todos(todos)))
    }
}

/// # Errors
/// An item without words, or with a status that is none.
fn checked((index, item): (usize, Item)) -> Result<Todo, ToolError> {
    let Item { content, status } = item;
    let which = format!("(item {} of the list; nothing was saved)", index + 1);
    if content.trim().is_empty() {
        return Err(ToolError::new(format!("todo item content is required {which}")));
    }
    if ![PENDING, IN_PROGRESS, COMPLETED].contains(&status.as_str()) {
        return Err(ToolError::new(format!(
            "invalid todo status: {status}. Use {PENDING}, {IN_PROGRESS} or {COMPLETED} {which}"
        )));
    }
    Ok(Todo { content, status })
}

fn line(todo: &Todo) -> String {
    let mark = match todo.status.as_str() {
        COMPLETED => 'x',
        IN_PROGRESS => '~',
        _ => ' ',
    };
    let words: Vec<&str> = todo.content.split_whitespace().collect();
    format!("- [{mark}] {}\n", words.join(" "))
}
