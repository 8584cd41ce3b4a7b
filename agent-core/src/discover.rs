//! Finds a model: what was named, else keys in the environment, else servers on this machine, else the embedded one.

mod command_env;
mod known;
mod loopback;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use tokio::time::Instant;

pub use command_env::{command_env, own_keys};
use known::{ProviderEntry, providers};

use crate::provider::models::split;
use crate::settings::{Settings, without_credentials};

/// What lies outside of the program: a frontend looks it up and hands it in.
#[derive(Clone)]
#[non_exhaustive]
pub struct Outside<'a> {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The home directory, where there is one.
    pub home: Option<PathBuf>,
    /// The agent's own directories.
    pub dirs: Dirs,
    /// Looks up a variable of the environment.
    pub lookup: &'a (dyn Fn(&str) -> Option<String> + Send + Sync),
    /// Where servers on this machine may listen.
    pub servers: &'a [LocalServer],
    /// How long all of them together have to answer.
    pub patience: Duration,
}

impl<'a> Outside<'a> {
    /// Without a home, and with the usual servers.
    pub fn new(
        cwd: impl Into<PathBuf>,
        dirs: Dirs,
        lookup: &'a (dyn Fn(&str) -> Option<String> + Send + Sync),
    ) -> Self {
        Self { cwd: cwd.into(), home: None, dirs, lookup, servers: SERVERS, patience: PATIENCE }
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.lookup)(name).filter(|value| !value.trim().is_empty())
    }
}

/// The agent's own directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// `config.yaml`, the user's instructions.
    pub config: PathBuf,
    /// Sessions.
    pub data: PathBuf,
    /// What can be fetched again: models.
    pub cache: PathBuf,
}

impl Dirs {
    /// All in one, as `AGENT_HOME` has it.
    pub fn all_in(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self { config: home.clone(), data: home.clone(), cache: home }
    }
}

/// Where a server on this machine may listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalServer {
    /// What usually listens there.
    pub name: &'static str,
    /// A loopback address.
    pub address: SocketAddr,
}

const fn at(name: &'static str, port: u16) -> LocalServer {
    LocalServer { name, address: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port) }
}

/// The usual servers, the first that answers winning.
pub const SERVERS: &[LocalServer] =
    &[at("Ollama", 11434), at("LM Studio", 1234), at("llama.cpp", 8080), at("vLLM", 8000)];

const PATIENCE: Duration = Duration::from_millis(300);

/// A model that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Behind an address.
    Remote(Remote),
    /// The embedded one.
    Local {
        /// The name that was asked for.
        model: Option<String>,
    },
}

/// A model behind an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remote {
    /// The provider's name in the table of models.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The base address as it was given.
    pub base_url: String,
    /// Where its key is.
    pub key: KeyFrom,
    /// What it was found by, for a person.
    pub why: String,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFrom {
    /// There is none, and none is needed.
    Nowhere,
    /// In this variable.
    Variable(String),
    /// This command prints it.
    Command(String),
}

impl Choice {
    /// Which model it is and why, in one line.
    pub fn line(&self) -> String {
        match self {
            Self::Remote(remote) => format!("Using {} {}", remote.model, remote.why),
            Self::Local { model: None } => "Using the embedded model".into(),
            Self::Local { model: Some(name) } => format!("Using the embedded model {name}"),
        }
    }
}

/// Why no model was found, and what a person can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// No such provider.
    #[error(
        "There is no provider `{name}`; known are {known}. \
         For any other server, use the one whose interface it has, and --base-url"
    )]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The provider needs a key.
    #[error("The provider {provider} needs a key: set {variable}, or the settings apiKeyEnv or apiKeyCommand")]
    MissingKey {
        /// Whose.
        provider: String,
        /// Where it is looked for.
        variable: String,
    },
    /// The variable that was named holds nothing.
    #[error("The setting apiKeyEnv names {variable}, which is not set: set it to the key of {provider}")]
    EmptyVariable {
        /// Whose key.
        provider: String,
        /// Where it is looked for.
        variable: String,
    },
    /// A key, and nobody to give it to.
    #[error("The settings name a key (apiKeyEnv or apiKeyCommand) but not whose it is: set --provider, or --base-url")]
    NeedsProvider,
    /// This build has no embedded model.
    #[error(
        "This build has no embedded model; \
         set a key, or start a server on this machine (Ollama, LM Studio, llama.cpp, vLLM)"
    )]
    NotEmbedded,
    /// There is nothing at all.
    #[error(
        "No model was found{}. Set a key ({variables}), or start a server on this machine \
         (Ollama, LM Studio, llama.cpp, vLLM), or name one with --provider or --base-url",
        named(.model.as_deref())
    )]
    Nothing {
        /// The model that was asked for.
        model: Option<String>,
        /// Where keys are looked for.
        variables: String,
    },
}

