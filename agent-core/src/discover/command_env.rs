//! The environment that commands get: everything but the agent's own keys.

use std::ffi::{OsStr, OsString};

use super::known;

/// Drops the agent's own keys: the usual variables of all known providers, and `own` (what `apiKeyEnv` names). Those
/// named in `pass` stay.
pub fn command_env(
    all: impl Iterator<Item = (OsString, OsString)>,
    pass: &[String],
    own: &[&str],
) -> Vec<(OsString, OsString)> {
    let mut keys = key_variables();
    keys.extend(own.iter().map(|name| (*name).to_owned()));
    keys.retain(|name| !pass.contains(name));
    all.filter(|(name, _)| !keys.iter().any(|key| OsStr::new(key) == name)).collect()
}

/// The agent's own keys, from the usual variables of all known providers and those of `own`. Texts too short to be a key
/// are left out: they would be found everywhere.
pub fn own_keys(lookup: &dyn Fn(&str) -> Option<String>, own: &[&str]) -> Vec<String> {
    const SHORTEST: usize = 12;
    let variables = key_variables().into_iter().chain(own.iter().map(|name| (*name).to_owned()));
    let mut keys: Vec<String> = variables.filter_map(|name| lookup(&name)).filter(|k| k.len() >= SHORTEST).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn key_variables() -> Vec<String> {
    let by_name = |provider: &str| format!("{}_API_KEY", provider.to_uppercase().replace('-', "_"));
    known::providers().iter().flat_map(|entry| [by_name(entry.name), entry.key_var.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_agent_are_dropped() {
        for (name, pass, own, kept) in [
            ("MY_VAR", &[][..], &[][..], true),
            ("PATH", &[], &[], true),
            ("MY_API_KEY", &[], &[], true),
            ("OPENAI_BASE_URL", &[], &[], true),
            ("OPENAI_API_KEY", &[], &[], false),
            ("ANTHROPIC_API_KEY", &[], &[], false),
            ("DEEPSEEK_API_KEY", &[], &[], false),
            ("OPENAI_API_KEY", &["OPENAI_API_KEY"], &[], true),
            ("MY_VAR", &[], &["MY_VAR"], false),
            ("MY_VAR", &["MY_VAR"], &["MY_VAR"], true),
        ] {
            let pass: Vec<String> = pass.iter().map(ToString::to_string).collect();
            let all = std::iter::once((OsString::from(name), OsString::from("x")));
            assert_eq!(command_env(all, &pass, own).len() == 1, kept, "{name} {pass:?} {own:?}");
        }
    }
}
