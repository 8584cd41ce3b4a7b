//! The calls of a reply: what only reads runs at the same time, changes one by one, results in the order of the calls.

use std::sync::Arc;
use std::time::Duration;

use agent_tools::policy::Mode;
use agent_tools::{
    Answer, Call, CallKind, Change, Host, Opened, Outline, Status, ToolContext, ToolError, ToolOutput, Tools,
};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::repeats::{TOLD_FROM, told};
use super::{Turn, TurnError};
use crate::event::{Ask, Decision, Event, Notice};
use crate::message::{CallResult, Message};

/// Answers all calls, and puts the results into the session. Says how often the last call was made in a row.
pub(super) async fn answer(turn: &mut Turn<'_>, calls: &[Arc<Call>]) -> Result<u32, TurnError> {
    let (host, mut ups) = TurnHost::new(turn);
    let cx = turn.session.context(&turn.agent, Arc::new(host));
    let tools = turn.agent.tools.clone();
    let mut opened = Vec::with_capacity(calls.len());
    for call in calls {
        opened.push(open(turn, &tools, call, &cx).await?);
    }
    let mut answers = Answers { results: Vec::with_capacity(calls.len()), times: 0, all: calls.len() };
    let mut opened = opened.into_iter().peekable();
    while opened.peek().is_some() {
        let mut batch = vec![];
        while let Some(next) =
            opened.next_if(|next| batch.is_empty() || next.only_reads() && batch.iter().all(Open::only_reads))
        {
            batch.push(next);
        }
        run(turn, batch, &cx, &mut ups, &mut answers).await?;
    }
    Ok(answers.times)
}

/// A call after it was opened: one that could not be is its own answer.
struct Open<'t> {
    call: Arc<Call>,
    outline: Arc<Outline>,
    arguments: String,
    found: Result<Opened<'t>, Box<ToolOutput>>,
}

impl Open<'_> {
    fn only_reads(&self) -> bool {
        self.found.as_ref().map_or(true, Opened::only_reads)
    }
}

async fn open<'t>(
    turn: &mut Turn<'_>,
    tools: &'t Tools,
    call: &'t Arc<Call>,
    cx: &ToolContext,
) -> Result<Open<'t>, TurnError> {
    let found = tools.open(call, cx);
    let (outline, arguments) = match &found {
        Ok(opened) => (opened.outline().clone(), opened.arguments().to_owned()),
        Err(_) => (Outline::new(CallKind::Other, call.name.clone()), call.arguments.clone()),
    };
    let outline = Arc::new(outline);
    turn.tell(Event::Called { call: call.clone(), outline: outline.clone() }).await?;
    Ok(Open { call: call.clone(), outline, arguments, found })
}

/// The results so far.
struct Answers {
    results: Vec<CallResult>,
    times: u32,
    all: usize,
}

/// A call that was answered.
struct Answered {
    call: Arc<Call>,
    kind: CallKind,
    arguments: String,
    output: ToolOutput,
}

/// How long a cancelled call may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Runs these calls at the same time and serves what they ask and tell.
async fn run(
    turn: &mut Turn<'_>,
    batch: Vec<Open<'_>>,
    cx: &ToolContext,
    ups: &mut mpsc::UnboundedReceiver<Up>,
    answers: &mut Answers,
) -> Result<(), TurnError> {
    let waiting: Vec<(Arc<Call>, CallKind)> = batch.iter().map(|o| (o.call.clone(), o.outline.kind)).collect();
    let mut running: FuturesOrdered<_> = batch.into_iter().map(|open| finish(open, cx)).collect();
    let first = answers.results.len();
    let stop = turn.stop.clone();
    let mut deadline = None;
    while answers.results.len() - first < waiting.len() {
        tokio::select! {
            biased;
            Some(up) = ups.recv() => serve(turn, up).await?,
            Some(answered) = running.next() => {
                // What the call told before it ended comes first.
                while let Ok(up) = ups.try_recv() {
                    serve(turn, up).await?;
                }
                record(turn, answers, answered).await?;
            }
            () = stop.cancelled(), if deadline.is_none() => deadline = Some(Instant::now() + GRACE),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
        }
    }
    drop(running);
    for (call, kind) in &waiting[answers.results.len() - first..] {
        let (call, kind) = (call.clone(), *kind);
        record(turn, answers, Answered { call, kind, arguments: String::new(), output: cancelled() }).await?;
    }
    Ok(())
}

fn cancelled() -> ToolOutput {
    ToolOutput::new(Status::Failed, "[cancelled by the user]")
}

async fn finish(open: Open<'_>, cx: &ToolContext) -> Answered {
    let kind = open.outline.kind;
    let output = match open.found {
        Err(answer) => *answer,
        Ok(opened) if only_starts(cx).await => opened.finish(cx).await,
        Ok(_) => cancelled(),
    };
    Answered { call: open.call, kind, arguments: open.arguments, output }
}

/// Whether the turn still goes on: a call that has not begun when it is cancelled does not begin.
async fn only_starts(cx: &ToolContext) -> bool {
    tokio::select! {
        biased;
        () = cx.host.cancelled() => false,
        () = std::future::ready(()) => true,
    }
}

