//! What every command starts from: where we are, the settings, and what is made from them.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::discover::{command_env, own_keys};
use agent_core::equip;
use agent_core::session::Sessions;
use agent_core::settings::{self, Settings, flags, rules};
use agent_skills::Catalogue;
use agent_tools::policy::{Gate, Permissions};
use agent_tools::{Place, Tools};
use etcetera::BaseStrategy;
use tempfile::TempDir;

use crate::args::Args;
use crate::error::CliError;

/// Where the program is: read from the process once, handed on from there.
#[derive(Debug, Clone)]
pub struct World {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Where `config.yaml` lies.
    pub config: PathBuf,
    /// Where sessions lie.
    pub data: PathBuf,
    /// Where the weights of the embedded model lie.
    pub cache: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    texts: HashMap<String, String>,
}

impl World {
    /// The real one.
    ///
    /// # Errors
    /// A working directory that is gone, no home directory and no `AGENT_HOME`.
    pub fn real(cwd: Option<&Path>) -> Result<Self, CliError> {
        let env: Vec<(OsString, OsString)> = env::vars_os().collect();
        let text = |(k, v): &(OsString, OsString)| Some((k.to_str()?.to_owned(), v.to_str()?.to_owned()));
        let texts: HashMap<String, String> = env.iter().filter_map(text).collect();
        let cwd = working_directory(cwd)?;
        let home = texts.get("HOME").filter(|h| !h.is_empty()).map(PathBuf::from);
        let (config, data, cache) = match texts.get("AGENT_HOME").filter(|h| !h.is_empty()) {
            Some(all) => {
                let all = cwd.join(all);
                (all.clone(), all.clone(), all)
            }
            None => platform_directories()?,
        };
        Ok(Self { cwd, home, config, data, cache, env, texts })
    }

    /// A variable of the environment; empty ones count as unset.
    pub fn lookup(&self, name: &str) -> Option<String> {
        self.texts.get(name).filter(|value| !value.is_empty()).cloned()
    }
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

fn platform_directories() -> Result<(PathBuf, PathBuf, PathBuf), CliError> {
    let base = etcetera::choose_base_strategy().map_err(|e| {
        CliError::usage(format!("no home directory was found: {e}"))
            .hint("set HOME, or AGENT_HOME to a directory for settings and sessions")
    })?;
    Ok((base.config_dir().join("agent"), base.data_dir().join("agent"), base.cache_dir().join("agent")))
}

fn settings_file(args: &Args, world: &World) -> PathBuf {
    args.config.as_ref().map_or_else(|| world.config.join("config.yaml"), |file| world.cwd.join(file))
}

/// What every command starts from.
#[derive(Clone)]
pub struct Setup {
    /// The command line.
    pub args: Args,
    /// Where we are.
    pub world: World,
    /// The settings in force.
    pub settings: Settings,
    /// What is to be told about them.
    pub warnings: Vec<String>,
}

impl Setup {
    /// Reads the settings of this place.
    ///
    /// # Errors
    /// Settings that cannot be read or understood.
    pub fn new(args: Args) -> Result<Self, CliError> {
        let world = World::real(args.cwd.as_deref())?;
        let file = settings_file(&args, &world);
        if args.config.is_some() && !file.exists() {
            return Err(CliError::usage(format!("--config {} does not exist", file.display()))
                .hint("name a file that exists, or leave --config out; `agent config` lists all settings"));
        }
        let lookup = |name: &str| world.lookup(name);
        let mut layers = settings::gather(&file, &world.cwd, &lookup).map_err(CliError::usage)?;
        layers.extend(flags::layers(&args.settings).map_err(CliError::usage)?);
        let (settings, warnings) = Settings::resolve(layers).map_err(CliError::usage)?;
        let missing = settings.missing();
        let warnings = warnings.iter().chain(&missing).map(ToString::to_string).collect();
        Ok(Self { args, world, settings, warnings })
    }

    /// Where the user's settings lie, if there are any.
    pub fn settings_file(&self) -> PathBuf {
        settings_file(&self.args, &self.world)
    }

    /// The place of a session.
    pub fn place(&self, store: Option<PathBuf>) -> Place {
        let mut place = Place::new(&self.world.cwd);
        place.home.clone_from(&self.world.home);
        place.roots =
            self.settings.additional_directories.iter().map(|dir| place.absolute(&dir.to_string_lossy())).collect();
        place.store = store;
        place.private = vec![self.world.config.clone(), self.world.data.clone()];
        place.env = command_env(self.world.env.iter().cloned(), &self.settings.pass_env, &self.own_variables());
        place.sandbox = self.settings.sandbox;
        place
    }

    /// The gate, with the frontend's default where no setting says otherwise.
    pub fn gate(&self, default: Permissions) -> Gate {
        Gate::new(self.settings.mode, self.settings.permissions.unwrap_or(default))
    }

    /// The skills that there are. `local`: for the embedded model.
    pub fn catalogue(&self, local: bool) -> Catalogue {
        let dirs = self.settings.skills_dirs(local, self.world.home.as_deref());
        let dirs: Vec<PathBuf> = dirs.iter().map(|dir| self.world.cwd.join(dir)).collect();
        Catalogue::discover(&dirs)
    }

    /// The skills where no model is chosen.
    pub fn catalogue_alone(&self) -> Catalogue {
        self.catalogue(self.asks_for_local())
    }

    fn asks_for_local(&self) -> bool {
        self.settings.provider.as_deref() == Some("local")
    }

    /// The tools that are declared. `local`: to the embedded model.
    pub fn tools(&self, local: bool, skills: Arc<Catalogue>) -> Tools {
        let lookup = |name: &str| self.world.lookup(name);
        let keys = own_keys(&lookup, &self.own_variables());
        equip(&self.settings, skills, local, &keys)
    }

    /// The tools that would be declared where no model is chosen.
    pub fn tools_alone(&self) -> Tools {
        self.tools(self.asks_for_local(), Arc::new(self.catalogue_alone()))
    }

    /// Variables that hold keys of ours besides the usual ones.
    fn own_variables(&self) -> Vec<&str> {
        self.settings.api_key_env.as_deref().into_iter().collect()
    }

    /// Where saved rules lie.
    pub fn rules_file(&self) -> PathBuf {
        self.world.config.join(rules::FILE)
    }

    /// The sessions of this project.
    pub fn sessions(&self) -> Sessions {
        Sessions::of(&self.world.data.join("sessions"), &self.world.cwd)
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
