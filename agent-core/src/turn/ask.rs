//! One request: deltas become events and a reply; what fails for a while is tried again.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use agent_tools::{Call, Declaration};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Turn, TurnError};
use crate::event::{Event, Notice};
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
    let mut attempt = 0;
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
            Some(Err(Failure::Provider(error))) => {
                attempt += 1;
                let Some(delay) = pause(&error, attempt) else { return Err(error.into()) };
                let retry = Notice::Retry { attempt, delay, reason: error.to_string() };
                turn.notice(retry).await?;
                tokio::select! {
                    () = stop.cancelled() => return Ok(None),
                    () = sleep(delay) => {}
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
    agent.provider.reply(request).await
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

fn cut() -> ProviderError {
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
    turn.session.spend(partial.usage);
    let report = Event::Usage(turn.session.usage());
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

/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(120);

/// How long to wait before trying again; none where that is of no use. `attempt` counts the failures so far.
fn pause(error: &ProviderError, attempt: u32) -> Option<Duration> {
    let tries = match error.kind {
        ErrorKind::RateLimited | ErrorKind::Server => 6,
        ErrorKind::Cut | ErrorKind::Idle | ErrorKind::Network => 4,
        ErrorKind::Auth | ErrorKind::NotFound | ErrorKind::TooLong | ErrorKind::Invalid => return None,
    };
    if attempt >= tries {
        return None;
    }
    match error.retry_after {
        Some(wanted) if wanted > LONGEST => None,
        Some(wanted) => Some(wanted + jitter(Duration::from_millis(250))),
        None => {
            let doubled = Duration::from_millis(250) * 2u32.pow(attempt.min(6));
            Some(doubled + jitter(doubled / 2))
        }
    }
}

/// A random part of this: so that many agents do not come back at the same instant.
fn jitter(most: Duration) -> Duration {
    let random = RandomState::new().hash_one(0u8) % 1024;
    most * u32::try_from(random).unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_honour_the_server_and_end() {
        let error = |kind, after| {
            let mut error = ProviderError::new(kind, "x");
            error.retry_after = after;
            error
        };
        let seconds = Duration::from_secs;
        for (error, attempt, least, most) in [
            (error(ErrorKind::Server, None), 1, 500, 750),
            (error(ErrorKind::Server, None), 3, 2000, 3000),
            (error(ErrorKind::RateLimited, Some(seconds(2))), 1, 2000, 2250),
        ] {
            let pause = pause(&error, attempt).unwrap().as_millis();
            assert!((least..=most).contains(&pause), "{error:?} {attempt} {pause}");
        }
        assert_eq!(pause(&error(ErrorKind::Auth, None), 1), None);
        assert_eq!(pause(&error(ErrorKind::Server, None), 6), None);
        assert_eq!(pause(&error(ErrorKind::RateLimited, Some(seconds(3600))), 1), None);
    }
}
