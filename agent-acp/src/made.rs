//! What a session works with: settings, agent, rules, models; replaced as the person chooses.

use std::path::PathBuf;
use std::sync::Arc;

use agent_core::agent::{known, listed, takes_effort};
use agent_core::discover::{Choice, Remote, discover};
use agent_core::mcp::Servers;
use agent_core::prompt::Section;
use agent_core::provider::models;
use agent_core::settings::{ServerSpec, Source};
use agent_core::setup::{self, Chosen, Equipped, Setup, SetupError, SetupErrorKind, World, key, remote, with_model};
use agent_core::{Agent, Clock};
use agent_skills::Catalogue;
use agent_tools::Place;
use agent_tools::policy::{Gate, Permissions};
use agent_tools::toolset::Toolset;

/// What all sessions of this process begin with.
#[derive(Clone)]
pub struct House {
    /// Where the program is.
    pub world: World,
    /// Where the user's settings lie.
    pub settings_file: PathBuf,
    /// The settings among the options of the command line.
    pub options: Vec<(String, String)>,
    /// Skills that the model has from the start.
    pub skills: Vec<String>,
    /// Whether sessions are kept.
    pub keeps: bool,
    /// The operating system.
    pub platform: &'static str,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Where a person finds what no client shows.
    pub log: Arc<dyn Fn(&str) + Send + Sync>,
}

/// What the client adds to a session's system prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Instead of our rules.
    pub instead: Option<String>,
    /// Behind all else.
    pub behind: String,
}

/// What a session works with.
pub struct Made {
    /// The settings of its place.
    pub setup: Setup,
    /// The agent.
    pub agent: Agent,
    /// Its rules.
    pub gate: Arc<Gate>,
    /// The skills.
    pub skills: Arc<Catalogue>,
    /// The models that can be chosen: `provider/name`.
    pub models: Vec<String>,
    /// Where the session is.
    pub place: Arc<Place>,
    /// Servers of tools, which join when they are there.
    pub servers: Arc<Servers>,
    remote: Option<Remote>,
    added: Added,
}

impl House {
    /// The settings of a place, with these further directories.
    ///
    /// # Errors
    /// Settings that cannot be read or understood.
    pub fn setup(&self, cwd: PathBuf, further: Vec<PathBuf>, tell: setup::Tell) -> Result<Setup, SetupError> {
        let world = self.world.at(cwd);
        let mut setup = Setup::new(world, &self.settings_file, &self.options, self.clock.clone(), tell)?;
        setup.keeps = self.keeps;
        setup.skills.clone_from(&self.skills);
        setup.settings.additional_directories.extend(further);
        setup.tell(&setup.warnings);
        Ok(setup)
    }
}

/// Whether the model that sessions begin with takes pictures, as far as that is known without asking any server.
pub async fn sees(house: &House) -> bool {
    let Ok(setup) = house.setup(house.world.cwd.clone(), Vec::new(), Arc::new(|_: &[String]| {})) else { return false };
    let lookup = |name: &str| setup.world.lookup(name);
    let mut outside = setup.outside(&lookup);
    outside.servers = &[];
    match discover(&setup.settings, &outside).await {
        Ok(Choice::Remote(remote)) => known(&remote, &setup.settings).sees,
        Ok(Choice::Local { .. }) | Err(_) => false,
    }
}

/// Chooses the model of these settings.
///
/// # Errors
/// There is none, or what was named lacks something.
pub async fn choose(setup: &Setup) -> Result<Chosen, SetupError> {
    let lookup = |name: &str| setup.world.lookup(name);
    let none = |problem: String| SetupError::new(SetupErrorKind::NoModel, problem);
    let choice = discover(&setup.settings, &setup.outside(&lookup)).await.map_err(|e| none(e.to_string()))?;
    let line = choice.line();
    match choice {
        Choice::Remote(found) => remote(setup, &found, line).await,
        Choice::Local { .. } => Err(none("no model was found for this agent".into())
            .hint("set a provider's key (ANTHROPIC_API_KEY, OPENAI_API_KEY, …) in the environment that the editor gives to agents, or `provider`, `model` and `baseUrl` in config.yaml")
            .hint("a server on this machine (Ollama, LM Studio, llama.cpp, vLLM) is found by itself; the embedded model works in `agent` alone")),
    }
}

