//! The log of a session: event → lines → store → stamped event. The lines are those of stream-json.
//!
//! Each line is one JSON object with `type`, `ts` (RFC 3339, UTC) and `seq`. A `message` record rebuilds the conversation;
//! the others are for people and programs. Readers ignore what they do not know.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use agent_tools::{Part, Status, TaskEnd};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::store::{ReadSeek, Syncing};
use super::{SessionId, Store, text_of};
use crate::agent::Clock;
use crate::children::ChildEnd;
use crate::context::hit_rate;
use crate::event::{Compacted, Ending, Event, Limit, Notice, SpentOn, Stamped, UsageReport};
use crate::message::Message;
use crate::provider::Usage;
use crate::turn::TurnError;

/// The version of the log's format, in `session_start`.
pub(super) const VERSION: u32 = 1;

/// Writes the log.
pub struct Journal {
    session: SessionId,
    store: Box<dyn Store>,
    clock: Arc<dyn Clock>,
    cwd: String,
    seq: u64,
    begun: bool,
}

impl Journal {
    /// A new log. `cwd` stands in its first line.
    pub fn new(session: SessionId, store: Box<dyn Store>, clock: Arc<dyn Clock>, cwd: impl Into<String>) -> Self {
        Self { session, store, clock, cwd: cwd.into(), seq: 0, begun: false }
    }

    /// Goes on with a log whose lines were numbered up to `seq`.
    #[must_use]
    pub fn after(mut self, seq: u64) -> Self {
        self.seq = seq;
        self.begun = seq > 0;
        self
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The number that the next event's first line will have.
    pub(crate) fn next_line(&self) -> u64 {
        self.seq + 1 + u64::from(!self.begun)
    }

    /// Writes what the log has of an event, and of the message that it completes.
    pub(crate) fn record(&mut self, event: Event, message: Option<&Message>) -> io::Result<Stamped> {
        let at = self.clock.now();
        let records = Record::of(&event).into_iter().flatten().chain(message.map(Record::Message));
        let lines = self.write(at, records)?;
        Ok(Stamped { session: self.session.clone(), at, event, lines: lines.into() })
    }

    /// Writes the beginning, where that is not written yet.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        let (ts, seq) = (self.clock.now(), self.seq + 1);
        let record = Record::SessionStart { session_id: self.session.as_str(), version: VERSION, cwd: &self.cwd };
        let mut line = String::new();
        Line { record, ts, seq }.write(&mut line)?;
        self.store.append(&line)?;
        (self.seq, self.begun) = (seq, true);
        Ok(())
    }

    /// Writes messages that another session's log has: what a fork begins with.
    pub(crate) fn copy(&mut self, messages: &[Message]) -> io::Result<()> {
        self.write(self.clock.now(), messages.iter().map(Record::Message)).map(drop)
    }

    /// Writes that the conversation is again what it was before the line `to_seq`, with which this turn began.
    pub(crate) fn rewind(&mut self, turn: u64, to_seq: u64) -> io::Result<()> {
        self.write(self.clock.now(), [Record::Rewind { turn, to_seq }])?;
        self.store.sync()
    }

    /// Makes durable what was written so far: work for another thread.
    pub(crate) fn syncing(&self) -> Option<Syncing> {
        self.store.syncing()
    }

    /// The log so far, where it can be read.
    pub(crate) fn reader(&self) -> io::Result<Option<Box<dyn ReadSeek>>> {
        self.store.reader()
    }

