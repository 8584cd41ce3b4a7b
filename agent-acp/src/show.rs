//! What happens in a turn as a client sees it: events become updates, in their order, as fast as it reads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, CurrentModeUpdate, IdleStateUpdate, IdleStopReason,
    Notice as ProtocolNotice, NoticeSeverity, PlanMarkdown, PlanRemoved, PlanUpdate, PlanUpdateContent,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionNotification, SessionUpdate,
    StateUpdate, SubagentUpdate, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use agent_core::{Ask, ChildStatus, Compacted, Event, Notice, Stamped};
use agent_tools::builtin::own_files;
use agent_tools::policy::{Gate, Policy};
use agent_tools::{Answer, CallKind, Details, Place};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::connection::Connection;
use crate::files::Commands;
use crate::options::Mode;
use crate::replay::Names;
use crate::terminal::Terminals;
use crate::translate;

/// What a session's plan is called.
const PLAN_ID: &str = "plan";
/// How long a client that was told to stop a turn may take to make room for what is left to tell.
const PATIENCE: Duration = Duration::from_secs(1);

/// The calls that stand for those of sub-agents, and are asked about.
type Undecided = Mutex<Vec<String>>;

fn undecided(calls: &Undecided) -> MutexGuard<'_, Vec<String>> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the events of a session.
pub struct Show {
    connection: Arc<Connection>,
    client: Client,
    session: String,
    place: Arc<Place>,
    gate: Arc<Gate>,
    names: Names,
    terminals: Terminals,
    compactions: u64,
    mode: Mode,
    /// The plan that the client was told, and its file.
    page: Option<(String, PathBuf)>,
    size: u64,
    // Tasks, because the turn goes on while a person thinks; they end with the answer, the turn, or the client.
    questions: JoinSet<()>,
    // A lock, because questions are answered beside the turn; held for a look.
    of_children: Arc<Undecided>,
    commands: Commands,
    /// The client took too long to make room in a turn that is to stop: it is told no more of it.
    gave_up: bool,
    /// Where a person finds what no client shows.
    log: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Show {
    /// Shows a session of this id that is at this place.
    pub fn new(
        connection: Arc<Connection>,
        client: Client,
        place: Arc<Place>,
        session: &str,
        gate: Arc<Gate>,
        log: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let mode = Mode::of(&gate);
        let session = session.to_owned();
        let (names, terminals) = (Names::default(), Terminals::default());
        let (questions, of_children) = (JoinSet::new(), Arc::default());
        let commands = Commands::default();
        Self {
            connection,
            client,
            session,
            place,
            gate,
            names,
            terminals,
            compactions: 0,
            mode,
            page: None,
            size: 0,
            questions,
            of_children,
            commands,
            gave_up: false,
            log,
        }
    }

    /// When commands of the session began.
    pub fn commands(&self) -> Commands {
        self.commands.clone()
    }

    /// The names of what was told so far.
    pub fn names(&mut self) -> &mut Names {
        &mut self.names
    }

    /// A turn begins, with a model whose context has this many tokens.
    pub fn begin(&mut self, size: u64) {
        self.size = size;
        self.mode = Mode::of(&self.gate);
        self.gave_up = false;
    }

    /// Tells the client.
    pub async fn update(&self, update: SessionUpdate) {
        let told = SessionNotification::new(self.session.clone(), update);
        self.connection.notify("session/update", &told).await;
    }

    /// Tells the client; once the turn is to stop, only as far as there is room soon.
    async fn tell(&mut self, update: SessionUpdate, stop: &CancellationToken) {
        if self.gave_up {
            return;
        }
        let told = async {
            let told = self.update(update);
            tokio::pin!(told);
            tokio::select! {
                biased;
                () = &mut told => return true,
                () = stop.cancelled() => {}
            }
            // What is not told by then the session's log has.
            timeout(PATIENCE, told).await.is_ok()
        };
        self.gave_up = !told.await;
    }

    /// Says something in the agent's name.
    pub async fn say(&mut self, words: String) {
        let chunk = SessionUpdate::AgentMessageChunk(self.names.chunk(words));
        self.names.next_message();
        self.update(chunk).await;
    }

    /// Tells what a person should know.
    pub async fn notice(&self, severity: NoticeSeverity, words: &str) {
        if self.client.notices {
            let (title, rest) = words.split_once('\n').unwrap_or((words, ""));
            let description = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
            self.update(SessionUpdate::Notice(ProtocolNotice::new(severity, title).description(description))).await;
        } else {
            (self.log)(words);
        }
    }

    /// Shows an event. Questions are answered beside the turn; `stop` ends them.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub async fn event(&mut self, stamped: Stamped, stop: &CancellationToken) {
        match stamped.event {
            Event::Text(words) => {
                let chunk = SessionUpdate::AgentMessageChunk(self.names.chunk(words));
                self.tell(chunk, stop).await;
            }
            Event::Thinking(words) => {
                let chunk = SessionUpdate::AgentThoughtChunk(self.names.chunk(words));
                self.tell(chunk, stop).await;
            }
            Event::Called { call, outline } => {
                let id = self.names.begin(&call.id);
                if outline.kind == CallKind::Command {
                    self.commands.begin();
                }
                let told = translate::called(&id, &call, &outline);
                let told =
                    if self.has_terminal(outline.kind) { self.terminals.begin(told, &self.place.cwd) } else { told };
                self.tell(SessionUpdate::ToolCall(told), stop).await;
            }
            Event::Ask(ask) => self.ask(ask, stamped.session.as_str(), stop).await,
            Event::Started { id } => {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let update = ToolCallUpdate::new(self.names.of(&id), fields);
                self.tell(SessionUpdate::ToolCallUpdate(update), stop).await;
            }
            Event::Output { id, tail } => {
                let id = self.names.of(&id);
                let update = self.terminals.output(&id, &tail).unwrap_or_else(|| tail_of(&id, &tail));
                self.tell(SessionUpdate::ToolCallUpdate(update), stop).await;
            }
            Event::Finished { call, kind, output } => {
                let id = self.names.end(&call.id);
                let update = translate::finished(&id, &output);
                let update = self.terminals.end(update, &output);
                self.tell(SessionUpdate::ToolCallUpdate(update), stop).await;
                if let Details::Todos(todos) = &output.details {
                    self.tell(SessionUpdate::Plan(translate::plan(todos)), stop).await;
                }
                if kind == CallKind::Plan {
                    self.planned(stop).await;
                }
                if kind == CallKind::Plan || kind.changes_files() {
                    self.plan_page(stop).await;
                }
            }
            Event::Usage(report) => {
                self.names.next_message();
                self.tell(SessionUpdate::UsageUpdate(translate::usage(&report, self.size)), stop).await;
            }
            Event::Notice(notice) => self.told(notice).await,
            // The client shows what its person says by itself; how a turn ends stands in the answer to the prompt.
            Event::Prompt(_) | Event::Ended(_) => {}
        }
    }

