//! The parts of README.md that the code knows best: tables of tools, commands, options, settings and providers, and the
//! example of embedding; and the table of programs on the page about permissions.
//!
//! Each stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`, the programs between `<!-- programs:begin -->` and
//! `<!-- programs:end -->`. `cargo xtask reference` writes them; a test says when they are stale.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use agent_core::commands::{COMMANDS, CommandSpec, first_sentence};
use agent_core::provider::models;
use agent_core::settings::{Key, Kind, Project, keys};
use agent_skills::Catalogue;
use agent_tools::Declaration;
use agent_tools::policy::shell::programs_table;
use agent_tools::toolset::{Parts, Toolset, tools};
use clap::{Arg, Command};
use serde_json::Value;

const EMBED: &str = include_str!("../../agent-tools/examples/embed.rs");

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The page about permissions, where there is one.
const PERMISSIONS: &str = "agent-tools/docs/permissions.md";

/// Writes the tables into their files, and says whether that changed any.
///
/// # Errors
/// A file cannot be read or written, or lacks the place of a table.
pub fn run(root: &Path) -> Outcome<bool> {
    let readme = rewrite(&root.join("README.md"), updated)?;
    let permissions = root.join(PERMISSIONS);
    Ok((permissions.exists() && rewrite(&permissions, with_programs)?) || readme)
}