    fn write<'a>(&mut self, ts: Timestamp, records: impl IntoIterator<Item = Record<'a>>) -> io::Result<String> {
        let mut lines = String::new();
        let mut seq = self.seq;
        let start = Record::SessionStart { session_id: self.session.as_str(), version: VERSION, cwd: &self.cwd };
        let mut start = (!self.begun).then_some(start);
        for record in records {
            for record in start.take().into_iter().chain([record]) {
                seq += 1;
                Line { record, ts, seq }.write(&mut lines)?;
            }
        }
        self.seq = seq;
        if !lines.is_empty() {
            self.store.append(&lines)?;
            self.begun = true;
        }
        Ok(lines)
    }

    /// The log of a sub-agent's session beside this one, and where that session keeps its files.
    pub(crate) fn child(&self) -> (Self, Option<PathBuf>) {
        let id = SessionId::of_child(self.clock.now());
        let (store, directory) = self.store.sibling(&id);
        (Self::new(id, store, self.clock.clone(), self.cwd.clone()), directory)
    }

    /// Writes the end of a turn. Where that fails the event carries the failure, and the line that the log does not have.
    pub(crate) fn record_end(&mut self, ended: Result<Ending, TurnError>) -> Stamped {
        let written = self.record(Event::Ended(ended), None);
        let error = match written.and_then(|stamped| self.store.sync().map(|()| stamped)) {
            Ok(stamped) => return stamped,
            Err(error) => TurnError::from(error),
        };
        let (at, mut lines) = (self.clock.now(), String::new());
        let record = Record::Error { message: error.to_string() };
        // A line of text and numbers can be written down.
        let _ = Line { record, ts: at, seq: self.seq + 1 }.write(&mut lines);
        Stamped { session: self.session.clone(), at, event: Event::Ended(Err(error)), lines: lines.into() }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    record: Record<'a>,
    ts: Timestamp,
    seq: u64,
}

