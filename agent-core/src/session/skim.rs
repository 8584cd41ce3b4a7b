//! What a list of sessions says of one: its log is skimmed, and lines that do not matter are not read whole.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde::Deserialize;

use super::Sessions;
use super::load::{Kind, LIMIT, Lines, head, parsed, trimmed};

/// How much of its first prompt stands for a session, in characters.
const PREVIEW: usize = 100;

const BUFFER: usize = 1 << 18;

/// What a log says of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Skimmed {
    pub(super) name: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) preview: String,
    pub(super) turns: u64,
    pub(super) seq: u64,
    pub(super) usage: Totals,
    /// The ids of its sub-agents' sessions.
    pub(super) children: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    pub(super) total_input_tokens: u64,
    pub(super) total_output_tokens: u64,
    pub(super) agent_request_count: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    name: Option<String>,
    cwd: Option<String>,
    content: Option<String>,
    session_id: Option<String>,
    to_seq: u64,
}

/// Skims the log of a session's directory.
///
/// # Errors
/// It cannot be read.
pub(super) fn skim(directory: &Path) -> io::Result<Skimmed> {
    let file = File::open(Sessions::log(directory))?;
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, file), LIMIT);
    let (mut skimmed, mut turns, mut usage) = (Skimmed::default(), Vec::new(), Vec::new());
    while let Some(line) = lines.next()? {
        let line = trimmed(line.bytes);
        let Some((kind, seq)) = head(line) else { continue };
        skimmed.seq = skimmed.seq.max(seq);
        match kind {
            // The last one counts; only that is read.
            Kind::Usage => {
                usage.clear();
                usage.extend_from_slice(line);
            }
            _ => skimmed.take(kind, seq, line, &mut turns),
        }
    }
    skimmed.turns = turns.len() as u64;
    skimmed.usage = parsed(&usage).unwrap_or_default();
    Ok(skimmed)
}

/// Whether a directory's log has a record besides its beginning.
pub(super) fn has_record(directory: &Path) -> bool {
    let Ok(file) = File::open(Sessions::log(directory)) else { return false };
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, file), LIMIT);
    while let Ok(Some(line)) = lines.next() {
        if head(trimmed(line.bytes)).is_some_and(|(kind, seq)| seq > 0 && kind != Kind::SessionStart) {
            return true;
        }
    }
    false
}

impl Skimmed {
    /// Takes up a line. `turns`: the numbers of the lines of prompts so far.
    fn take(&mut self, kind: Kind, seq: u64, line: &[u8], turns: &mut Vec<u64>) {
        let fields = || parsed::<Fields>(line).unwrap_or_default();
        match kind {
            Kind::SessionStart if self.cwd.is_none() => self.cwd = fields().cwd,
            Kind::SessionName => self.name = fields().name.or(self.name.take()),
            Kind::SubAgentStart => self.children.extend(fields().session_id),
            Kind::UserInput => {
                if turns.is_empty() {
                    self.preview = first_words(&fields().content.unwrap_or_default());
                }
                turns.push(seq);
            }
            Kind::Rewind => {
                let to = fields().to_seq;
                turns.retain(|turn| *turn < to);
            }
            Kind::SessionStart | Kind::Message | Kind::ToolResult | Kind::Usage | Kind::ContextUpdate | Kind::Other => {
            }
        }
    }
}

/// The beginning of a prompt in one line.
fn first_words(prompt: &str) -> String {
    let words: Vec<&str> = prompt.split_whitespace().take(PREVIEW).collect();
    agent_tools::text::clipped(&words.join(" "), PREVIEW)
}
