//! Settings from the environment. What belongs to one provider (keys, base URLs) is looked up where one is chosen.

use serde_json::{Value, json};

use super::{Kind, Layer, Source, key};

/// Which variable sets which setting. Of several for the same one the later wins.
const VARIABLES: &[(&str, &str)] = &[
    ("BASH_AGENT_BASH_MODE", "bashMode"),
    ("HTTP_PROXY", "proxy"),
    ("http_proxy", "proxy"),
    ("ALL_PROXY", "proxy"),
    ("all_proxy", "proxy"),
    ("HTTPS_PROXY", "proxy"),
    ("https_proxy", "proxy"),
    ("NO_PROXY", "noProxy"),
    ("no_proxy", "noProxy"),
];

/// One layer for each variable that is set and not empty.
pub fn layers(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Layer> {
    let layer = |&(variable, name): &(&str, &str)| {
        let (text, key) = lookup(variable).filter(|text| !text.is_empty()).zip(key(name))?;
        Some(Layer::new(Source::Env(variable.into())).with(key, value(key.kind, &text)))
    };
    VARIABLES.iter().filter_map(layer).collect()
}

/// Lists are divided by commas, as is the custom for variables.
fn value(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Texts => text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect(),
        Kind::Switch
        | Kind::Count(..)
        | Kind::Amount
        | Kind::Words(_)
        | Kind::Share(_)
        | Kind::Text
        | Kind::Mode
        | Kind::Map => json!(text),
    }
}
