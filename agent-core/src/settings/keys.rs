//! The table of all settings: the one place where a setting is named.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use agent_tools::Sandbox;
use agent_tools::policy::{Mode, Permissions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Settings;
use crate::provider::Effort;
use crate::provider::models::Facts;

/// One setting.
#[non_exhaustive]
pub struct Key {
    /// Its name in files and after `--set`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Its default, in words.
    pub default: &'static str,
    /// What it is for, in one line.
    pub help: &'static str,
    /// What a project's file may do to it.
    pub project: Project,
    set: fn(&mut Settings, &Value) -> Result<(), String>,
    get: fn(&Settings) -> Value,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// True or false.
    Switch,
    /// A whole number, from and to.
    Count(u64, u64),
    /// A number that is not negative.
    Amount,
    /// One of these words.
    Words(&'static [&'static str]),
    /// One of these words, or a percentage from 1 to 99.
    Share(&'static [&'static str]),
    /// A text that is not empty.
    Text,
    /// A text, or a list of texts.
    Texts,
    /// A permission mode, taken from the text of the scalar.
    Mode,
    /// A map that is kept as it is.
    Map,
}

/// What a project's file may do to a setting. Nobody can be asked for consent yet.
#[derive(Clone, Copy)]
pub enum Project {
    /// Set it.
    Allowed,
    /// Set it where that is no more than what was set before; the words say what that means.
    Tighten(&'static str, fn(&Settings, &Value) -> bool),
    /// Nothing.
    Never,
}

/// All settings.
pub fn keys() -> &'static [Key] {
    KEYS
}

/// The setting of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The name of the setting that somebody meant who wrote this, if it is near enough.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, KEYS.iter().map(|key| key.name))
}

/// The one of these names that somebody meant who wrote this, if one is near enough.
pub(crate) fn nearest_of<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(64).collect();
    let wanted: Vec<char> = plain(name);
    let scored = names.map(|name| (distance(&wanted, &plain(name)), name));
    let (far, best) = scored.min_by_key(|(far, _)| *far)?;
    (far <= 2.max(wanted.len() / 3) && far < wanted.len()).then_some(best)
}

