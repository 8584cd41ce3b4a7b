//! What the model is told of the tools.

use std::fs;
use std::sync::Arc;

use agent_skills::Catalogue;
use agent_tools::Declaration;
use agent_tools::toolset::{Parts, Toolset, tools};

use crate::{data, golden};

fn skills(files: &[(&str, &str)]) -> Arc<Catalogue> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Arc::new(Catalogue::discover(&[dir.path()]))
}

fn declarations(change: impl FnOnce(&mut Parts)) -> Vec<Declaration> {
    let mut parts = Parts::of(Toolset::Lean);
    change(&mut parts);
    tools(Toolset::Lean, &parts).declarations().cloned().collect()
}

fn names(change: impl FnOnce(&mut Parts)) -> Vec<String> {
    declarations(change).into_iter().map(|d| d.name).filter(|name| name != "bash").collect()
}

/// Checks 7 to 11, and every word besides.
#[test]
fn checks_007_008_009_010_011_the_declarations_are_the_golden_ones() {
    let skills =
        || skills(&[("b.md", "---\ndescription: second\n---\n"), ("a/SKILL.md", "---\ndescription: first\n---\n")]);
    let declared = declarations(|parts| parts.skills = skills());
    let text = serde_json::to_string_pretty(&declared).unwrap() + "\n";
    golden(&data("declared/lean.json"), &text);
}

#[test]
fn the_declarations_of_full_are_the_golden_ones() {
    let tools = tools(Toolset::Full, &Parts::of(Toolset::Full));
    let text = serde_json::to_string_pretty(&tools.declarations().collect::<Vec<_>>()).unwrap() + "\n";
    golden(&data("declared/full.json"), &text);
}

#[test]
fn check_003_the_three_file_tools_come_with_their_part() {
    assert_eq!(names(|parts| parts.files = true), ["read_file", "write_file", "edit_file"]);
    assert_eq!(names(|parts| parts.files = false), [""; 0]);
}

#[test]
fn checks_004_005_006_the_skill_tool_comes_with_a_skill() {
    for (files, expect) in [
        (&[][..], false),
        (&[("x.txt", "x"), ("empty/note.txt", "x")], false),
        (&[("a.md", "x")], true),
        (&[("b/SKILL.md", "x")], true),
    ] {
        let names = names(|parts| (parts.files, parts.skills) = (false, skills(files)));
        assert_eq!(names.contains(&"read_skill".into()), expect, "{files:?}");
    }
}

#[test]
fn checks_041_051_052_the_catalogue_is_in_the_description() {
    let skills = skills(&[
        ("b.md", "---\ndescription: second\n---\nx"),
        ("a/SKILL.md", "---\ndescription: first\n---\nx"),
        ("c.md", "---\ndescription: >-\n  folded\n  text\n---\nx"),
        ("d.md", "# Heading\n\nbody"),
    ]);
    let declared = declarations(|parts| (parts.files, parts.skills) = (false, skills));
    let description = &declared.iter().find(|d| d.name == "read_skill").unwrap().description;
    let (sentence, lines) = description.split_once('\n').unwrap();
    assert!(sentence.ends_with("Available skills:"), "{sentence}");
    assert_eq!(lines, "  a — first\n  b — second\n  c — folded text\n  d — Heading");
}
