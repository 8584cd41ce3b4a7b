//! What every command starts from: the command line, and what all frontends start from.

use std::env;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::Clock;
use agent_core::discover::Dirs;
use agent_core::setup::{self, Wanted, Which, World};
use etcetera::BaseStrategy;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::args::Args;
use crate::error::CliError;
use crate::view::tell;

/// The real clock.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The real world.
fn world(cwd: Option<&Path>) -> Result<World, CliError> {
    World::new(working_directory(cwd)?, env::vars_os().collect(), platform_directories)
}

fn working_directory(wanted: Option<&Path>) -> Result<PathBuf, CliError> {
    let here = env::current_dir();
    let gone = |e: std::io::Error| {
        CliError::usage(format!("the working directory cannot be used: {e}"))
            .hint("change to a directory that exists, or name one with --cwd DIR")
    };
    let Some(wanted) = wanted else { return here.map_err(gone) };
    let path = if wanted.is_absolute() { wanted.to_owned() } else { here.map_err(gone)?.join(wanted) };
    let path = path.canonicalize().map_err(|e| {
        CliError::usage(format!("--cwd {}: {e}", wanted.display())).hint("name a directory that exists")
    })?;
    if path.is_dir() { Ok(path) } else { Err(CliError::usage(format!("--cwd {} is no directory", wanted.display()))) }
}

fn platform_directories() -> Result<Dirs, CliError> {
    let base = etcetera::choose_base_strategy().map_err(|e| {
        CliError::usage(format!("no home directory was found: {e}"))
            .hint("set HOME, or AGENT_HOME to a directory for settings and sessions")
    })?;
    let [config, data, cache] = [base.config_dir(), base.data_dir(), base.cache_dir()].map(|dir| dir.join("agent"));
    Ok(Dirs { config, data, cache })
}

/// What every command starts from. What all frontends start from is read through it.
#[derive(Clone)]
pub struct Setup {
    /// The command line.
    pub args: Args,
    /// Where the user's settings lie, if there are any.
    pub settings_file: PathBuf,
    shared: setup::Setup,
}

impl Deref for Setup {
    type Target = setup::Setup;

    fn deref(&self) -> &setup::Setup {
        &self.shared
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut setup::Setup {
        &mut self.shared
    }
}

impl Setup {
    /// Reads the settings of this place.
    ///
    /// # Errors
    /// Settings that cannot be read or understood.
    pub fn new(args: Args) -> Result<Self, CliError> {
        let world = world(args.cwd.as_deref())?;
        let named = args.config.as_ref().map(|file| world.cwd.join(file));
        let settings_file = named.unwrap_or_else(|| world.dirs.config.join("config.yaml"));
        if args.config.is_some() && !settings_file.exists() {
            return Err(CliError::usage(format!("--config {} does not exist", settings_file.display()))
                .hint("name a file that exists, or leave --config out; `agent config` lists all settings"));
        }
        let mut shared = setup::Setup::new(world, &settings_file, &args.settings, Arc::new(RealClock), Arc::new(tell))?;
        shared.keeps = !args.no_session;
        shared.skills.clone_from(&args.skills);
        Ok(Self { args, settings_file, shared })
    }

    /// Which session the command line asks for.
    pub fn wanted(&self) -> Wanted {
        let last = self.args.continue_last || self.args.fork;
        let which = match &self.args.resume {
            Some(name) => Which::Named(name.clone()),
            None if last => Which::Last,
            None => Which::New,
        };
        Wanted { which, fork: self.args.fork }
    }

    /// A directory for the todo list, plan and outputs of calls outside a session: for its owner alone, and removed when
    /// it is dropped.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn temporary_store(&self) -> Result<TempDir, CliError> {
        let made = tempfile::Builder::new().prefix("agent-tool-call-").tempdir();
        made.map_err(|e| CliError::failed(format!("making a directory in {}: {e}", env::temp_dir().display())))
    }
}