fn named(model: Option<&str>) -> String {
    model.map(|name| format!(" that runs {name}")).unwrap_or_default()
}

/// Finds a model. Asks nobody but servers on this machine, and those only where neither settings nor keys name one and
/// `AGENT_NO_DISCOVERY` is not set.
///
/// # Errors
/// What was named does not exist or lacks something, or there is nothing.
pub async fn discover(settings: &Settings, outside: &Outside<'_>) -> Result<Choice, DiscoverError> {
    let search = Search { settings, outside };
    if let Some(name) = &settings.provider {
        return search.named(name).await;
    }
    if settings.base_url.is_some() {
        return search.named("openai").await;
    }
    if settings.api_key_env.is_some() || settings.api_key_command.is_some() {
        return Err(DiscoverError::NeedsProvider);
    }
    if let Some(entry) = search.by_key() {
        return search.remote(entry).await;
    }
    if let Some(remote) = search.on_this_machine().await {
        return Ok(Choice::Remote(remote));
    }
    search.embedded()
}

/// Who is asked when the first model fails, in the order of the setting `fallback`; and who was left out, and why.
pub async fn fallbacks(settings: &Settings, first: &Remote, outside: &Outside<'_>) -> (Vec<Remote>, Vec<String>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for name in &settings.fallback {
        match fallback(name, settings, first, outside).await {
            Ok(remote) => found.push(remote),
            Err(why) => {
                left_out.push(format!("{}: the fallback `{name}` is left out: {why}", settings.source("fallback")));
            }
        }
    }
    (found, left_out)
}

/// `MODEL` of the same provider, or `PROVIDER/MODEL` with the usual variables of that one.
async fn fallback(name: &str, settings: &Settings, first: &Remote, outside: &Outside<'_>) -> Result<Remote, String> {
    let (provider, model) = split(name);
    match provider.filter(|provider| *provider != first.provider) {
        None => Ok(Remote { model: model.to_owned(), ..first.clone() }),
        Some(provider) => match discover(&settings.elsewhere(provider, model), outside).await {
            Ok(Choice::Remote(remote)) => Ok(remote),
            Ok(Choice::Local { .. }) => Err("the embedded model stands in for nobody".into()),
            Err(why) => Err(why.to_string()),
        },
    }
}

struct Search<'a> {
    settings: &'a Settings,
    outside: &'a Outside<'a>,
}

