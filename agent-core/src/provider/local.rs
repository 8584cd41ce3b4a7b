//! The embedded model: Qwen2.5-Coder-1.5B on this machine's processor, nothing leaves it.
//!
//! It has a protocol of its own, because it cannot use the tool format that its authors planned for it: one flat JSON
//! object a turn, shown by examples and held to by constrained decoding, so that a call is always well-formed. The
//! system prompt of a [`Request`] is meant for large models and is left out, instruction files with it; of the tools
//! those of the toolset `lean` are offered, others are not.
//!
//! How many threads it takes is the engine's choice: one a physical core. They wait for each other busily, so that on a
//! machine with other work to do one alone is faster: `RAYON_NUM_THREADS=1`, which the engine reads itself.

mod decode;
mod engine;
mod prefix;
mod protocol;
#[cfg(test)]
mod tests;
mod tokenizer;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use async_trait::async_trait;
use candle_core::quantized::gguf_file::Content;
use candle_core::{Error, Result};
use futures_util::stream;
use tokio::sync::mpsc;

use super::{Delta, ErrorKind, Model, Prices, Provider, ProviderError, Replies, Request, Stop, Usage};
use crate::message::{Block, Message};
use decode::{Bounds, Mind, Pen};
use engine::{Engine, Memory};
use prefix::Shelf;
use protocol::{Form, Offer, REPLY, Turn};
use tokenizer::Vocabulary;

/// The model's name.
pub const NAME: &str = "qwen2.5-coder-1.5b";
/// The SHA-256 of its weights, as published by its authors.
pub const SHA256: &str = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046";
/// The size of its weights in bytes.
pub const SIZE: u64 = 1_117_320_768;
/// Where its authors publish the weights.
pub const HUB: &str =
    "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
/// How many requests a prompt should take at most: what it has not done by then it does not do.
pub const MAX_STEPS: u64 = 6;
/// What a person should know before using it.
pub const LIMITS: &str = "The embedded model is Qwen2.5-Coder-1.5B (Apache-2.0, runs on this CPU, nothing leaves this machine). \
    It handles one-step requests: listing, reading, creating, replacing text, running a command. \
    It gets multi-step work wrong about 4 times in 10 and can be confidently wrong; it needs 3 GB of memory and 3-15 s a turn. \
    For real work set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama.";

/// How many tokens a request and its answer may have together.
const CONTEXT: usize = 4096;
/// How many of them are kept for the answer.
const KEPT: usize = 1024;
/// How many of those the model may choose itself; the others are the object around its words.
const ANSWER: usize = KEPT - 64;
/// How many tokens are read at a time: few enough to stop soon, enough to be fast.
const CHUNK: usize = 64;

/// The name of the weights' file in a cache of models.
pub fn file_name() -> String {
    format!("{SHA256}.gguf")
}

/// The embedded model as a provider. Cheap to make: the weights are read at the first request.
pub struct Local {
    model: Model,
    held: Arc<Held>,
}

/// What requests share.
struct Held {
    weights: PathBuf,
    shelf: Shelf,
    // A lock, because the memory is one: a second request waits until the first is answered or given up.
    loaded: Mutex<Option<Loaded>>,
}

impl Local {
    /// The model with these weights. What it can keep between runs goes below `cache`, where one is named.
    pub fn open(weights: &Path, cache: Option<&Path>) -> Self {
        let mut model = Model::new("local", NAME);
        model.context = CONTEXT as u64;
        model.max_output = Some(KEPT as u64);
        model.prices = Some(Prices::FREE);
        let held = Held { weights: weights.to_owned(), shelf: Shelf::below(cache), loaded: Mutex::default() };
        Self { model, held: Arc::new(held) }
    }
}

#[async_trait]
impl Provider for Local {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> std::result::Result<Replies, ProviderError> {
        if !self.held.weights.is_file() {
            return Err(missing(&self.held.weights));
        }
        let job = Job::of(&request);
        let held = Arc::clone(&self.held);
        let (deltas, mut incoming) = mpsc::unbounded_channel();
        // A thread of its own and not one of the runtime's: decoding takes seconds of processor time, and a program
        // that ends must not wait for it. It ends by itself soon after the stream is dropped. The channel holds one
        // short answer at most.
        let answer = move || held.answer(&job, &deltas);
        thread::Builder::new().name("local model".into()).spawn(answer).map_err(|e| {
            ProviderError::new(ErrorKind::Invalid, format!("Cannot start a thread for the embedded model: {e}"))
        })?;
        Ok(Box::pin(stream::poll_fn(move |cx| incoming.poll_recv(cx))))
    }
}

fn missing(weights: &Path) -> ProviderError {
    let path = weights.display();
    ProviderError::new(
        ErrorKind::NotFound,
        format!("The embedded model's weights are not at {path}. Fetch them with `agent model fetch`"),
    )
}

