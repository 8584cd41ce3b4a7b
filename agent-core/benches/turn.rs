//! What a turn costs beside the least that the same work could cost: `cargo bench -p agent-core`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot be set up has failed")]

#[path = "../../agent-tools/benches/beside/mod.rs"]
mod beside;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use agent_core::provider::http::Endpoint;
use agent_core::provider::openai::OpenAi;
use agent_core::provider::sse::Parser;
use agent_core::provider::{Delta, Model, Provider, ProviderError, Replies, Request, Stop, Usage};
use agent_core::session::{Journal, JsonLines, Memory, Nowhere, Store, load};
use agent_core::{Agent, Block, CallResult, Clock, Events, Limits, Message, Prompt, Session, SessionId, Step, Turn};
use agent_tools::policy::{Mode, Open};
use agent_tools::{Call, Declaration, Part, Place, Tools, simple};
use async_trait::async_trait;
use beside::{beside, pairs};
use criterion::Criterion;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const DELTAS: usize = 20_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// An answer of so many words, as servers stream it.
fn streamed(deltas: usize) -> String {
    let event = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1800000000,\"model\":\"m\",\
             \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let mut stream: String = (0..deltas).map(|i| event(&format!(r#"{{"content":" word{i}"}}"#), "null")).collect();
    stream.push_str(&event("{}", "\"stop\""));
    stream + "data: [DONE]\n\n"
}

fn events(c: &mut Criterion) {
    let stream = streamed(DELTAS);
    let parsed = || {
        let (mut parser, mut bytes) = (Parser::default(), 0);
        for piece in stream.as_bytes().chunks(16 << 10) {
            parser.push(piece, &mut |event| bytes += event.data.len()).unwrap();
        }
        bytes
    };
    let split = || {
        let pieces = stream.as_bytes().chunks(16 << 10);
        pieces.map(|piece| memchr::memchr_iter(b'\n', piece).count()).sum::<usize>()
    };
    let name = format!("parse {} kB of events, beside finding line ends", stream.len() / 1000);
    beside(c, &name, parsed, split);
}

/// A server that answers every request with the same bytes; its address.
fn server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let answer = answer.clone();
            std::thread::spawn(move || serve(socket.unwrap(), &answer));
        }
    });
    address
}

/// Until the client goes away.
fn serve(mut socket: TcpStream, answer: &[u8]) {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    while let Some(length) = head(&mut reader) {
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).and_then(|()| socket.write_all(answer)).is_err() {
            return;
        }
    }
}

/// Reads the head of a message: how long its body is.
fn head(reader: &mut impl BufRead) -> Option<usize> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            return Some(length);
        }
    }
}

fn answers(c: &mut Criterion) {
    let body = streamed(DELTAS);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
    let address = server([head, body].concat().into_bytes());
    let (runtime, provider) =
        (runtime(), OpenAi::new(Model::new("openai", "m"), Endpoint::new(format!("http://{address}/v1"))));
    let ours = || {
        runtime.block_on(async {
            let request = Request::new("", &[], &[]);
            let mut replies = provider.reply(request).await.unwrap();
            let mut bytes = 0;
            while let Some(delta) = replies.next().await {
                if let Delta::Text(text) = delta.unwrap() {
                    bytes += text.len();
                }
            }
            bytes
        })
    };
    let mut plain = TcpStream::connect(&address).unwrap();
    let expect = ours();
    beside(c, "an answer of 20,000 deltas, beside a plain socket and serde", ours, || {
        assert_eq!(plain_answer(&mut plain), expect);
    });
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Words<'a>,
}

#[derive(Deserialize)]
struct Words<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

