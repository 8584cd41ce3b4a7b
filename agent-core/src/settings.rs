//! Settings: layers of partial values, each from one source, resolved into one whole set that remembers its sources.

mod compact;
pub mod env;
pub mod file;
pub mod flags;
mod keys;
#[cfg(feature = "clap")]
pub mod line;
mod origin;
pub mod rules;
mod servers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_tools::Sandbox;
use agent_tools::policy::{Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset};
use serde_json::{Map, Value};

pub use compact::Compact;
pub use keys::{Key, Kind, Project, key, keys};
pub(crate) use keys::{nearest_of, without_credentials};
pub use origin::{SettingsError, Source, Warning};
pub use servers::{ServerSpec, Transport};

use crate::provider::Effort;
use crate::provider::models::{Facts, longest};

/// The values that one source gives.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Where they come from.
    pub source: Source,
    /// The values, none twice.
    pub values: Vec<Given>,
    /// Keys that are no settings.
    pub unknown: Vec<Unknown>,
}

impl Layer {
    /// A layer without values.
    pub fn new(source: Source) -> Self {
        Self { source, values: Vec::new(), unknown: Vec::new() }
    }

    /// Adds a value.
    #[must_use]
    pub fn with(mut self, key: &'static Key, value: Value) -> Self {
        self.values.push(Given { key, value, line: None });
        self
    }
}

/// One value as its source gives it. Its JSON type is that of the key's kind.
#[derive(Debug, Clone)]
pub struct Given {
    /// Which setting.
    pub key: &'static Key,
    /// The value; a mode or a word is not checked yet.
    pub value: Value,
    /// The line in its file, the first being 1.
    pub line: Option<u64>,
}

/// A key that is no setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// As it was written.
    pub name: String,
    /// The line in its file, the first being 1.
    pub line: Option<u64>,
}

/// A setting in force, for a person to look at.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Which setting; its default in words where the value is null.
    pub key: &'static Key,
    /// The value, without secrets.
    pub value: Value,
    /// Where it came from.
    pub source: Source,
}

/// All settings, filled and checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    toolset: Toolset,
    /// `bashTool`
    pub bash_tool: bool,
    edit_tools: Option<bool>,
    skills_dirs: Option<Vec<PathBuf>>,
    max_output: Option<usize>,
    /// `previewLines`
    pub preview_lines: usize,
    /// `permissions`; none: the frontend's default.
    pub permissions: Option<Permissions>,
    /// `bashMode`
    pub mode: Mode,
    /// The mode in force was malformed and counts as `0000`; `allow` must count as `auto`.
    pub mode_malformed: bool,
    /// `provider`
    pub provider: Option<String>,
    /// `model`
    pub model: Option<String>,
    /// `baseUrl`
    pub base_url: Option<String>,
    /// `apiKeyEnv`: the name of a variable.
    pub api_key_env: Option<String>,
    /// `apiKeyCommand`: prints the key.
    pub api_key_command: Option<String>,
    /// `caCert`: a PEM file.
    pub ca_cert: Option<PathBuf>,
    /// `mcpServers`, as written.
    pub mcp_servers: Map<String, Value>,
    /// `maxTurns`: requests a prompt.
    pub max_turns: u64,
    /// `maxContext`, in tokens; none: the model's.
    pub max_context: Option<u64>,
    /// `maxTokens` of one answer; none: the model's.
    pub max_tokens: Option<u64>,
    /// `maxCost`, in US dollars; none: no limit.
    pub max_cost: Option<f64>,
    tool_timeout: Option<Duration>,
    /// `idleTimeout`: how long the model may send nothing.
    pub idle_timeout: Duration,
    /// `maxSubAgents` at a time.
    pub max_sub_agents: usize,
    /// `loopLimit`: so many equal calls in a row end the turn; 0 never.
    pub loop_limit: u32,
    /// `compact`: when the conversation is summarised.
    pub compact: Compact,
    /// `models`: what a person knows of models, by how their names begin. Goes over the table.
    pub models: BTreeMap<String, Facts>,
    /// `fallback`: who is asked when the model fails, `MODEL` or `PROVIDER/MODEL`.
    pub fallback: Vec<String>,
    /// `sandbox`
    pub sandbox: Sandbox,
    /// `passEnv`: variables with the agent's own keys that commands get nevertheless.
    pub pass_env: Vec<String>,
    /// `maskSecrets`
    pub mask_secrets: bool,
    /// `loginShell`
    pub login_shell: bool,
    /// `theme`; none: by the terminal.
    pub theme: Option<String>,
    /// `notify`
    pub notify: bool,
    /// `effort`; none: the server's default.
    pub effort: Option<Effort>,
    /// `additionalDirectories`: as written; relative ones start at the session's working directory.
    pub additional_directories: Vec<PathBuf>,
    /// `proxy`: the address of an HTTP proxy. Servers on this machine are never asked through it.
    pub proxy: Option<String>,
    /// `noProxy`: hosts that are asked directly.
    pub no_proxy: Vec<String>,
    sources: BTreeMap<&'static str, Source>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            toolset: Toolset::Full,
            bash_tool: true,
            edit_tools: None,
            skills_dirs: None,
            max_output: None,
            preview_lines: 10,
            permissions: None,
            mode: Mode::DEFAULT,
            mode_malformed: false,
            provider: None,
            model: None,
            base_url: None,
            api_key_env: None,
            api_key_command: None,
            ca_cert: None,
            mcp_servers: Map::new(),
            max_turns: 1000,
            max_context: None,
            max_tokens: None,
            max_cost: None,
            tool_timeout: None,
            idle_timeout: Duration::from_secs(120),
            max_sub_agents: 8,
            loop_limit: 10,
            compact: Compact::Auto,
            models: BTreeMap::new(),
            fallback: Vec::new(),
            sandbox: Sandbox::Auto,
            pass_env: Vec::new(),
            mask_secrets: true,
            login_shell: false,
            theme: None,
            notify: true,
            effort: None,
            additional_directories: Vec::new(),
            proxy: None,
            no_proxy: Vec::new(),
            sources: BTreeMap::new(),
        }
    }
}