/// One request, owned.
struct Job {
    offer: Offer,
    may_reply: bool,
    turns: Vec<Turn>,
    messages: Vec<Message>,
    limit: usize,
}

impl Job {
    fn of(request: &Request<'_>) -> Self {
        let asked = request.max_tokens.and_then(|n| usize::try_from(n).ok());
        Self {
            offer: Offer::of(request.tools),
            may_reply: protocol::may_reply(request.messages),
            turns: protocol::turns(request.messages),
            messages: request.messages.to_vec(),
            limit: asked.unwrap_or(ANSWER).min(ANSWER),
        }
    }
}

type Deltas = mpsc::UnboundedSender<std::result::Result<Delta, ProviderError>>;

impl Held {
    fn answer(&self, job: &Job, deltas: &Deltas) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.ready(&mut loaded).and_then(|loaded| loaded.answer(job, &self.shelf, deltas));
        if let Err(failure) = outcome {
            // Nobody listens any more where the answer was given up: then the failure is of no use.
            let _ = deltas.send(Err(failure));
        }
    }

    fn ready<'l>(&self, loaded: &'l mut Option<Loaded>) -> std::result::Result<&'l mut Loaded, ProviderError> {
        if let Some(ready) = loaded {
            return Ok(ready);
        }
        let path = self.weights.display();
        let fresh = Loaded::read(&self.weights).map_err(|e| {
            let hint = "Remove the file and fetch it again with `agent model fetch`";
            ProviderError::new(
                ErrorKind::Invalid,
                format!("Cannot load the embedded model from {path}: {}. {hint}", brief(&e)),
            )
        })?;
        Ok(loaded.insert(fresh))
    }
}

/// The first line of an engine's error: more of it is a backtrace.
fn brief(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn failed(error: Error) -> ProviderError {
    ProviderError::new(ErrorKind::Invalid, format!("The embedded model failed: {}", brief(&error)))
}

/// The model in memory.
struct Loaded {
    engine: Engine,
    words: Vocabulary,
    memory: Memory,
    mark: Vec<u8>,
}

impl Loaded {
    fn read(weights: &Path) -> Result<Self> {
        let mut file = File::open(weights)?;
        let mark = prefix::mark(&mut file)?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let content = Content::read(&mut reader)?;
        let words = Vocabulary::read(&content)?;
        let engine = Engine::load(&content, &mut reader, CONTEXT)?;
        let memory = engine.memory()?;
        Ok(Self { engine, words, memory, mark })
    }

    fn answer(&mut self, job: &Job, shelf: &Shelf, deltas: &Deltas) -> std::result::Result<(), ProviderError> {
        let opening = self.tokens(&job.offer.opening()).map_err(failed)?;
        let prompt = self.conversation(job, &opening)?;
        self.read_opening(&opening, shelf, deltas).map_err(failed)?;
        let known = common(self.memory.tokens(), &prompt).min(prompt.len() - 1);
        self.memory.keep(known);
        let unread = prompt[known..].to_vec();
        let mut usage =
            Usage { input_tokens: unread.len() as u64, cache_read_input_tokens: known as u64, ..Usage::default() };
        let mut mind = Reader { engine: &self.engine, memory: &mut self.memory, deltas };
        let mut pen = Pen::new(&mut mind, &self.words, unread, job.limit);
        let stop = write(&mut pen, job, deltas).map_err(failed)?;
        usage.output_tokens = pen.written() as u64;
        send(deltas, Delta::Usage(usage));
        send(deltas, Delta::Stop(stop));
        Ok(())
    }

    fn tokens(&self, turns: &[Turn]) -> Result<Vec<u32>> {
        turns.iter().map(|t| self.words.turn(t)).collect::<Result<Vec<_>>>().map(|all| all.concat())
    }

    /// The whole prompt: the opening, and what fits of the conversation.
    fn conversation(&self, job: &Job, opening: &[u32]) -> std::result::Result<Vec<u32>, ProviderError> {
        let own = self.words.opening().map_err(failed)?;
        let room = CONTEXT.saturating_sub(opening.len() + own.len() + KEPT);
        let turns: Vec<Vec<u32>> =
            job.turns.iter().map(|t| self.words.turn(t)).collect::<Result<_>>().map_err(failed)?;
        let lengths: Vec<usize> = turns.iter().map(Vec::len).collect();
        let kept = protocol::fit(&job.turns, &lengths, room).ok_or_else(|| too_long(&lengths, room))?;
        let mut prompt = opening.to_vec();
        prompt.extend(kept.into_iter().flat_map(|i| &turns[i]).chain(&own));
        Ok(prompt)
    }

    /// Makes the memory begin with the opening: it does already, or it is on disk, or it is read now and kept.
    fn read_opening(&mut self, opening: &[u32], shelf: &Shelf, deltas: &Deltas) -> Result<()> {
        if self.memory.tokens().starts_with(opening) {
            return Ok(());
        }
        let key = prefix::key(&self.mark, opening);
        if let Some(kept) = shelf.find(&key).and_then(|layers| self.engine.remember(opening, &layers).ok()) {
            self.memory = kept;
            return Ok(());
        }
        self.memory.keep(common(self.memory.tokens(), opening));
        let rest = opening[self.memory.tokens().len()..].to_vec();
        Reader { engine: &self.engine, memory: &mut self.memory, deltas }.read(&rest)?;
        let halves = self.memory.halves()?;
        // A full or read-only disk costs time at the next start, nothing else.
        let _ = shelf.keep(&key, &halves);
        // From here on as if it came from disk, so that the first run says what the second says.
        self.memory = self.engine.remember(opening, &halves)?;
        Ok(())
    }
}

fn too_long(lengths: &[usize], room: usize) -> ProviderError {
    let tokens: usize = lengths.iter().sum();
    ProviderError::new(
        ErrorKind::TooLong,
        format!(
            "The request has {tokens} tokens, and the embedded model can read {room}. Shorten it, or use another model"
        ),
    )
}

fn common(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Reads for the pen, and stops when nobody wants the answer any more.
struct Reader<'a> {
    engine: &'a Engine,
    memory: &'a mut Memory,
    deltas: &'a Deltas,
}

impl Mind for Reader<'_> {
    fn read(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut likely = Vec::new();
        for chunk in tokens.chunks(CHUNK) {
            if self.deltas.is_closed() {
                return Err(Error::msg("the answer is not wanted any more"));
            }
            likely = self.engine.read(self.memory, chunk)?;
        }
        Ok(likely)
    }
}

