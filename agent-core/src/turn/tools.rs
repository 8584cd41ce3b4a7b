//! The calls of a reply: what only reads runs at the same time, changes one by one, results in the order of the calls.

use std::sync::Arc;
use std::time::Duration;

use agent_tools::builtin::own_files;
use agent_tools::policy::Mode;
use agent_tools::{
    Answer, Call, CallKind, Change, Compaction, Host, Note, Outline, Status, SubTask, ToolContext, ToolError,
    ToolOutput, Tools,
};
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::repeats::{TOLD_FROM, told};
use super::{Turn, TurnError, compact};
use crate::children::Child;
use crate::event::{Ask, Decision, Event, Notice, Trigger};
use crate::history::History;
use crate::inbox::News;
use crate::message::CallResult;

/// Answers all calls, and puts the results into the session. Says how often the last call was made in a row.
pub(super) async fn answer(turn: &mut Turn<'_>, calls: &[Arc<Call>]) -> Result<u32, TurnError> {
    let (host, mut ups) = TurnHost::new(turn);
    let cx = turn.session.context(&turn.agent, Arc::new(host));
    let tools = turn.agent.tools.clone();
    let mut announced = Vec::with_capacity(calls.len());
    for call in calls {
        announced.push(announce(turn, &tools, call, &cx).await?);
    }
    let mut announced = announced.into_iter().peekable();
    let mut times = 0;
    while let Some(first) = announced.next() {
        let mut batch = vec![first];
        while let Some(next) = announced.next_if(|next| next.only_reads && batch[0].only_reads) {
            batch.push(next);
        }
        cx.policy.planning(own_files::open_draft(&cx.place));
        let changes = !batch[0].only_reads;
        if changes {
            turn.session.synced().await?;
        }
        times = run(turn, &tools, batch, &cx, &mut ups, calls.len()).await?;
        if changes {
            turn.session.begin_sync();
        }
    }
    Ok(times)
}

/// A call that was told of and has not run yet.
struct Announced {
    call: Arc<Call>,
    kind: CallKind,
    arguments: String,
    only_reads: bool,
}

/// Tells of a call. It is opened once more when its turn comes: what earlier calls of the same answer did (a link that
/// was laid, say) counts when it is judged.
async fn announce(
    turn: &mut Turn<'_>,
    tools: &Tools,
    call: &Arc<Call>,
    cx: &ToolContext,
) -> Result<Announced, TurnError> {
    let (outline, arguments, only_reads) = match tools.open(call, cx) {
        Ok(opened) => (opened.outline().clone(), opened.arguments().to_owned(), opened.only_reads()),
        Err(_) => (Outline::new(CallKind::Other, call.name.clone()), call.arguments.clone(), true),
    };
    let kind = outline.kind;
    turn.tell(Event::Called { call: call.clone(), outline: Arc::new(outline) }).await?;
    Ok(Announced { call: call.clone(), kind, arguments, only_reads })
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

/// Runs these calls at the same time and serves what they ask and tell. `all`: how many calls the answer had.
async fn run(
    turn: &mut Turn<'_>,
    tools: &Tools,
    batch: Vec<Announced>,
    cx: &ToolContext,
    ups: &mut mpsc::UnboundedReceiver<Up>,
    all: usize,
) -> Result<u32, TurnError> {
    let waiting: Vec<(Arc<Call>, CallKind)> = batch.iter().map(|a| (a.call.clone(), a.kind)).collect();
    let mut running: FuturesOrdered<_> = batch.into_iter().map(|announced| finish(announced, tools, cx)).collect();
    let stop = turn.stop.clone();
    let (mut answered, mut times) = (0, 0);
    let mut deadline = None;
    while answered < waiting.len() {
        tokio::select! {
            biased;
            Some(up) = ups.recv() => serve(turn, up).await?,
            Some(result) = running.next() => {
                // What the call told before it ended comes first.
                while let Ok(up) = ups.try_recv() {
                    serve(turn, up).await?;
                }
                times = record(turn, result, all).await?;
                answered += 1;
            }
            () = stop.cancelled(), if deadline.is_none() => deadline = Some(Instant::now() + GRACE),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
        }
    }
    drop(running);
    for (call, kind) in waiting.into_iter().skip(answered) {
        times = record(turn, Answered { call, kind, arguments: String::new(), output: cancelled() }, all).await?;
    }
    Ok(times)
}

fn cancelled() -> ToolOutput {
    ToolOutput::new(Status::Failed, "[cancelled by the user]")
}

async fn finish(announced: Announced, tools: &Tools, cx: &ToolContext) -> Answered {
    let Announced { call, kind, arguments, .. } = announced;
    let output = match tools.open(&call, cx) {
        Err(answer) => *answer,
        Ok(opened) if goes_on(cx).await => opened.finish(cx).await,
        Ok(_) => cancelled(),
    };
    Answered { call, kind, arguments, output }
}

/// Whether the turn still goes on: a call that has not begun when it is cancelled does not begin.
async fn goes_on(cx: &ToolContext) -> bool {
    tokio::select! {
        biased;
        () = cx.host.cancelled() => false,
        () = std::future::ready(()) => true,
    }
}

/// Notes a result; the last one of `all` puts them into the conversation. Says how often the call was made in a row.
async fn record(turn: &mut Turn<'_>, answered: Answered, all: usize) -> Result<u32, TurnError> {
    let Answered { call, kind, arguments, mut output } = answered;
    let times = turn.repeats.note(&call.name, &arguments, &output.text());
    if times >= TOLD_FROM {
        output.append_line(&told(&call.name, times));
    }
    turn.refused = refusal(&output, turn.session.attended);
    turn.session.changed(&output).await;
    if kind == CallKind::Plan {
        turn.session.read_plan();
    }
    let result = CallResult {
        id: call.id.clone(),
        name: call.name.clone(),
        failed: output.status != Status::Ok,
        parts: output.parts.clone(),
    };
    let name = call.name.clone();
    let finished = Event::Finished { call, kind, output: Arc::new(output) };
    turn.session.answered(turn.events, finished, result, all).await?;
    if times >= TOLD_FROM {
        turn.notice(Notice::Repeated { name, times }).await?;
    }
    Ok(times)
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
    Delegate { task: SubTask, reply: oneshot::Sender<Result<String, ToolError>> },
    Compact { trigger: Trigger, reply: oneshot::Sender<Result<Compaction, ToolError>> },
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
        Up::Delegate { task, reply } => {
            let _ = reply.send(delegate(turn, task).await?);
            Ok(())
        }
        Up::Compact { trigger, reply } => {
            let failed =
                |why| ToolError::new(format!("the context could not be compacted, nothing was changed: {why}"));
            let done = compact::wanted(turn, trigger).await?;
            let _ = reply.send(done.map(|()| Compaction::Done).map_err(failed));
            Ok(())
        }
    }
}

