//! What every frontend starts from: where we are, the settings, and what is made from them.
//!
//! A frontend reads its process once (arguments, environment, directories) and hands it in; from there on all frontends
//! find models, tools, rules and sessions in the same way, so that what one began the other goes on with.

#[cfg(feature = "http")]
mod model;
mod opening;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_skills::Catalogue;
use agent_tools::policy::{Gate, Permissions};
#[cfg(feature = "mcp")]
use agent_tools::text::Cut;
#[cfg(feature = "mcp")]
use agent_tools::toolset::Toolset;
use agent_tools::{Place, Tools};

#[cfg(feature = "http")]
pub use model::{Chosen, Equipped, clients, equipped, key, models, remote, with_model};
pub use opening::{Earlier, Wanted, Which, earlier, in_use, named, open};

use crate::agent::{Clock, equip};
use crate::discover::{Dirs, Outside, command_env, own_keys};
#[cfg(feature = "mcp")]
use crate::mcp::{Around, Servers};
use crate::session::Sessions;
use crate::settings::{self, Settings, flags, rules};

/// Where the program is: read from the process once, handed on from there.
#[derive(Debug, Clone)]
pub struct World {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Where settings, sessions and weights lie.
    pub dirs: Dirs,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    texts: Arc<HashMap<String, String>>,
}

impl World {
    /// A place with this environment. `usual` tells the agent's own directories where `AGENT_HOME` does not.
    ///
    /// # Errors
    /// Those of `usual`.
    pub fn new<E>(
        cwd: PathBuf,
        env: Vec<(OsString, OsString)>,
        usual: impl FnOnce() -> Result<Dirs, E>,
    ) -> Result<Self, E> {
        let text = |(k, v): &(OsString, OsString)| Some((k.to_str()?.to_owned(), v.to_str()?.to_owned()));
        let texts: HashMap<String, String> = env.iter().filter_map(text).collect();
        let named = |name: &str| texts.get(name).filter(|value| !value.is_empty());
        let home = named("HOME").map(PathBuf::from);
        let dirs = named("AGENT_HOME").map_or_else(usual, |all| Ok(Dirs::all_in(cwd.join(all))))?;
        Ok(Self { cwd, home, dirs, env, texts: Arc::new(texts) })
    }

    /// The same program in another directory.
    #[must_use]
    pub fn at(&self, cwd: PathBuf) -> Self {
        Self { cwd, ..self.clone() }
    }

    /// The sessions of this project.
    pub fn sessions(&self) -> Sessions {
        Sessions::of(&self.dirs.data.join("sessions"), &self.cwd)
    }

    /// A variable of the environment; empty ones count as unset.
    pub fn lookup(&self, name: &str) -> Option<String> {
        self.texts.get(name).filter(|value| !value.is_empty()).cloned()
    }
}

/// Whom a person's messages go to that belong to no turn.
pub type Tell = Arc<dyn Fn(&[String]) + Send + Sync>;

/// What every frontend starts from.
#[derive(Clone)]
pub struct Setup {
    /// Where we are.
    pub world: World,
    /// The settings in force.
    pub settings: Settings,
    /// What is to be told about them.
    pub warnings: Vec<String>,
    /// Skills that the model has from the start.
    pub skills: Vec<String>,
    /// Whether sessions are kept.
    pub keeps: bool,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// Tells a person something.
    pub tell: Tell,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("cwd", &self.world.cwd).finish_non_exhaustive()
    }
}

impl Setup {
    /// Reads the settings of a place: those of the user's `file`, the project's, the environment, and the options that
    /// both binaries share.
    ///
    /// # Errors
    /// Settings that cannot be read or understood.
    pub fn new(
        world: World,
        file: &Path,
        options: &[(String, String)],
        clock: Arc<dyn Clock>,
        tell: Tell,
    ) -> Result<Self, SetupError> {
        let lookup = |name: &str| world.lookup(name);
        let mut layers = settings::gather(file, &world.cwd, &lookup).map_err(SetupError::usage)?;
        layers.extend(flags::layers(options).map_err(SetupError::usage)?);
        let (settings, warnings) = Settings::resolve(layers).map_err(SetupError::usage)?;
        let missing = settings.missing();
        let warnings = warnings.iter().chain(&missing).map(ToString::to_string).collect();
        Ok(Self { world, settings, warnings, skills: Vec::new(), keeps: true, clock, tell })
    }

    /// Tells a person something.
    pub fn tell(&self, lines: &[String]) {
        if !lines.is_empty() {
            (self.tell)(lines);
        }
    }

    /// The place of a session.
    pub fn place(&self, store: Option<PathBuf>) -> Place {
        let mut place = Place::new(&self.world.cwd);
        place.home.clone_from(&self.world.home);
        place.roots =
            self.settings.additional_directories.iter().map(|dir| place.absolute(&dir.to_string_lossy())).collect();
        place.store = store;
        place.private = vec![self.world.dirs.config.clone(), self.world.dirs.data.clone()];
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
        self.world.dirs.config.join(rules::FILE)
    }

    /// The sessions of this project.
    pub fn sessions(&self) -> Sessions {
        self.world.sessions()
    }

    /// The servers of tools that the settings name, and these; they are connected beside everything else. To be called
    /// within a runtime.
    #[cfg(feature = "mcp")]
    pub fn servers(&self, more: Vec<settings::ServerSpec>) -> Servers {
        let lookup = |name: &str| self.world.lookup(name);
        let (mut specs, problems) = self.settings.servers(&lookup);
        self.tell(&problems);
        specs.extend(more);
        let parts = self.settings.parts(false);
        let cut = match self.settings.toolset(false) {
            Toolset::Lean => Cut::HeadChars(parts.max_output),
            Toolset::Full => Cut::HeadTailBytes(parts.max_output),
        };
        let around = Around {
            cwd: self.world.cwd.clone(),
            env: command_env(self.world.env.iter().cloned(), &self.settings.pass_env, &self.own_variables()),
            timeout: parts.timeout,
            cut,
            proxy: self.settings.proxy.clone(),
            no_proxy: self.settings.no_proxy.clone(),
            ca_cert: self.settings.ca_cert.clone(),
        };
        Servers::connect(specs, &around)
    }

    /// What lies outside of the program, for finding a model.
    pub fn outside<'a>(&self, lookup: &'a (dyn Fn(&str) -> Option<String> + Send + Sync)) -> Outside<'a> {
        let mut outside = Outside::new(&self.world.cwd, self.world.dirs.clone(), lookup);
        outside.home.clone_from(&self.world.home);
        outside
    }
}

/// What stands in the way of a session: for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SetupError {
    /// What kind of thing.
    pub kind: SetupErrorKind,
    /// What went wrong, as a full sentence without a final dot after a path.
    pub message: String,
    /// What to do about it, a line each.
    pub hints: Vec<String>,
}

/// What stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupErrorKind {
    /// Wrong usage or settings.
    Usage,
    /// No model was found, or what was named lacks something.
    NoModel,
    /// There is no such session.
    NoSession,
    /// Another process has the session.
    InUse,
    /// The disk.
    Failed,
}

impl SetupError {
    /// An error of this kind.
    pub fn new(kind: SetupErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), hints: Vec::new() }
    }

    /// Wrong usage or settings.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(SetupErrorKind::Usage, message)
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }
}