/// Has the model write one answer.
fn write(pen: &mut Pen<'_, Reader<'_>, Vocabulary>, job: &Job, deltas: &Deltas) -> Result<Stop> {
    let forms = job.offer.forms(job.may_reply);
    let names: Vec<String> = forms.iter().map(|f| format!("{}\"", f.name)).collect();
    pen.put("{\"tool\": \"")?;
    let Some(form) = pen.choose(&names)?.map(|i| forms[i]) else { return Ok(Stop::MaxTokens) };
    if form.name == REPLY.name {
        return write_words(pen, deltas);
    }
    // A call that was cut is not made: half a file is worse than none.
    let Some(values) = write_values(pen, form, &job.offer)? else { return Ok(Stop::MaxTokens) };
    send(deltas, Delta::Block(Block::call(protocol::call(form, values, &job.messages))));
    Ok(Stop::End)
}

fn write_words(pen: &mut Pen<'_, Reader<'_>, Vocabulary>, deltas: &Deltas) -> Result<Stop> {
    pen.put(&opened(&REPLY, 0))?;
    let written = pen.string(bounds(&REPLY, 0, "}"), |text| {
        if !text.is_empty() {
            send(deltas, Delta::Text(text.to_owned()));
        }
    })?;
    send(deltas, Delta::Block(Block::text(written.text)));
    Ok(if written.whole { Stop::End } else { Stop::MaxTokens })
}

fn write_values(pen: &mut Pen<'_, Reader<'_>, Vocabulary>, form: &Form, offer: &Offer) -> Result<Option<Vec<String>>> {
    let mut values = Vec::new();
    pen.put(&opened(form, 0))?;
    for i in 0..form.arguments.len() {
        let value = match offer.values(form) {
            Some(known) => one_of(pen, known)?,
            None => free(pen, form, i)?,
        };
        let Some(value) = value else { return Ok(None) };
        values.push(value);
    }
    Ok(Some(values))
}

fn one_of(pen: &mut Pen<'_, Reader<'_>, Vocabulary>, known: Vec<String>) -> Result<Option<String>> {
    let spelled: Vec<String> =
        known.iter().map(|v| format!("{}}}", &serde_json::Value::from(v.as_str()).to_string()[1..])).collect();
    let chosen = pen.choose(&spelled)?;
    Ok(chosen.and_then(|i| known.into_iter().nth(i)))
}

fn free(pen: &mut Pen<'_, Reader<'_>, Vocabulary>, form: &Form, index: usize) -> Result<Option<String>> {
    let last = index + 1 == form.arguments.len();
    let then = if last { "}".into() } else { opened(form, index + 1) };
    let written = pen.string(bounds(form, index, &then), |_| {})?;
    Ok(written.whole.then_some(written.text))
}

/// What stands between the closing quote before an argument and the opening one of it.
fn opened(form: &Form, index: usize) -> String {
    form.arguments.get(index).map(|a| format!(", \"{}\": \"", a.name)).unwrap_or_default()
}

fn bounds<'t>(form: &Form, index: usize, then: &'t str) -> Bounds<'t> {
    let argument = &form.arguments[index];
    Bounds { tokens: argument.tokens, empty: argument.empty, then }
}

fn send(deltas: &Deltas, delta: Delta) {
    // Nobody listens any more where the answer was given up; the next token notices and stops.
    let _ = deltas.send(Ok(delta));
}