    fn has_terminal(&self, kind: CallKind) -> bool {
        self.client.terminal_output && kind == CallKind::Command
    }

    /// Takes back what nobody answered before the turn was over, and closes the calls of sub-agents among it.
    pub async fn close_questions(&mut self, stop: &CancellationToken) {
        self.questions.shutdown().await;
        let left = std::mem::take(&mut *undecided(&self.of_children));
        for id in left {
            self.tell(SessionUpdate::ToolCallUpdate(decided(&id, Answer::Reject)), stop).await;
        }
    }

    /// Tells the mode where it is another one than the client knows: a plan was agreed to.
    pub async fn planned(&mut self, stop: &CancellationToken) {
        self.gate.planning(own_files::open_draft(&self.place));
        let mode = Mode::of(&self.gate);
        if mode != std::mem::replace(&mut self.mode, mode) {
            self.tell(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.id())), stop).await;
        }
    }

    /// Tells the plan as it is worked out, else the one that was agreed to, where the client knows another one.
    pub async fn plan_page(&mut self, stop: &CancellationToken) {
        if !self.client.plans {
            return;
        }
        let page = |name| Some((own_files::text(name, &self.place)?, own_files::path(name, &self.place)?));
        let now = page(own_files::DRAFT).or_else(|| page(own_files::PLAN));
        if now == self.page {
            return;
        }
        let update = match &now {
            Some((text, path)) => {
                let page = PlanMarkdown::new(PLAN_ID, text.clone()).path(path.clone());
                SessionUpdate::PlanUpdate(PlanUpdate::new(PlanUpdateContent::Markdown(page)))
            }
            None => SessionUpdate::PlanRemoved(PlanRemoved::new(PLAN_ID)),
        };
        self.page = now;
        self.tell(update, stop).await;
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    async fn told(&mut self, notice: Notice) {
        let words = notice.to_string();
        let severity = match &notice {
            // The call itself says what became of the question.
            Notice::Permission { .. } => return,
            Notice::Compacted(compacted) => return self.compacted(compacted).await,
            Notice::ChildStarted { id, task } if self.client.sub_agents => {
                let title = if task.description.is_empty() { &task.prompt } else { &task.description };
                let update = SubagentUpdate::new(id.as_str().to_owned()).title(agent_tools::text::clipped(title, 80));
                return self.update(SessionUpdate::SubagentUpdate(update)).await;
            }
            Notice::ChildEnded { end, .. } if self.client.sub_agents => {
                let stop = match end.status {
                    ChildStatus::Ok => IdleStopReason::EndTurn,
                    ChildStatus::Cancelled => IdleStopReason::Cancelled,
                    ChildStatus::Failed => IdleStopReason::Refusal,
                };
                let state = StateUpdate::Idle(IdleStateUpdate::new().stop_reason(stop));
                let update = SubagentUpdate::new(end.id.as_str().to_owned()).state(state);
                return self.update(SessionUpdate::SubagentUpdate(update)).await;
            }
            Notice::Retry { .. } | Notice::Repeated { .. } => NoticeSeverity::Warning,
            Notice::ChildStarted { .. } | Notice::ChildEnded { .. } | Notice::TaskEnded(_) | Notice::Text(_) | _ => {
                NoticeSeverity::Info
            }
        };
        self.notice(severity, &words).await;
    }

    async fn compacted(&mut self, compacted: &Compacted) {
        if !self.client.compactions {
            return self.notice(NoticeSeverity::Info, &Notice::Compacted(compacted.clone()).to_string()).await;
        }
        self.compactions += 1;
        let id = CompactionId::new(format!("c{}", self.compactions));
        let summary = compacted.content.iter().map(|part| translate::text(part.as_text())).collect::<Vec<_>>();
        let update = CompactionUpdate::new(id, CompactionStatus::Completed).summary(summary);
        self.update(SessionUpdate::CompactionUpdate(update)).await;
    }

    /// Asks a person, beside the turn. What is no answer is a no; a client that was told to stop asks in vain.
    async fn ask(&mut self, ask: Ask, session: &str, stop: &CancellationToken) {
        let own = session == self.session;
        let id = if own { self.names.of(&ask.call.id) } else { self.of_child(&ask, session, stop).await };
        let plan =
            (ask.outline.kind == CallKind::Plan).then(|| own_files::text(own_files::DRAFT, &self.place)).flatten();
        let call = translate::question(&id, &ask, &self.place.cwd, plan.as_deref());
        let request = RequestPermissionRequest::new(self.session.clone(), call, translate::answers(&ask));
        let (connection, stop, session) = (self.connection.clone(), stop.clone(), self.session.clone());
        let of_children = self.of_children.clone();
        self.questions.spawn(async move {
            let asked = connection.request::<RequestPermissionResponse>("session/request_permission", &request);
            let outcome = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                outcome = asked => outcome,
            };
            let (answer, over) = match outcome.map(|response| response.outcome) {
                Ok(RequestPermissionOutcome::Selected(selected)) => (translate::answer(&selected.option_id.0), false),
                // The client says so where its person has stopped the turn.
                Ok(RequestPermissionOutcome::Cancelled) => (Answer::Reject, true),
                Ok(_) | Err(_) => (Answer::Reject, false),
            };
            ask.answer(answer);
            if over {
                stop.cancel();
            }
            if !own {
                let told = SessionNotification::new(session, SessionUpdate::ToolCallUpdate(decided(&id, answer)));
                connection.notify("session/update", &told).await;
                undecided(&of_children).retain(|call| *call != id);
            }
        });
    }

    /// A question of a sub-agent, whose calls nobody is told of: a call that stands for it.
    async fn of_child(&mut self, ask: &Ask, session: &str, stop: &CancellationToken) -> String {
        let id = self.names.begin(&format!("{session}/{}", ask.call.id));
        let mut call: ToolCall = translate::called(&id, &ask.call, &ask.outline);
        call.title = format!("{} (sub-agent {session})", call.title);
        undecided(&self.of_children).push(id.clone());
        self.tell(SessionUpdate::ToolCall(call), stop).await;
        id
    }
}

/// The end of a call that stands for one of a sub-agent.
fn decided(id: &str, answer: Answer) -> ToolCallUpdate {
    let status = if answer == Answer::Reject { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new().status(status))
}

/// The last lines of a command, where the client has no terminal for them.
fn tail_of(id: &str, tail: &str) -> ToolCallUpdate {
    let content: Vec<ToolCallContent> = vec![translate::shown(tail)];
    ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new().kind(ToolKind::Execute).content(content))
}
