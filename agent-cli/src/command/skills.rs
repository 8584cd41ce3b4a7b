//! `agent skills`: the catalogue, and what is wrong with skills that were not loaded or were loaded with doubts.

use serde_json::json;

use super::{print, print_json};
use crate::error::CliError;
use crate::setup::Setup;

/// Prints the catalogue.
///
/// # Errors
/// Output that cannot be written.
pub fn run(setup: &Setup, as_json: bool) -> Result<(), CliError> {
    let catalogue = setup.catalogue_alone();
    if as_json {
        let skills: Vec<_> = catalogue
            .iter()
            .map(|s| json!({"name": s.name, "description": s.description, "path": s.path.to_string_lossy()}))
            .collect();
        let diagnostics: Vec<_> = catalogue
            .diagnostics()
            .iter()
            .map(|d| json!({"path": d.path.to_string_lossy(), "skill": d.skill, "message": d.message}))
            .collect();
        return print_json(&json!({"skills": skills, "diagnostics": diagnostics}));
    }
    let mut text: String = catalogue.iter().map(|s| format!("{} — {}\n", s.name, s.description)).collect();
    if catalogue.is_empty() {
        text.push_str(
            "No skills. A skill is a file NAME.md or NAME/SKILL.md in .agents/skills, .claude/skills or skills, here or (the first two) in the home directory, or in a directory of the setting skillsDir.\n",
        );
    }
    for d in catalogue.diagnostics() {
        text.push_str(&format!("! {}: {}\n", d.path.display(), d.message));
    }
    print(&text)
}
