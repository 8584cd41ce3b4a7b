//! One request: deltas become events and a reply; what fails for a while is tried again.

use std::sync::Arc;
use std::time::Duration;

use agent_tools::{Call, Declaration};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until};

use super::retry::Tries;
use super::{Turn, TurnError, compact};
use crate::event::{Event, Notice, SpentOn};
use crate::message::{Block, Message};
use crate::provider::{Delta, ErrorKind, ProviderError, Replies, Request, Stop, Usage};

/// What the model said, whole.
pub(super) struct Reply {
    pub stop: Stop,
    pub calls: Vec<Arc<Call>>,
}

/// An answer as far as it has come.
#[derive(Default)]
struct Partial {
    blocks: Vec<Block>,
    text: String,
    usage: Usage,
    stop: Option<Stop>,
}

/// Asks the model; none where the turn was cancelled. What was said is in the session.
pub(super) async fn ask(turn: &mut Turn<'_>) -> Result<Option<Reply>, TurnError> {
    let (mut tries, mut shortened) = (Tries::default(), false);
    loop {
        let mut partial = Partial::default();
        let stop = turn.stop.clone();
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            outcome = receive(turn, &mut partial) => Some(outcome),
        };
        match outcome {
            None => return keep_interrupted(turn, partial).await.map(|()| None),
            Some(Ok(())) => return keep(turn, partial).await.map(Some),
            Some(Err(Failure::Store(error))) => return Err(error),
            Some(Err(Failure::Provider(error))) if error.kind == ErrorKind::TooLong && !shortened => {
                shortened = true;
                compact::too_long(turn, error).await?;
            }
            Some(Err(Failure::Provider(error))) => {
                if !tries.again(turn, error).await? {
                    return Ok(None);
                }
            }
        }
    }
}

enum Failure {
    Provider(ProviderError),
    Store(TurnError),
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<TurnError> for Failure {
    fn from(error: TurnError) -> Self {
        Self::Store(error)
    }
}

async fn receive(turn: &mut Turn<'_>, partial: &mut Partial) -> Result<(), Failure> {
    let mut replies = send(turn).await?;
    let mut joined = Joined::default();
    while partial.stop.is_none() {
        let delta = tokio::select! {
            biased;
            delta = replies.next() => delta,
            () = sleep_until(joined.due), if joined.waits() => {
                flush(turn, &mut joined).await?;
                continue;
            }
        };
        match delta {
            None => return Err(cut().into()),
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(delta)) => take(turn, partial, &mut joined, delta).await?,
        }
    }
    flush(turn, &mut joined).await?;
    Ok(())
}

async fn send(turn: &Turn<'_>) -> Result<Replies, ProviderError> {
    let agent = &turn.agent;
    let declarations: Vec<&Declaration> = agent.tools.declarations().collect();
    let prompt = turn.session.prompt(agent);
    let mut request = Request::new(&prompt, turn.session.messages(), &declarations);
    request.max_tokens = agent.limits.max_tokens;
    request.effort = agent.limits.effort;
    turn.provider().reply(request).await
}

async fn take(turn: &mut Turn<'_>, partial: &mut Partial, joined: &mut Joined, delta: Delta) -> Result<(), TurnError> {
    match delta {
        Delta::Text(text) => {
            partial.text.push_str(&text);
            join(turn, joined, Kind::Text, &text).await?;
        }
        Delta::Thinking(text) => join(turn, joined, Kind::Thinking, &text).await?,
        Delta::Block(block) => {
            if matches!(block, Block::Text { .. }) {
                partial.text.clear();
            }
            partial.blocks.push(block);
        }
        Delta::Usage(usage) => partial.usage = usage,
        Delta::Stop(stop) => partial.stop = Some(stop),
    }
    Ok(())
}

pub(super) fn cut() -> ProviderError {
    ProviderError::new(ErrorKind::Cut, "the model's answer broke off before its end")
}

/// Puts a whole answer into the session. Calls of an answer that was cut or refused are not run, so they are left out.
async fn keep(turn: &mut Turn<'_>, partial: Partial) -> Result<Reply, TurnError> {
    let stop = partial.stop.unwrap_or(Stop::End);
    let mut blocks = partial.blocks;
    blocks.retain(|block| match block {
        Block::Text { text } => !text.is_empty(),
        Block::Call { .. } => stop == Stop::End,
        Block::Opaque { .. } => true,
    });
    let calls = blocks.iter().filter_map(Block::as_call).cloned().collect();
    let said = blocks.iter().any(|block| !matches!(block, Block::Opaque { .. }));
    let report = Event::Usage(turn.spend(partial.usage, SpentOn::Agent));
    if said {
        turn.session.tell_with(turn.events, report, Message::Assistant(blocks)).await?;
    } else {
        turn.tell(report).await?;
    }
    Ok(Reply { stop, calls })
}

/// Keeps the words that a person has seen of an answer that was interrupted.
async fn keep_interrupted(turn: &mut Turn<'_>, partial: Partial) -> Result<(), TurnError> {
    let mut blocks: Vec<Block> = partial.blocks.into_iter().filter(|b| matches!(b, Block::Text { .. })).collect();
    if !partial.text.is_empty() {
        blocks.push(Block::text(partial.text));
    }
    if !blocks.is_empty() {
        let notice = Event::Notice(Notice::Text("interrupted; what was said so far is kept".into()));
        turn.session.tell_with(turn.events, notice, Message::Assistant(blocks)).await?;
    }
    Ok(())
}

/// Deltas are joined: the first is told at once, then at most this much or this long.
const JOINED_BYTES: usize = 4096;
const JOINED_TIME: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

struct Joined {
    kind: Kind,
    text: String,
    due: Instant,
}

impl Default for Joined {
    fn default() -> Self {
        Self { kind: Kind::Text, text: String::new(), due: Instant::now() }
    }
}

impl Joined {
    fn waits(&self) -> bool {
        !self.text.is_empty()
    }
}

async fn join(turn: &mut Turn<'_>, joined: &mut Joined, kind: Kind, text: &str) -> Result<(), TurnError> {
    if joined.kind != kind {
        flush(turn, joined).await?;
        joined.kind = kind;
    }
    joined.text.push_str(text);
    if joined.text.len() >= JOINED_BYTES || joined.due <= Instant::now() {
        flush(turn, joined).await?;
    }
    Ok(())
}

async fn flush(turn: &mut Turn<'_>, joined: &mut Joined) -> Result<(), TurnError> {
    joined.due = Instant::now() + JOINED_TIME;
    if joined.text.is_empty() {
        return Ok(());
    }
    let text = std::mem::take(&mut joined.text);
    turn.tell(match joined.kind {
        Kind::Text => Event::Text(text),
        Kind::Thinking => Event::Thinking(text),
    })
    .await
}
