//! A provider that plays a script, for tests of those who embed this crate.
//!
//! It also watches: a request in which a call has no result, or more than one, is answered with an error that says so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_tools::Call;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;

use super::{Delta, Effort, ErrorKind, Model, Provider, ProviderError, Replies, Request, Stop, Usage};
use crate::message::{Block, Message};

/// One answer of the script.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These deltas.
    Deltas(Vec<Result<Delta, ProviderError>>),
    /// The request fails before its answer begins.
    Fails(ProviderError),
}

impl Answer {
    /// Words, and the end.
    pub fn text(text: &str) -> Self {
        Self::blocks([Block::text(text)])
    }

    /// Calls, and the end: ids, names and arguments.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        Self::blocks(calls.into_iter().map(|(id, name, arguments)| Block::call(Call::new(id, name, arguments))))
    }

    /// Blocks, and the end: what is text is told as a delta too, and each block costs ten tokens and one.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::stopped(blocks, Stop::End)
    }

    /// The same with another end.
    pub fn stopped(blocks: impl IntoIterator<Item = Block>, stop: Stop) -> Self {
        let mut deltas = Vec::new();
        let mut usage = Usage::default();
        for block in blocks {
            if let Block::Text { text } = &block {
                deltas.push(Ok(Delta::Text(text.clone())));
            }
            usage += Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
            deltas.push(Ok(Delta::Block(block)));
        }
        deltas.extend([Ok(Delta::Usage(usage)), Ok(Delta::Stop(stop))]);
        Self::Deltas(deltas)
    }

    /// An error before the answer begins.
    pub fn error(kind: ErrorKind, message: &str) -> Self {
        Self::Fails(ProviderError::new(kind, message))
    }

    /// Words, and then an error in the middle of the answer.
    pub fn broken(text: &str, kind: ErrorKind) -> Self {
        Self::Deltas(vec![Ok(Delta::Text(text.into())), Err(ProviderError::new(kind, "scripted to break off"))])
    }
}

/// A request as it was made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asked {
    /// The system prompt.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The limit of the answer.
    pub max_tokens: Option<u64>,
    /// How hard it was to think.
    pub effort: Option<Effort>,
}

/// A model that gives the answers of a script, one a request. Clones share script and record.
#[derive(Clone)]
pub struct Scripted {
    model: Model,
    // A lock, because requests of sub-agents come at the same time; held for a push or a pop only.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

impl Scripted {
    /// A model with this script.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let state = State { answers: answers.into_iter().collect(), asked: Vec::new() };
        Self { model: Model::new("scripted", "scripted"), state: Arc::new(Mutex::new(state)) }
    }

    /// Another model's name and limits.
    #[must_use]
    pub fn with_model(mut self, model: Model) -> Self {
        self.model = model;
        self
    }

    /// Adds an answer to the end of the script.
    pub fn push(&self, answer: Answer) {
        self.state().answers.push_back(answer);
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// How many answers are left.
    pub fn left(&self) -> usize {
        self.state().answers.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for Scripted {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let mut state = self.state();
        state.asked.push(Asked {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|t| t.name.clone()).collect(),
            max_tokens: request.max_tokens,
            effort: request.effort,
        });
        check(request.messages).map_err(|why| ProviderError::new(ErrorKind::Invalid, why))?;
        match state.answers.pop_front() {
            Some(Answer::Deltas(deltas)) => Ok(stream::iter(deltas).boxed()),
            Some(Answer::Fails(error)) => Err(error),
            None => Err(ProviderError::new(ErrorKind::Invalid, "the script has no answer for this request")),
        }
    }
}

/// Whether each call has exactly one result, in the message right after it, in the order of the calls, and whether no
/// answer is empty.
///
/// # Errors
/// What is wrong, and where.
pub fn check(messages: &[Message]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<&str> = message.calls().map(|c| c.id.as_str()).collect();
        let results = match messages.get(at + 1) {
            Some(Message::Results(results)) => results.iter().map(|r| r.id.as_str()).collect(),
            Some(Message::User(_) | Message::Assistant(_)) | None => Vec::new(),
        };
        match message {
            Message::Assistant(blocks) if blocks.is_empty() => return Err(format!("message {at} is an empty answer")),
            Message::Assistant(_) if calls != results => {
                return Err(format!("message {at} has the calls {calls:?}, and the results after it are {results:?}"));
            }
            Message::Results(_) if !matches!(at.checked_sub(1).map(|p| &messages[p]), Some(Message::Assistant(_))) => {
                return Err(format!("message {at} has results without an answer before it"));
            }
            Message::User(_) | Message::Assistant(_) | Message::Results(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;
    use crate::message::CallResult;

    fn answer(ids: &[&str]) -> Message {
        Message::Assistant(ids.iter().map(|id| Block::call(Call::new(*id, "x", "{}"))).collect())
    }

    fn results(ids: &[&str]) -> Message {
        let result = |id: &&str| CallResult { id: (*id).into(), name: "x".into(), failed: false, parts: vec![] };
        Message::Results(ids.iter().map(result).collect())
    }

    #[test]
    fn calls_without_exactly_one_result_are_found() {
        let user = || Message::user("go");
        for (messages, expect) in [
            (vec![user(), answer(&["a", "b"]), results(&["a", "b"]), user()], ""),
            (vec![user(), Message::Assistant(vec![Block::text("x")]), user()], ""),
            (vec![user(), answer(&["a"])], "message 1 has the calls"),
            (vec![user(), answer(&["a"]), user(), results(&["a"])], "message 1 has the calls"),
            (vec![user(), answer(&["a"]), results(&["a", "a"])], "message 1 has the calls"),
            (vec![user(), answer(&["a", "b"]), results(&["b", "a"])], "message 1 has the calls"),
            (vec![user(), Message::Assistant(vec![Block::text("x")]), results(&["a"])], "message 1 has the calls"),
            (vec![user(), results(&["a"])], "message 1 has results without"),
            (vec![user(), Message::Assistant(vec![])], "message 1 is an empty answer"),
        ] {
            let got = check(&messages).err().unwrap_or_default();
            assert!(if expect.is_empty() { got.is_empty() } else { got.starts_with(expect) }, "{got} / {expect}");
        }
    }

    #[tokio::test]
    async fn a_script_is_played_and_requests_are_kept() {
        let scripted = Scripted::new([
            Answer::text("hi"),
            Answer::error(ErrorKind::Server, "no"),
            Answer::broken("x", ErrorKind::Cut),
        ]);
        let messages = [Message::user("go")];
        let ask = || scripted.reply(Request::new("sys", &messages, &[]));
        let deltas: Vec<Delta> = ask().await.unwrap().try_collect().await.unwrap();
        assert!(
            matches!(&deltas[..], [Delta::Text(t), Delta::Block(_), Delta::Usage(_), Delta::Stop(Stop::End)] if t == "hi")
        );
        assert_eq!(ask().await.err().unwrap().kind, ErrorKind::Server);
        let broken = ask().await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(broken.err().unwrap().kind, ErrorKind::Cut);
        assert_eq!(ask().await.err().unwrap().message, "the script has no answer for this request");
        assert_eq!((scripted.asked().len(), scripted.asked()[0].system.as_str(), scripted.left()), (4, "sys", 0));
    }
}
