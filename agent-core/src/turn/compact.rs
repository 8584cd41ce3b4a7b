//! Compaction: a summary takes the place of the older part of the conversation, where it is a good one.

use std::borrow::Cow;

use agent_tools::builtin::own_files;
use agent_tools::text::Cut;
use agent_tools::{Declaration, Part};
use futures_util::StreamExt;

use super::ask::cut;
use super::retry::Tries;
use super::{Turn, TurnError};
use crate::context::{Line, due, estimate, necessary};
use crate::event::{Compacted, Event, Notice, SpentOn, Trigger};
use crate::message::{CallResult, Message};
use crate::provider::{Delta, ErrorKind, ProviderError, Request, Stop, Usage};

/// How long the results may be, in bytes, in a request for a summary that was too long before: from try to try less.
const SHORTER: [Option<usize>; 3] = [None, Some(4000), Some(400)];

/// Compacts before a request, where it pays or the context is nearly full. Where the summary fails the turn goes on as
/// it is, and does not try again.
pub(super) async fn before_request(turn: &mut Turn<'_>) -> Result<(), TurnError> {
    if turn.summary_failed {
        return Ok(());
    }
    let (lines, course) = (lines(turn), turn.course());
    let Some(kept) = due(&lines, turn.used(), turn.agent.limits.compact, &course) else { return Ok(()) };
    if let Err(why) = compact(turn, Trigger::Auto, kept).await? {
        turn.summary_failed = true;
        let told = format!("the context was not compacted, everything is still there: {why}");
        turn.notice(Notice::Text(told)).await?;
    }
    Ok(())
}

/// Compacts because a server refused the conversation as too long.
///
/// # Errors
/// The server's, where there is no summary to go on with.
pub(super) async fn too_long(turn: &mut Turn<'_>, error: ProviderError) -> Result<(), TurnError> {
    let kept = necessary(&lines(turn));
    match compact(turn, Trigger::TooLong, kept).await? {
        Ok(()) => Ok(()),
        Err(why) => {
            let message = format!("{error}. A summary to go on with failed: {why}");
            Err(ProviderError::new(ErrorKind::TooLong, message).into())
        }
    }
}

/// Compacts because somebody wants it.
pub(super) async fn wanted(turn: &mut Turn<'_>, trigger: Trigger) -> Result<Result<(), String>, TurnError> {
    let lines = lines(turn);
    // Calls that are not answered yet stay with those that are.
    let open = turn.session.messages().last().is_some_and(|last| last.calls().next().is_some());
    let kept = necessary(&lines).max(usize::from(open));
    compact(turn, trigger, kept).await
}

fn lines(turn: &Turn<'_>) -> Vec<Line> {
    turn.session.messages().iter().map(Line::of).collect()
}

/// Puts a summary in the place of all but the last `kept` messages; else says why not, and leaves them as they are.
async fn compact(turn: &mut Turn<'_>, trigger: Trigger, kept: usize) -> Result<Result<(), String>, TurnError> {
    let messages = turn.session.messages();
    let (old, rest) = messages.split_at(messages.len().saturating_sub(kept));
    if !old.iter().any(|message| matches!(message, Message::Assistant(_))) {
        // A plan that is the first thing in its conversation needs no shorter one.
        let fine = matches!(trigger, Trigger::PlanConfirm | Trigger::PlanClear);
        return Ok(if fine { Ok(()) } else { Err("there is nothing to summarise".into()) });
    }
    let before = turn.used();
    let (old_size, rest_size) = (old.iter().map(estimate).sum::<u64>(), rest.iter().map(estimate).sum::<u64>());
    let carried = !rest.iter().any(|message| matches!(message, Message::User(_)));
    let old = old.to_vec();
    let summary = match summarise(turn, &old).await? {
        Ok(summary) => summary,
        Err(why) => return Ok(Err(why)),
    };
    let request = (carried && trigger != Trigger::Manual).then_some(turn.session.request());
    let content = content(&summary, turn.session, request.unwrap_or_default());
    let size = estimate(&Message::User(content.clone()));
    if trigger == Trigger::Auto && size >= old_size {
        return Ok(Err("the summary is no shorter than what it is of".into()));
    }
    own_files::keep_summary(&summary, &turn.session.place).await;
    let after = turn.fixed + size + rest_size;
    let compacted = Compacted { trigger, content: content.into(), kept, before, after };
    turn.session.compact(turn.events, compacted).await.map(Ok)
}

