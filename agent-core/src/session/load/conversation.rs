//! A conversation as a server takes it: a person begins, and each call has exactly one result, right after it.

use agent_tools::{Call, Part};
use serde::Deserialize;

use super::damage::Damage;
use crate::message::{CallResult, Message};

/// What stands where a prompt was lost.
pub(super) const LOST: &str = "[a message of the user stood here; its line in the session's log is lost]";

/// The line of a result.
#[derive(Deserialize)]
struct ResultLine {
    tool_use_id: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    status: String,
}

/// The conversation so far, and what may still become a part of it.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// Lines of results for the calls of the last message. They are read where the results' own message is lost.
    results: Vec<Box<[u8]>>,
    /// Prompts whose messages have not come yet.
    prompts: Vec<String>,
    /// Whether what a summary replaces is kept in front of it.
    all: bool,
    /// Summaries that wait until no call is open.
    summaries: Vec<Message>,
}

impl Conversation {
    /// One that keeps what summaries replace.
    pub(super) fn of_all() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// Takes up a message.
    pub(super) fn add(&mut self, message: Message, damage: &mut Damage) {
        match message {
            Message::Results(given) => self.answer(given, damage),
            Message::User(parts) => {
                self.answer(Vec::new(), damage);
                self.messages.append(&mut self.summaries);
                self.settle_prompts(&parts, damage);
                self.messages.push(Message::User(parts));
            }
            Message::Assistant(_) => {
                self.answer(Vec::new(), damage);
                self.messages.append(&mut self.summaries);
                self.settle_prompts(&[], damage);
                self.stand_in(damage);
                self.messages.push(message);
            }
        }
    }

    /// Remembers a prompt until its message comes.
    pub(super) fn prompted(&mut self, text: String) {
        self.prompts.push(text);
    }

    /// Keeps the line of a result while a call may need it.
    pub(super) fn result(&mut self, line: &[u8]) {
        if self.messages.last().is_some_and(|last| last.calls().next().is_some()) {
            self.results.push(line.into());
        }
    }

    /// From here on the conversation is this content, and the last messages that it had.
    pub(super) fn compact(&mut self, content: Vec<Part>, kept: usize, damage: &mut Damage) {
        // A summary may be made while calls are open, but whoever gave a prompt meanwhile found them answered.
        if !self.prompts.is_empty() {
            self.answer(Vec::new(), damage);
            self.settle_prompts(&[], damage);
        }
        if self.all {
            self.summaries.push(Message::User(content));
            return;
        }
        let mut before = self.messages.len().saturating_sub(kept);
        while let Some(Message::Results(results)) = self.messages.get(before) {
            damage.orphans += results.len() as u64;
            before += 1;
        }
        self.messages.splice(..before, [Message::User(content)]);
    }

    /// The conversation, complete.
    pub(super) fn end(mut self, damage: &mut Damage) -> Vec<Message> {
        self.answer(Vec::new(), damage);
        self.messages.append(&mut self.summaries);
        self.settle_prompts(&[], damage);
        self.messages
    }

    /// Answers the calls of the last message: with what was given, else from the lines of results, else as cut off. What
    /// answers no call is left out.
    fn answer(&mut self, mut given: Vec<CallResult>, damage: &mut Damage) {
        let lines = std::mem::take(&mut self.results);
        let calls: Vec<_> = self.messages.last().into_iter().flat_map(Message::calls).collect();
        let whole = calls.len() == given.len() && calls.iter().zip(&given).all(|(call, result)| call.id == result.id);
        let answers = if whole {
            std::mem::take(&mut given)
        } else {
            let mut lines = lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
            calls.into_iter().map(|call| taken(call, &mut given, &mut lines, damage)).collect()
        };
        damage.orphans += given.len() as u64;
        if !answers.is_empty() {
            self.messages.push(Message::Results(answers));
        }
    }

    /// Puts prompts in whose messages are lost: all that this message does not hold.
    fn settle_prompts(&mut self, message: &[Part], damage: &mut Damage) {
        if self.prompts.is_empty() {
            return;
        }
        let mut text: String = message.iter().map(Part::as_text).collect();
        // From the last one on: a prompt that was lost and given again stands there once.
        let mut lost = std::mem::take(&mut self.prompts);
        lost.reverse();
        lost.retain(|prompt| match text.find(prompt.as_str()) {
            Some(at) => {
                text.replace_range(at..at + prompt.len(), "");
                false
            }
            None => true,
        });
        damage.prompts += lost.len() as u64;
        self.messages.extend(lost.into_iter().rev().map(Message::user));
    }

    /// No answer stands without something that it answers.
    fn stand_in(&mut self, damage: &mut Damage) {
        if matches!(self.messages.last(), None | Some(Message::Assistant(_))) {
            damage.answers += 1;
            self.messages.push(Message::user(LOST));
        }
    }
}

/// The result of a call: as given, else from its line, else as cut off.
fn taken(call: &Call, given: &mut Vec<CallResult>, lines: &mut Vec<ResultLine>, damage: &mut Damage) -> CallResult {
    if let Some(at) = given.iter().position(|result| result.id == call.id) {
        return given.remove(at);
    }
    damage.open_calls += 1;
    let line = lines.iter().position(|line| line.tool_use_id == call.id).map(|at| lines.remove(at));
    line.map_or_else(
        || unanswered(call),
        |line| CallResult {
            id: call.id.clone(),
            name: call.name.clone(),
            failed: line.status != "ok",
            parts: vec![Part::text(line.content)],
        },
    )
}

/// The result of a call that was cut off.
pub(crate) fn unanswered(call: &Call) -> CallResult {
    CallResult {
        id: call.id.clone(),
        name: call.name.clone(),
        failed: true,
        parts: vec![Part::text(
            "[cut off: the session ended while this call ran; it may have done a part of its work]",
        )],
    }
}
