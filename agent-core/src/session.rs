//! A session: the conversation, what it cost, what a person granted, and its log. Nothing about models, tools, screens.

mod export;
mod id;
mod journal;
mod load;
mod rewind;
mod sessions;
mod skim;
mod store;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use agent_tools::builtin::own_files;
use agent_tools::text::clipped;
use agent_tools::{Details, Files, GrantKey, Host, Jobs, Part, Place, Status, ToolContext, ToolOutput};

pub use export::{Exported, json, markdown};
use tokio::task::JoinHandle;

pub use id::SessionId;
pub use journal::{Journal, stop_reason};
pub use load::{LoadError, Loaded, load, read, read_all};
pub use rewind::{Back, RewindError};
pub use sessions::{FindError, Kept, Scope, Sessions};
pub use store::{JsonLines, Memory, Nowhere, ReadSeek, Store, Syncing};

use crate::agent::Agent;
use crate::budget::Budget;
use crate::children::{Child, ChildEnd, Children};
use crate::context::{cost, estimate};
use crate::event::{Compacted, Ending, Event, Notice, Prompt, SpentOn, Stamped, UsageReport};
use crate::history::History;
use crate::inbox::{self, Inbox, News, Steering};
use crate::message::{CallResult, Message};
use crate::provider::{Prices, Usage};
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
    /// What a turn waits for before it ends.
    pub waits: Waits,
    messages: Vec<Message>,
    /// Results of the last message's calls, until all of them are there.
    results: Vec<CallResult>,
    usage: UsageReport,
    budget: Budget,
    /// How many of the messages, and how many tokens, the last answer's usage is of.
    measured: (usize, u64),
    turns: Vec<TurnStart>,
    /// What the turn under way was asked for.
    request: Vec<Part>,
    grants: Vec<GrantKey>,
    changed: BTreeSet<PathBuf>,
    /// The plan that was confirmed.
    plan: Option<String>,
    inbox: Inbox,
    children: Children,
    history: Option<Arc<History>>,
    /// What was logged last is being made durable.
    syncing: Option<JoinHandle<io::Result<()>>>,
    journal: Journal,
}

/// How much of a prompt is shown where turns are listed, in characters.
const PREVIEW: usize = 200;

/// Where a turn began.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnStart {
    /// The number of its line in the log.
    pub line: u64,
    /// The beginning of the prompt.
    pub preview: String,
}

/// What a turn waits for before it ends: what comes in is told to the model, which then goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waits {
    /// Sub-agents. What a background command comes to is told with the next prompt.
    Children,
    /// Sub-agents and background commands: nobody gives another prompt.
    #[default]
    All,
}

impl Session {
    /// A new session at a place, over the disk, with nobody to ask.
    pub fn new(place: Place, journal: Journal) -> Self {
        Self {
            id: journal.session().clone(),
            plan: own_files::text(own_files::PLAN, &place),
            history: place.store.as_ref().map(History::new),
            place: Arc::new(place),
            files: Arc::new(agent_tools::builtin::Disk),
            jobs: Arc::default(),
            attended: false,
            waits: Waits::default(),
            messages: Vec::new(),
            results: Vec::new(),
            usage: UsageReport::default(),
            budget: Budget::spent(Some(0.0)),
            measured: (0, 0),
            turns: Vec::new(),
            request: Vec::new(),
            grants: Vec::new(),
            changed: BTreeSet::new(),
            inbox: Inbox::default(),
            children: Children::default(),
            syncing: None,
            journal,
        }
    }

    /// A session that goes on from what was loaded.
    pub fn resumed(place: Place, journal: Journal, loaded: Loaded) -> Self {
        let budget = Budget::spent(loaded.usage.cost);
        let mut session = Self { usage: loaded.usage, budget, ..Self::new(place, journal) };
        session.take_up(loaded);
        session
    }

    /// Takes up the conversation of a log.
    fn take_up(&mut self, loaded: Loaded) {
        self.messages = loaded.messages;
        self.measured = (0, 0);
        self.turns = loaded.turn_starts.into_iter().map(|(line, preview)| TurnStart { line, preview }).collect();
    }

    /// Makes its log now, and not with the first turn: others can find it by its id from here on.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn keep(&mut self) -> io::Result<()> {
        self.journal.begin()
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What it and its sub-agents have cost so far, those that still run included.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What it has cost so far.
    pub fn usage(&self) -> UsageReport {
        self.usage
    }

