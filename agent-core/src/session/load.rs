//! From the lines of a log to a conversation, as a stream: what the conversation no longer has is not kept. What is torn
//! or unknown is mended or left out, and told.

mod conversation;
mod damage;
mod lines;
mod mend;
mod void;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufReader, Cursor, Read, Seek};

use agent_tools::Part;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use conversation::unanswered;
pub(super) use lines::{LIMIT, Lines};
pub(super) use mend::trimmed;

use super::journal::VERSION;
use crate::event::UsageReport;
use crate::message::Message;
use crate::provider::Usage;
use conversation::Conversation;
use damage::Damage;
use lines::Line;
use mend::BEGINNING;
use void::Void;

/// How much of a prompt stands for its turn, in characters.
const PREVIEW: usize = 200;

const BUFFER: usize = 1 << 18;

/// What a log came to.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The conversation.
    pub messages: Vec<Message>,
    /// What it has cost.
    pub usage: UsageReport,
    /// The last line's number.
    pub seq: u64,
    /// How many bytes of the log were read.
    pub bytes: u64,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// The directory that it was begun in.
    pub cwd: Option<String>,
    /// How many turns it has: prompts that were not taken back.
    pub turns: u64,
    /// The turns: the number of the line of their prompt, and how that begins.
    pub turn_starts: Vec<(u64, String)>,
    /// What was mended, in words for a person.
    pub repairs: Vec<String>,
}

/// Why a log cannot be gone on with. It is left as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A later program wrote it.
    #[error(
        "it has format version {found}, and this program knows versions up to {VERSION}: a newer program can read it"
    )]
    Newer {
        /// Its version.
        found: u64,
    },
    /// It has no line of a log.
    #[error("it has no line of a log")]
    NoSession,
}

/// Rebuilds a conversation from a log in memory. One that is refused comes to nothing, with the reason among the repairs.
pub fn load(log: &[u8]) -> Loaded {
    read(Cursor::new(log)).unwrap_or_else(|error| Loaded { repairs: vec![error.to_string()], ..Loaded::default() })
}

/// Rebuilds a conversation from a log. A line that is no record is mended or skipped, and told.
///
/// # Errors
/// A log that cannot be read, that a later program wrote, or that is none.
pub fn read(log: impl Read + Seek) -> Result<Loaded, LoadError> {
    run(log, Loader::default())
}

/// The same, with all that was said: a summary stands behind what it replaced.
///
/// # Errors
/// Those of [`read`].
pub fn read_all(log: impl Read + Seek) -> Result<Loaded, LoadError> {
    run(log, Loader { conversation: Conversation::of_all(), ..Loader::default() })
}

fn run(mut log: impl Read + Seek, mut loader: Loader) -> Result<Loaded, LoadError> {
    loader.void = Void::of(BufReader::with_capacity(BUFFER, &mut log))?;
    log.rewind()?;
    let mut lines = Lines::new(BufReader::with_capacity(BUFFER, log), LIMIT);
    while let Some(line) = lines.next()? {
        loader.line(line);
        if let Some(found) = loader.newer {
            return Err(LoadError::Newer { found });
        }
    }
    let loaded = loader.end();
    if loaded.seq == 0 { Err(LoadError::NoSession) } else { Ok(loaded) }
}

