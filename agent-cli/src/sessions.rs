//! Which session a run has: a new one, an earlier one, a copy of it, or one that leaves nothing.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use agent_core::session::Sessions;
use agent_core::setup::{self, Earlier, Which};
use agent_core::{Block, Message, Session};

use crate::error::CliError;
use crate::setup::Setup;

/// More than the last line of a log is long that tells of an end, in bytes.
const TAIL: u64 = 4096;

/// Finds and reads the session to go on with; none for a new one. Changes nothing, but keeps other processes from it.
///
/// # Errors
/// There is no such session, or it cannot be read.
pub fn earlier(setup: &Setup) -> Result<Option<Earlier>, CliError> {
    Ok(setup::earlier(setup, &setup.wanted())?)
}

/// Opens the session to go on with, or a new one. `scratch`: its files lie there, and not where sessions are kept.
///
/// # Errors
/// Its copy cannot be written.
pub fn open(setup: &Setup, earlier: Option<Earlier>, scratch: Option<&Path>) -> Result<Session, CliError> {
    let wanted = setup.wanted();
    if earlier.is_none() && wanted.which == Which::Last {
        setup.tell(&["this project has no earlier session: this is a new session".into()]);
    }
    Ok(setup::open(setup, &wanted, earlier, scratch)?)
}

/// The answer of a session whose last turn came to its end; none where something is left to do.
pub fn answered(session: &Session) -> Option<String> {
    let log = Sessions::log(session.place.store.as_deref()?);
    let mut file = File::open(log).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let last: serde_json::Value = serde_json::from_slice(last).ok()?;
    let Message::Assistant(blocks) = session.messages().last()? else { return None };
    let said = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Call { .. } | Block::Opaque { .. } => None,
    };
    (last["type"] == "stop" && last["reason"] == "end_turn").then(|| blocks.iter().filter_map(said).collect())
}
