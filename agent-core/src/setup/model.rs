//! Which model, and the agent made with it.

use std::process::{Command, Stdio};
use std::sync::Arc;

use agent_skills::Catalogue;
use agent_tools::Place;
use agent_tools::policy::Gate;

use super::{Setup, SetupError, SetupErrorKind};
use crate::agent::{Agent, Surroundings, assemble, connect, doubts};
use crate::discover::{KeyFrom, Remote, fallbacks};
use crate::prompt::selected;
use crate::provider::{Model, Provider, models as table};
use crate::settings::{Compact, Settings};

/// A model that was chosen.
#[derive(Clone)]
pub struct Chosen {
    /// Its provider.
    pub provider: Arc<dyn Provider>,
    /// Who is asked when it fails.
    pub fallbacks: Vec<Arc<dyn Provider>>,
    /// It is the embedded one.
    pub local: bool,
    /// Where it is, unless it is the embedded one.
    pub remote: Option<Remote>,
    /// The most requests that one prompt may take where no setting says otherwise.
    pub max_turns: Option<u64>,
    /// Which and why, in one line.
    pub line: String,
}

/// A model behind an address, with those that it falls back to. Nothing is sent yet.
///
/// # Errors
/// What was named lacks something.
pub async fn remote(setup: &Setup, remote: &Remote, line: String) -> Result<Chosen, SetupError> {
    let lookup = |name: &str| setup.world.lookup(name);
    let (others, left_out) = fallbacks(&setup.settings, remote, &setup.outside(&lookup)).await;
    setup.tell(&doubts(remote, &setup.settings));
    setup.tell(&left_out);
    let mut clients = clients(setup, remote, &others)?.into_iter();
    let provider = clients.next().ok_or_else(|| SetupError::new(SetupErrorKind::NoModel, "there is no model"))?;
    let (fallbacks, remote) = (clients.collect(), Some(remote.clone()));
    Ok(Chosen { provider, fallbacks, local: false, remote, max_turns: None, line })
}

/// The clients of a model and of those that stand in for it. A command that prints a key is run once.
///
/// # Errors
/// That command fails; a provider that is none of the table.
pub fn clients(setup: &Setup, first: &Remote, others: &[Remote]) -> Result<Vec<Arc<dyn Provider>>, SetupError> {
    let first_key = key(setup, first)?;
    let client = |remote: &Remote| {
        let key = if remote.key == first.key { first_key.clone() } else { key(setup, remote)? };
        connect(remote, key.as_deref(), &setup.settings).map_err(SetupError::usage)
    };
    std::iter::once(first).chain(others).map(client).collect()
}

/// The key of a model, where it has one.
///
/// # Errors
/// The command that is to print it fails.
pub fn key(setup: &Setup, remote: &Remote) -> Result<Option<String>, SetupError> {
    match &remote.key {
        KeyFrom::Nowhere => Ok(None),
        KeyFrom::Variable(name) => Ok(setup.world.lookup(name)),
        KeyFrom::Command(command) => key_of(command, setup).map(Some),
    }
}

/// Runs the person's own command for a key. Its output is the key and is told nobody.
fn key_of(command: &str, setup: &Setup) -> Result<String, SetupError> {
    let failed = |why: String| SetupError::usage(format!("the setting apiKeyCommand (`{command}`): {why}"));
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(&setup.world.cwd)
        .env_clear()
        .envs(setup.world.env.iter().map(|(name, value)| (name, value)))
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

/// An agent, and what a frontend keeps of its making.
pub struct Equipped {
    /// The agent.
    pub agent: Agent,
    /// Its gate, whose rules can be changed.
    pub gate: Arc<Gate>,
    /// The skills that it can load.
    pub skills: Arc<Catalogue>,
}

/// The agent with this model. `platform`: the operating system.
///
/// # Errors
/// A skill that was named and is not there; a limit of money that cannot be held.
pub fn equipped(
    setup: &Setup,
    chosen: Chosen,
    gate: Arc<Gate>,
    place: &Place,
    platform: &str,
) -> Result<Equipped, SetupError> {
    let skills = Arc::new(setup.catalogue(chosen.local));
    let selected = selected(&skills, &setup.skills).map_err(|e| {
        SetupError::usage(format!("--skill: {e}")).hint("`agent skills` lists them, and says where they are looked for")
    })?;
    let tools = setup.tools(chosen.local, skills.clone());
    // The embedded model takes what fits of a conversation by itself: its own summaries lose more.
    let compacts = !chosen.local || setup.settings.is_set("compact");
    let surroundings = Surroundings {
        place,
        config: &setup.world.dirs.config,
        platform,
        local: chosen.local,
        skills: &skills,
        selected: &selected,
    };
    let (mut agent, read) = assemble(&setup.settings, chosen.provider, tools, gate.clone(), &surroundings);
    agent.fallbacks = chosen.fallbacks;
    if !compacts {
        agent.limits.compact = Compact::Off;
    }
    priced(&agent)?;
    if let Some(most) = chosen.max_turns.filter(|_| !setup.settings.is_set("maxTurns")) {
        agent.limits.max_turns = most;
    }
    setup.tell(&read.into_iter().filter_map(|file| file.notice).collect::<Vec<_>>());
    Ok(Equipped { agent, gate, skills })
}

/// A limit of money holds only where the prices are known.
fn priced(agent: &Agent) -> Result<(), SetupError> {
    let models = std::iter::once(&agent.provider).chain(&agent.fallbacks).map(|provider| provider.model());
    match models.filter(|model| model.prices.is_none()).find(|_| agent.limits.max_cost.is_some()) {
        None => Ok(()),
        Some(model) => Err(SetupError::usage(format!("maxCost cannot be held: the prices of {} are not known", model.name))
            .hint(format!(
                "set them in your settings (`models: {{{}: {{cost: {{input: 3, output: 15}}}}}}`, dollars per million tokens), or leave maxCost out",
                model.name
            ))),
    }
}

/// The settings with another model: `NAME` of the same provider, or `PROVIDER/NAME`. Address and key are those of one
/// provider and not handed to another.
pub fn with_model(settings: &Settings, now: &Model, name: &str) -> Settings {
    match table::split(name) {
        (Some(provider), model) if provider != now.provider => settings.elsewhere(provider, model),
        (provider, model) => {
            let mut settings = settings.clone();
            settings.provider = provider.map(str::to_owned).or(settings.provider);
            settings.model = Some(model.to_owned());
            settings
        }
    }
}

/// The model, and those that can be gone on with, a line each. `embedded`: the embedded one is among these.
pub fn models(setup: &Setup, now: &Model, embedded: bool) -> Vec<String> {
    let Model { provider, name, context, .. } = now;
    let mut lines =
        vec![format!("{provider}/{name}, {context} tokens of context; /model NAME or /model PROVIDER/NAME:")];
    let has_key = |entry: &table::ProviderEntry| setup.world.lookup(entry.key_var).is_some();
    for entry in table::providers() {
        let key = if has_key(entry) { format!("{} is set", entry.key_var) } else { format!("needs {}", entry.key_var) };
        lines.push(format!("  {}/{} ({key})", entry.name, entry.model));
    }
    lines.extend(embedded.then(|| "  local/ and a name of `agent model list`".to_owned()));
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
