//! The session's own files: the todo list and the plan.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::disk::{Disk, away};
use super::target;
use crate::context::{Files, WriteError};
use crate::error::ToolError;
use crate::place::Place;
use crate::policy::zone;

/// The checklist, as Markdown.
pub const TODO: &str = "todo.md";
/// The plan while it is being worked out.
pub const DRAFT: &str = "plan.draft";
/// The plan that was confirmed.
pub const PLAN: &str = "plan.md";

/// The last summary of the conversation.
const SUMMARY: &str = "summary.md";

/// The path of one of them; none where the session has no directory.
pub fn path(name: &str, place: &Place) -> Option<PathBuf> {
    place.store.as_ref().map(|store| store.join(name))
}

/// What is in one of them; none where it is missing, blank or cannot be read.
pub fn text(name: &str, place: &Place) -> Option<String> {
    let text = std::fs::read_to_string(path(name, place)?).ok()?;
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The session's directory where a plan draft is open in it: then only reading runs, and changes there.
pub fn open_draft(place: &Place) -> Option<&Path> {
    text(DRAFT, place).and(place.store.as_deref())
}

/// The checklist, where something in it is still to be done.
pub fn open_todos(place: &Place) -> Option<String> {
    let open = |line: &str| line.starts_with("- [ ]") || line.starts_with("- [~]");
    text(TODO, place).filter(|list| list.lines().any(open))
}

/// Keeps the last summary of the conversation, for people: the conversation itself has it from the log.
pub async fn keep_summary(summary: &str, place: &Place) {
    // Nothing depends on it.
    let _ = save(SUMMARY, summary, place).await;
}

/// Writes one of them, whole or not at all.
pub(super) async fn save(name: &str, contents: &str, place: &Place) -> Result<(), ToolError> {
    // By its real path: a link that was laid in its place since is not followed.
    let Some(path) = zone::own_store(place).map(|store| store.join(name)) else { return Ok(()) };
    let (target, wanted) = (path.clone(), contents.to_owned());
    let before = away(move |_| before(&target)).await.and_then(|read| read);
    let before = before.map_err(|e| target::cannot("save", name, e))?;
    if before.as_deref() == Some(wanted.as_bytes()) {
        return Ok(());
    }
    Disk.replace(&path, before.as_deref(), wanted.as_bytes()).await.map_err(|error| match error {
        WriteError::Io(e) => target::cannot("save", name, e),
        WriteError::Changed => ToolError::new(format!("{name} was changed by someone else meanwhile; call again")),
    })
}

fn before(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}
