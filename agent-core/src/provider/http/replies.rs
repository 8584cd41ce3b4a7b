//! Turns the body of an answer into deltas: bytes -> events -> whatever the provider's decoder makes of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use reqwest::Response;
use tokio::time::timeout;

use super::super::sse::{self, Event, Parser};
use super::super::{Block, Delta, ErrorKind, ProviderError, Stop};
use super::failure::{Asking, BODY_LIMIT};

/// How long a server may take to close an answer that is whole already.
const GRACE: Duration = Duration::from_secs(5);

/// How long we wait for the end of the body, so that the connection can be used again.
const LINGER: Duration = Duration::from_millis(20);

/// Understands the events of one form of interface.
pub(in super::super) trait Decode: Send + 'static {
    /// Reads an event.
    fn event(&mut self, event: Event<'_>, out: &mut Outbox) -> Result<(), ProviderError>;

    /// The stream has ended: hands out what is left, or tells why it is no whole answer.
    fn end(&mut self, out: &mut Outbox) -> Result<(), ProviderError>;

    /// Whether the answer is complete although its end was not marked yet.
    fn whole(&self) -> bool {
        false
    }
}

/// What was decoded and not yet handed on.
#[derive(Default)]
pub(in super::super) struct Outbox {
    ready: VecDeque<Delta>,
    stopped: bool,
}

impl Outbox {
    /// Words; joined to those that wait.
    pub(in super::super) fn text(&mut self, text: &str) {
        match self.ready.back_mut() {
            Some(Delta::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.ready.push_back(Delta::Text(text.to_owned())),
        }
    }

    /// Reasoning; joined to what waits.
    pub(in super::super) fn thinking(&mut self, text: &str) {
        match self.ready.back_mut() {
            Some(Delta::Thinking(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.ready.push_back(Delta::Thinking(text.to_owned())),
        }
    }

    pub(in super::super) fn block(&mut self, block: Block) {
        self.push(Delta::Block(block));
    }

    pub(in super::super) fn push(&mut self, delta: Delta) {
        self.ready.push_back(delta);
    }

    /// The end. What follows is not read.
    pub(in super::super) fn stop(&mut self, stop: Stop) {
        self.push(Delta::Stop(stop));
        self.stopped = true;
    }

    #[cfg(test)]
    pub(in super::super) fn drain(&mut self) -> impl Iterator<Item = Delta> {
        self.ready.drain(..)
    }
}

/// The deltas of an answer.
pub(super) fn read<D: Decode>(
    response: Response,
    idle: Duration,
    decoder: D,
    asking: Arc<Asking>,
) -> impl Stream<Item = Result<Delta, ProviderError>> + Send {
    let answer = Box::new(Answer {
        response,
        idle,
        parser: Parser::default(),
        form: Form::Unknown,
        decoder,
        out: Outbox::default(),
        phase: Phase::Reading,
        asking,
    });
    stream::unfold(answer, |mut answer| async move { answer.next().await.map(|item| (item, answer)) })
}

struct Answer<D> {
    response: Response,
    idle: Duration,
    parser: Parser,
    form: Form,
    decoder: D,
    out: Outbox,
    phase: Phase,
    asking: Arc<Asking>,
}

enum Phase {
    Reading,
    /// The answer is whole, its body perhaps not at its end.
    Done,
    Failed(ProviderError),
    Over,
}

/// What the body looks like, whatever its content type says.
enum Form {
    /// Nothing but blanks so far.
    Unknown,
    /// Events; the beginning is kept until the first one, for a message.
    Events(Vec<u8>),
    /// One JSON object: the server did not stream. Or a page.
    Text(Vec<u8>),
}

impl<D: Decode> Answer<D> {
    async fn next(&mut self) -> Option<Result<Delta, ProviderError>> {
        loop {
            if self.out.ready.len() == 1 && matches!(self.phase, Phase::Done) {
                self.linger().await;
            }
            if let Some(delta) = self.out.ready.pop_front() {
                return Some(Ok(delta));
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Reading => self.phase = self.advance().await.unwrap_or_else(Phase::Failed),
                Phase::Failed(error) => return Some(Err(error)),
                Phase::Done | Phase::Over => return None,
            }
        }
    }

    async fn advance(&mut self) -> Result<Phase, ProviderError> {
        let whole = self.decoder.whole();
        let patience = if whole { self.idle.min(GRACE) } else { self.idle };
        match timeout(patience, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => self.feed(&bytes)?,
            Ok(Ok(None)) => return self.finish().map(|()| Phase::Over),
            // How it ends does not matter any more.
            Ok(Err(_)) | Err(_) if whole => return self.decoder.end(&mut self.out).map(|()| Phase::Over),
            Ok(Err(error)) => return Err(self.asking.broken(&error)),
            Err(_) => return Err(self.asking.silent(self.idle)),
        }
        Ok(if self.out.stopped { Phase::Done } else { Phase::Reading })
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        if let Form::Unknown = self.form {
            self.form = match bytes.trim_ascii_start().first() {
                None => Form::Unknown,
                Some(b'{' | b'<') => Form::Text(Vec::new()),
                Some(_) => Form::Events(Vec::new()),
            };
        }
        match &mut self.form {
            Form::Text(text) => {
                text.extend_from_slice(bytes);
                let limit = if text.trim_ascii_start().starts_with(b"<") { BODY_LIMIT } else { sse::LIMIT };
                if text.len() > limit { self.text() } else { Ok(()) }
            }
            Form::Events(head) => {
                if self.parser.is_fresh() && head.len() < 1024 {
                    head.extend_from_slice(&bytes[..bytes.len().min(1024)]);
                }
                self.parse(Some(bytes))
            }
            Form::Unknown => Ok(()),
        }
    }

    /// Reads a piece, or what is left at the end.
    fn parse(&mut self, bytes: Option<&[u8]>) -> Result<(), ProviderError> {
        let Self { parser, decoder, out, asking, .. } = self;
        let mut result = Ok(());
        let mut sink = |event: Event<'_>| {
            if result.is_ok() && !out.stopped {
                result = decoder.event(event, out);
            }
        };
        let parsed = match bytes {
            Some(bytes) => parser.push(bytes, &mut sink),
            None => parser.finish(&mut sink),
        };
        result.and(parsed.map_err(|e| asking.error(ErrorKind::Invalid, &e.to_string())))
    }

    fn finish(&mut self) -> Result<(), ProviderError> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(self.asking.cut("the answer is empty")),
            Form::Text(text) => {
                self.form = Form::Text(text);
                self.text()?;
            }
            Form::Events(head) => {
                self.parse(None)?;
                if self.parser.is_fresh() {
                    return Err(self.asking.no_answer(&String::from_utf8_lossy(&head)));
                }
            }
        }
        if self.out.stopped { Ok(()) } else { self.decoder.end(&mut self.out) }
    }