/// Starts a sub-agent; the answer is what the model reads.
async fn delegate(turn: &mut Turn<'_>, task: SubTask) -> Result<Result<String, ToolError>, TurnError> {
    if turn.session.id.is_child() {
        return Ok(Err(ToolError::new("sub-agent recursion limit reached; child agents cannot launch SubAgent")));
    }
    if turn.agent.limits.max_sub_agents == 0 {
        return Ok(Err(ToolError::new("sub-agents are switched off (maxSubAgents: 0); do the work yourself")));
    }
    let session = turn.session.child(task.fork)?;
    let id = session.id.clone();
    turn.notice(Notice::ChildStarted { id: id.clone(), task: task.clone() }).await?;
    turn.session.start_child(Child {
        agent: turn.agent.clone(),
        session,
        task,
        stop: turn.children.child_token(),
        questions: turn.events.clone(),
        news: turn.session.news_sender(),
    });
    Ok(Ok(format!("Sub-agent started: session_id={id}")))
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
    news: mpsc::UnboundedSender<News>,
    attended: bool,
    history: Option<Arc<History>>,
}

impl TurnHost {
    fn new(turn: &Turn<'_>) -> (Self, mpsc::UnboundedReceiver<Up>) {
        let (up, ups) = mpsc::unbounded_channel();
        let (stop, news) = (turn.stop.clone(), turn.session.news_sender());
        let history = turn.session.history().cloned();
        (Self { up, stop, news, attended: turn.session.attended, history }, ups)
    }

    /// Keeps what a file holds before it is changed, so that a person can go back to it.
    async fn keep(&self, change: Option<&Change>) -> Result<(), ToolError> {
        let Some((history, change)) = self.history.as_ref().zip(change) else { return Ok(()) };
        let failed = |error| {
            ToolError::new(format!(
                "what the file holds now could not be kept for undoing, so nothing was changed: {error}"
            ))
        };
        history.keep(change).await.map_err(failed)
    }

    async fn is_granted(&self, outline: &Arc<Outline>) -> Option<bool> {
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

    async fn granted(&self, call: &Call, outline: &Outline) -> bool {
        let (call, outline) = (Arc::new(call.clone()), Arc::new(outline.clone()));
        let granted = self.is_granted(&outline).await.unwrap_or(false);
        if granted {
            let _ = self.up.send(Up::Answered { call, outline, decision: Decision::Granted });
        }
        granted
    }

    async fn ask(&self, call: &Call, outline: &Outline, why: &str, change: Option<&Change>) -> Answer {
        let (call, outline) = (Arc::new(call.clone()), Arc::new(outline.clone()));
        let asked = async {
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

    async fn started(&self, call: &Call, change: Option<&Change>) -> Result<(), ToolError> {
        self.keep(change).await?;
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

    async fn delegate(&self, task: SubTask) -> Result<String, ToolError> {
        let over = || ToolError::new("the session ended before the sub-agent began");
        let (reply, answer) = oneshot::channel();
        self.up.send(Up::Delegate { task, reply }).map_err(|_| over())?;
        answer.await.map_err(|_| over())?
    }

    async fn compact(&self, trigger: &'static str) -> Result<Compaction, ToolError> {
        let over = || ToolError::new("the session ended before the context was compacted");
        let trigger = if trigger == "plan_clear" { Trigger::PlanClear } else { Trigger::PlanConfirm };
        let (reply, done) = oneshot::channel();
        self.up.send(Up::Compact { trigger, reply }).map_err(|_| over())?;
        done.await.map_err(|_| over())?
    }

    fn note(&self, note: Note) {
        // Nobody is told any more where the session is gone.
        let _ = self.news.send(News::Note(note));
    }
}