/// How many letters have to be put in, taken out or exchanged.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let exchanged = corner + usize::from(from != to);
            corner = row[j + 1];
            row[j + 1] = exchanged.min(corner + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Key {
    /// Checks a value and puts it in.
    pub(super) fn assign(&self, settings: &mut Settings, value: &Value) -> Result<(), String> {
        self.kind
            .check(value)
            .and_then(|()| (self.set)(settings, value))
            .map_err(|why| format!("`{}` {why}", self.name))
    }

    /// Why a project's file may not set this value over what was set before.
    pub(super) fn refused(&self, before: &Settings, value: &Value) -> Option<String> {
        match self.project {
            Project::Allowed => None,
            Project::Tighten(_, fine) if fine(before, value) => None,
            Project::Tighten(limit, _) => {
                Some(format!("a project's file may only make it {limit}; set it in your own settings or with a flag"))
            }
            Project::Never => {
                Some("a project's file may not set it; set it in your own settings or with a flag".into())
            }
        }
    }

    /// The value in force, without secrets.
    pub(super) fn shown(&self, settings: &Settings) -> Value {
        (self.get)(settings)
    }

    /// What it takes, for whoever gave it something else.
    pub(super) fn expects(&self) -> String {
        format!("`{}` takes {}", self.name, self.kind.words())
    }
}

impl Kind {
    /// What it is, in words.
    pub fn words(&self) -> String {
        match self {
            Self::Switch => "true or false".into(),
            Self::Count(from, to) => format!("a whole number from {from} to {to}"),
            Self::Amount => "a number that is not negative".into(),
            Self::Words(words) => format!("one of {}", words.join(", ")),
            Self::Share(words) => format!("{} or a percentage from 1 to 99", words.join(", ")),
            Self::Text => "a text that is not empty".into(),
            Self::Texts => "a text or a list of texts".into(),
            Self::Mode => "a mode of four digits from 0 to 7".into(),
            Self::Map => "a map".into(),
        }
    }

    fn check(&self, value: &Value) -> Result<(), String> {
        let fine = match self {
            Self::Switch => value.is_boolean(),
            Self::Count(from, to) => value.as_u64().is_some_and(|n| (*from..=*to).contains(&n)),
            Self::Amount => value.as_f64().is_some_and(|n| n >= 0.0),
            Self::Words(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            // What it is, its setter knows.
            Self::Share(_) => value.is_string(),
            Self::Text => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Self::Mode => value.is_string(),
            Self::Map => value.is_object(),
        };
        if fine { Ok(()) } else { Err(format!("takes {}", self.words())) }
    }
}

const LOWER: &str = "lower";
const BELOW: &str = "a directory below the working directory";
const SECONDS: Kind = Kind::Count(1, 31_536_000);

static KEYS: &[Key] = &[
    Key {
        name: "toolset",
        kind: Kind::Words(&["lean", "full"]),
        default: "full; lean with provider local",
        help: "the tools that the model has",
        project: Project::Allowed,
        set: |s, v| put(&mut s.toolset, word(v)),
        get: |s| json!(s.toolset(s.is_local()).name()),
    },
    Key {
        name: "bashTool",
        kind: Kind::Switch,
        default: "true",
        help: "whether the model may run commands (lean)",
        project: Project::Tighten("false", |s, v| *v == json!(false) || s.bash_tool),
        set: |s, v| put(&mut s.bash_tool, read(v)),
        get: |s| json!(s.bash_tool),
    },
    Key {
        name: "editTools",
        kind: Kind::Switch,
        default: "false; true with provider local",
        help: "whether the model has tools to read, write and edit files (lean)",
        project: Project::Allowed,
        set: |s, v| put(&mut s.edit_tools, read(v)),
        get: |s| json!(s.edit_tools(s.is_local())),
    },
    Key {
        name: "skillsDir",
        kind: Kind::Texts,
        default: "skills for lean; full looks into .agents/skills, .claude/skills, skills, and those of the home directory",
        help: "directories with skills, the first one winning",
        project: Project::Tighten(BELOW, |_, v| lies_below(v)),
        set: |s, v| put(&mut s.skills_dirs, read(v)),
        get: |s| s.skills_dirs.as_deref().map_or(Value::Null, paths),
    },
    Key {
        name: "maxOutput",
        kind: Kind::Count(1, 100_000_000),
        default: "51200; 10000 for lean",
        help: "how much of a tool's output the model reads: bytes, for lean characters",
        project: Project::Allowed,
        set: |s, v| put(&mut s.max_output, read(v)),
        get: |s| json!(s.parts(s.is_local()).max_output),
    },
    Key {
        name: "previewLines",
        kind: Kind::Count(0, 10_000),
        default: "10",
        help: "how many lines of a tool's output a person is shown",
        project: Project::Allowed,
        set: |s, v| put(&mut s.preview_lines, read(v)),
        get: |s| json!(s.preview_lines),
    },
    Key {
        name: "permissions",
        kind: Kind::Words(&["ask", "auto", "allow"]),
        default: "ask; auto for a single prompt",
        help: "ask: files are read, all else asks; auto: what bashMode allows runs; allow: everything runs",
        project: Project::Tighten("stricter", |s, v| {
            word(v).is_ok_and(|new| leave(new) <= s.permissions.map_or(0, leave))
        }),
        set: |s, v| put(&mut s.permissions, word(v).map(Some)),
        get: |s| json!(s.permissions.map(Permissions::name)),
    },
    Key {
        name: "bashMode",
        kind: Kind::Mode,
        default: "0467",
        help: "what runs without asking: system, external, network, workspace, each 4 read + 2 write + 1 execute",
        project: Project::Tighten("stricter", |s, v| s.mode.covers(word(v).unwrap_or(Mode::NONE))),
        set: |s, v| {
            (s.mode, s.mode_malformed) = (word(v).map_err(|e| format!("is malformed: {e}"))?, false);
            Ok(())
        },
        get: |s| json!(s.mode),
    },
    Key {
        name: "provider",
        kind: Kind::Text,
        default: "found: keys, then local servers, then the embedded model",
        help: "who runs the model",
        project: Project::Never,
        set: |s, v| put(&mut s.provider, read(v)),
        get: |s| json!(s.provider),
    },
    Key {
        name: "model",
        kind: Kind::Text,
        default: "the provider's default",
        help: "the model's name",
        project: Project::Allowed,
        set: |s, v| put(&mut s.model, read(v)),
        get: |s| json!(s.model),
    },
    Key {
        name: "baseUrl",
        kind: Kind::Text,
        default: "the provider's",
        help: "the address of the provider's interface",
        project: Project::Never,
        set: |s, v| put(&mut s.base_url, address(v)),
        get: |s| json!(s.base_url.as_deref().map(without_credentials)),
    },
    Key {
        name: "apiKeyEnv",
        kind: Kind::Text,
        default: "the provider's usual variable",
        help: "the variable that holds the key",
        project: Project::Never,
        set: |s, v| put(&mut s.api_key_env, variable(v)),
        get: |s| json!(s.api_key_env),
    },
    Key {
        name: "apiKeyCommand",
        kind: Kind::Text,
        default: "none",
        help: "a command that prints the key",
        project: Project::Never,
        set: |s, v| put(&mut s.api_key_command, read(v)),
        get: |s| json!(s.api_key_command.as_deref().map(only_program)),
    },
    Key {
        name: "caCert",
        kind: Kind::Text,
        default: "the system's",
        help: "a PEM file with certificates to trust",
        project: Project::Never,
        set: |s, v| put(&mut s.ca_cert, read(v)),
        get: |s| json!(s.ca_cert.as_ref().map(|path| path.to_string_lossy())),
    },
    Key {
        name: "mcpServers",
        kind: Kind::Map,
        default: "none",
        help: "MCP servers by name",
        project: Project::Never,
        set: |s, v| {
            s.mcp_servers.extend(v.as_object().cloned().unwrap_or_default());
            Ok(())
        },
        get: |s| s.mcp_servers.keys().cloned().collect(),
    },
    Key {
        name: "maxTurns",
        kind: Kind::Count(1, 1_000_000),
        default: "1000",
        help: "how many requests one prompt may take",
        project: Project::Tighten(LOWER, |s, v| lower(v, s.max_turns)),
        set: |s, v| put(&mut s.max_turns, read(v)),
        get: |s| json!(s.max_turns),
    },
    Key {
        name: "maxContext",
        kind: Kind::Count(1, 1_000_000_000),
        default: "the model's, else 200000",
        help: "how many tokens a conversation may have",
        project: Project::Allowed,
        set: |s, v| put(&mut s.max_context, read(v)),
        get: |s| json!(s.max_context),
    },
    Key {
        name: "maxTokens",
        kind: Kind::Count(1, 1_000_000_000),
        default: "the model's",
        help: "how many tokens one answer may have",
        project: Project::Allowed,
        set: |s, v| put(&mut s.max_tokens, read(v)),
        get: |s| json!(s.max_tokens),
    },
    Key {
        name: "maxCost",
        kind: Kind::Amount,
        default: "none",
        help: "how much a session may cost",
        project: Project::Tighten(LOWER, |s, v| v.as_f64().is_some_and(|new| s.max_cost.is_none_or(|old| new <= old))),
        set: |s, v| put(&mut s.max_cost, read(v)),
        get: |s| json!(s.max_cost),
    },
    Key {
        name: "toolTimeout",
        kind: SECONDS,
        default: "600; 30 for lean",
        help: "how many seconds a command may take",
        project: Project::Allowed,
        set: |s, v| put(&mut s.tool_timeout, seconds(v).map(Some)),
        get: |s| json!(s.parts(s.is_local()).timeout.as_secs()),
    },
    Key {
        name: "idleTimeout",
        kind: SECONDS,
        default: "120",
        help: "how many seconds the model may send nothing",
        project: Project::Allowed,
        set: |s, v| put(&mut s.idle_timeout, seconds(v)),
        get: |s| json!(s.idle_timeout.as_secs()),
    },
    Key {
        name: "maxSubAgents",
        kind: Kind::Count(0, 1000),
        default: "8",
        help: "how many sub-agents may run at a time",
        project: Project::Tighten(LOWER, |s, v| lower(v, s.max_sub_agents as u64)),
        set: |s, v| put(&mut s.max_sub_agents, read(v)),
        get: |s| json!(s.max_sub_agents),
    },
    Key {
        name: "loopLimit",
        kind: Kind::Count(0, 1_000_000),
        default: "10",
        help: "so many equal calls in a row end the turn; 0: never",
        project: Project::Tighten(LOWER, |s, v| s.loop_limit == 0 || (*v != json!(0) && lower(v, s.loop_limit.into()))),
        set: |s, v| put(&mut s.loop_limit, read(v)),
        get: |s| json!(s.loop_limit),
    },
    Key {
        name: "compact",
        kind: Kind::Share(&["auto", "off"]),
        default: "auto",
        help: "when a conversation is summarised: auto, off, or at so many percent of the context",
        project: Project::Allowed,
        set: |s, v| put(&mut s.compact, word(v)),
        get: |s| json!(s.compact.to_string()),
    },
    Key {
        name: "models",
        kind: Kind::Map,
        default: "none",
        help: "what you know of models, by how their names begin: context, output, sees, cost",
        project: Project::Never,
        set: |s, v| known(v).map(|more| s.models.extend(more)),
        get: |s| json!(s.models),
    },
    Key {
        name: "fallback",
        kind: Kind::Texts,
        default: "none",
        help: "models that are asked when the model fails, in this order: MODEL or PROVIDER/MODEL",
        project: Project::Never,
        set: |s, v| put(&mut s.fallback, names(v)),
        get: |s| json!(s.fallback),
    },
    Key {
        name: "sandbox",
        kind: Kind::Words(&["auto", "require", "off"]),
        default: "auto",
        help: "how commands are confined: the best there is, not at all without it, none",
        project: Project::Tighten("stricter", |s, v| strictness(confinement(v)) >= strictness(s.sandbox)),
        set: |s, v| put(&mut s.sandbox, Ok(confinement(v))),
        get: |s| json!(SANDBOXES[strictness(s.sandbox)].0),
    },
    Key {
        name: "passEnv",
        kind: Kind::Texts,
        default: "none",
        help: "variables with keys of the agent that commands get nevertheless",
        project: Project::Never,
        set: |s, v| put(&mut s.pass_env, read(v)),
        get: |s| json!(s.pass_env),
    },
    Key {
        name: "maskSecrets",
        kind: Kind::Switch,
        default: "true",
        help: "whether keys in a tool's output are masked",
        project: Project::Tighten("true", |s, v| *v == json!(true) || !s.mask_secrets),
        set: |s, v| put(&mut s.mask_secrets, read(v)),
        get: |s| json!(s.mask_secrets),
    },
    Key {
        name: "loginShell",
        kind: Kind::Switch,
        default: "false",
        help: "whether commands run in a login shell",
        project: Project::Tighten("false", |s, v| *v == json!(false) || s.login_shell),
        set: |s, v| put(&mut s.login_shell, read(v)),
        get: |s| json!(s.login_shell),
    },
    Key {
        name: "theme",
        kind: Kind::Text,
        default: "by the terminal",
        help: "the colours of the window",
        project: Project::Allowed,
        set: |s, v| put(&mut s.theme, read(v)),
        get: |s| json!(s.theme),
    },
    Key {
        name: "notify",
        kind: Kind::Switch,
        default: "true",
        help: "whether the window calls for a person who looks elsewhere",
        project: Project::Allowed,
        set: |s, v| put(&mut s.notify, read(v)),
        get: |s| json!(s.notify),
    },
    Key {
        name: "effort",
        kind: Kind::Words(&["low", "medium", "high", "xhigh", "max"]),
        default: "the server's",
        help: "how hard the model thinks",
        project: Project::Allowed,
        set: |s, v| put(&mut s.effort, read::<Effort>(v).map(Some)),
        get: |s| json!(s.effort),
    },
    Key {
        name: "additionalDirectories",
        kind: Kind::Texts,
        default: "none",
        help: "further directories that count as workspace",
        project: Project::Tighten(BELOW, |_, v| lies_below(v)),
        set: |s, v| put(&mut s.additional_directories, read(v)),
        get: |s| paths(&s.additional_directories),
    },
    Key {
        name: "proxy",
        kind: Kind::Text,
        default: "none",
        help: "the address of an HTTP proxy; HTTPS_PROXY, ALL_PROXY and HTTP_PROXY set it too",
        project: Project::Never,
        set: |s, v| put(&mut s.proxy, read(v)),
        get: |s| json!(s.proxy.as_deref().map(without_credentials)),
    },
    Key {
        name: "noProxy",
        kind: Kind::Texts,
        default: "none",
        help: "hosts that are asked without the proxy; NO_PROXY sets it too",
        project: Project::Never,
        set: |s, v| put(&mut s.no_proxy, read(v)),
        get: |s| json!(s.no_proxy),
    },
];

/// From the laxest to the strictest.
const SANDBOXES: [(&str, Sandbox); 3] = [("off", Sandbox::Off), ("auto", Sandbox::Auto), ("require", Sandbox::Require)];

fn strictness(sandbox: Sandbox) -> usize {
    match sandbox {
        Sandbox::Off => 0,
        Sandbox::Auto => 1,
        Sandbox::Require => 2,
    }
}

fn confinement(value: &Value) -> Sandbox {
    let known = SANDBOXES.iter().find(|(word, _)| *value == json!(word));
    known.map_or(Sandbox::default(), |(_, sandbox)| *sandbox)
}

fn leave(permissions: Permissions) -> usize {
    Permissions::ALL.iter().position(|p| *p == permissions).unwrap_or_default()
}

fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|e| e.to_string())
}

