//! What a turn tells those who watch it: one stream, one closed set.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agent_tools::text::clipped;
use agent_tools::{Answer, Call, CallKind, Change, Outline, Part, SubTask, TaskEnd, ToolOutput};
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::children::ChildEnd;
use crate::context::held;
use crate::provider::Usage;
use crate::session::SessionId;
use crate::turn::TurnError;

/// How much of a prompt or an answer a notice shows, in characters.
const SHOWN: usize = 200;

/// What a person says to start a turn.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// Text and pictures.
    pub parts: Vec<Part>,
}

impl Prompt {
    /// A prompt of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::text(text)] }
    }
}

/// Something that happened in a turn. Closed on purpose: a new variant breaks the journal and every frontend.
#[derive(Debug)]
pub enum Event {
    /// The model is told what a person said: what the turn begins with, or what came while it ran.
    Prompt(Prompt),
    /// Words of the model; deltas joined to at most 100 ms or 4 KiB.
    Text(String),
    /// Reasoning of the model.
    Thinking(String),
    /// A call was found and outlined. Nothing has happened yet.
    Called {
        /// The call.
        call: Arc<Call>,
        /// What it is about.
        outline: Arc<Outline>,
    },
    /// A person is asked.
    Ask(Ask),
    /// A call is running.
    Started {
        /// The call's id.
        id: String,
    },
    /// The last lines that a running call printed.
    Output {
        /// The call's id.
        id: String,
        /// The lines.
        tail: String,
    },
    /// A call was answered.
    Finished {
        /// The call.
        call: Arc<Call>,
        /// What kind it was.
        kind: CallKind,
        /// Its result.
        output: Arc<ToolOutput>,
    },
    /// The model is done with one request.
    Usage(UsageReport),
    /// Something that a person should know.
    Notice(Notice),
    /// The turn is over. A failure of the model or the network is one of its endings.
    Ended(Result<Ending, TurnError>),
}

/// What requests have cost so far.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct UsageReport {
    /// The last request alone.
    pub last: Usage,
    /// What the last request was for.
    pub spent_on: SpentOn,
    /// The session so far.
    pub total: Usage,
    /// How many requests the session has made.
    pub requests: u64,
    /// How many of them asked for a summary.
    pub compactions: u32,
    /// The session so far, in US dollars; none where a price or a usage is not known.
    pub cost: Option<f64>,
    /// Tokens that the conversation holds after the last request.
    pub context: u64,
}

impl Default for UsageReport {
    fn default() -> Self {
        Self {
            last: Usage::default(),
            spent_on: SpentOn::Agent,
            total: Usage::default(),
            requests: 0,
            compactions: 0,
            cost: Some(0.0),
            context: 0,
        }
    }
}

impl UsageReport {
    /// Counts a request: what it used, what it cost, what it was for.
    pub(crate) fn spend(&mut self, usage: Usage, cost: Option<f64>, on: SpentOn) {
        self.last = usage;
        self.spent_on = on;
        self.total += usage;
        self.requests += 1;
        self.pay(cost);
        match on {
            SpentOn::Agent => self.context = held(&usage),
            SpentOn::Compact => self.compactions += 1,
        }
    }

