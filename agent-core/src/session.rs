//! A session: the conversation, what it cost, what a person granted, and its log. Nothing about models, tools, screens.

mod id;
mod journal;
mod load;
mod store;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use agent_tools::{Details, Files, GrantKey, Host, Jobs, Part, Place, Status, ToolContext, ToolOutput};

pub use id::SessionId;
pub use journal::{Journal, stop_reason};
pub use load::{Loaded, load};
pub use store::{JsonLines, Memory, Nowhere, Sessions, Store};

use crate::agent::Agent;
use crate::event::{Ending, Event, Notice, UsageReport};
use crate::message::{CallResult, Message};
use crate::provider::Usage;
use crate::turn::{Events, TurnError};

/// A session. It has one owner, the loop, which holds it by `&mut`.
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Where it is.
    pub place: Arc<Place>,
    /// The files that its tools see.
    pub files: Arc<dyn Files>,
    /// What outlives a call. Dropping the session ends it.
    pub jobs: Arc<Jobs>,
    /// Whether a person can answer questions.
    pub attended: bool,
    messages: Vec<Message>,
    /// Results of the last message's calls, until all of them are there.
    results: Vec<CallResult>,
    usage: UsageReport,
    grants: Vec<GrantKey>,
    changed: BTreeSet<PathBuf>,
    journal: Journal,
}

impl Session {
    /// A new session at a place, over the disk, with nobody to ask.
    pub fn new(place: Place, journal: Journal) -> Self {
        Self {
            id: journal.session().clone(),
            place: Arc::new(place),
            files: Arc::new(agent_tools::builtin::Disk),
            jobs: Arc::default(),
            attended: false,
            messages: Vec::new(),
            results: Vec::new(),
            usage: UsageReport::default(),
            grants: Vec::new(),
            changed: BTreeSet::new(),
            journal,
        }
    }

    /// A session that goes on from what was loaded.
    pub fn resumed(place: Place, journal: Journal, loaded: Loaded) -> Self {
        Self { messages: loaded.messages, usage: loaded.usage, ..Self::new(place, journal) }
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What it has cost so far.
    pub fn usage(&self) -> UsageReport {
        self.usage
    }

    /// The files that tools changed, absolute and sorted.
    pub fn files_changed(&self) -> impl ExactSizeIterator<Item = &PathBuf> {
        self.changed.iter()
    }

    /// What the calls of this session work with.
    pub fn context(&self, agent: &Agent, host: Arc<dyn Host>) -> ToolContext {
        ToolContext {
            place: self.place.clone(),
            files: self.files.clone(),
            policy: agent.policy.clone(),
            host,
            jobs: self.jobs.clone(),
        }
    }

    /// Logs an event and tells it.
    pub(crate) async fn tell(&mut self, events: &Events, event: Event) -> Result<(), TurnError> {
        let stamped = self.journal.record(event, None)?;
        events.send(stamped).await;
        Ok(())
    }

    /// Logs an event and the message that it completes, takes the message up, and tells the event.
    pub(crate) async fn tell_with(&mut self, events: &Events, event: Event, message: Message) -> Result<(), TurnError> {
        let stamped = self.journal.record(event, Some(&message))?;
        self.messages.push(message);
        events.send(stamped).await;
        Ok(())
    }

    /// Tells the end of a turn, also where it cannot be logged.
    pub(crate) async fn end(&mut self, events: &Events, ended: Result<Ending, TurnError>) {
        let stamped = self.journal.record_end(ended);
        events.send(stamped).await;
    }

    /// Logs and tells a result; the last one of `all` puts them into the conversation.
    pub(crate) async fn answered(
        &mut self,
        events: &Events,
        finished: Event,
        result: CallResult,
        all: usize,
    ) -> Result<(), TurnError> {
        self.results.push(result);
        if self.results.len() < all {
            return self.tell(events, finished).await;
        }
        let results = Message::Results(std::mem::take(&mut self.results));
        self.tell_with(events, finished, results).await
    }

    /// Answers the calls that a turn left open when it was dropped: each call has exactly one result.
    pub(crate) async fn answer_open_calls(&mut self, events: &Events) -> Result<(), TurnError> {
        let mut results = std::mem::take(&mut self.results);
        let open = self.messages.last().into_iter().flat_map(Message::calls).skip(results.len());
        results.extend(open.map(|call| load::unanswered(call)));
        if results.is_empty() {
            return Ok(());
        }
        let notice = Event::Notice(Notice::Text("calls that were cut off are answered as such".into()));
        self.tell_with(events, notice, Message::Results(results)).await
    }

    /// Counts a request.
    pub(crate) fn spend(&mut self, usage: Usage) {
        self.usage.last = usage;
        self.usage.total += usage;
        self.usage.requests += 1;
    }

    /// Remembers a person's "for this session".
    pub(crate) fn grant(&mut self, grants: &[GrantKey]) {
        self.grants.extend_from_slice(grants);
    }

    /// Whether earlier answers cover all of these; what cannot be granted is not.
    pub(crate) fn granted(&self, wanted: &[GrantKey]) -> bool {
        !wanted.is_empty() && wanted.iter().all(|w| self.grants.iter().any(|g| g.covers(w)))
    }

    /// Remembers which file a call changed.
    pub(crate) fn changed(&mut self, output: &ToolOutput) {
        if let (Status::Ok, Details::Change(change)) = (output.status, &output.details) {
            self.changed.insert(change.path.clone());
        }
    }
}

/// The text of these parts, as the log and previews have it.
pub(crate) fn text_of(parts: &[Part]) -> String {
    parts.iter().map(Part::as_text).collect()
}