    /// The files that tools changed, absolute and sorted.
    pub fn files_changed(&self) -> impl ExactSizeIterator<Item = &PathBuf> {
        self.changed.iter()
    }

    /// The system prompt: the agent's, and this session's own files where its toolset has any.
    pub fn prompt(&self, agent: &Agent) -> Arc<str> {
        agent.prompt.in_session(&self.place, self.plan.as_deref())
    }

    /// Reads the confirmed plan again.
    pub(crate) fn read_plan(&mut self) {
        self.plan = own_files::text(own_files::PLAN, &self.place);
    }

    /// What the calls of this session work with.
    pub fn context(&self, agent: &Agent, host: Arc<dyn Host>) -> ToolContext {
        ToolContext {
            place: self.place.clone(),
            files: self.files.clone(),
            policy: agent.policy.clone(),
            host,
            jobs: self.jobs.clone(),
            permitted: None,
        }
    }

    /// Logs an event and tells it.
    pub(crate) async fn tell(&mut self, events: &Events, event: Event) -> Result<(), TurnError> {
        let stamped = self.log(event, None)?;
        events.send(stamped).await;
        Ok(())
    }

    /// Logs an event and the message that it completes, takes the message up, and tells the event.
    pub(crate) async fn tell_with(&mut self, events: &Events, event: Event, message: Message) -> Result<(), TurnError> {
        let stamped = self.log(event, Some(&message))?;
        if let Event::Usage(report) = &stamped.event {
            self.measured = (self.messages.len() + 1, report.context);
        }
        self.messages.push(message);
        events.send(stamped).await;
        Ok(())
    }

    fn log(&mut self, event: Event, message: Option<&Message>) -> Result<Stamped, TurnError> {
        let line = self.journal.next_line();
        let stamped = self.journal.record(event, message)?;
        if let Event::Prompt(prompt) = &stamped.event {
            self.begin_turn(line, prompt);
        }
        Ok(stamped)
    }

    fn begin_turn(&mut self, line: u64, prompt: &Prompt) {
        self.request.extend(prompt.parts.iter().cloned());
        self.turns.push(TurnStart { line, preview: clipped(&text_of(&prompt.parts), PREVIEW) });
        if let Some(history) = self.history.as_ref().filter(|_| !self.id.is_child()) {
            history.begin(line);
        }
    }

    /// What comes next is asked for anew.
    pub(crate) fn begin_request(&mut self) {
        self.request.clear();
    }

    /// What the turn under way was asked for.
    pub(crate) fn request(&self) -> &[Part] {
        &self.request
    }

    /// Puts a summary in the place of all but the last messages.
    pub(crate) async fn compact(&mut self, events: &Events, compacted: Compacted) -> Result<(), TurnError> {
        let dropped = self.messages.len().saturating_sub(compacted.kept);
        let first = Message::User(compacted.content.to_vec());
        self.usage.context = compacted.after;
        let stamped = self.journal.record(Event::Notice(Notice::Compacted(compacted)), None)?;
        self.messages.splice(..dropped, [first]);
        self.measured = (0, 0);
        events.send(stamped).await;
        Ok(())
    }

    /// Roughly how many tokens the next request begins with: as the last answer said, and an estimate of what came since.
    /// `fixed`: those of the system prompt and the tools.
    pub(crate) fn used(&self, fixed: u64) -> u64 {
        let (messages, known) = match self.measured {
            (_, 0) => (0, fixed),
            measured => measured,
        };
        known + self.messages.iter().skip(messages).map(estimate).sum::<u64>()
    }

