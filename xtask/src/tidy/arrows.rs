//! Which crate of the workspace may import which.

use serde_json::Value;

use super::{Finding, Source, line_of};

/// Each crate with all it may import, for its tests too. What is not here may import nothing and be imported by nothing.
const ALLOWED: &[(&str, &[&str])] = &[
    ("agent-skills", &[]),
    ("agent-tools", &["agent-skills"]),
    ("agent-core", &["agent-tools", "agent-skills"]),
    ("agent-cli", &["agent-core", "agent-tools", "agent-skills"]),
    ("agent-acp", &["agent-core", "agent-tools", "agent-skills"]),
    ("xtask", &["agent-skills", "agent-tools", "agent-core", "agent-cli"]),
];

/// A crate of the workspace and what it imports of its fellows.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) imports: Vec<String>,
}

pub(crate) fn check(members: &[Member], sources: &[Source]) -> Vec<Finding> {
    members.iter().flat_map(|member| check_member(member, sources)).collect()
}

fn check_member(member: &Member, sources: &[Source]) -> Vec<Finding> {
    let path = format!("{}/Cargo.toml", member.name);
    let text = sources.iter().find(|source| source.path == path).map_or("", |source| &source.text);
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == member.name) else {
        let message = format!("{} is not in the table of imports: add it to xtask/src/tidy/arrows.rs", member.name);
        return vec![Finding { path, line: 1, message }];
    };
    let wrong = member.imports.iter().filter(|import| !allowed.contains(&import.as_str()));
    let finding = |import: &String| Finding {
        path: path.clone(),
        line: line_of(text, |line| line.starts_with(import.as_str())),
        message: format!(
            "{} must not import {import}: move what it needs to the lowest crate that both may import",
            member.name
        ),
    };
    wrong.map(finding).collect()
}

pub(crate) fn members(metadata: &Value) -> Vec<Member> {
    let packages: Vec<(&str, &Value)> = member_packages(metadata).collect();
    // A crate that imports itself turns features on for its tests.
    let imports = |own: &str, package: &Value| {
        let names = list(&package["dependencies"]).filter_map(|dependency| dependency["name"].as_str());
        let fellow = |name: &&str| *name != own && packages.iter().any(|(member, _)| member == name);
        names.filter(fellow).map(str::to_owned).collect()
    };
    packages
        .iter()
        .map(|(name, package)| Member { name: (*name).to_owned(), imports: imports(name, package) })
        .collect()
}

/// The workspace's own packages by name.
pub(crate) fn member_packages(metadata: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let is_member = |package: &&Value| list(&metadata["workspace_members"]).any(|id| *id == package["id"]);
    list(&metadata["packages"]).filter(is_member).filter_map(|package| Some((package["name"].as_str()?, package)))
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_arrows_of_the_house_are_allowed() {
        for (name, import, allowed) in [
            ("agent-tools", "agent-skills", true),
            ("agent-core", "agent-tools", true),
            ("agent-core", "agent-skills", true),
            ("agent-cli", "agent-core", true),
            ("agent-acp", "agent-skills", true),
            ("xtask", "agent-cli", true),
            ("agent-skills", "agent-tools", false),
            ("agent-tools", "agent-core", false),
            ("agent-core", "agent-cli", false),
            ("agent-cli", "agent-acp", false),
            ("agent-acp", "agent-cli", false),
            ("xtask", "agent-acp", false),
            ("agent-cli", "xtask", false),
        ] {
            let member = Member { name: name.to_owned(), imports: vec![import.to_owned()] };
            assert_eq!(check(&[member], &[]).is_empty(), allowed, "{name} -> {import}");
        }
        assert_eq!(check(&[Member { name: "stranger".to_owned(), imports: Vec::new() }], &[]).len(), 1);
    }

    #[test]
    fn dependencies_of_tests_count_and_findings_name_the_line() {
        let metadata = serde_json::json!({
            "workspace_members": ["s", "t"],
            "packages": [
                {"id": "s", "name": "agent-skills", "dependencies": [{"name": "serde"}, {"name": "agent-tools", "kind": "dev"}]},
                {"id": "t", "name": "agent-tools", "dependencies": [{"name": "agent-tools", "kind": "dev"}]},
                {"id": "x", "name": "serde", "dependencies": []},
            ],
        });
        let manifest = Source {
            path: "agent-skills/Cargo.toml".to_owned(),
            text: "[dev-dependencies]\nagent-tools.workspace = true\n".to_owned(),
        };
        let shown: Vec<String> = check(&members(&metadata), &[manifest]).iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 1);
        assert!(
            shown[0].starts_with("agent-skills/Cargo.toml:2: agent-skills must not import agent-tools"),
            "{shown:?}"
        );
    }
}
