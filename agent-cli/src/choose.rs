//! Which model: found by settings, keys, servers on this machine, or the embedded one; and the agent made with it.

use std::process::{Command, Stdio};
use std::sync::Arc;

use agent_core::agent::{Surroundings, connect, doubts};
use agent_core::discover::{Choice, Dirs, KeyFrom, Outside, Remote, discover, fallbacks};
use agent_core::prompt::selected;
use agent_core::provider::{Model, Provider, models};
use agent_core::settings::Settings;
use agent_core::{Agent, assemble};
use agent_skills::Catalogue;
use agent_tools::Place;
use agent_tools::policy::{Gate, Permissions};

use crate::error::CliError;
use crate::setup::Setup;
use crate::view::tell;
use crate::weights;

/// A model that was chosen.
#[derive(Clone)]
pub struct Chosen {
    /// Its provider.
    pub provider: Arc<dyn Provider>,
    /// Who is asked when it fails.
    pub fallbacks: Vec<Arc<dyn Provider>>,
    /// It is the embedded one.
    pub local: bool,
    /// Which and why, in one line.
    pub line: String,
}

/// Chooses the model.
///
/// # Errors
/// There is none, or what was named lacks something.
pub async fn choose(setup: &Setup, attended: bool) -> Result<Chosen, CliError> {
    let lookup = |name: &str| setup.world.lookup(name);
    let outside = outside(setup, &lookup);
    let choice = discover(&setup.settings, &outside).await.map_err(CliError::usage)?;
    let line = choice.line();
    match choice {
        Choice::Remote(remote) => {
            let (others, left_out) = fallbacks(&setup.settings, &remote, &outside).await;
            tell(&doubts(&remote, &setup.settings));
            tell(&left_out);
            let mut clients = clients(setup, &remote, &others)?.into_iter();
            let provider = clients.next().ok_or_else(|| CliError::failed("there is no model"))?;
            Ok(Chosen { provider, fallbacks: clients.collect(), local: false, line })
        }
        Choice::Local { model } => {
            let (provider, line) = weights::open(setup, model.as_deref(), attended, line).await?;
            Ok(Chosen { provider, fallbacks: Vec::new(), local: true, line })
        }
    }
}

/// What lies outside of the program.
pub fn outside<'a>(setup: &Setup, lookup: &'a (dyn Fn(&str) -> Option<String> + Send + Sync)) -> Outside<'a> {
    let world = &setup.world;
    let dirs = Dirs { config: world.config.clone(), data: world.data.clone(), cache: world.cache.clone() };
    let mut outside = Outside::new(&world.cwd, dirs, lookup);
    outside.home.clone_from(&world.home);
    outside
}

/// The clients of a model and of those that stand in for it. A command that prints a key is run once.
fn clients(setup: &Setup, first: &Remote, others: &[Remote]) -> Result<Vec<Arc<dyn Provider>>, CliError> {
    let first_key = key(setup, first)?;
    let client = |remote: &Remote| {
        let key = if remote.key == first.key { first_key.clone() } else { key(setup, remote)? };
        connect(remote, key.as_deref(), &setup.settings).map_err(CliError::usage)
    };
    std::iter::once(first).chain(others).map(client).collect()
}

/// The key of a model, where it has one.
///
/// # Errors
/// The command that is to print it fails.
pub fn key(setup: &Setup, remote: &Remote) -> Result<Option<String>, CliError> {
    match &remote.key {
        KeyFrom::Nowhere => Ok(None),
        KeyFrom::Variable(name) => Ok(setup.world.lookup(name)),
        KeyFrom::Command(command) => key_of(command).map(Some),
    }
}

/// Runs the person's own command for a key. Its output is the key and is told nobody.
fn key_of(command: &str) -> Result<String, CliError> {
    let failed = |why: String| CliError::usage(format!("the setting apiKeyCommand (`{command}`): {why}"));
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !key.is_empty() {
        true => Ok(key),
        false => Err(failed(format!(
            "it ended with {} and printed {}",
            output.status,
            if key.is_empty() { "no key" } else { "something" }
        ))),
    }
}

/// An agent, and what the terminal keeps of its making.
pub struct Equipped {
    /// The agent.
    pub agent: Agent,
    /// Its gate, whose rules can be changed.
    pub gate: Arc<Gate>,
    /// The skills that it can load.
    pub skills: Arc<Catalogue>,
}