    /// The prompts so far, the first being turn 1.
    pub fn turns(&self) -> &[TurnStart] {
        &self.turns
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

    /// Whether something is still to come that the turn waits for.
    pub(crate) fn awaits(&self) -> bool {
        let tasks = match self.waits {
            Waits::Children => 0,
            Waits::All => self.jobs.running(),
        };
        self.children.unheard + tasks > 0
    }

    /// Waits until there is something that the model has not been told: the end of a background command, words that
    /// came too late for a turn. [`start_on_news`](crate::start_on_news) tells it. Nothing is lost where this is dropped.
    pub async fn news(&mut self) {
        self.inbox.wait().await;
    }

    /// What lets a person speak while a turn has the session.
    pub fn steering(&self) -> Steering {
        self.inbox.steering()
    }

    /// Takes back what was injected and has not reached the model.
    pub fn take_back(&mut self) -> Vec<Prompt> {
        self.inbox.take_prompts()
    }

    /// Where news are put in.
    pub(crate) fn news_sender(&self) -> tokio::sync::mpsc::UnboundedSender<News> {
        self.inbox.sender()
    }

    /// Tells the model what has come in, in one message. Says whether there was anything.
    pub(crate) async fn take_news(&mut self, events: &Events) -> Result<bool, TurnError> {
        let news = self.inbox.take();
        let mut message = Some(Message::User(inbox::parts(&news)));
        let told: Vec<Event> = news.into_iter().map(|news| self.heard(news)).collect();
        let (any, last) = (!told.is_empty(), told.len().saturating_sub(1));
        for (number, event) in told.into_iter().enumerate() {
            match message.take_if(|_| number == last) {
                Some(message) => self.tell_with(events, event, message).await?,
                None => self.tell(events, event).await?,
            }
        }
        Ok(any)
    }

    fn heard(&mut self, news: News) -> Event {
        Event::Notice(match news {
            News::Prompt(prompt) => return Event::Prompt(prompt),
            News::Note(note) => note.task.map_or(Notice::Text(note.text), Notice::TaskEnded),
            News::Child(end) => {
                self.children.unheard = self.children.unheard.saturating_sub(1);
                self.spend_child(&end);
                Notice::ChildEnded { end, total: self.usage }
            }
        })
    }

    fn spend_child(&mut self, end: &ChildEnd) {
        self.usage.total += end.usage;
        self.usage.requests += end.requests;
        self.usage.pay(end.cost);
    }

    /// A session for a sub-agent, with this conversation where it is a fork: all but the answer whose calls are open.
    pub(crate) fn child(&self, fork: bool) -> Result<Self, TurnError> {
        let (mut journal, store) = self.journal.child();
        let mut place = Place::clone(&self.place);
        place.store = store;
        let messages = if fork { &self.messages[..self.messages.len().saturating_sub(1)] } else { &[] };
        if fork {
            journal.copy(messages)?;
        }
        let mut child = Self::new(place, journal);
        child.messages = messages.to_vec();
        child.files.clone_from(&self.files);
        child.history.clone_from(&self.history);
        child.budget = self.budget.clone();
        child.attended = self.attended;
        child.grants.clone_from(&self.grants);
        Ok(child)
    }

    /// Starts a sub-agent.
    pub(crate) fn start_child(&mut self, child: Child) {
        self.children.start(child);
    }

    /// Sees to it that no sub-agent outlives the turn.
    pub(crate) async fn settle(&mut self) {
        self.children.settle().await;
    }

    /// Counts a request.
    pub(crate) fn spend(&mut self, usage: Usage, prices: Option<&Prices>, on: SpentOn) {
        let cost = cost(prices, &usage);
        self.budget.add(cost);
        self.usage.spend(usage, cost, on);
    }

    /// Remembers a person's "for this session", or what one has saved as rules.
    pub fn grant(&mut self, grants: &[GrantKey]) {
        self.grants.extend_from_slice(grants);
    }

    /// Whether earlier answers cover all of these; what cannot be granted is not.
    pub(crate) fn granted(&self, wanted: &[GrantKey]) -> bool {
        !wanted.is_empty() && wanted.iter().all(|w| self.grants.iter().any(|g| g.covers(w)))
    }

    /// Remembers which file a call changed.
    pub(crate) async fn changed(&mut self, output: &ToolOutput) {
        let (Status::Ok, Details::Change(change)) = (output.status, &output.details) else { return };
        self.changed.insert(change.path.clone());
        if let Some(history) = &self.history {
            // Where it cannot be told the file counts as changed by somebody else: a person decides.
            let _ = history.done(&change.path).await;
        }
    }

    /// Begins to make durable what was logged so far, while other things go on.
    pub(crate) fn begin_sync(&mut self) {
        // On a thread for what blocks, because the next request is made meanwhile.
        self.syncing = self.journal.syncing().map(tokio::task::spawn_blocking);
    }

    /// Waits until what [`Session::begin_sync`] began is done: the world is not changed again before.
    pub(crate) async fn synced(&mut self) -> Result<(), TurnError> {
        match self.syncing.take() {
            Some(syncing) => Ok(syncing.await.map_err(io::Error::other)??),
            None => Ok(()),
        }
    }

    /// What files were before tools changed them.
    pub(crate) fn history(&self) -> Option<&Arc<History>> {
        self.history.as_ref()
    }
}

/// The text of these parts, as the log and previews have it.
pub(crate) fn text_of(parts: &[Part]) -> String {
    parts.iter().map(Part::as_text).collect()
}
