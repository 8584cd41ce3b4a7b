//! The agent: a value. A new model or toolset is a new agent.

use std::path::Path;
use std::sync::Arc;

use agent_skills::Catalogue;
use agent_tools::policy::Policy;
use agent_tools::toolset;
use agent_tools::{Place, Tools};
use jiff::Timestamp;

#[cfg(feature = "http")]
use crate::discover::{KeyFrom, Remote, is_on_this_machine};
use crate::prompt::{self, Facts, Instruction, Sections};
#[cfg(feature = "http")]
use crate::provider::anthropic::Anthropic;
#[cfg(feature = "http")]
use crate::provider::http::{Endpoint, Secret};
#[cfg(feature = "http")]
use crate::provider::listing;
#[cfg(feature = "http")]
use crate::provider::models::{self, Form, ProviderEntry};
#[cfg(feature = "http")]
use crate::provider::openai::OpenAi;
#[cfg(feature = "http")]
use crate::provider::quirks;
#[cfg(feature = "http")]
use crate::provider::responses::Responses;
use crate::provider::{Effort, Provider};
#[cfg(feature = "http")]
use crate::provider::{Model, Prices, ProviderError};
use crate::settings::{Compact, Settings};

/// What a turn works with. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The models that are asked, in this order, where that one fails for a while.
    pub fallbacks: Vec<Arc<dyn Provider>>,
    /// The tools.
    pub tools: Tools,
    /// Who judges calls.
    pub policy: Arc<dyn Policy>,
    /// The system prompt.
    pub prompt: Arc<Sections>,
    /// Limits of a turn.
    pub limits: Limits,
}

/// Limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Requests in one turn.
    pub max_turns: u64,
    /// Equal calls in a row that end the turn; 0: never.
    pub loop_limit: u32,
    /// Sub-agents that run at the same time; 0: none may be started.
    pub max_sub_agents: usize,
    /// Tokens of one answer; none: the model's own limit.
    pub max_tokens: Option<u64>,
    /// How hard the model is to think; none: its own default.
    pub effort: Option<Effort>,
    /// What a session may cost, in US dollars; none: no limit. Where the cost is not known nothing may be spent.
    pub max_cost: Option<f64>,
    /// When the conversation is compacted.
    pub compact: Compact,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 1000,
            loop_limit: 10,
            max_sub_agents: 8,
            max_tokens: None,
            effort: None,
            max_cost: None,
            compact: Compact::Auto,
        }
    }
}

/// The time of day. Frontends have the real one; tests a fixed one.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The tools that the settings ask for. `local`: the embedded model is to use them; `keys`: the agent's own, which are
/// masked in results.
pub fn equip(settings: &Settings, skills: Arc<Catalogue>, local: bool, keys: &[String]) -> Tools {
    let mut parts = settings.parts(local);
    parts.skills = skills;
    let tools = toolset::tools(settings.toolset(local), &parts);
    if settings.mask_secrets { tools.masking(keys) } else { tools }
}

/// Makes the client of a model behind an address. Nothing is sent yet.
///
/// # Errors
/// The provider is none of the table.
#[cfg(feature = "http")]
pub fn connect(remote: &Remote, key: Option<&str>, settings: &Settings) -> Result<Arc<dyn Provider>, UnknownForm> {
    let entry = models::provider(&remote.provider).ok_or_else(|| UnknownForm(remote.provider.clone()))?;
    let model = known(remote, settings);
    let endpoint = endpoint(remote, key, settings, entry);
    Ok(match entry.form {
        Form::OpenaiChat => Arc::new(OpenAi::new(model, endpoint)),
        Form::Responses => Arc::new(Responses::new(model, endpoint)),
        Form::Anthropic => Arc::new(Anthropic::new(model, endpoint)),
    })
}

/// What is known of a model: by the table, and by the settings, which know better.
#[cfg(feature = "http")]
pub fn known(remote: &Remote, settings: &Settings) -> Model {
    let mut model = models::model(&remote.provider, &remote.model);
    if remote.key == KeyFrom::Nowhere && is_on_this_machine(&remote.base_url) {
        model.prices = Some(Prices::FREE);
    }
    if let Some(facts) = settings.facts(&remote.model) {
        model.learn(facts);
    }
    model.context = settings.max_context.unwrap_or(model.context);
    model
}

