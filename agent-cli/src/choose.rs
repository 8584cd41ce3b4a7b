//! Which model: found by settings, keys, servers on this machine, or the embedded one; and the agent made with it.

use std::sync::Arc;

use agent_core::discover::{Choice, discover};
use agent_core::provider::Model;
use agent_core::setup::{self, Chosen, Equipped, remote};
use agent_tools::Place;
use agent_tools::policy::{Gate, Permissions};

use crate::error::CliError;
use crate::setup::Setup;
use crate::weights;

/// Chooses the model.
///
/// # Errors
/// There is none, or what was named lacks something.
pub async fn choose(setup: &Setup, attended: bool) -> Result<Chosen, CliError> {
    let lookup = |name: &str| setup.world.lookup(name);
    let choice = discover(&setup.settings, &setup.outside(&lookup)).await.map_err(CliError::usage)?;
    let line = choice.line();
    match choice {
        Choice::Remote(found) => Ok(remote(setup, &found, line).await?),
        Choice::Local { model } => {
            let (provider, line) = weights::open(setup, model.as_deref(), attended, line).await?;
            let max_turns = Some(weights::STEPS);
            Ok(Chosen { provider, fallbacks: Vec::new(), local: true, remote: None, max_turns, line })
        }
    }
}

/// The gate for this model.
pub fn gate(setup: &Setup, chosen: &Chosen, interactive: bool, attended: bool) -> Arc<Gate> {
    // At the terminal the embedded model is asked about everything: it is often wrong.
    let asks = interactive || chosen.local && attended;
    Arc::new(setup.gate(if asks { Permissions::Ask } else { Permissions::Auto }))
}

/// The agent with this model.
///
/// # Errors
/// A skill that was named and is not there; a limit of money that cannot be held.
pub fn agent(setup: &Setup, chosen: Chosen, gate: Arc<Gate>, place: &Place) -> Result<Equipped, CliError> {
    Ok(setup::equipped(setup, chosen, gate, place, std::env::consts::OS)?)
}

/// The model, and those that can be gone on with, a line each.
pub fn models(setup: &Setup, now: &Model) -> Vec<String> {
    setup::models(setup, now, cfg!(feature = "local"))
}
