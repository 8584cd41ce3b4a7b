//! Which model: found by settings, keys, servers on this machine, or the embedded one; and the agent made with it.

use std::process::{Command, Stdio};
use std::sync::Arc;

use agent_core::agent::{Surroundings, connect};
use agent_core::discover::{Choice, Dirs, KeyFrom, Outside, Remote, discover};
use agent_core::prompt::selected;
use agent_core::provider::Provider;
use agent_core::{Agent, assemble};
use agent_tools::Place;
use agent_tools::policy::Permissions;

use crate::error::CliError;
use crate::setup::Setup;
use crate::view::tell;
use crate::weights;

/// A model that was chosen.
pub struct Chosen {
    /// Its provider.
    pub provider: Arc<dyn Provider>,
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
    let world = &setup.world;
    let lookup = |name: &str| world.lookup(name);
    let dirs = Dirs { config: world.config.clone(), data: world.data.clone(), cache: world.cache.clone() };
    let mut outside = Outside::new(&world.cwd, dirs, &lookup);
    outside.home.clone_from(&world.home);
    let choice = discover(&setup.settings, &outside).await.map_err(CliError::usage)?;
    let line = choice.line();
    match choice {
        Choice::Remote(remote) => Ok(Chosen { provider: client(setup, &remote)?, local: false, line }),
        Choice::Local { model } => {
            let (provider, line) = weights::open(setup, model.as_deref(), attended, line).await?;
            Ok(Chosen { provider, local: true, line })
        }
    }
}

fn client(setup: &Setup, remote: &Remote) -> Result<Arc<dyn Provider>, CliError> {
    let key = match &remote.key {
        KeyFrom::Nowhere => None,
        KeyFrom::Variable(name) => setup.world.lookup(name),
        KeyFrom::Command(command) => Some(key_of(command)?),
    };
    connect(remote, key.as_deref(), &setup.settings).map_err(CliError::usage)
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

/// The agent with this model, and what is to be told about it.
///
/// # Errors
/// A skill that was named and is not there.
pub fn agent(
    setup: &Setup,
    chosen: Chosen,
    interactive: bool,
    attended: bool,
    place: &Place,
) -> Result<Agent, CliError> {
    // At the terminal the embedded model is asked about everything: it is often wrong.
    let asks = interactive || chosen.local && attended;
    let gate = setup.gate(if asks { Permissions::Ask } else { Permissions::Auto });
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
    let (mut agent, read) = assemble(&setup.settings, chosen.provider, tools, Arc::new(gate), &surroundings);
    if chosen.local && !setup.settings.is_set("maxTurns") {
        agent.limits.max_turns = weights::STEPS;
    }
    tell(&read.into_iter().filter_map(|file| file.notice).collect::<Vec<_>>());
    Ok(agent)
}
