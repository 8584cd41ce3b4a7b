//! The turn: one request, its calls, their results in order, the next request, until the model is done.

mod ask;
mod compact;
mod repeats;
mod retry;
mod tools;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::context::{Course, of_tools, tokens_of};
use crate::event::{Ending, Event, Limit, Notice, Prompt, SpentOn, Stamped, Trigger, UsageReport};
use crate::message::Message;
use crate::provider::{Provider, ProviderError, Stop, Usage};
use crate::session::Session;
use repeats::Repeats;

/// Why a turn failed. The session is whole all the same.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The model or the network.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The session's log could not be written.
    #[error(
        "the session could not be saved: {0}. Free some space or check the directory's rights, then ask again; --no-session saves nothing"
    )]
    Store(String),
}

impl From<std::io::Error> for TurnError {
    fn from(error: std::io::Error) -> Self {
        Self::Store(error.to_string())
    }
}

/// Where a turn tells its events.
#[derive(Debug, Clone)]
pub struct Events(mpsc::Sender<Stamped>);

impl Events {
    /// A bounded stream of events and its other end: whoever does not read holds the turn up, and no memory grows.
    pub fn channel() -> (Self, mpsc::Receiver<Stamped>) {
        let (sender, receiver) = mpsc::channel(64);
        (Self(sender), receiver)
    }

    pub(crate) async fn send(&self, stamped: Stamped) {
        // Whoever watched went away: the turn goes on, its log is complete.
        let _ = self.0.send(stamped).await;
    }
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The calls are answered; the model wants another request.
    Again,
    /// The turn is over.
    Ended(Ending),
}

/// A turn, to be driven step by step. [`start`] drives it for you.
pub struct Turn<'a> {
    agent: Agent,
    session: &'a mut Session,
    events: &'a Events,
    stop: CancellationToken,
    /// Fires with `stop`, and when the turn ends otherwise: no sub-agent outlives it.
    children: CancellationToken,
    /// Tokens of the system prompt and the tools.
    fixed: u64,
    /// Which model is asked: the agent's own, then those that it falls back to.
    model: usize,
    /// A summary has failed in this turn.
    summary_failed: bool,
    repeats: Repeats,
    requests: u64,
    refused: Option<String>,
}

impl<'a> Turn<'a> {
    /// Begins a turn: what came in since the last one and the prompt go into the session.
    ///
    /// # Errors
    /// The session's log could not be written.
    pub async fn begin(
        agent: Agent,
        session: &'a mut Session,
        prompt: Prompt,
        events: &'a Events,
        stop: CancellationToken,
    ) -> Result<Self, TurnError> {
        session.answer_open_calls(events).await?;
        session.take_news(events).await?;
        let message = Message::User(prompt.parts.clone());
        session.begin_request();
        session.tell_with(events, Event::Prompt(prompt), message).await?;
        Ok(Self::new(agent, session, events, stop))
    }

    /// Begins a turn of its own on what came in since the last one; none where nothing did.
    ///
    /// # Errors
    /// The session's log could not be written.
    pub async fn begin_on_news(
        agent: Agent,
        session: &'a mut Session,
        events: &'a Events,
        stop: CancellationToken,
    ) -> Result<Option<Self>, TurnError> {
        session.begin_request();
        session.answer_open_calls(events).await?;
        let any = session.take_news(events).await?;
        Ok(any.then(|| Self::new(agent, session, events, stop)))
    }

    fn new(agent: Agent, session: &'a mut Session, events: &'a Events, stop: CancellationToken) -> Self {
        let fixed = tokens_of(session.prompt(&agent).len()) + of_tools(agent.tools.declarations());
        Self {
            children: stop.child_token(),
            agent,
            session,
            events,
            stop,
            fixed,
            model: 0,
            summary_failed: false,
            repeats: Repeats::default(),
            requests: 0,
            refused: None,
        }
    }

    /// Makes one request and answers its calls.
    ///
    /// # Errors
    /// The request failed for good, or the session's log could not be written.
    pub async fn step(&mut self) -> Result<Step, TurnError> {
        if self.requests >= self.agent.limits.max_turns {
            return Ok(Step::Ended(Ending::Limit(Limit::Turns(self.requests))));
        }
        if self.over_budget() {
            return Ok(Step::Ended(Ending::Limit(Limit::Cost)));
        }
        self.requests += 1;
        self.session.take_news(self.events).await?;
        compact::before_request(self).await?;
        let Some(reply) = ask::ask(self).await? else {
            return Ok(Step::Ended(Ending::Cancelled));
        };
        match reply.stop {
            Stop::MaxTokens => return Ok(Step::Ended(Ending::Truncated)),
            Stop::Refused => return Ok(Step::Ended(Ending::Refused)),
            Stop::End => {}
        }
        if reply.calls.is_empty() {
            return self.rest().await;
        }
        let times = tools::answer(self, &reply.calls).await?;
        Ok(self.after_calls(times))
    }

    /// The model has no more to call: the turn is over, unless something is still to come that it waits for.
    async fn rest(&mut self) -> Result<Step, TurnError> {
        let stop = self.stop.clone();
        loop {
            if self.session.take_news(self.events).await? {
                return Ok(Step::Again);
            }
            if !self.session.awaits() {
                return Ok(Step::Ended(self.refused.take().map_or(Ending::Done, Ending::Blocked)));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(Step::Ended(Ending::Cancelled)),
                () = self.session.news() => {}
            }
        }
    }

    /// Whether the session and its sub-agents have cost what they may.
    fn over_budget(&self) -> bool {
        self.agent.limits.max_cost.is_some_and(|most| self.session.budget().reaches(most))
    }