/// Notes a result; with the last one the message of all results goes into the session.
async fn record(turn: &mut Turn<'_>, answers: &mut Answers, answered: Answered) -> Result<(), TurnError> {
    let Answered { call, kind, arguments, mut output } = answered;
    answers.times = turn.repeats.note(&call.name, &arguments, &output.text());
    if answers.times >= TOLD_FROM {
        output.append_line(&told(&call.name, answers.times));
    }
    turn.refused = refusal(&output, turn.session.attended);
    turn.session.changed(&output);
    answers.results.push(CallResult {
        id: call.id.clone(),
        name: call.name.clone(),
        failed: output.status != Status::Ok,
        parts: output.parts.clone(),
    });
    let finished = Event::Finished { call: call.clone(), kind, output: Arc::new(output) };
    if answers.results.len() == answers.all {
        let results = Message::Results(answers.results.clone());
        turn.session.tell_with(turn.events, finished, results).await?;
    } else {
        turn.tell(finished).await?;
    }
    if answers.times >= TOLD_FROM {
        turn.notice(Notice::Repeated { name: call.name.clone(), times: answers.times }).await?;
    }
    Ok(())
}

/// The text of a call that a policy blocked, or that was rejected because nobody was there to ask.
fn refusal(output: &ToolOutput, attended: bool) -> Option<String> {
    match output.status {
        Status::Blocked => Some(output.text()),
        Status::Rejected => (!attended).then(|| output.text()),
        Status::Ok | Status::Failed => None,
    }
}

/// What a running call tells and asks the loop, which alone has the session.
enum Up {
    Granted { outline: Arc<Outline>, reply: oneshot::Sender<bool> },
    Ask(Ask),
    Answered { call: Arc<Call>, outline: Arc<Outline>, decision: Decision },
    Started { id: String, done: oneshot::Sender<()> },
    Output { id: String, tail: String },
}

async fn serve(turn: &mut Turn<'_>, up: Up) -> Result<(), TurnError> {
    match up {
        Up::Granted { outline, reply } => {
            let _ = reply.send(turn.session.granted(&outline.needs.grants));
            Ok(())
        }
        Up::Ask(ask) => turn.tell(Event::Ask(ask)).await,
        Up::Answered { call, outline, decision } => decided(turn, call, outline, decision).await,
        Up::Started { id, done } => {
            turn.tell(Event::Started { id }).await?;
            let _ = done.send(());
            Ok(())
        }
        Up::Output { id, tail } => turn.tell(Event::Output { id, tail }).await,
    }
}

async fn decided(
    turn: &mut Turn<'_>,
    call: Arc<Call>,
    outline: Arc<Outline>,
    decision: Decision,
) -> Result<(), TurnError> {
    if decision == Decision::Person(Answer::Session) {
        turn.session.grant(&outline.needs.grants);
    }
    let allowed: Mode = turn.agent.policy.ceiling();
    turn.notice(Notice::Permission { call, outline, allowed, decision }).await
}

/// The host of the calls of a turn: everything goes up to the loop.
struct TurnHost {
    // A channel, because calls run beside each other and only the loop has the session. Unbounded, but each call has at
    // most one question and one start in it, and output comes a few times a second.
    up: mpsc::UnboundedSender<Up>,
    stop: CancellationToken,
    attended: bool,
}

impl TurnHost {
    fn new(turn: &Turn<'_>) -> (Self, mpsc::UnboundedReceiver<Up>) {
        let (up, ups) = mpsc::unbounded_channel();
        (Self { up, stop: turn.stop.clone(), attended: turn.session.attended }, ups)
    }

    async fn granted(&self, outline: &Arc<Outline>) -> Option<bool> {
        let (reply, granted) = oneshot::channel();
        self.up.send(Up::Granted { outline: outline.clone(), reply }).ok()?;
        granted.await.ok()
    }
}

#[async_trait]
impl Host for TurnHost {
    fn attended(&self) -> bool {
        self.attended
    }

    async fn ask(&self, call: &Call, outline: &Outline, why: &str, change: Option<&Change>) -> Answer {
        let (call, outline) = (Arc::new(call.clone()), Arc::new(outline.clone()));
        let asked = async {
            if self.granted(&outline).await? {
                return Some(Decision::Granted);
            }
            let (reply, answer) = oneshot::channel();
            let change = change.cloned().map(Arc::new);
            let ask = Ask { call: call.clone(), outline: outline.clone(), why: why.to_owned(), change, reply };
            self.up.send(Up::Ask(ask)).ok()?;
            answer.await.ok().map(Decision::Person)
        };
        let decision = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            decision = asked => decision,
        }
        .unwrap_or(Decision::Unanswered);
        let _ = self.up.send(Up::Answered { call, outline, decision });
        match decision {
            Decision::Person(answer) => answer,
            Decision::Granted => Answer::Once,
            Decision::Unanswered => Answer::Reject,
        }
    }

    async fn started(&self, call: &Call, _change: Option<&Change>) -> Result<(), ToolError> {
        let (done, told) = oneshot::channel();
        let _ = self.up.send(Up::Started { id: call.id.clone(), done });
        told.await.map_err(|_| ToolError::new("the session ended before the call began"))
    }

    fn progress(&self, call: &Call, tail: &str) {
        let _ = self.up.send(Up::Output { id: call.id.clone(), tail: tail.to_owned() });
    }

    async fn cancelled(&self) {
        self.stop.cancelled().await;
    }
}