impl Search<'_> {
    async fn named(&self, name: &str) -> Result<Choice, DiscoverError> {
        if name == "local" {
            let local = Choice::Local { model: self.settings.model.clone() };
            return if cfg!(feature = "local") { Ok(local) } else { Err(DiscoverError::NotEmbedded) };
        }
        match providers().iter().find(|entry| entry.name == name) {
            Some(entry) => self.remote(entry).await,
            None => Err(DiscoverError::UnknownProvider { name: name.into(), known: self.names() }),
        }
    }

    /// The first provider whose key or address the environment has; one that the model's name points to before all.
    fn by_key(&self) -> Option<&'static ProviderEntry> {
        let there = |entry: &&ProviderEntry| {
            self.outside.variable(entry.key_var).is_some() || self.own_address(entry).is_some()
        };
        let meant = self.settings.model.as_deref().and_then(known::maker);
        let first = providers().iter().filter(there).find(|entry| Some(entry.name) == meant);
        first.or_else(|| providers().iter().find(there))
    }

    async fn remote(&self, entry: &ProviderEntry) -> Result<Choice, DiscoverError> {
        let own = self.settings.base_url.clone().or_else(|| self.own_address(entry));
        let key = self.key(entry, own.is_some())?;
        let model = self.model(entry, own.as_deref()).await;
        let why = why(entry, own.as_deref(), &key);
        let base_url = own.unwrap_or_else(|| entry.base_url.into());
        Ok(Choice::Remote(Remote { provider: entry.name.into(), model, base_url, key, why }))
    }

    /// The address that the environment has for a provider.
    fn own_address(&self, entry: &ProviderEntry) -> Option<String> {
        entry.base_url_var.and_then(|name| self.outside.variable(name)).filter(|url| url != entry.base_url)
    }

    fn key(&self, entry: &ProviderEntry, own_address: bool) -> Result<KeyFrom, DiscoverError> {
        let provider = || entry.name.to_owned();
        match (&self.settings.api_key_env, &self.settings.api_key_command) {
            (Some(name), _) if self.outside.variable(name).is_some() => Ok(KeyFrom::Variable(name.clone())),
            (_, Some(command)) => Ok(KeyFrom::Command(command.clone())),
            (Some(name), None) => Err(DiscoverError::EmptyVariable { provider: provider(), variable: name.clone() }),
            (None, None) if self.outside.variable(entry.key_var).is_some() => {
                Ok(KeyFrom::Variable(entry.key_var.into()))
            }
            (None, None) if own_address => Ok(KeyFrom::Nowhere),
            (None, None) => Err(DiscoverError::MissingKey { provider: provider(), variable: entry.key_var.into() }),
        }
    }

    /// The model that was named; else what a server of the person's own has; else the provider's default.
    async fn model(&self, entry: &ProviderEntry, own_address: Option<&str>) -> String {
        if let Some(model) = &self.settings.model {
            return model.clone();
        }
        let own = own_address.filter(|_| self.may_look()).and_then(loopback::endpoint);
        let until = Instant::now() + self.outside.patience;
        let listed = match own {
            Some((address, path)) => loopback::models(address, &path, until).await,
            None => None,
        };
        listed.and_then(first_to_talk).unwrap_or_else(|| entry.model.to_owned())
    }

    fn may_look(&self) -> bool {
        self.outside.variable("AGENT_NO_DISCOVERY").is_none()
    }

    /// Asks all at once. The first in their order wins, so nobody waits for the later ones.
    async fn on_this_machine(&self) -> Option<Remote> {
        if !self.may_look() {
            return None;
        }
        let until = Instant::now() + self.outside.patience;
        let ask =
            |server: LocalServer| async move { (server, loopback::models(server.address, "/v1/models", until).await) };
        let mut answers: FuturesOrdered<_> = self.outside.servers.iter().copied().map(ask).collect();
        while let Some((server, models)) = answers.next().await {
            if let Some(model) = models.and_then(|models| self.wanted(models)) {
                let base_url = format!("http://{}", server.address);
                let why = format!("at {base_url} ({})", server.name);
                return Some(Remote { provider: "openai".into(), model, base_url, key: KeyFrom::Nowhere, why });
            }
        }
        None
    }

    fn wanted(&self, models: Vec<String>) -> Option<String> {
        match &self.settings.model {
            None => first_to_talk(models),
            Some(name) => models.into_iter().find(|id| id == name || id.strip_suffix(":latest") == Some(name)),
        }
    }

    fn embedded(&self) -> Result<Choice, DiscoverError> {
        match &self.settings.model {
            None if cfg!(feature = "local") => Ok(Choice::Local { model: None }),
            model => Err(DiscoverError::Nothing { model: model.clone(), variables: self.variables() }),
        }
    }

    fn names(&self) -> String {
        let embedded = cfg!(feature = "local").then_some("local");
        let names: Vec<&str> = providers().iter().map(|entry| entry.name).chain(embedded).collect();
        names.join(", ")
    }

    fn variables(&self) -> String {
        let names: Vec<&str> = providers().iter().take(5).map(|entry| entry.key_var).collect();
        names.join(", ")
    }
}

/// Whether a base address is that of a server on this machine.
#[cfg(feature = "http")]
pub(crate) fn is_on_this_machine(base_url: &str) -> bool {
    loopback::endpoint(base_url).is_some()
}

/// A model that only measures texts is no use for a conversation.
fn first_to_talk(models: Vec<String>) -> Option<String> {
    models.into_iter().find(|id| !id.to_lowercase().contains("embed"))
}

fn why(entry: &ProviderEntry, own_address: Option<&str>, key: &KeyFrom) -> String {
    let key = match key {
        KeyFrom::Nowhere => None,
        KeyFrom::Variable(name) => Some(name.as_str()),
        KeyFrom::Command(_) => Some("apiKeyCommand"),
    };
    match (own_address.map(without_credentials), key) {
        (None, None) => format!("of {}", entry.name),
        (None, Some(key)) => format!("of {} ({key})", entry.name),
        (Some(url), None) => format!("at {url} ({})", entry.name),
        (Some(url), Some(key)) => format!("at {url} ({}, {key})", entry.name),
    }
}
