//! The trees of `tests/data`.

use std::fs;
use std::path::{Path, PathBuf};

use agent_skills::Catalogue;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A line a skill, then a line a diagnostic, with paths from the tree on.
fn shown(tree: &Path) -> String {
    let dirs: Vec<PathBuf> = ["1", "2", "missing"].iter().map(|dir| tree.join(dir)).collect();
    let catalogue = Catalogue::discover(&dirs);
    let skills = catalogue.iter().map(|skill| format!("  {} — {}\n", skill.name, skill.description));
    let diagnostics = catalogue.diagnostics().iter().map(|diagnostic| format!("! {diagnostic}\n"));
    skills.chain(diagnostics).collect::<String>().replace(&format!("{}/", tree.display()), "")
}

fn check(name: &str) {
    let tree = data().join(name);
    let expect = fs::read_to_string(tree.join("expect.txt")).unwrap();
    assert_eq!(shown(&tree), expect, "{name}:\n{}", shown(&tree));
}

#[test]
fn files_and_folders_are_skills() {
    check("plain");
}

#[test]
fn descriptions_come_in_many_forms() {
    check("forms");
}

#[test]
fn faulty_skills_are_listed_and_told() {
    check("faults");
}

#[test]
fn the_earlier_directory_and_the_flat_file_win() {
    check("order");
}

#[test]
fn no_tree_is_forgotten() {
    let mut trees: Vec<_> = fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    trees.sort();
    assert_eq!(trees, ["faults", "forms", "order", "plain"]);
}

#[test]
fn the_rest_of_the_front_matter_is_kept_as_text() {
    let catalogue = Catalogue::discover(&[data().join("forms/1")]);
    let skill = catalogue.get("folded").unwrap();
    assert_eq!(skill.license.as_deref(), Some("MIT"));
    assert_eq!(skill.compatibility.as_deref(), Some("Needs git"));
    assert_eq!(skill.allowed_tools.as_deref(), Some("Read, Bash"));
    assert_eq!(skill.base, data().join("forms/1/folded"));
    assert_eq!(catalogue.get("types").unwrap().allowed_tools, None);
    assert_eq!(catalogue.get("none").unwrap().base, data().join("forms/1"));
}

#[test]
fn a_name_is_looked_up_in_the_catalogue_alone() {
    let catalogue = Catalogue::discover(&[data().join("faults/1")]);
    for (name, expect) in [
        ("group", Some("group")),
        ("folder-a", Some("folder-a")),
        ("other-b", Some("folder-a")),
        ("child", None),
        ("../1/colon", None),
        ("group/../colon", None),
        ("..\\1\\colon", None),
        ("colon.md", None),
        ("..", None),
        (".", None),
        ("", None),
        ("/", None),
        ("colon\0", None),
    ] {
        assert_eq!(catalogue.get(name).map(|skill| skill.name.as_str()), expect, "{name:?}");
    }
    let path = data().join("faults/1/colon.md");
    assert!(catalogue.get(&path.display().to_string()).is_none());
}