/// What the conversation begins with from now on: the summary, the open todos and the request under way, these two word
/// for word.
fn content(summary: &str, session: &crate::session::Session, request: &[Part]) -> Vec<Part> {
    let mut text = format!("<context-snapshot>\n{}\n</context-snapshot>", summary.trim());
    if let Some(todos) = own_files::open_todos(&session.place) {
        text.push_str(&format!("\n\n<todos>\n{}\n</todos>", todos.trim()));
    }
    if request.is_empty() {
        return vec![Part::text(text)];
    }
    text.push_str("\n\nWhat came before is summarised above. The request that is being worked on, word for word:\n\n");
    let end = Part::text("\n\n(Go on with it from where the summary ends.)");
    [Part::text(text)].into_iter().chain(request.iter().cloned()).chain([end]).collect()
}

/// Asks for a summary; a reason where there is none to go on with.
async fn summarise(turn: &mut Turn<'_>, old: &[Message]) -> Result<Result<String, String>, TurnError> {
    let mut why = String::new();
    for limit in SHORTER {
        let mut messages: Vec<Message> = old.iter().map(|message| shortened(message, limit).into_owned()).collect();
        messages.push(Message::user(include_str!("../prompt/summary.md").trim()));
        match ask(turn, &messages).await? {
            Ok(text) => return Ok(Ok(text)),
            Err(Failed::TooLong(error)) => why = error,
            Err(Failed::Otherwise(error)) => return Ok(Err(error)),
        }
    }
    Ok(Err(why))
}

enum Failed {
    TooLong(String),
    Otherwise(String),
}

/// A message whose results have at most `limit` bytes each.
fn shortened(message: &Message, limit: Option<usize>) -> Cow<'_, Message> {
    let (Message::Results(results), Some(limit)) = (message, limit) else { return Cow::Borrowed(message) };
    let short = |result: &CallResult| {
        let text = Cut::HeadTailBytes(limit).told(result.text());
        CallResult { parts: vec![Part::text(text)], ..result.clone() }
    };
    Cow::Owned(Message::Results(results.iter().map(short).collect()))
}

/// One request for a summary, made again where it fails for a while.
async fn ask(turn: &mut Turn<'_>, messages: &[Message]) -> Result<Result<String, Failed>, TurnError> {
    let otherwise = |why: &str| Ok(Err(Failed::Otherwise(why.to_owned())));
    let mut tries = Tries::default();
    loop {
        let mut heard = Heard::default();
        let stop = turn.stop.clone();
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => return otherwise("it was cancelled"),
            outcome = receive(turn, messages, &mut heard) => outcome,
        };
        let error = match outcome {
            Ok(()) => break spent(turn, heard).await.map(Heard::summary),
            Err(error) => error,
        };
        match error.kind {
            ErrorKind::TooLong => return Ok(Err(Failed::TooLong(error.to_string()))),
            _ if !error.retryable() => return otherwise(&error.to_string()),
            _ => {}
        }
        match tries.again(turn, error).await {
            Ok(true) => {}
            Ok(false) => return otherwise("it was cancelled"),
            Err(TurnError::Provider(error)) => return otherwise(&error.to_string()),
            Err(error) => return Err(error),
        }
    }
}

/// What came of the answer.
#[derive(Default)]
struct Heard {
    text: String,
    usage: Usage,
    stop: Option<Stop>,
}

impl Heard {
    /// The summary, where it is a good one.
    fn summary(self) -> Result<String, Failed> {
        match self.stop {
            Some(Stop::MaxTokens) => {
                Err(Failed::Otherwise("the summary was cut at the size limit of an answer".into()))
            }
            Some(Stop::Refused) => Err(Failed::Otherwise("the model refused to summarise".into())),
            Some(Stop::End) | None if self.text.trim().is_empty() => {
                Err(Failed::Otherwise("the summary is empty".into()))
            }
            Some(Stop::End) | None => Ok(self.text),
        }
    }
}

async fn receive(turn: &Turn<'_>, messages: &[Message], heard: &mut Heard) -> Result<(), ProviderError> {
    let agent = &turn.agent;
    let declarations: Vec<&Declaration> = agent.tools.declarations().collect();
    let prompt = turn.session.prompt(agent);
    // The same beginning as that of the conversation: it is in the provider's cache.
    let mut request = Request::new(&prompt, messages, &declarations);
    request.max_tokens = agent.limits.max_tokens;
    let mut replies = turn.provider().reply(request).await?;
    while heard.stop.is_none() {
        match replies.next().await {
            None => return Err(cut()),
            Some(Err(error)) => return Err(error),
            Some(Ok(Delta::Text(text))) => heard.text.push_str(&text),
            Some(Ok(Delta::Usage(usage))) => heard.usage = usage,
            Some(Ok(Delta::Stop(stop))) => heard.stop = Some(stop),
            Some(Ok(Delta::Thinking(_) | Delta::Block(_))) => {}
        }
    }
    Ok(())
}

async fn spent(turn: &mut Turn<'_>, heard: Heard) -> Result<Heard, TurnError> {
    let report = turn.spend(heard.usage, SpentOn::Compact);
    turn.tell(Event::Usage(report)).await?;
    Ok(heard)
}