fn plain_answer(socket: &mut TcpStream) -> usize {
    socket.write_all(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut reader = BufReader::with_capacity(64 << 10, socket);
    let mut left = head(&mut reader).unwrap();
    let (mut line, mut text) = (Vec::new(), String::new());
    while left > 0 {
        line.clear();
        left -= reader.read_until(b'\n', &mut line).unwrap();
        let data = line.strip_prefix(b"data: ").and_then(|data| serde_json::from_slice::<Chunk<'_>>(data).ok());
        let words = data.iter().flat_map(|chunk| &chunk.choices).filter_map(|choice| choice.delta.content.as_deref());
        words.for_each(|words| text.push_str(words));
    }
    // The blank in front of the first word stays; the line ends that an answer may begin with do not.
    text.len()
}

/// A history of so many rounds: a few words and a call of the model, and a result of 2 kB.
fn history(rounds: usize) -> Vec<Message> {
    let mut messages = vec![Message::user("Do something about it.")];
    let result = "a line of \"a file\", as it is\n".repeat(70);
    for i in 0..rounds {
        let (id, arguments) = (format!("call_{i}"), format!(r#"{{"path": "src/file{i}.rs", "start": {i}}}"#));
        let call = Block::call(Call::new(&id, "read_file", arguments));
        messages.push(Message::Assistant(vec![Block::text("I look at the next file."), call]));
        let parts = vec![Part::text(&result)];
        messages.push(Message::Results(vec![CallResult { id, name: "read_file".into(), failed: false, parts }]));
    }
    messages
}

fn bodies(c: &mut Criterion) {
    let provider = OpenAi::new(Model::new("openai", "m"), Endpoint::new("http://127.0.0.1:1/v1"));
    let tools = tools();
    let declarations: Vec<&Declaration> = tools.declarations().collect();
    for rounds in [10, 100, 300, 1000] {
        let messages = history(rounds);
        let body = || provider.body(&Request::new("You are an agent.", &messages, &declarations)).unwrap();
        let name = format!("the body after {rounds} rounds ({} kB), beside serde of the messages", body().len() / 1000);
        beside(c, &name, body, || serde_json::to_vec(&messages).unwrap());
    }
}

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }
}

/// A model that makes a call in each answer.
struct Restless {
    model: Model,
    asked: AtomicU32,
    arguments: String,
}

impl Restless {
    fn new(arguments: String) -> Self {
        Self { model: Model::new("restless", "restless"), asked: AtomicU32::new(0), arguments }
    }
}

#[async_trait]
impl Provider for Restless {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, _request: Request<'_>) -> Result<Replies, ProviderError> {
        let id = format!("call_{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let deltas = [
            Delta::Text("I look at the next file.".into()),
            Delta::Block(Block::text("I look at the next file.")),
            Delta::Block(Block::call(Call::new(id, "look", &self.arguments))),
            Delta::Usage(Usage::default()),
            Delta::Stop(Stop::End),
        ];
        Ok(stream::iter(deltas.map(Ok)).boxed())
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Look {
    text: String,
}

fn tools() -> Tools {
    let result = "a line of \"a file\", as it is\n".repeat(70);
    let look = move |input: Look, _cx| {
        let result = format!("{} bytes\n{result}", input.text.len());
        async move { Ok(result) }
    };
    Tools::default().with(simple("look", "Looks at something.", Mode::NONE, look))
}

fn agent(argument: usize) -> Agent {
    let mut limits = Limits::default();
    limits.max_turns = u64::MAX;
    limits.loop_limit = 0;
    let arguments = serde_json::json!({"text": "fn main() {}\n".repeat(argument / 13)}).to_string();
    let provider = Arc::new(Restless::new(arguments));
    Agent { provider, fallbacks: Vec::new(), tools: tools(), policy: Arc::new(Open), prompt: Arc::default(), limits }
}

/// So many rounds; how long each took.
fn rounds(runtime: &Runtime, store: impl Store + 'static, count: usize, argument: usize) -> Vec<Duration> {
    let journal = Journal::new(SessionId::named("s"), Box::new(store), Arc::new(Noon), "/w");
    let mut session = Session::new(Place::new("/"), journal);
    // Nobody watches: what is measured is the loop and its log.
    let (events, _) = Events::channel();
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let prompt = Prompt::text("Look at everything.");
        let mut turn = Turn::begin(agent(argument), &mut session, prompt, &events, stop).await.unwrap();
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            assert_eq!(turn.step().await.unwrap(), Step::Again);
            took.push(start.elapsed());
        }
        took
    })
}

fn turns(c: &mut Criterion) {
    let runtime = runtime();
    pairs(c, "rounds 251 to 300 of a turn, beside its rounds 1 to 50", |times| {
        let (mut late, mut early) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..times {
            let took = rounds(&runtime, Nowhere, 300, 20);
            late += took[250..].iter().sum::<Duration>();
            early += took[..50].iter().sum::<Duration>();
        }
        (late, early)
    });
    let directory = tempfile::tempdir().unwrap();
    for (what, argument) in [("small calls", 20), ("calls of 200 kB", 200_000)] {
        let memory = Memory::default();
        rounds(&runtime, memory.clone(), 20, argument);
        let lines = memory.lines();
        let mut plain = File::create(directory.path().join("plain.jsonl")).unwrap();
        let mut number = 0;
        let logged = || {
            number += 1;
            rounds(&runtime, JsonLines::new(directory.path().join(format!("{number}.jsonl"))), 20, argument)
        };
        let written = || lines.split_inclusive('\n').for_each(|line| plain.write_all(line.as_bytes()).unwrap());
        beside(c, &format!("20 rounds of {what} with a log, beside writing its lines"), logged, written);
    }
}

fn logs(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("{{\"type\":\"text\",\"content\":\"{}\"}}\n", "some words ".repeat(20));
    let mut log = JsonLines::new(directory.path().join("log.jsonl"));
    let mut plain = OpenOptions::new().create(true).append(true).open(directory.path().join("plain.jsonl")).unwrap();
    let append = || log.append(&line).unwrap();
    beside(c, "append a line to a log, beside a plain write", append, || plain.write_all(line.as_bytes()).unwrap());

    let memory = Memory::default();
    rounds(&runtime(), memory.clone(), 2000, 20);
    let log = memory.lines();
    let skim = || log.lines().filter(|line| serde_json::from_str::<IgnoredAny>(line).is_ok()).count();
    let name = format!("load a log of {} kB, beside skimming its JSON", log.len() / 1000);
    assert_eq!(load(log.as_bytes()).messages.len(), 1 + 2 * 2000);
    beside(c, &name, || load(log.as_bytes()), skim);
}

fn main() {
    let mut c = beside::quick();
    for group in [events, answers, bodies, logs, turns] {
        group(&mut c);
    }
    c.final_summary();
}
