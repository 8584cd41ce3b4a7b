//! `agent config`: every setting in force, with its value and where it came from.

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
    if as_json {
        let shown = |e: &agent_core::settings::Entry| {
            (e.key.name.to_owned(), json!({"value": e.value, "source": e.source.to_string()}))
        };
        return print_json(&Value::Object(entries.iter().map(shown).collect::<Map<_, _>>()));
    }
    let width = entries.iter().map(|e| e.key.name.len()).max().unwrap_or(0);
    let lines: String =
        entries.iter().map(|e| format!("{:width$}  {}  ({})\n", e.key.name, text(&e.value), e.source)).collect();
    print(&lines)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