#[cfg(feature = "http")]
fn endpoint(remote: &Remote, key: Option<&str>, settings: &Settings, entry: &ProviderEntry) -> Endpoint {
    let mut endpoint = Endpoint::new(&remote.base_url);
    endpoint.key_hint = key_hint(&remote.key, entry.key_var);
    endpoint.key = key.map(Secret::new);
    endpoint.idle_timeout = settings.idle_timeout;
    endpoint.proxy.clone_from(&settings.proxy);
    endpoint.no_proxy.clone_from(&settings.no_proxy);
    endpoint.ca_cert.clone_from(&settings.ca_cert);
    endpoint
}

/// Asks the server of a model which models it has.
///
/// # Errors
/// What went wrong. Many servers have no such list.
#[cfg(feature = "http")]
pub async fn listed(remote: &Remote, key: Option<&str>, settings: &Settings) -> Result<Vec<String>, ProviderError> {
    let Some(entry) = models::provider(&remote.provider) else { return Ok(Vec::new()) };
    listing::listed(entry.form, &remote.model, endpoint(remote, key, settings, entry)).await
}

/// Whether a model is known to take an effort.
#[cfg(feature = "http")]
pub fn takes_effort(remote: &Remote) -> bool {
    models::provider(&remote.provider).is_some_and(|entry| {
        quirks::takes_effort(&models::model(&remote.provider, &remote.model), &remote.base_url, entry.form)
    })
}

/// What a person should know of a model before it is asked: what was set and has no effect with it.
#[cfg(feature = "http")]
pub fn doubts(remote: &Remote, settings: &Settings) -> Vec<String> {
    let deaf = settings.effort.is_some() && !takes_effort(remote);
    let told = || format!("`effort` has no effect: {} is not known to take one from {}", remote.model, remote.provider);
    deaf.then(told).into_iter().collect()
}

#[cfg(feature = "http")]
fn key_hint(key: &KeyFrom, variable: &str) -> String {
    match key {
        KeyFrom::Variable(name) => name.clone(),
        KeyFrom::Command(_) => "apiKeyCommand".into(),
        KeyFrom::Nowhere => variable.to_owned(),
    }
}

/// The provider has no form that this build speaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the provider {0} is not known")]
pub struct UnknownForm(String);

/// The one wiring that all frontends call: settings, model, tools and rules make an agent. `config`: the user's directory
/// of settings, where instruction files may lie.
pub fn assemble(
    settings: &Settings,
    provider: Arc<dyn Provider>,
    tools: Tools,
    policy: Arc<dyn Policy>,
    surroundings: &Surroundings<'_>,
) -> (Agent, Vec<Instruction>) {
    let read = prompt::instructions(&surroundings.place.cwd, surroundings.config);
    let cwd = &surroundings.place.cwd;
    let git = prompt::project_root(cwd).is_some();
    let facts = Facts { cwd: cwd.clone(), platform: surroundings.platform.to_owned(), git };
    let toolset = settings.toolset(surroundings.local);
    let prompt = Sections::new(toolset, &facts, &read).with_skills(toolset, surroundings.skills, surroundings.selected);
    let prompt = Arc::new(prompt);
    let limits = Limits {
        max_turns: settings.max_turns,
        loop_limit: settings.loop_limit,
        max_sub_agents: settings.max_sub_agents,
        max_tokens: settings.max_tokens,
        effort: settings.effort,
        max_cost: settings.max_cost,
        compact: settings.compact,
    };
    (Agent { provider, fallbacks: Vec::new(), tools, policy, prompt, limits }, read)
}

/// What the system prompt tells of the place.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where the session is.
    pub place: &'a Place,
    /// The user's directory of settings.
    pub config: &'a Path,
    /// The operating system.
    pub platform: &'a str,
    /// The embedded model works there.
    pub local: bool,
    /// The skills that can be loaded.
    pub skills: &'a Catalogue,
    /// Those that the model has from the start: their names and texts.
    pub selected: &'a [(String, String)],
}