impl Line<'_> {
    fn write(&self, lines: &mut String) -> io::Result<()> {
        lines.push_str(&serde_json::to_string(self)?);
        lines.push('\n');
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Record<'a> {
    SessionStart {
        session_id: &'a str,
        version: u32,
        cwd: &'a str,
    },
    UserInput {
        content: String,
    },
    Text {
        content: &'a str,
    },
    Thinking {
        content: &'a str,
    },
    ToolCall {
        name: &'a str,
        id: &'a str,
        input: Input<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        name: &'a str,
        content: String,
        status: Status,
    },
    Usage(UsageRecord<'a>),
    Retry {
        attempt: u32,
        delay_ms: u64,
        reason: &'a str,
    },
    Permission {
        id: &'a str,
        name: &'a str,
        required: String,
        allowed: String,
        decision: String,
    },
    SubAgentStart {
        session_id: &'a str,
        prompt: &'a str,
        description: &'a str,
        fork: bool,
    },
    SubAgentResult {
        session_id: &'a str,
        status: String,
        input_tokens: u64,
        output_tokens: u64,
        thinking: &'a str,
        text: &'a str,
    },
    SubAgentEnd {
        session_id: &'a str,
        status: String,
    },
    AsyncTaskResult {
        task_id: &'a str,
        exit_code: i32,
        output: &'a str,
    },
    Rewind {
        turn: u64,
        to_seq: u64,
    },
    ContextUpdate {
        kind: &'static str,
        trigger: String,
        kept: usize,
        content: &'a [Part],
        tokens_before: u64,
        tokens_after: u64,
    },
    Notice {
        message: String,
    },
    Stop {
        reason: &'static str,
    },
    Error {
        message: String,
    },
    Message(&'a Message),
}

/// The arguments as an object, or as text where they are none.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Object(&'a RawValue),
    Text(&'a str),
}

impl<'a> Input<'a> {
    fn of(arguments: &'a str) -> Self {
        let object = serde_json::from_str::<&RawValue>(arguments).ok().filter(|v| v.get().starts_with('{'));
        object.map_or(Self::Text(arguments), Self::Object)
    }
}

#[derive(Serialize)]
struct UsageRecord<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_session_id: Option<&'a str>,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_cache_read_tokens: u64,
    total_cache_creation_tokens: u64,
    agent_request_count: u64,
    compact_request_count: u32,
    current_context_tokens: u64,
    /// The part of what was sent that came from the cache, of this request.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_hit_rate: Option<f64>,
    /// In US dollars; null where it is not known.
    total_cost: Option<f64>,
}

impl<'a> UsageRecord<'a> {
    /// What was spent now, by a sub-agent where one is named, and in all.
    fn new(spent: Usage, child: Option<&'a SessionId>, report: &UsageReport) -> Self {
        Self {
            kind: match (child, report.spent_on) {
                (Some(_), _) => "sub_agent",
                (None, SpentOn::Agent) => "agent",
                (None, SpentOn::Compact) => "compact",
            },
            sub_session_id: child.map(SessionId::as_str),
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cache_read_input_tokens: spent.cache_read_input_tokens,
            cache_creation_input_tokens: spent.cache_creation_input_tokens,
            total_input_tokens: report.total.input_tokens,
            total_output_tokens: report.total.output_tokens,
            total_cache_read_tokens: report.total.cache_read_input_tokens,
            total_cache_creation_tokens: report.total.cache_creation_input_tokens,
            agent_request_count: report.requests,
            compact_request_count: report.compactions,
            current_context_tokens: report.context,
            cache_hit_rate: hit_rate(&spent).map(|rate| (rate * 1000.0).round() / 1000.0),
            total_cost: report.cost,
        }
    }
}

impl<'a> Record<'a> {
    /// What the log has of an event, besides the message that it completes.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn of(event: &'a Event) -> [Option<Self>; 3] {
        let only = match event {
            Event::Prompt(prompt) => Self::UserInput { content: text_of(&prompt.parts) },
            Event::Text(content) => Self::Text { content },
            Event::Thinking(content) => Self::Thinking { content },
            Event::Called { call, .. } => {
                Self::ToolCall { name: &call.name, id: &call.id, input: Input::of(&call.arguments) }
            }
            Event::Finished { call, output, .. } => Self::ToolResult {
                tool_use_id: &call.id,
                name: &call.name,
                content: output.text(),
                status: output.status,
            },
            Event::Usage(report) => Self::Usage(UsageRecord::new(report.last, None, report)),
            Event::Notice(Notice::ChildEnded { end, total }) => return Self::of_child(end, total).map(Some),
            Event::Notice(notice) => Self::of_notice(notice),
            Event::Ended(Ok(ending)) => Self::Stop { reason: stop_reason(ending) },
            Event::Ended(Err(error)) => Self::Error { message: error.to_string() },
            Event::Ask(_) | Event::Started { .. } | Event::Output { .. } => return [None, None, None],
        };
        [Some(only), None, None]
    }

    fn of_child(end: &'a ChildEnd, total: &UsageReport) -> [Self; 3] {
        let (session_id, status) = (end.id.as_str(), end.status.to_string());
        [
            Self::Usage(UsageRecord::new(end.usage, Some(&end.id), total)),
            Self::SubAgentResult {
                session_id,
                status: status.clone(),
                input_tokens: end.usage.input_tokens,
                output_tokens: end.usage.output_tokens,
                thinking: &end.thinking,
                text: &end.text,
            },
            Self::SubAgentEnd { session_id, status },
        ]
    }

    fn of_notice(notice: &'a Notice) -> Self {
        match notice {
            Notice::ChildStarted { id, task } => Self::SubAgentStart {
                session_id: id.as_str(),
                prompt: &task.prompt,
                description: &task.description,
                fork: task.fork,
            },
            Notice::TaskEnded(TaskEnd { id, exit_code, output }) => {
                Self::AsyncTaskResult { task_id: id, exit_code: *exit_code, output }
            }
            Notice::Retry { attempt, delay, reason } => {
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                Self::Retry { attempt: *attempt, delay_ms, reason }
            }
            Notice::Permission { call, outline, allowed, decision } => Self::Permission {
                id: &call.id,
                name: &call.name,
                required: outline.needs.mode.to_string(),
                allowed: allowed.to_string(),
                decision: decision.to_string(),
            },
            Notice::Compacted(Compacted { trigger, content, kept, before, after }) => Self::ContextUpdate {
                kind: "compact",
                trigger: trigger.to_string(),
                kept: *kept,
                content,
                tokens_before: *before,
                tokens_after: *after,
            },
            Notice::ChildEnded { .. } | Notice::Repeated { .. } | Notice::Text(_) => {
                Self::Notice { message: notice.to_string() }
            }
        }
    }
}

/// The word for an ending in `stop` lines and JSON results.
pub fn stop_reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Done => "end_turn",
        Ending::Blocked(_) => "blocked",
        Ending::Cancelled => "cancelled",
        Ending::Limit(Limit::Turns(_)) => "max_turns",
        Ending::Limit(Limit::Cost) => "max_cost",
        Ending::Limit(Limit::Loop(_)) => "loop",
        Ending::Truncated => "max_tokens",
        Ending::Refused => "refusal",
    }
}