fn word<T: FromStr<Err: ToString>>(value: &Value) -> Result<T, String> {
    value.as_str().unwrap_or_default().parse().map_err(|e: T::Err| e.to_string())
}

fn seconds(value: &Value) -> Result<Duration, String> {
    read(value).map(Duration::from_secs)
}

fn lower(value: &Value, than: u64) -> bool {
    value.as_u64().is_some_and(|new| new <= than)
}

fn address(value: &Value) -> Result<Option<String>, String> {
    let text: String = read(value)?;
    let web = ["http://", "https://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    if web { Ok(Some(text)) } else { Err("takes an address that begins with http:// or https://".into()) }
}

/// Somebody may put the key itself here: it is not repeated.
fn variable(value: &Value) -> Result<Option<String>, String> {
    let text: String = read(value)?;
    let name =
        text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !text.starts_with(|c: char| c.is_numeric());
    if name { Ok(Some(text)) } else { Err("takes the name of a variable, not the key itself".into()) }
}

/// What a person knows of models.
fn known(value: &Value) -> Result<Vec<(String, Facts)>, String> {
    const SHAPE: &str = "takes a map of {context, output, sees, cost: {input, output, cacheRead, cacheWrite}} by model";
    let one = |(name, facts): (&String, &Value)| match read::<Facts>(facts) {
        Ok(facts) if facts.context == Some(0) || facts.output == Some(0) => {
            Err(format!("{SHAPE}; what it says of `{name}` is wrong: there is no room for 0 tokens"))
        }
        Ok(facts) => Ok((name.clone(), facts)),
        Err(why) => Err(format!("{SHAPE}; what it says of `{name}` is wrong: {why}")),
    };
    value.as_object().into_iter().flatten().map(one).collect()
}

fn names(value: &Value) -> Result<Vec<String>, String> {
    let names: Vec<String> = read(value)?;
    let empty = |name: &String| name.split('/').any(|part| part.trim().is_empty());
    if names.iter().any(empty) { Err("takes names of models, MODEL or PROVIDER/MODEL".into()) } else { Ok(names) }
}

fn paths(list: &[PathBuf]) -> Value {
    list.iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn lies_below(value: &Value) -> bool {
    let below = |path: &str| {
        !path.starts_with('~')
            && Path::new(path).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
    };
    value.as_array().is_some_and(|list| list.iter().all(|path| path.as_str().is_some_and(below)))
}

/// An address as it may be shown: credentials lie before the host, or in the query.
pub(crate) fn without_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("***@{host}"));
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

fn only_program(command: &str) -> String {
    match command.trim().split_once(char::is_whitespace) {
        None => command.trim().to_owned(),
        Some((program, _)) => format!("{program} …"),
    }
}

#[cfg(test)]
mod tests {
    use agent_tools::toolset::Toolset;

    use super::*;

    #[test]
    fn the_table_says_the_defaults_that_hold() {
        let settings = Settings::default();
        for key in KEYS {
            let shown = match key.shown(&settings) {
                Value::String(text) => text,
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
                other => other.to_string(),
            };
            match shown.as_str() {
                "null" | "" | "{}" => assert!(!key.default.is_empty(), "{}", key.name),
                shown => assert_eq!(key.default.split(';').next(), Some(shown), "{}", key.name),
            }
        }
    }

    #[test]
    fn names_are_camel_case_and_unlike() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(key.name.chars().all(|c| c.is_ascii_alphabetic()), "{}", key.name);
            assert!(key.name.starts_with(|c: char| c.is_lowercase()), "{}", key.name);
            assert!(KEYS[..at].iter().all(|other| other.name != key.name), "{}", key.name);
        }
    }

    #[test]
    fn words_are_those_of_the_types() {
        let words = |name| match key(name).unwrap().kind {
            Kind::Words(words) => words.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words("toolset"), Toolset::ALL.map(Toolset::name));
        assert_eq!(words("permissions"), Permissions::ALL.map(Permissions::name));
        assert!(words("effort").iter().all(|w| read::<Effort>(&json!(w)).is_ok()));
    }

    #[test]
    fn near_names_are_found() {
        for (wrong, right) in [
            ("max_turns", Some("maxTurns")),
            ("maxturn", Some("maxTurns")),
            ("bash-mode", Some("bashMode")),
            ("baseURL", Some("baseUrl")),
            ("skillDir", Some("skillsDir")),
            ("permission", Some("permissions")),
            ("hooks", None),
            ("a", None),
            ("", None),
            ("somethingElseEntirely", None),
        ] {
            assert_eq!(nearest(wrong), right, "{wrong}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        for (url, shown) in [
            ("https://api.x.com/v1", "https://api.x.com/v1"),
            ("https://u:p@api.x.com/v1", "https://***@api.x.com/v1"),
            ("https://u:p@w@api.x.com", "https://***@api.x.com"),
            ("https://x.com/v1?key=abc", "https://x.com/v1"),
            ("u:p@proxy:3128", "***@proxy:3128"),
            ("http://x/a@b", "http://x/a@b"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
        assert_eq!(only_program("pass show x"), "pass …");
    }
}