/// Settings of parts that are not built yet.
const LATER: [&str; 2] = ["theme", "notify"];

impl Settings {
    /// Fills and checks. Layers are taken in the order default, user, project, environment, flags; of two of the same
    /// kind the later one wins. Lists replace each other, maps are merged.
    ///
    /// # Errors
    /// A value that its setting does not take.
    pub fn resolve(mut layers: Vec<Layer>) -> Result<(Self, Vec<Warning>), SettingsError> {
        layers.sort_by_key(|layer| layer.source.rank());
        let mut settings = Self::default();
        let mut warnings = Vec::new();
        for layer in &layers {
            warnings.extend(layer.unknown.iter().map(|unknown| unknown_key(&layer.source, unknown)));
            for given in &layer.values {
                warnings.extend(settings.take(&layer.source, given)?);
            }
        }
        warnings.extend(settings.close());
        Ok((settings, warnings))
    }

    /// The toolset. The embedded model has `lean`, unless a flag says otherwise: it is too small for eleven tools.
    pub fn toolset(&self, local: bool) -> Toolset {
        if local && !matches!(self.source("toolset"), Source::Flag(_)) { Toolset::Lean } else { self.toolset }
    }

    /// What the tools are made from, with the toolset's own limits where none are set; without skills.
    pub fn parts(&self, local: bool) -> Parts {
        let mut parts = Parts::of(self.toolset(local));
        parts.shell = self.bash_tool;
        parts.files = self.edit_tools(local);
        parts.login_shell = self.login_shell;
        parts.max_output = self.max_output.unwrap_or(parts.max_output);
        parts.timeout = self.tool_timeout.unwrap_or(parts.timeout);
        parts
    }

    /// The directories with skills, the first one winning: those that are set, and for `full` the usual ones of the
    /// working directory and of the home directory behind them. Relative ones start at the working directory.
    pub fn skills_dirs(&self, local: bool, home: Option<&Path>) -> Vec<PathBuf> {
        let set = self.skills_dirs.clone();
        match self.toolset(local) {
            Toolset::Lean => set.unwrap_or_else(|| vec!["skills".into()]),
            Toolset::Full => {
                let here = [".agents/skills", ".claude/skills", "skills"].map(PathBuf::from);
                let at_home = home.map(|home| [".agents/skills", ".claude/skills"].map(|dir| home.join(dir)));
                set.into_iter().flatten().chain(here).chain(at_home.into_iter().flatten()).collect()
            }
        }
    }

    /// Whether the embedded model is asked for.
    fn is_local(&self) -> bool {
        self.provider.as_deref() == Some("local")
    }

