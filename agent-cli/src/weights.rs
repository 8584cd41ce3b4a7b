//! The embedded model from the program's side: consent, fetching, opening, and what is said about it.

use std::sync::Arc;

use agent_core::provider::Provider;

use crate::error::CliError;
use crate::setup::Setup;

#[cfg(feature = "local")]
mod there {
    use std::io::{self, IsTerminal, Write};
    use std::path::PathBuf;

    use agent_core::provider::local::{self, Local};
    use agent_core::settings::Source;

    use super::{Arc, CliError, Provider, Setup};
    use crate::args::Task;
    use crate::command;
    use crate::model;
    use crate::view::tell;

    /// The most requests that one prompt may take.
    pub const STEPS: u64 = local::MAX_STEPS;

    /// Opens the embedded model, after fetching it where a person wants that. Gives the line to tell about it.
    ///
    /// # Errors
    /// No consent, or the weights cannot be had.
    pub async fn open(
        setup: &Setup,
        model: Option<&str>,
        attended: bool,
        line: String,
    ) -> Result<(Arc<dyn Provider>, String), CliError> {
        if let Some(name) = model.filter(|name| name.trim_start_matches("local:") != local::NAME) {
            return Err(CliError::usage(format!("the embedded model is {}, not {name}", local::NAME))
                .hint("leave --model out, or name another provider with --provider"));
        }
        let weights = match model::find(named(setup).as_deref(), &setup.world.dirs.cache) {
            Some(path) if path.is_file() => path,
            Some(path) => {
                return Err(CliError::usage(format!("AGENT_MODEL_PATH names {}, which is no file", path.display())));
            }
            None if agreed(setup, attended).await? => fetched(setup).await?,
            None => return Err(CliError::usage(model::how_to_go_on(&prompt(setup)))),
        };
        let provider = Local::open(&weights, Some(&setup.world.dirs.cache));
        Ok((Arc::new(provider), limits(setup, line)))
    }

    /// Where the weights lie, if they are here.
    pub fn found(setup: &Setup) -> Option<PathBuf> {
        model::find(named(setup).as_deref(), &setup.world.dirs.cache).filter(|path| path.is_file())
    }

    /// `agent model fetch`.
    pub async fn fetch(setup: &Setup) -> Result<(), CliError> {
        let path = fetched(setup).await?;
        command::print(&format!("{}\n", path.display()))
    }

    /// `agent model list`.
    pub fn list(setup: &Setup) -> Result<(), CliError> {
        let mut text = Vec::new();
        command::model::list(named(setup).as_deref(), &setup.world.dirs.cache, &mut text).map_err(CliError::failed)?;
        command::print(&String::from_utf8_lossy(&text))
    }

    fn named(setup: &Setup) -> Option<PathBuf> {
        setup.world.lookup("AGENT_MODEL_PATH").map(|path| setup.world.cwd.join(path))
    }

    /// `--local` is a yes; at a terminal a person is asked; anything else is a no.
    async fn agreed(setup: &Setup, attended: bool) -> Result<bool, CliError> {
        if *setup.settings.source("provider") == Source::Flag("--local".into()) {
            return Ok(true);
        }
        if !attended {
            return Ok(false);
        }
        let failed = |e: io::Error| CliError::failed(format!("asking at the terminal: {e}"));
        write!(io::stderr(), "{}", model::question(&setup.world.dirs.cache)).map_err(failed)?;
        io::stderr().flush().map_err(failed)?;
        // On a thread, so that a signal ends the program meanwhile.
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = read.await.map_err(|e| failed(e.into()))?.map_err(failed)?;
        Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    async fn fetched(setup: &Setup) -> Result<PathBuf, CliError> {
        command::model::fetched(&setup.world.dirs.cache, io::stderr(), io::stderr().is_terminal())
            .await
            .map_err(CliError::failed)
    }

    fn prompt(setup: &Setup) -> String {
        match &setup.args.task {
            Task::Prompt(prompt) => prompt.clone(),
            _ => String::new(),
        }
    }

    /// What the model can and cannot do is said once; afterwards the line alone.
    fn limits(setup: &Setup, line: String) -> String {
        let told = setup.world.dirs.cache.join("models").join("limits-told");
        if told.exists() {
            return line;
        }
        if let Some(parent) = told.parent() {
            // Where this cannot be kept it is told again.
            let _ = std::fs::create_dir_all(parent);
        }
        let _ = std::fs::write(&told, "");
        tell(&[local::LIMITS.to_owned()]);
        line
    }
}

#[cfg(not(feature = "local"))]
mod there {
    use super::{Arc, CliError, Provider, Setup};

    /// The most requests that one prompt may take.
    pub const STEPS: u64 = 0;

    fn none() -> CliError {
        CliError::usage("this build has no embedded model")
            .hint("build with the feature `local`, or set a provider's key")
    }

    /// There is none to open.
    pub async fn open(
        _setup: &Setup,
        _model: Option<&str>,
        _attended: bool,
        _line: String,
    ) -> Result<(Arc<dyn Provider>, String), CliError> {
        Err(none())
    }

    /// There are none.
    pub fn found(_setup: &Setup) -> Option<std::path::PathBuf> {
        None
    }

    /// There is none to fetch.
    pub async fn fetch(_setup: &Setup) -> Result<(), CliError> {
        Err(none())
    }

    /// There is none to list.
    pub fn list(_setup: &Setup) -> Result<(), CliError> {
        Err(none())
    }
}

pub use there::{STEPS, fetch, found, list, open};