    /// A body that is no stream: one JSON object with the whole answer or an error, or a page.
    fn text(&mut self) -> Result<(), ProviderError> {
        let Form::Text(text) = &self.form else { return Ok(()) };
        let text = String::from_utf8_lossy(text);
        if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_err() {
            return Err(self.asking.no_answer(&text));
        }
        self.decoder.event(Event { name: "", data: &text }, &mut self.out)
    }

    /// Reads to the end of the body where that is at hand: a connection that is dropped before cannot be used again.
    async fn linger(&mut self) {
        self.phase = Phase::Over;
        // Nothing is lost with what goes wrong here: the answer is whole.
        let _ = timeout(LINGER, async { while let Ok(Some(_)) = self.response.chunk().await {} }).await;
    }
}

/// What a decoder makes of the data of events, in short form: for tests. `|` ends the stream.
#[cfg(test)]
pub(in super::super) fn played(mut decoder: impl Decode, events: &[&str]) -> String {
    let mut out = Outbox::default();
    for event in events {
        let result = match *event {
            "|" => decoder.end(&mut out),
            data => decoder.event(Event { name: "", data }, &mut out),
        };
        if let Err(e) = result {
            return format!("{:?}: {}", e.kind, e.message.rsplit("failed: ").next().unwrap_or_default());
        }
    }
    out.drain().map(|delta| shown(&delta)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
fn shown(delta: &Delta) -> String {
    match delta {
        Delta::Text(t) => format!("t:{t}"),
        Delta::Thinking(t) => format!("r:{t}"),
        Delta::Block(Block::Text { text }) => format!("[{text}]"),
        Delta::Block(Block::Call { call }) => format!("{}={}({})", call.id, call.name, call.arguments),
        Delta::Block(Block::Opaque { raw, .. }) => raw.get().to_owned(),
        Delta::Usage(u) => {
            let written = Some(u.cache_creation_input_tokens).filter(|n| *n > 0);
            let written = written.map(|n| format!("+{n}")).unwrap_or_default();
            format!("{}{written}+{}/{}", u.input_tokens, u.cache_read_input_tokens, u.output_tokens)
        }
        Delta::Stop(stop) => format!("{stop:?}"),
    }
}
