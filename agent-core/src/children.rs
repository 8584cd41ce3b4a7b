//! Sub-agents: they run beside the turn that started them, and their results are news for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agent_tools::policy::{Mode, Policy, Verdict};
use agent_tools::text::{Cut, clipped};
use agent_tools::{Outline, SubTask};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::event::{Ending, Event, Prompt};
use crate::inbox::News;
use crate::message::{Block, Message};
use crate::provider::Usage;
use crate::session::{Session, SessionId};
use crate::turn::{Events, TurnError, start};

/// How long children that were told to stop may take.
const GRACE: Duration = Duration::from_secs(3);
/// How much of an answer the parent reads.
const ANSWER: Cut = Cut::HeadTailBytes(51_200);
/// How much of its reasoning, in characters.
const REASONING: usize = 2000;

/// The sub-agents of a session.
#[derive(Default)]
pub(crate) struct Children {
    /// Dropping it ends them.
    tasks: JoinSet<()>,
    /// How many may run at the same time; the others wait.
    slots: Option<Arc<Semaphore>>,
    /// How many have not been heard of yet.
    pub(crate) unheard: usize,
}

/// What a sub-agent starts with.
pub(crate) struct Child {
    pub(crate) agent: Agent,
    pub(crate) session: Session,
    pub(crate) task: SubTask,
    /// Fires when it is to stop.
    pub(crate) stop: CancellationToken,
    /// Where its questions go.
    pub(crate) questions: Events,
    /// Where its result goes.
    pub(crate) news: mpsc::UnboundedSender<News>,
}

impl Children {
    /// Starts one, as soon as there is room.
    pub(crate) fn start(&mut self, mut child: Child) {
        while self.tasks.try_join_next().is_some() {}
        let most = child.agent.limits.max_sub_agents;
        let slots = self.slots.get_or_insert_with(|| Arc::new(Semaphore::new(most))).clone();
        child.agent.policy = Arc::new(Held(child.agent.policy));
        self.unheard += 1;
        // A task of its own, because it works while the parent does other things; it ends with the session.
        self.tasks.spawn(async move {
            let id = child.session.id.clone();
            let mut promise = Promise { end: Some(ChildEnd::new(id)), news: child.news.clone() };
            let stop = child.stop.clone();
            let room = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                room = slots.acquire() => room.ok(),
            };
            promise.end = Some(match room {
                Some(_room) => child.run().await,
                None => ChildEnd {
                    status: ChildStatus::Cancelled,
                    cost: Some(0.0),
                    ..ChildEnd::new(child.session.id.clone())
                },
            });
        });
    }

    /// Waits until all have ended, for a moment; then ends them.
    pub(crate) async fn settle(&mut self) {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(GRACE, ended).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

impl Child {
    /// Runs its turn. Nobody watches; questions go to whoever watches the parent.
    async fn run(mut self) -> ChildEnd {
        let mut outcome = None;
        let prompt = Prompt::text(self.task.prompt);
        let mut running = start(self.agent, &mut self.session, prompt, self.stop);
        while let Some(stamped) = running.next().await {
            match stamped.event {
                Event::Ask(_) => self.questions.send(stamped).await,
                Event::Ended(ended) => outcome = Some(ended),
                Event::Prompt(_)
                | Event::Text(_)
                | Event::Thinking(_)
                | Event::Called { .. }
                | Event::Started { .. }
                | Event::Output { .. }
                | Event::Finished { .. }
                | Event::Usage(_)
                | Event::Notice(_) => {}
            }
        }
        drop(running);
        ChildEnd::of(&self.session, outcome)
    }
}

/// A result that is told whatever happens, a panic included: the parent waits for it.
struct Promise {
    end: Option<ChildEnd>,
    news: mpsc::UnboundedSender<News>,
}

impl Drop for Promise {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // Nobody waits any more where the parent's session is gone.
            let _ = self.news.send(News::Child(Arc::new(end)));
        }
    }
}

/// The parent's policy. Only the parent says when a plan is open.
struct Held(Arc<dyn Policy>);

impl Policy for Held {
    fn judge(&self, call: &Outline) -> Verdict {
        self.0.judge(call)
    }

    fn ceiling(&self) -> Mode {
        self.0.ceiling()
    }

    fn permits(&self, call: &Outline) -> Mode {
        self.0.permits(call)
    }
}

/// What a sub-agent came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildEnd {
    /// Its session.
    pub id: SessionId,
    /// How it ended.
    pub status: ChildStatus,
    /// What it cost.
    pub usage: Usage,
    /// How many requests it made.
    pub requests: u64,
    /// What it cost, in US dollars; none where that is not known.
    pub cost: Option<f64>,
    /// The reasoning of its last answer, shortened.
    pub thinking: String,
    /// Its last answer, or why there is none.
    pub text: String,
}

/// How a sub-agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildStatus {
    /// It answered.
    Ok,
    /// It did not, or only in part.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl fmt::Display for ChildStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

impl ChildEnd {
    fn new(id: SessionId) -> Self {
        Self {
            id,
            status: ChildStatus::Failed,
            usage: Usage::default(),
            requests: 0,
            cost: None,
            thinking: String::new(),
            text: "(no answer)".into(),
        }
    }

    fn of(session: &Session, outcome: Option<Result<Ending, TurnError>>) -> Self {
        let report = session.usage();
        let mut end =
            Self { usage: report.total, requests: report.requests, cost: report.cost, ..Self::new(session.id.clone()) };
        let (status, reason) = match outcome {
            Some(Ok(Ending::Done | Ending::Blocked(_))) => (ChildStatus::Ok, None),
            Some(Ok(Ending::Cancelled)) => (ChildStatus::Cancelled, None),
            Some(Ok(Ending::Limit(_))) => (ChildStatus::Failed, Some("(stopped at a limit)".into())),
            Some(Ok(Ending::Truncated)) => (ChildStatus::Failed, Some("(its answer was cut at maxTokens)".into())),
            Some(Ok(Ending::Refused)) => (ChildStatus::Failed, Some("(the model refused)".into())),
            Some(Err(error)) => (ChildStatus::Failed, Some(format!("({error})"))),
            None => (ChildStatus::Failed, None),
        };
        let (thinking, text) = last_answer(session.messages());
        end.thinking = clipped(&thinking, REASONING);
        end.text = [text, reason.unwrap_or_default()].join("\n").trim().to_owned();
        let said = !end.text.is_empty();
        if !said {
            end.text = "(no answer)".into();
        }
        end.status = if status == ChildStatus::Ok && !said { ChildStatus::Failed } else { status };
        end
    }
}

/// Reasoning and words of the last answer.
fn last_answer(messages: &[Message]) -> (String, String) {
    let Some(Message::Assistant(blocks)) = messages.last() else { return Default::default() };
    let (mut thinking, mut text) = (Vec::new(), String::new());
    for block in blocks {
        match block {
            Block::Text { text: words } => text.push_str(words),
            Block::Opaque { shown, .. } if !shown.is_empty() => thinking.push(shown.as_str()),
            Block::Opaque { .. } | Block::Call { .. } => {}
        }
    }
    (thinking.join("\n"), ANSWER.told(text))
}

impl fmt::Display for ChildEnd {
    /// As the parent reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, status, usage, thinking, text, .. } = self;
        write!(f, "[sub-agent {id}] {status} (in={}, out={})", usage.input_tokens, usage.output_tokens)?;
        if !thinking.is_empty() {
            write!(f, "\nThinking: {thinking}")?;
        }
        write!(f, "\nText: {text}")
    }
}
