//! What a person can do about a failure of the model's server.

use agent_core::agent::listed;
use agent_core::discover::Remote;
use agent_core::provider::listing::near;
use agent_core::provider::{ErrorKind, ProviderError};
use agent_core::settings::Settings;

/// What is known of the server that failed.
pub struct Server<'a> {
    pub remote: &'a Remote,
    pub key: Option<&'a str>,
    pub settings: &'a Settings,
    /// The models that it has; none where it does not say.
    pub models: Option<&'a [String]>,
}

/// What to do about this error.
pub async fn hint(error: &ProviderError, server: &Server<'_>) -> String {
    // What the server said stands before our own advice.
    let said = error.message.rsplit_once(". ").map_or(error.message.as_str(), |(said, _)| said).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    match error.kind {
        ErrorKind::Auth if says(&["credit", "quota", "balance", "billing"]) => {
            "the key is right, but its account has no credit: add some, or name another with apiKeyEnv".into()
        }
        ErrorKind::Auth if server.key.is_none() => "the server wants a key".into(),
        ErrorKind::Auth => "the key is wrong, or may not use this model: make a new one at the provider".into(),
        ErrorKind::NotFound | ErrorKind::Invalid if server.lacks_model() => server.other_models(),
        ErrorKind::NotFound => server.other_address().await,
        ErrorKind::RateLimited => "wait a while, or raise the limits of the account at the provider".into(),
        ErrorKind::Server if says(&["no model's answer"]) => {
            "the address answers, but not as a model's server does: is the setting baseUrl right? \
             Or does a proxy answer in its place?"
                .into()
        }
        ErrorKind::Invalid => "the server does not understand the request: does it speak another interface? \
                               Try --provider openai, responses or anthropic"
            .into(),
        ErrorKind::TooLong | ErrorKind::Server | ErrorKind::Network | ErrorKind::Cut | ErrorKind::Idle => String::new(),
    }
}

impl Server<'_> {
    fn lacks_model(&self) -> bool {
        self.models.is_some_and(|models| !models.is_empty() && !models.contains(&self.remote.model))
    }

    fn other_models(&self) -> String {
        let models = self.models.unwrap_or_default();
        let near = match near(&self.remote.model, models).as_slice() {
            [] => models.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", "),
            near => near.join(", "),
        };
        format!("the server has no model {}; it has {near} ({} in all): set --model", self.remote.model, models.len())
    }

    /// Whether the address lacks the version that most servers have in it.
    async fn other_address(&self) -> String {
        let base = self.remote.base_url.trim_end_matches('/');
        let versioned = format!("{base}/v1");
        let mut other = self.remote.clone();
        other.base_url.clone_from(&versioned);
        if !base.ends_with("/v1") && listed(&other, self.key, self.settings).await.is_ok() {
            return format!("the base URL lacks /v1: set baseUrl to {versioned}");
        }
        "is the model's name right, and the base URL? Most end in /v1".into()
    }
}
