//! The options that both binaries share, as a table, and the settings that they give.

use serde_json::Value;

use super::{Given, Key, Kind, Layer, SettingsError, Source, file, key, keys};

/// An option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OptionSpec {
    /// Its name, without the two dashes.
    pub long: &'static str,
    /// What its value is called; none where it takes none.
    pub value: Option<&'static str>,
    /// The setting that it gives; none where the binary itself acts on it.
    pub key: Option<&'static str>,
    /// The value that it stands for where it takes none.
    pub implies: Option<&'static str>,
    /// What it does, in one line.
    pub help: &'static str,
    /// Whether it may be given several times.
    pub repeatable: bool,
}

const fn setting(long: &'static str, value: &'static str, key: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { long, value: Some(value), key: Some(key), implies: None, help, repeatable: false }
}

const fn own(long: &'static str, value: Option<&'static str>, help: &'static str) -> OptionSpec {
    OptionSpec { long, value, key: None, implies: None, help, repeatable: false }
}

const fn repeatable(option: OptionSpec) -> OptionSpec {
    OptionSpec { repeatable: true, ..option }
}

/// The options that both binaries share.
pub const OPTIONS: &[OptionSpec] = &[
    repeatable(own("set", Some("KEY=VALUE"), "Set any setting by its name")),
    setting("toolset", "NAME", "toolset", "The tools that the model has: full, lean"),
    setting("mode", "MODE", "bashMode", "What runs without asking, as four octal digits: 0467"),
    setting("permissions", "WORD", "permissions", "How much is asked: ask, auto, allow"),
    setting("provider", "NAME", "provider", "Who runs the model: openai, responses, anthropic, local, …"),
    setting("model", "NAME", "model", "The model's name"),
    setting("base-url", "URL", "baseUrl", "The address of the provider's interface"),
    OptionSpec {
        long: "local",
        value: None,
        key: Some("provider"),
        implies: Some("local"),
        help: "Use the embedded model",
        repeatable: false,
    },
    setting("max-turns", "N", "maxTurns", "How many requests one prompt may take"),
    setting("max-context", "N", "maxContext", "How many tokens a conversation may have"),
    setting("max-tokens", "N", "maxTokens", "How many tokens one answer may have"),
    setting("max-cost", "AMOUNT", "maxCost", "How much a session may cost"),
    setting("tool-timeout", "SECONDS", "toolTimeout", "How long a tool may take"),
    setting("effort", "WORD", "effort", "How hard the model thinks: low, medium, high, xhigh, max"),
    repeatable(setting("skills-dir", "DIR", "skillsDir", "A directory with skills")),
    repeatable(setting("add-dir", "DIR", "additionalDirectories", "A further directory that counts as workspace")),
    repeatable(own("skill", Some("NAME"), "Give the model this skill from the start")),
    own("cwd", Some("DIR"), "Work in this directory"),
    own("config", Some("FILE"), "Read the user's settings from this file"),
    own("no-session", None, "Keep nothing of this session"),
];

/// The layers of the options that were given, in their order: pairs of the name without dashes and the value, which is
/// empty for an option that takes none. Options without a setting are passed over. A list that is given in several
/// parts is one list.
///
/// # Errors
/// An unknown option or setting, or a value of a wrong type.
pub fn layers(pairs: &[(String, String)]) -> Result<Vec<Layer>, SettingsError> {
    let mut layers: Vec<Layer> = Vec::new();
    for (long, text) in pairs {
        let Some(added) = layer(long, text)? else { continue };
        match layers.iter_mut().find(|earlier| long != "set" && earlier.source == added.source) {
            Some(earlier) => join(earlier, added),
            None => layers.push(added),
        }
    }
    Ok(layers)
}

/// Lists of a repeated option grow; of all else the later value comes last, and wins.
fn join(earlier: &mut Layer, added: Layer) {
    for given in added.values {
        match (earlier.values.last_mut().map(|old| &mut old.value), given.value) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (_, value) => earlier.values.push(Given { value, ..given }),
        }
    }
}

fn layer(long: &str, text: &str) -> Result<Option<Layer>, SettingsError> {
    let source = Source::Flag(format!("--{long}"));
    let spec = OPTIONS.iter().find(|option| option.long == long);
    let spec = spec.ok_or_else(|| SettingsError::new(&source, None, "there is no such option"))?;
    if long == "set" {
        return set(text).map(Some);
    }
    let Some(key) = spec.key.and_then(key) else { return Ok(None) };
    let text = spec.implies.unwrap_or(text);
    let value = match key.kind {
        Kind::Texts => Some(vec![text].into()),
        Kind::Words(words) if !words.contains(&text) => {
            let problem = format!("{text:?} is none of {}", words.join(", "));
            return Err(SettingsError::of(&source, key, None, &problem));
        }
        Kind::Switch
        | Kind::Count(..)
        | Kind::Amount
        | Kind::Words(_)
        | Kind::Share(_)
        | Kind::Text
        | Kind::Mode
        | Kind::Map => file::value(&source, key, text)?,
    };
    given(source, key, value).map(Some)
}

/// `KEY=VALUE`: texts are taken as they are, all else as YAML.
fn set(pair: &str) -> Result<Layer, SettingsError> {
    let source = Source::Flag("--set".into());
    let wrong = |problem: String| SettingsError::new(&source, None, problem);
    let (name, text) = pair.split_once('=').ok_or_else(|| wrong(format!("`{pair}` lacks a `=`; write KEY=VALUE")))?;
    let key = key(name.trim()).ok_or_else(|| {
        let hint = keys::nearest(name).map(|known| format!("did you mean `{known}`?"));
        let hint = hint.unwrap_or_else(|| "`agent config` lists all settings".into());
        wrong(format!("there is no setting `{name}`; {hint}"))
    })?;
    let source = Source::Flag(format!("--set {}", key.name));
    let value = file::value(&source, key, text)?;
    given(source, key, value)
}

fn given(source: Source, key: &'static Key, value: Option<Value>) -> Result<Layer, SettingsError> {
    match value {
        Some(value) => Ok(Layer::new(source).with(key, value)),
        None => Err(SettingsError::of(&source, key, None, &key.expects())),
    }
}