/// The gate for this model.
pub fn gate(setup: &Setup, chosen: &Chosen, interactive: bool, attended: bool) -> Arc<Gate> {
    // At the terminal the embedded model is asked about everything: it is often wrong.
    let asks = interactive || chosen.local && attended;
    Arc::new(setup.gate(if asks { Permissions::Ask } else { Permissions::Auto }))
}

/// The agent with this model, and what is to be told about it.
///
/// # Errors
/// A skill that was named and is not there.
pub fn agent(setup: &Setup, chosen: Chosen, gate: Arc<Gate>, place: &Place) -> Result<Equipped, CliError> {
    let skills = Arc::new(setup.catalogue(chosen.local));
    let selected = selected(&skills, &setup.args.skills).map_err(|e| {
        CliError::usage(format!("--skill: {e}")).hint("`agent skills` lists them, and says where they are looked for")
    })?;
    let tools = setup.tools(chosen.local, skills.clone());
    let surroundings = Surroundings {
        place,
        config: &setup.world.config,
        platform: std::env::consts::OS,
        local: chosen.local,
        skills: &skills,
        selected: &selected,
    };
    let (mut agent, read) = assemble(&setup.settings, chosen.provider, tools, gate.clone(), &surroundings);
    agent.fallbacks = chosen.fallbacks;
    priced(&agent)?;
    if chosen.local && !setup.settings.is_set("maxTurns") {
        agent.limits.max_turns = weights::STEPS;
    }
    tell(&read.into_iter().filter_map(|file| file.notice).collect::<Vec<_>>());
    Ok(Equipped { agent, gate, skills })
}

/// A limit of money holds only where the prices are known.
fn priced(agent: &Agent) -> Result<(), CliError> {
    let models = std::iter::once(&agent.provider).chain(&agent.fallbacks).map(|provider| provider.model());
    match models.filter(|model| model.prices.is_none()).find(|_| agent.limits.max_cost.is_some()) {
        None => Ok(()),
        Some(model) => Err(CliError::usage(format!("maxCost cannot be held: the prices of {} are not known", model.name))
            .hint(format!(
                "set them in your settings (`models: {{{}: {{cost: {{input: 3, output: 15}}}}}}`, dollars per million tokens), or leave maxCost out",
                model.name
            ))),
    }
}

/// The settings with another model: `NAME` of the same provider, or `PROVIDER/NAME`. Address and key are those of one
/// provider and not handed to another.
pub fn with_model(settings: &Settings, now: &Model, name: &str) -> Settings {
    match models::split(name) {
        (Some(provider), model) if provider != now.provider => settings.elsewhere(provider, model),
        (provider, model) => {
            let mut settings = settings.clone();
            settings.provider = provider.map(str::to_owned).or(settings.provider);
            settings.model = Some(model.to_owned());
            settings
        }
    }
}

/// The model, and those that can be gone on with, a line each.
pub fn models(setup: &Setup, now: &Model) -> Vec<String> {
    let Model { provider, name, context, .. } = now;
    let mut lines =
        vec![format!("{provider}/{name}, {context} tokens of context; /model NAME or /model PROVIDER/NAME:")];
    let has_key = |entry: &models::ProviderEntry| setup.world.lookup(entry.key_var).is_some();
    for entry in models::providers() {
        let key = if has_key(entry) { format!("{} is set", entry.key_var) } else { format!("needs {}", entry.key_var) };
        lines.push(format!("  {}/{} ({key})", entry.name, entry.model));
    }
    lines.extend(cfg!(feature = "local").then(|| "  local/ and a name of `agent model list`".to_owned()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_model_keeps_the_key_of_its_provider_to_itself() {
        let mut settings = Settings::default();
        settings.base_url = Some("http://10.0.0.1/v1".into());
        settings.api_key_env = Some("MY_KEY".into());
        let now = Model::new("openai", "gpt-x");
        for (name, provider, model, keeps) in [
            ("gpt-y", None, "gpt-y", true),
            ("openai/gpt-y", Some("openai"), "gpt-y", true),
            ("anthropic/claude-z", Some("anthropic"), "claude-z", false),
            ("openrouter/openai/gpt-y", Some("openrouter"), "openai/gpt-y", false),
            ("meta-llama/llama", None, "meta-llama/llama", true),
        ] {
            let changed = with_model(&settings, &now, name);
            assert_eq!((changed.provider.as_deref(), changed.model.as_deref()), (provider, Some(model)), "{name}");
            assert_eq!((changed.base_url.is_some(), changed.api_key_env.is_some()), (keeps, keeps), "{name}");
        }
    }
}