    /// Whether the file tools of `lean` are declared: as set, else only for the embedded model.
    pub fn edit_tools(&self, local: bool) -> bool {
        self.edit_tools.unwrap_or(local)
    }

    /// What was asked for and is not built yet: settings that nothing goes by are told.
    pub fn missing(&self) -> Vec<Warning> {
        let told =
            |name: &str| Warning::new(self.source(name), None, &format!("`{name}` has no effect in this version"));
        LATER.iter().filter(|name| self.is_set(name)).map(|name| told(name)).collect()
    }

    /// The same with a model of another provider. Address and key are those of one provider and not handed to another.
    #[must_use]
    pub fn elsewhere(&self, provider: &str, model: &str) -> Self {
        let mut other = self.clone();
        (other.provider, other.model) = (Some(provider.to_owned()), Some(model.to_owned()));
        (other.base_url, other.api_key_env, other.api_key_command) = (None, None, None);
        other
    }

    /// What a person says of the model of this name.
    pub fn facts(&self, model: &str) -> Option<&Facts> {
        longest(self.models.iter().map(|(prefix, facts)| (prefix.as_str(), facts)), model).map(|(_, facts)| facts)
    }

    /// Whether a person named this setting anywhere.
    pub fn is_set(&self, key: &str) -> bool {
        self.sources.contains_key(key)
    }

    /// The servers of tools, and what is wrong with those that are none.
    pub fn servers(&self, lookup: &dyn Fn(&str) -> Option<String>) -> (Vec<ServerSpec>, Vec<String>) {
        let (mut specs, mut problems) = (Vec::new(), Vec::new());
        for (name, value) in &self.mcp_servers {
            match servers::read(name, value, lookup) {
                Ok(spec) => specs.extend(spec),
                Err(problem) => problems.push(problem),
            }
        }
        (specs, problems)
    }

    /// Where the value of a setting came from.
    pub fn source(&self, key: &str) -> &Source {
        self.sources.get(key).unwrap_or(&Source::Default)
    }

    /// Every setting in force, in the order of the table.
    pub fn entries(&self) -> Vec<Entry> {
        let entry = |key: &'static Key| Entry { key, value: key.shown(self), source: self.source(key.name).clone() };
        keys().iter().map(entry).collect()
    }

    fn take(&mut self, source: &Source, given: &Given) -> Result<Option<Warning>, SettingsError> {
        let warning = |text: &str| Warning::new(source, given.line, text);
        if matches!(source, Source::Project(_))
            && let Some(why) = given.key.refused(self, &given.value)
        {
            return Ok(Some(warning(&format!("`{}` is ignored: {why}", given.key.name))));
        }
        let malformed = given.key.assign(self, &given.value).err();
        let warning = match malformed {
            None => None,
            Some(problem) if given.key.kind == Kind::Mode && !matches!(source, Source::Flag(_)) => {
                (self.mode, self.mode_malformed) = (Mode::NONE, true);
                Some(warning(&format!("{problem}. Until that is mended the mode is 0000: nothing runs without asking")))
            }
            Some(problem) => return Err(SettingsError::of(source, given.key, given.line, &problem)),
        };
        self.sources.insert(given.key.name, source.clone());
        Ok(warning)
    }

    /// What can be said only once all layers are in.
    fn close(&mut self) -> Option<Warning> {
        if !(self.mode_malformed && self.permissions == Some(Permissions::Allow)) {
            return None;
        }
        self.permissions = Some(Permissions::Auto);
        let text = "`allow` counts as `auto` while `bashMode` is malformed";
        Some(Warning::new(self.source("permissions"), None, text))
    }
}

/// The layers of the two files and of the environment. Add those of the flags.
///
/// # Errors
/// A file that is there and cannot be read or understood.
pub fn gather(user: &Path, cwd: &Path, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Layer>, SettingsError> {
    let files = [Source::User(user.to_owned()), Source::Project(cwd.join("agent.yaml"))];
    let mut layers = Vec::new();
    for source in files {
        layers.extend(file::load(source)?);
    }
    layers.extend(env::layers(lookup));
    Ok(layers)
}

fn unknown_key(source: &Source, unknown: &Unknown) -> Warning {
    let hint = keys::nearest(&unknown.name).map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
    Warning::new(source, unknown.line, &format!("there is no setting `{}`{hint}", unknown.name))
}
