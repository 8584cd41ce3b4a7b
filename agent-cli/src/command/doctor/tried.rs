//! Requests to the model that take few tokens, and what comes of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_core::provider::{Delta, Provider, ProviderError, Request, Stop, Usage};
use agent_core::{Block, CallResult, Message};
use agent_tools::{Call, Declaration, Part};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::Check;

/// How many tokens an answer may have: models that think first need some.
const TOKENS: u64 = 400;

/// After so long, words that come all at once were held back.
const HELD_BACK: Duration = Duration::from_secs(1);

/// What came of a request.
pub struct Heard {
    /// How long the first piece took.
    first: Option<Duration>,
    /// How many pieces of words came.
    pieces: usize,
    text: String,
    blocks: Vec<Block>,
    stop: Option<Stop>,
    /// What it cost, where the server says so.
    pub usage: Option<Usage>,
}

impl Heard {
    fn call(&self) -> Option<&Arc<Call>> {
        self.blocks.iter().find_map(Block::as_call)
    }
}

/// Asks for a few words.
pub async fn words(provider: &dyn Provider) -> Result<Heard, ProviderError> {
    ask(provider, &[Message::user("Count from one to ten, in words.")], &[]).await
}

/// Asks for a call of a tool that does nothing.
pub async fn call(provider: &dyn Provider) -> Result<(Heard, Vec<Message>), ProviderError> {
    let mut messages = vec![Message::user("Call the tool `echo` with the word \"ready\".")];
    let heard = ask(provider, &messages, &[&echo()]).await?;
    messages.push(Message::Assistant(heard.blocks.clone()));
    Ok((heard, messages))
}

/// Hands in the result of that call.
pub async fn result(provider: &dyn Provider, mut messages: Vec<Message>, call: &Call) -> Result<Heard, ProviderError> {
    let (id, name, parts) = (call.id.clone(), call.name.clone(), vec![Part::text("ready")]);
    messages.push(Message::Results(vec![CallResult { id, name, failed: false, parts }]));
    ask(provider, &messages, &[&echo()]).await
}

fn echo() -> Declaration {
    Declaration {
        name: "echo".into(),
        description: "Gives back the word that it is given.".into(),
        schema: json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}),
    }
}

async fn ask(provider: &dyn Provider, messages: &[Message], tools: &[&Declaration]) -> Result<Heard, ProviderError> {
    let mut request = Request::new("This is a test of the connection. Do just what is asked.", messages, tools);
    request.max_tokens = Some(TOKENS);
    let begin = Instant::now();
    let mut replies = provider.reply(request).await?;
    let mut heard = Heard { first: None, pieces: 0, text: String::new(), blocks: Vec::new(), stop: None, usage: None };
    while let Some(delta) = replies.next().await {
        let delta = delta?;
        heard.first.get_or_insert_with(|| begin.elapsed());
        match delta {
            Delta::Text(text) => {
                heard.pieces += 1;
                heard.text.push_str(&text);
            }
            Delta::Thinking(_) => heard.pieces += 1,
            Delta::Block(block) => heard.blocks.push(block),
            Delta::Usage(usage) => heard.usage = Some(usage),
            Delta::Stop(stop) => heard.stop = Some(stop),
        }
    }
    Ok(heard)
}

/// What is to be said of the words.
pub fn streaming(heard: &Heard) -> Check {
    let first = heard.first.unwrap_or_default();
    let took = format!("the first words came after {:.1} s", first.as_secs_f64());
    match (heard.pieces, heard.stop) {
        (0, Some(Stop::MaxTokens)) => {
            Check::warn("streaming", format!("the model thought for {TOKENS} tokens and said nothing yet"))
        }
        (0, Some(Stop::Refused)) => Check::fail("streaming", "the model or its provider refused to answer"),
        (0, _) => Check::fail("streaming", "the answer is empty").hint("try another model with --model"),
        (1, _) if first >= HELD_BACK => Check::warn("streaming", format!("{took}, all at once"))
            .hint("the server, or a proxy before it, holds answers back until they are whole"),
        (1, _) => Check::ok("streaming", took),
        (pieces, _) => Check::ok("streaming", format!("{took}, in {pieces} pieces")),
    }
}

/// The call that was asked for, or what is to be said of there being none.
pub fn called(heard: &Heard) -> Result<&Arc<Call>, Check> {
    let Some(call) = heard.call() else { return Err(not_called(heard)) };
    let word = serde_json::from_str::<Value>(&call.arguments).ok().and_then(|arguments| arguments.get("word").cloned());
    match word {
        Some(Value::String(_)) if call.name == "echo" => Ok(call),
        Some(_) | None => {
            let text = format!("the model called {} with {}, which does not fit the tool", call.name, call.arguments);
            Err(Check::fail("tool call", text).hint("try another model with --model: this one is no use for an agent"))
        }
    }
}

fn not_called(heard: &Heard) -> Check {
    let as_text = heard.text.contains("echo")
        && ["{", "<tool", "<function", "```", "[TOOL"].iter().any(|mark| heard.text.contains(mark));
    match heard.stop {
        _ if as_text => Check::fail("tool call", "the call came as text, not as a call").hint(
            "the server does not read the model's calls: start it with its parser of tool calls \
             (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice --tool-call-parser NAME), or take another model",
        ),
        Some(Stop::MaxTokens) => {
            Check::warn("tool call", format!("the model thought for {TOKENS} tokens and called nothing yet"))
        }
        Some(Stop::End | Stop::Refused) | None => {
            Check::fail("tool call", "the model called no tool though it was asked to")
                .hint("try another model with --model: one that calls no tools is no use for an agent")
        }
    }
}

/// What is to be said of what the server counts.
pub fn usage(all: &[Usage], requests: usize) -> [Check; 2] {
    let mut sum = Usage::default();
    all.iter().for_each(|usage| sum += *usage);
    let (read, written) = (sum.cache_read_input_tokens, sum.cache_creation_input_tokens);
    let counted = match all.len() {
        0 => Check::warn("usage", "the server does not say how many tokens it took")
            .hint("tokens and costs can only be estimated"),
        some if some < requests => Check::warn("usage", "the server does not always say how many tokens it took"),
        _ => Check::ok(
            "usage",
            format!("{} tokens sent, {} received", sum.input_tokens + read + written, sum.output_tokens),
        ),
    };
    let cached = match (read, written) {
        (0, 0) => Check::ok("cache", "nothing reported; so short a prompt is not kept, as a rule"),
        (read, written) => Check::ok("cache", format!("{read} tokens read, {written} written")),
    };
    [counted, cached]
}