    /// The model that is asked.
    fn provider(&self) -> &Arc<dyn Provider> {
        let others = self.model.checked_sub(1).and_then(|at| self.agent.fallbacks.get(at));
        others.unwrap_or(&self.agent.provider)
    }

    /// Goes on with the next model where a failure may be this one's alone.
    async fn fall_back(&mut self, error: ProviderError) -> Result<(), TurnError> {
        let next = self.agent.fallbacks.get(self.model).filter(|_| error.retryable());
        let Some(name) = next.map(|provider| provider.model().name.clone()) else { return Err(error.into()) };
        self.model += 1;
        let reason = error.to_string();
        self.notice(Notice::Text(format!("{}; going on with {name}", reason.trim_end_matches('.')))).await
    }

    /// Counts a request.
    fn spend(&mut self, usage: Usage, on: SpentOn) -> UsageReport {
        let prices = self.provider().model().prices;
        self.session.spend(usage, prices.as_ref(), on);
        self.session.usage()
    }

    /// Roughly how many tokens the next request begins with.
    fn used(&self) -> u64 {
        self.session.used(self.fixed)
    }

    /// What the decision about a summary goes by.
    fn course(&self) -> Course {
        let model = self.provider().model();
        let report = self.session.usage();
        let sent = report.total;
        Course {
            turns: self.session.turns().len() as u64,
            requests: report.requests,
            sent: sent.input_tokens + sent.cache_read_input_tokens + sent.cache_creation_input_tokens,
            compactions: report.compactions,
            ..Course::new(model.prices, model.context, self.fixed)
        }
    }

    fn after_calls(&self, times: u32) -> Step {
        let limit = self.agent.limits.loop_limit;
        if self.stop.is_cancelled() {
            Step::Ended(Ending::Cancelled)
        } else if limit > 0 && times >= limit {
            Step::Ended(Ending::Limit(Limit::Loop(times)))
        } else {
            Step::Again
        }
    }

    async fn run(&mut self) -> Result<Ending, TurnError> {
        let ended = self.all_steps().await;
        self.children.cancel();
        self.session.settle().await;
        ended
    }

    async fn all_steps(&mut self) -> Result<Ending, TurnError> {
        loop {
            if let Step::Ended(ending) = self.step().await? {
                return Ok(ending);
            }
        }
    }

    async fn only_compact(&mut self) -> Result<Ending, TurnError> {
        if let Err(why) = compact::wanted(self, Trigger::Manual).await? {
            let told = format!("the context was not compacted, everything is still there: {why}");
            self.notice(Notice::Text(told)).await?;
        }
        Ok(if self.stop.is_cancelled() { Ending::Cancelled } else { Ending::Done })
    }

    async fn tell(&mut self, event: Event) -> Result<(), TurnError> {
        self.session.tell(self.events, event).await
    }

    async fn notice(&mut self, notice: Notice) -> Result<(), TurnError> {
        self.tell(Event::Notice(notice)).await
    }
}

/// Starts a turn. Read [`Running::next`] until it is over; nothing happens otherwise.
pub fn start(agent: Agent, session: &mut Session, prompt: Prompt, stop: CancellationToken) -> Running<'_> {
    running(agent, session, Work::Prompt(prompt), stop)
}

/// Starts a turn on what [`Session::news`] waits for, without a prompt. It has a budget of requests of its own, and makes
/// none where there is no news.
pub fn start_on_news(agent: Agent, session: &mut Session, stop: CancellationToken) -> Running<'_> {
    running(agent, session, Work::News, stop)
}

/// Starts a compaction that a person asks for: a turn that only summarises. Where that fails nothing is changed, and a
/// notice says why.
pub fn start_compacting(agent: Agent, session: &mut Session, stop: CancellationToken) -> Running<'_> {
    running(agent, session, Work::Compact, stop)
}

/// What a turn is for.
enum Work {
    Prompt(Prompt),
    News,
    Compact,
}

impl Work {
    async fn run(
        self,
        agent: Agent,
        session: &mut Session,
        events: &Events,
        stop: CancellationToken,
    ) -> Result<Ending, TurnError> {
        match self {
            Self::Prompt(prompt) => Turn::begin(agent, session, prompt, events, stop).await?.run().await,
            Self::News => match Turn::begin_on_news(agent, session, events, stop).await? {
                Some(mut turn) => turn.run().await,
                None => Ok(Ending::Done),
            },
            Self::Compact => {
                session.answer_open_calls(events).await?;
                Turn::new(agent, session, events, stop).only_compact().await
            }
        }
    }
}

fn running(agent: Agent, session: &mut Session, work: Work, stop: CancellationToken) -> Running<'_> {
    let (events, receiver) = Events::channel();
    let turn = async move {
        let ended = work.run(agent, session, &events, stop).await;
        // Where even this cannot be written, the event still reaches whoever watches.
        session.end(&events, ended).await;
    };
    Running { turn: Some(Box::pin(turn)), events: receiver }
}

/// A turn that runs while its events are read. To cancel it, fire `stop` and read on to [`Event::Ended`]; dropping it
/// stops at once, and the next turn first answers the calls that were left open.
pub struct Running<'a> {
    turn: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
    events: mpsc::Receiver<Stamped>,
}

impl Running<'_> {
    /// The next event; none after [`Event::Ended`].
    pub async fn next(&mut self) -> Option<Stamped> {
        while let Some(turn) = &mut self.turn {
            tokio::select! {
                biased;
                event = self.events.recv() => return event,
                () = turn => self.turn = None,
            }
        }
        // Not waited for: a question of a sub-agent that is just ending may still hold the other end.
        self.events.try_recv().ok()
    }
}