fn rewrite(path: &Path, updated: impl Fn(&str) -> Outcome<String>) -> Outcome<bool> {
    let before = fs::read_to_string(path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    let after = updated(&before).map_err(|e| format!("{}: {e}", path.display()))?;
    let changed = before != after;
    if changed {
        fs::write(path, after).map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    }
    Ok(changed)
}

/// The page about permissions with the table of programs as it ought to be.
fn with_programs(text: &str) -> Outcome<String> {
    let table = programs_table();
    Ok(between(text, "<!-- programs:begin -->", "<!-- programs:end -->", &format!("\n{table}\n"), "programs")?)
}

/// The text with all tables as they ought to be.
fn updated(text: &str) -> Outcome<String> {
    let program = agent_cli::args::command();
    let tables = [
        ("tools", tool_table(&declarations(Toolset::Full)?)),
        ("lean", tool_table(&declarations(Toolset::Lean)?)),
        ("commands", command_table(&program)),
        ("interactive", interactive_table()),
        ("options", option_table(&program)),
        ("settings", setting_table()),
        ("providers", provider_table()),
        ("embed", format!("```rust\n{EMBED}```\n")),
    ];
    tables.iter().try_fold(text.to_owned(), |text, (name, table)| Ok(put(&text, name, table)?))
}

/// Puts a table between its markers.
fn put(text: &str, name: &str, table: &str) -> Result<String, String> {
    between(text, &format!("<!-- begin: {name} -->"), &format!("<!-- end: {name} -->"), table, name)
}

fn between(text: &str, begin: &str, end: &str, table: &str, name: &str) -> Result<String, String> {
    let begin = format!("{begin}\n");
    let lacks = |marker: &str| format!("there is no line `{}` for the table of {name}", marker.trim_end());
    let (before, rest) = text.split_once(&begin).ok_or_else(|| lacks(&begin))?;
    let (_, after) = rest.split_once(end).ok_or_else(|| lacks(end))?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// A table in Markdown. A bar within a cell would end it.
fn table(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head = line(heads.iter().map(ToString::to_string).collect());
    let rule = line(vec!["---".into(); heads.len()]);
    let rows: String = rows.into_iter().map(line).collect();
    head + &rule + &rows
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

// Tools

/// The tools as a model is told of them that has a skill at hand.
fn declarations(toolset: Toolset) -> Outcome<Vec<Declaration>> {
    let skills = tempfile::tempdir()?;
    fs::write(skills.path().join("example.md"), "An example.\n")?;
    let mut parts = Parts::of(toolset);
    parts.skills = Arc::new(Catalogue::discover(&[skills.path()]));
    Ok(tools(toolset, &parts).declarations().cloned().collect())
}

fn tool_table(tools: &[Declaration]) -> String {
    let row =
        |tool: &Declaration| vec![code(&tool.name), arguments(&tool.schema), first_sentence(&tool.description).into()];
    table(&["Tool", "Arguments", "What it does"], tools.iter().map(row))
}

/// The arguments with their types, and the defaults of those that may be left out.
fn arguments(schema: &Value) -> String {
    let needed: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let argument = |(name, about): (&String, &Value)| match about.get("default") {
        Some(default) => format!("`{name}`: {} = `{default}`", type_of(about)),
        None if needed.contains(&name.as_str()) => format!("`{name}`: {}", type_of(about)),
        None => format!("`{name}`: {}, optional", type_of(about)),
    };
    let all: Vec<String> = schema["properties"].as_object().into_iter().flatten().map(argument).collect();
    all.join("<br>")
}

fn type_of(schema: &Value) -> String {
    let name = |value: &Value| value.as_str().unwrap_or("any").to_owned();
    match (&schema["type"], schema["properties"].as_object()) {
        (Value::String(kind), _) if kind == "array" => format!("list of {}", type_of(&schema["items"])),
        (Value::String(kind), Some(parts)) if kind == "object" => {
            let parts: Vec<String> = parts.iter().map(|(part, about)| format!("{part}: {}", type_of(about))).collect();
            format!("{{{}}}", parts.join(", "))
        }
        (Value::Array(kinds), _) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
        (kind, _) => name(kind),
    }
}

// Commands and options

fn command_table(program: &Command) -> String {
    let mut rows = Vec::new();
    for command in program.get_subcommands() {
        add_commands(program.get_name(), command, &mut rows);
    }
    table(&["Command", "What it does"], rows)
}

/// The commands of an interactive session.
fn interactive_table() -> String {
    let row = |spec: &CommandSpec| vec![code(&spec.usage()), spec.help.to_owned()];
    table(&["Command", "What it does"], COMMANDS.iter().map(row))
}

/// Commands that only hold others are told by these.
fn add_commands(above: &str, command: &Command, rows: &mut Vec<Vec<String>>) {
    let line = format!("{above} {}", command.get_name());
    if command.has_subcommands() {
        command.get_subcommands().for_each(|below| add_commands(&line, below, rows));
        return;
    }
    let words = command.get_arguments().filter(|arg| !arg.is_global_set()).map(usage);
    let typed: Vec<String> = std::iter::once(line).chain(words).collect();
    rows.push(vec![code(&typed.join(" ")), command.get_about().map(ToString::to_string).unwrap_or_default()]);
}

/// An argument as one types it, in brackets where it may be left out.
fn usage(arg: &Arg) -> String {
    let typed = typed(arg);
    if arg.is_required_set() { typed } else { format!("[{typed}]") }
}

fn typed(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string);
    let name =
        arg.get_long().map(|long| format!("--{long}")).or_else(|| arg.get_short().map(|short| format!("-{short}")));
    let takes = arg.get_action().takes_values();
    name.into_iter().chain(names.filter(|_| takes)).collect::<Vec<_>>().join(" ")
}

fn option_table(program: &Command) -> String {
    let row = |arg: &Arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let help = if values.is_empty() || !arg.get_action().takes_values() {
            help
        } else {
            format!("{help}: {}", values.join(", "))
        };
        vec![code(&typed(arg)), help]
    };
    table(&["Option", "What it does"], program.get_arguments().filter(|arg| !arg.is_positional()).map(row))
}

// Settings and providers

fn setting_table() -> String {
    let row =
        |key: &Key| vec![code(key.name), takes(key.kind), key.default.into(), key.help.into(), project(&key.project)];
    table(&["Setting", "Takes", "Default", "What it is for", "In a project's file"], keys().iter().map(row))
}

/// What a setting takes, short enough for a table.
fn takes(kind: Kind) -> String {
    match kind {
        Kind::Switch => "true, false".into(),
        Kind::Count(from, _) => format!("number from {from}"),
        Kind::Amount => "number".into(),
        Kind::Words(words) => words.join(", "),
        Kind::Share(words) => format!("{}, percentage", words.join(", ")),
        Kind::Text => "text".into(),
        Kind::Texts => "list of texts".into(),
        Kind::Mode => "four digits".into(),
        Kind::Map => "map".into(),
    }
}

fn project(project: &Project) -> String {
    match project {
        Project::Allowed => "yes".into(),
        Project::Tighten(what, _) => format!("only {what}"),
        Project::Never => "no".into(),
    }
}

fn provider_table() -> String {
    let row = |entry: &models::ProviderEntry| vec![code(entry.name), code(entry.key_var), code(entry.model)];
    table(&["Provider", "Variable of the key", "Model unless another is named"], models::providers().iter().map(row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_readme_is_up_to_date() {
        let text = fs::read_to_string(crate::root().join("README.md")).unwrap();
        assert!(updated(&text).unwrap() == text, "README.md is stale: run `cargo xtask reference` and read the diff");
    }

    #[test]
    fn the_page_about_permissions_is_up_to_date() {
        let Ok(text) = fs::read_to_string(crate::root().join(PERMISSIONS)) else { return };
        assert!(
            with_programs(&text).unwrap() == text,
            "{PERMISSIONS} is stale: run `cargo xtask reference` and read the diff"
        );
    }

    #[test]
    fn programs_stand_between_their_markers() {
        let text = with_programs("a\n<!-- programs:begin -->\nold\n<!-- programs:end -->\nb\n").unwrap();
        assert!(
            text.starts_with("a\n<!-- programs:begin -->\n\n| Programs |")
                && text.ends_with("|\n\n<!-- programs:end -->\nb\n")
        );
        assert!(!text.contains("\nold\n") && text.contains("`git push`"));
    }

    #[test]
    fn a_table_goes_between_its_markers_and_nowhere_else() {
        let text = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n";
        assert_eq!(put(text, "x", "new\n").unwrap(), "a\n<!-- begin: x -->\nnew\n<!-- end: x -->\nb\n");
        assert!(put(text, "y", "new\n").unwrap_err().contains("<!-- begin: y -->"));
        assert!(put("<!-- begin: x -->\n", "x", "new\n").unwrap_err().contains("<!-- end: x -->"));
    }

    #[test]
    fn arguments_have_types_and_defaults() {
        let schema = json!({
            "required": ["path", "edits"],
            "properties": {
                "path": {"type": "string"},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
                "start": {"type": "integer", "default": 0},
                "note": {"type": ["string", "null"]},
            },
        });
        let expect = "`path`: string<br>`edits`: list of {old: string}<br>`start`: integer = `0`<br>`note`: string or null, optional";
        assert_eq!(arguments(&schema), expect);
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        assert_eq!(table(&["A"], [vec!["x|y".to_owned()]]), "| A |\n| --- |\n| x\\|y |\n");
    }
}