#[derive(Default)]
struct Loader {
    loaded: Loaded,
    conversation: Conversation,
    damage: Damage,
    void: Void,
    /// A version that is too high.
    newer: Option<u64>,
    /// Marks of the lines that would count twice if they stood there twice.
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Loader {
    fn line(&mut self, line: Line<'_>) {
        self.loaded.bytes = line.end;
        self.damage.too_long += u64::from(line.too_long);
        let record = trimmed(line.bytes);
        if record.is_empty() || self.take(record).is_some() {
            return;
        }
        let taken = mend::pieces(record).iter().map(|piece| self.take(trimmed(piece)).is_some()).collect::<Vec<_>>();
        self.damage.mended += u64::from(taken.contains(&true));
        if taken.contains(&false) && !line.ended {
            self.damage.torn = true;
        } else if taken.contains(&false) {
            self.damage.skipped += 1;
            self.damage.first_skipped = if self.damage.skipped == 1 { line.number } else { self.damage.first_skipped };
        }
    }

    /// Takes up a record; none where it is damaged.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let (kind, seq) = head(line)?;
        if kind.counts() && self.is_repeated(line, seq) {
            self.damage.repeated += 1;
            return Some(());
        }
        match kind {
            Kind::Usage => self.usage(&parsed(line)?),
            Kind::SessionStart => self.start(parsed(line)?),
            Kind::SessionName => self.loaded.name = Some(parsed::<NameLine>(line)?.name),
            Kind::Other | Kind::SubAgentStart | Kind::Rewind => {}
            _ if self.void.has(seq) => {}
            Kind::UserInput => self.prompt(seq, parsed(line)?),
            Kind::Message => {
                let message = message(line)?;
                self.conversation.add(message, &mut self.damage);
            }
            Kind::ToolResult => self.conversation.result(line),
            Kind::ContextUpdate => {
                let update: ContextLine = parsed(line)?;
                if let Some(content) = update.content {
                    self.conversation.compact(content, update.kept, &mut self.damage);
                }
            }
        }
        self.loaded.seq = self.loaded.seq.max(seq);
        Some(())
    }

    /// A line stands there twice where something was copied, or a write was done twice. Its number alone does not say so:
    /// two programs may have written at the same time.
    fn is_repeated(&mut self, line: &[u8], seq: u64) -> bool {
        const ENDS: usize = 256;
        let (first, last) = (&line[..line.len().min(ENDS)], &line[line.len().saturating_sub(ENDS)..]);
        let mark = self.hasher.hash_one((seq, line.len(), first, last));
        seq != 0 && !self.seen.insert(mark) && seq <= self.loaded.seq
    }

    fn start(&mut self, start: StartLine) {
        self.newer = (start.version > u64::from(VERSION)).then_some(start.version);
        self.loaded.cwd = self.loaded.cwd.take().or(start.cwd);
    }

    fn prompt(&mut self, seq: u64, input: InputLine) {
        self.loaded.turn_starts.push((seq, input.content.chars().take(PREVIEW).collect()));
        self.conversation.prompted(input.content);
    }

    fn usage(&mut self, line: &UsageLine) {
        let spent = Usage {
            input_tokens: line.input_tokens,
            output_tokens: line.output_tokens,
            cache_read_input_tokens: line.cache_read_input_tokens,
            cache_creation_input_tokens: line.cache_creation_input_tokens,
        };
        let usage = &mut self.loaded.usage;
        if line.kind == "agent" {
            usage.last = spent;
        }
        usage.requests = line.agent_request_count.unwrap_or(usage.requests);
        usage.compactions = line.compact_request_count.unwrap_or(usage.compactions);
        usage.context = line.current_context_tokens.unwrap_or(usage.context);
        // Earlier versions wrote no cost: that of such a session is not known.
        usage.cost = line.total_cost;
        let total = &mut usage.total;
        *total += spent;
        // Earlier versions wrote no totals of the cache: those are added up.
        total.input_tokens = line.total_input_tokens.unwrap_or(total.input_tokens);
        total.output_tokens = line.total_output_tokens.unwrap_or(total.output_tokens);
        total.cache_read_input_tokens = line.total_cache_read_tokens.unwrap_or(total.cache_read_input_tokens);
        total.cache_creation_input_tokens =
            line.total_cache_creation_tokens.unwrap_or(total.cache_creation_input_tokens);
    }

    fn end(mut self) -> Loaded {
        self.loaded.messages = self.conversation.end(&mut self.damage);
        self.loaded.turns = self.loaded.turn_starts.len() as u64;
        self.loaded.repairs = self.damage.told();
        self.loaded
    }
}

