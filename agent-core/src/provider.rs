//! Models: the trait that a provider implements, what it is asked, what it answers.

#[cfg(feature = "http")]
pub mod anthropic;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "http")]
pub mod listing;
#[cfg(feature = "local")]
pub mod local;
pub mod models;
#[cfg(feature = "http")]
pub mod openai;
#[cfg(feature = "http")]
pub(crate) mod quirks;
#[cfg(feature = "http")]
pub mod responses;
#[cfg(all(test, feature = "http"))]
mod samples;
#[cfg(any(test, feature = "testing"))]
pub mod scripted;
pub mod sse;

use std::time::Duration;

use agent_tools::Declaration;
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::message::{Block, Message};

/// A model behind some interface.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Which model it is.
    fn model(&self) -> &Model;

    /// Sends one request. Never retries: the loop does.
    ///
    /// # Errors
    /// What went wrong before the first byte of the answer.
    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError>;
}

/// The answer as it comes in. Dropping it closes the connection.
pub type Replies = BoxStream<'static, Result<Delta, ProviderError>>;

/// What is known of a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The provider's name in settings: `openai`, `anthropic`, `openrouter`, `local`.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// How many tokens a request and its answer may have together.
    pub context: u64,
    /// How many tokens an answer may have; none where the server decides.
    pub max_output: Option<u64>,
    /// What its tokens cost; none where that is not known.
    pub prices: Option<Prices>,
    /// It takes pictures.
    pub sees: bool,
}

impl Model {
    /// A model of this name with the default context of 200,000 tokens, that sees nothing, at unknown prices.
    pub fn new(provider: impl Into<String>, name: impl Into<String>) -> Self {
        let (provider, name) = (provider.into(), name.into());
        Self { provider, name, context: 200_000, max_output: None, prices: None, sees: false }
    }
}

/// What tokens cost, in US dollars per million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "models::PriceList")]
#[non_exhaustive]
pub struct Prices {
    /// Sent.
    pub input: f64,
    /// Received.
    pub output: f64,
    /// Read from the provider's cache.
    pub cache_read: f64,
    /// Written to the provider's cache.
    pub cache_write: f64,
}

impl Prices {
    /// For what runs on this machine.
    pub const FREE: Self = Self { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };

    /// These prices, the cache at that of what is sent.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: input, cache_write: input }
    }

    /// What that much costs, in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "no token count comes near 2^53")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let parts = [
            (usage.input_tokens, self.input),
            (usage.output_tokens, self.output),
            (usage.cache_read_input_tokens, self.cache_read),
            (usage.cache_creation_input_tokens, self.cache_write),
        ];
        parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum::<f64>() / 1e6
    }
}

/// One request.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation.
    pub messages: &'a [Message],
    /// The tools that it may call.
    pub tools: &'a [&'a Declaration],
    /// How many tokens the answer may have; else the model's own limit.
    pub max_tokens: Option<u64>,
    /// How hard it is to think: `low`, `medium`, `high`, `xhigh`, `max`; none: the server's default.
    pub effort: Option<Effort>,
}

impl<'a> Request<'a> {
    /// A request with the defaults of the model.
    pub fn new(system: &'a str, messages: &'a [Message], tools: &'a [&'a Declaration]) -> Self {
        Self { system, messages, tools, max_tokens: None, effort: None }
    }
}

/// How hard a model is to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// A little.
    Low,
    /// Some.
    Medium,
    /// A lot.
    High,
    /// More.
    Xhigh,
    /// As hard as it can.
    Max,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The word for it in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A piece of an answer.
#[derive(Debug, Clone)]
pub enum Delta {
    /// Words, for people.
    Text(String),
    /// Reasoning, for people.
    Thinking(String),
    /// A finished block, for the transcript: in order, verbatim. Texts are blocks too.
    Block(Block),
    /// What it cost so far; the last one counts.
    Usage(Usage),
    /// The end. An answer without it was cut, and is an error.
    Stop(Stop),
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The model was done, or wants its calls answered.
    End,
    /// The answer reached its size limit.
    MaxTokens,
    /// The model or its provider refused.
    Refused,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Sent, without what came from or went to a cache.
    pub input_tokens: u64,
    /// Received.
    pub output_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_input_tokens: u64,
    /// Written to the provider's cache.
    pub cache_creation_input_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
    }
}

/// What went wrong with a request, in words for a person: what we were doing, to what, why it failed, a hint. Never
/// holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ProviderError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The whole story. At most a few hundred characters, whatever the server sent.
    pub message: String,
    /// How long the server wants us to wait.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Whether the same request may do better later.
    pub fn retryable(&self) -> bool {
        match self.kind {
            ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Network | ErrorKind::Cut | ErrorKind::Idle => true,
            ErrorKind::Auth | ErrorKind::NotFound | ErrorKind::TooLong | ErrorKind::Invalid => false,
        }
    }
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The key is missing, wrong, or has no credit.
    Auth,
    /// No such model or address.
    NotFound,
    /// The conversation is too long for the model.
    TooLong,
    /// The request is wrong, or the answer makes no sense.
    Invalid,
    /// Too many requests.
    RateLimited,
    /// The server failed or is overloaded.
    Server,
    /// It could not be reached.
    Network,
    /// The answer broke off.
    Cut,
    /// Nothing came for too long.
    Idle,
}