impl Made {
    /// What a new session works with.
    ///
    /// # Errors
    /// A skill that is not there; a limit of money that cannot be held.
    pub fn new(
        setup: Setup,
        chosen: Chosen,
        place: Arc<Place>,
        added: Added,
        servers: Vec<ServerSpec>,
        platform: &str,
    ) -> Result<Self, SetupError> {
        // A file cannot make a client's session ask less: the person who starts this program, or clicks, can.
        let flag = matches!(setup.settings.source("permissions"), Source::Flag(_));
        let permissions = setup.settings.permissions.filter(|_| flag).unwrap_or(Permissions::Ask);
        let gate = Arc::new(Gate::new(setup.settings.mode, permissions));
        let servers = Arc::new(setup.servers(servers));
        let mut made = Self::with(setup, chosen, gate, place, added, servers, platform)?;
        made.models = made.known();
        Ok(made)
    }

    fn with(
        setup: Setup,
        chosen: Chosen,
        gate: Arc<Gate>,
        place: Arc<Place>,
        added: Added,
        servers: Arc<Servers>,
        platform: &str,
    ) -> Result<Self, SetupError> {
        let remote = chosen.remote.clone();
        let Equipped { mut agent, gate, skills } = setup::equipped(&setup, chosen, gate, &place, platform)?;
        let mut sections = agent.prompt.as_ref().clone();
        if let Some(rules) = &added.instead {
            sections = sections.with(Section::Rules, rules);
        }
        agent.prompt = Arc::new(sections.with(Section::Added, &added.behind));
        Ok(Self { setup, agent, gate, skills, models: Vec::new(), place, servers, remote, added })
    }

    /// The same with another model.
    ///
    /// # Errors
    /// What that model lacks.
    pub async fn with_model(setup: &Setup, now: &Agent, id: &str) -> Result<(Setup, Chosen), SetupError> {
        let mut setup = setup.clone();
        setup.settings = with_model(&setup.settings, now.provider.model(), id);
        let chosen = choose(&setup).await?;
        Ok((setup, chosen))
    }

    /// Goes on with another model; what the person chose besides stays.
    ///
    /// # Errors
    /// See [`Made::new`].
    pub fn switch(&mut self, setup: Setup, chosen: Chosen, platform: &str) -> Result<(), SetupError> {
        let mut made = Self::with(
            setup,
            chosen,
            self.gate.clone(),
            self.place.clone(),
            self.added.clone(),
            self.servers.clone(),
            platform,
        )?;
        (made.agent.limits.effort, made.agent.limits.compact) = (self.agent.limits.effort, self.agent.limits.compact);
        made.models = std::mem::take(&mut self.models);
        *self = made;
        let id = self.model_id();
        if !self.models.contains(&id) {
            self.models.insert(0, id);
        }
        Ok(())
    }

    /// The agent, with the tools of the servers that are there by now.
    pub fn agent(&self) -> Agent {
        Agent { tools: self.servers.equip(&self.agent.tools), ..self.agent.clone() }
    }

    /// The toolset.
    pub fn toolset(&self) -> Toolset {
        self.setup.settings.toolset(false)
    }

    /// The model in use, as an option has it.
    pub fn model_id(&self) -> String {
        let model = self.agent.provider.model();
        format!("{}/{}", model.provider, model.name)
    }

    /// Whether the model is known to take an effort.
    pub fn takes_effort(&self) -> bool {
        self.remote.as_ref().is_some_and(takes_effort)
    }

    /// The models that are known without asking anybody: the one in use, those it falls back to, and those of providers
    /// whose key is there.
    fn known(&self) -> Vec<String> {
        let name = |model: &agent_core::provider::Model| format!("{}/{}", model.provider, model.name);
        let mut ids = vec![self.model_id()];
        ids.extend(self.agent.fallbacks.iter().map(|provider| name(provider.model())));
        let has_key = |entry: &&models::ProviderEntry| self.setup.world.lookup(entry.key_var).is_some();
        // The address of the provider in use may be anybody's: which models are there its own list says.
        let others = models::providers().iter().filter(has_key);
        let others = others.filter(|entry| entry.name != self.agent.provider.model().provider);
        ids.extend(others.map(|entry| format!("{}/{}", entry.name, entry.model)));
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        ids
    }

    /// Where the model is.
    pub fn remote(&self) -> Option<Remote> {
        self.remote.clone()
    }
}

/// The most models that a client is shown.
const MOST_MODELS: usize = 200;

/// Asks the server of a model which others it has. Many have no such list.
pub async fn list(setup: &Setup, remote: &Remote) -> Vec<String> {
    let Ok(key) = key(setup, remote) else { return Vec::new() };
    let names = listed(remote, key.as_deref(), &setup.settings).await.unwrap_or_default();
    names.into_iter().take(MOST_MODELS).map(|name| format!("{}/{name}", remote.provider)).collect()
}