    /// Adds a cost. What is not known makes the sum unknown.
    pub(crate) fn pay(&mut self, cost: Option<f64>) {
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
}

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentOn {
    /// The agent's work.
    Agent,
    /// A summary of the conversation.
    Compact,
}

/// A question to a person. Dropped unanswered, it is a no.
pub struct Ask {
    /// The call.
    pub call: Arc<Call>,
    /// What it is about and needs.
    pub outline: Arc<Outline>,
    /// Why it is asked.
    pub why: String,
    /// What would be written.
    pub change: Option<Arc<Change>>,
    pub(crate) reply: oneshot::Sender<Answer>,
}

impl Ask {
    /// Answers it.
    pub fn answer(self, answer: Answer) {
        // Nobody waits any more where the turn was cancelled meanwhile: then the answer is of no use.
        let _ = self.reply.send(answer);
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("call", &self.call).field("why", &self.why).finish_non_exhaustive()
    }
}

/// Something that a person should know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// A request failed and is made again. What the answer had so far is void.
    Retry {
        /// Which try comes next, the first being 1.
        attempt: u32,
        /// After this pause.
        delay: Duration,
        /// Why.
        reason: String,
    },
    /// The same call was made again and again.
    Repeated {
        /// The tool.
        name: String,
        /// How often in a row.
        times: u32,
    },
    /// A question was answered.
    Permission {
        /// The call.
        call: Arc<Call>,
        /// What it is about and needs.
        outline: Arc<Outline>,
        /// What may be done without asking.
        allowed: agent_tools::policy::Mode,
        /// The answer.
        decision: Decision,
    },
    /// A sub-agent was started.
    ChildStarted {
        /// Its session.
        id: SessionId,
        /// What it is to do.
        task: SubTask,
    },
    /// A sub-agent has ended, and the model is told.
    ChildEnded {
        /// How.
        end: Arc<ChildEnd>,
        /// What the session has cost with it.
        total: UsageReport,
    },
    /// A background command has ended, and the model is told.
    TaskEnded(TaskEnd),
    /// A summary has taken the place of a part of the conversation.
    Compacted(Compacted),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Notice {
    /// The notice in a sentence for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry { attempt, delay, reason } => {
                let reason = reason.trim_end_matches('.');
                write!(f, "{reason}; trying again in {:.1} s (retry {attempt})", delay.as_secs_f64())
            }
            Self::Repeated { name, times } => {
                write!(f, "{name} was called {times} times in a row with the same arguments and the same result")
            }
            Self::Permission { call, outline, decision, .. } => {
                write!(f, "{}: {} ({})", call.name, decision, outline.title)
            }
            Self::ChildStarted { id, task } => {
                let words = if task.description.is_empty() { &task.prompt } else { &task.description };
                write!(f, "[sub-agent {id}] started: {}", clipped(words, SHOWN))
            }
            Self::ChildEnded { end, .. } => write!(f, "{}", clipped(&end.to_string(), SHOWN)),
            Self::TaskEnded(TaskEnd { id, exit_code, output }) => {
                write!(f, "[bg-bash {id}] exit_code={exit_code} {}", clipped(output, SHOWN))
            }
            Self::Compacted(Compacted { trigger, before, after, .. }) => {
                write!(f, "Context compacted ({trigger}). About {before} tokens became {after}.")
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A summary that has taken the place of a part of the conversation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Compacted {
    /// What made it happen.
    pub trigger: Trigger,
    /// What the conversation begins with now.
    pub content: Arc<[Part]>,
    /// How many of the last messages are kept behind it.
    pub kept: usize,
    /// Roughly how many tokens the conversation had.
    pub before: u64,
    /// Roughly how many it has.
    pub after: u64,
}

/// What makes a compaction happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// It pays, or the context is nearly full.
    Auto,
    /// A person.
    Manual,
    /// A plan was confirmed.
    PlanConfirm,
    /// A plan was put away.
    PlanClear,
    /// A server refused the conversation as too long.
    TooLong,
}

impl fmt::Display for Trigger {
    /// As the log has it: `auto`, `manual`, `plan_confirm`, `plan_clear`, `too_long`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
            Self::PlanConfirm => "plan_confirm",
            Self::PlanClear => "plan_clear",
            Self::TooLong => "too_long",
        })
    }
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A person answered.
    Person(Answer),
    /// An earlier answer covers it.
    Granted,
    /// Nobody answered.
    Unanswered,
}

impl fmt::Display for Decision {
    /// One word: `once`, `session`, `reject`, `granted`, `unanswered`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Person(Answer::Once) => "once",
            Self::Person(Answer::Session) => "session",
            Self::Person(Answer::Reject) => "reject",
            Self::Granted => "granted",
            Self::Unanswered => "unanswered",
        })
    }
}

/// How a turn ended well, or at least in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The model is done.
    Done,
    /// The model is done, and its last call had been blocked, or rejected for want of a person: its text.
    Blocked(String),
    /// Somebody stopped it.
    Cancelled,
    /// It ran into a limit.
    Limit(Limit),
    /// The answer was cut at its size limit.
    Truncated,
    /// The model or its provider refused.
    Refused,
}

/// What a turn can run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Requests in one turn.
    Turns(u64),
    /// Money.
    Cost,
    /// The same call, so often in a row.
    Loop(u32),
}

/// An event, stamped: when, in which session, and what the log has of it.
#[derive(Debug)]
pub struct Stamped {
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Timestamp,
    /// What.
    pub event: Event,
    /// The lines that the log has of it, each with its newline: none, one, or several.
    pub lines: Arc<str>,
}

/// Counts of a turn's answered calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Commands.
    pub commands: u32,
    /// Files read, written, edited.
    pub files: u32,
    /// Skills loaded.
    pub skills: u32,
}

impl Tally {
    /// Counts one answered call.
    pub fn count(&mut self, kind: CallKind) {
        match kind {
            CallKind::Command => self.commands += 1,
            CallKind::Read | CallKind::Write | CallKind::Edit => self.files += 1,
            CallKind::Skill => self.skills += 1,
            CallKind::Search | CallKind::Todo | CallKind::Plan | CallKind::Agent | CallKind::Other => {}
        }
    }
}

impl fmt::Display for Tally {
    /// `⚙ 2 command(s) · 📝 3 file op(s) · 📖 1 skill(s)`, without what is zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts =
            [("⚙", self.commands, "command(s)"), ("📝", self.files, "file op(s)"), ("📖", self.skills, "skill(s)")];
        let shown: Vec<String> =
            counts.iter().filter(|(_, n, _)| *n > 0).map(|(sign, n, what)| format!("{sign} {n} {what}")).collect();
        f.write_str(&shown.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_told_in_one_sentence() {
        for (reason, expect) in [
            ("refused (is the server running?).", "refused (is the server running?); trying again in 0.5 s (retry 2)"),
            ("busy", "busy; trying again in 0.5 s (retry 2)"),
        ] {
            let notice = Notice::Retry { attempt: 2, delay: Duration::from_millis(500), reason: reason.into() };
            assert_eq!(notice.to_string(), expect);
        }
    }
}