/// The kinds of lines that matter to those who read a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    SessionStart,
    SessionName,
    SubAgentStart,
    Rewind,
    UserInput,
    Message,
    ToolResult,
    Usage,
    ContextUpdate,
    Other,
}

impl Kind {
    fn of(word: &[u8]) -> Self {
        match word {
            b"session_start" => Self::SessionStart,
            b"session_name" => Self::SessionName,
            b"sub_agent_start" => Self::SubAgentStart,
            b"rewind" => Self::Rewind,
            b"user_input" => Self::UserInput,
            b"message" => Self::Message,
            b"tool_result" => Self::ToolResult,
            b"usage" => Self::Usage,
            b"context_update" => Self::ContextUpdate,
            _ => Self::Other,
        }
    }

    /// Whether it would count twice if it stood there twice.
    fn counts(self) -> bool {
        match self {
            Self::UserInput | Self::Message | Self::ContextUpdate => true,
            Self::SessionStart
            | Self::SessionName
            | Self::SubAgentStart
            | Self::Rewind
            | Self::ToolResult
            | Self::Usage
            | Self::Other => false,
        }
    }
}

/// What a line is, and its number. Lines of ours show it at their ends, without being read whole.
pub(super) fn head(line: &[u8]) -> Option<(Kind, u64)> {
    if let (Some(kind), Some(seq)) = (kind_in_front(line), seq_at_end(line)) {
        // One that is not read whole could hide another record that is glued to it.
        let read = !matches!(kind, Kind::Other | Kind::SubAgentStart | Kind::Rewind | Kind::ToolResult);
        if read || memmem::find(&line[1..], BEGINNING).is_none() {
            return Some((kind, seq));
        }
    }
    let head: Head = parsed(line)?;
    Some((Kind::of(head.r#type.as_bytes()), head.seq))
}

fn kind_in_front(line: &[u8]) -> Option<Kind> {
    let rest = line.strip_prefix(BEGINNING)?;
    memchr::memchr(b'"', &rest[..rest.len().min(64)]).map(|end| Kind::of(&rest[..end]))
}

fn seq_at_end(line: &[u8]) -> Option<u64> {
    const FIELD: &[u8] = b",\"seq\":";
    let tail = line.strip_suffix(b"}")?;
    let tail = &tail[tail.len().saturating_sub(FIELD.len() + 20)..];
    let number = &tail[memmem::rfind(tail, FIELD)? + FIELD.len()..];
    std::str::from_utf8(number).ok()?.parse().ok()
}

pub(super) fn parsed<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// Just enough of a line to know it.
#[derive(Deserialize)]
struct Head {
    r#type: String,
    #[serde(default)]
    seq: u64,
}

#[derive(Deserialize)]
struct StartLine {
    #[serde(default)]
    version: u64,
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct NameLine {
    name: String,
}

#[derive(Deserialize)]
struct InputLine {
    content: String,
}

#[derive(Deserialize)]
struct ContextLine {
    content: Option<Vec<Part>>,
    #[serde(default)]
    kept: usize,
}

#[derive(Deserialize)]
struct MessageLine<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UsageLine {
    kind: String,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    total_input_tokens: Option<u64>,
    total_output_tokens: Option<u64>,
    total_cache_read_tokens: Option<u64>,
    total_cache_creation_tokens: Option<u64>,
    compact_request_count: Option<u32>,
    current_context_tokens: Option<u64>,
    total_cost: Option<f64>,
    agent_request_count: Option<u64>,
}

/// The message of a line: in one pass where its role stands before its content, as in lines of ours.
fn message(line: &[u8]) -> Option<Message> {
    parsed(line).or_else(|| {
        let line: MessageLine<'_> = parsed(line)?;
        let content = line.content.get().as_bytes();
        match line.role.as_str() {
            "user" => parsed(content).map(Message::User),
            "assistant" => parsed(content).map(Message::Assistant),
            "results" => parsed(content).map(Message::Results),
            _ => None,
        }
    })
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
