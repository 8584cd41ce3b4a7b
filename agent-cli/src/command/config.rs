//! `agent config`: every setting in force, with its value and where it came from.

use agent_core::settings::Entry;
use agent_tools::builtin::sandbox::report;
use serde_json::{Map, Value, json};

use super::{print, print_json};
use crate::error::CliError;
use crate::setup::Setup;

/// Prints the settings.
///
/// # Errors
/// Output that cannot be written.
pub fn run(setup: &Setup, as_json: bool) -> Result<(), CliError> {
    let entries = setup.settings.entries();
    let confined = report(setup.settings.sandbox).to_string();
    // What a setting comes to on this machine, where that is more than its value.
    let comes_to = |entry: &Entry| (entry.key.name == "sandbox").then_some(confined.as_str());
    if as_json {
        let shown = |e: &Entry| (e.key.name.to_owned(), object(e, comes_to(e)));
        return print_json(&Value::Object(entries.iter().map(shown).collect::<Map<_, _>>()));
    }
    let width = entries.iter().map(|e| e.key.name.len()).max().unwrap_or(0);
    let line = |e: &Entry| {
        let more = comes_to(e).map(|what| format!(": {what}")).unwrap_or_default();
        format!("{:width$}  {}{more}  ({})\n", e.key.name, text(&e.value), e.source)
    };
    print(&entries.iter().map(line).collect::<String>())
}

fn object(entry: &Entry, comes_to: Option<&str>) -> Value {
    let mut object = json!({"value": entry.value, "source": entry.source.to_string()});
    if let Some(what) = comes_to {
        object["inForce"] = what.into();
    }
    object
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
