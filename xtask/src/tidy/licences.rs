//! Under which licences the crates may be that are shipped, and which crates may not be here at all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::arrows::list;
use super::{Finding, line_of};

/// Licences that ask for no more than a notice.
const PERMISSIVE: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// A licence that one crate may have, and why.
const SINGLE: &[(&str, &str, &str)] = &[
    ("webpki-roots", "CDLA-Permissive-2.0", "root certificates: data, under a permissive licence for data"),
    ("webpki-root-certs", "CDLA-Permissive-2.0", "root certificates: data, under a permissive licence for data"),
];

/// Crates that must not come in, not even by way of others.
const BANNED: &[(&str, &str)] = &[
    ("serde_yaml", "deprecated: serde-saphyr reads YAML"),
    ("eventsource-stream", "unmaintained: agent-core/src/provider/sse.rs reads server-sent events"),
    ("strip-ansi-escapes", "drops text that is no escape"),
    ("tui-textarea", "unmaintained"),
    ("openssl", "TLS is rustls with ring: nothing of the system to find or build"),
    ("openssl-sys", "TLS is rustls with ring: nothing of the system to find or build"),
    ("aws-lc-rs", "TLS is rustls with ring: aws-lc needs a C tool chain of its own"),
    ("aws-lc-sys", "TLS is rustls with ring: aws-lc needs a C tool chain of its own"),
];

/// A crate of others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression; empty where the crate names none.
    pub(crate) licence: String,
    /// Whether it gets into what is shipped: not only into tests or build scripts.
    pub(crate) shipped: bool,
}

/// `lock` is the text of Cargo.lock: findings name the line there.
pub(crate) fn check(packages: &[Package], lock: &str) -> Vec<Finding> {
    packages.iter().filter_map(|package| Some(finding(package, fault(package)?, lock))).collect()
}

fn finding(package: &Package, message: String, lock: &str) -> Finding {
    let entry = format!("name = \"{}\"", package.name);
    Finding { path: "Cargo.lock".to_owned(), line: line_of(lock, |line| line == entry), message }
}

fn fault(package: &Package) -> Option<String> {
    let Package { name, version, licence, shipped } = package;
    if let Some((_, why)) = BANNED.iter().find(|(banned, _)| banned == name) {
        return Some(format!("{name} {version} is banned: {why}. `cargo tree -i {name}` tells who brings it in"));
    }
    let fine =
        |id: &str| PERMISSIVE.contains(&id) || SINGLE.iter().any(|(only, single, _)| only == name && *single == id);
    let problem = match satisfied(licence, &fine) {
        Some(true) => return None,
        Some(false) => "its licence is not one of the permissive ones of xtask/src/tidy/licences.rs",
        None => "its licence is not an SPDX expression",
    };
    shipped.then(|| {
        format!("{name} {version} ({licence:?}): {problem}. Use another crate, or add it there with the reason")
    })
}

/// Whether the SPDX expression holds when the licences that are `fine` do; `None` where it is none.
fn satisfied(expression: &str, fine: &impl Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (value, rest) = any(&words, fine)?;
    rest.is_empty().then_some(value)
}

type Read<'w, 't> = Option<(bool, &'w [&'t str])>;

fn any<'w, 't>(words: &'w [&'t str], fine: &impl Fn(&str) -> bool) -> Read<'w, 't> {
    let (mut value, mut words) = all(words, fine)?;
    while let [word, rest @ ..] = words
        && word.eq_ignore_ascii_case("or")
    {
        let (next, rest) = all(rest, fine)?;
        (value, words) = (value | next, rest);
    }
    Some((value, words))
}

fn all<'w, 't>(words: &'w [&'t str], fine: &impl Fn(&str) -> bool) -> Read<'w, 't> {
    let (mut value, mut words) = one(words, fine)?;
    while let [word, rest @ ..] = words
        && word.eq_ignore_ascii_case("and")
    {
        let (next, rest) = one(rest, fine)?;
        (value, words) = (value & next, rest);
    }
    Some((value, words))
}

fn one<'w, 't>(words: &'w [&'t str], fine: &impl Fn(&str) -> bool) -> Read<'w, 't> {
    match words {
        ["(", rest @ ..] => match any(rest, fine)? {
            (value, [")", rest @ ..]) => Some((value, rest)),
            _ => None,
        },
        [")" | "OR" | "AND" | "WITH", ..] | [] => None,
        [id, "WITH", exception, rest @ ..] => Some((fine(&format!("{id} WITH {exception}")), rest)),
        [id, rest @ ..] => Some((fine(id), rest)),
    }
}

/// All crates but the workspace's own.
pub(crate) fn packages(metadata: &Value) -> Vec<Package> {
    let members: BTreeSet<&str> = list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let shipped = shipped(metadata, &members);
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let package = |package: &Value| {
        let id = package["id"].as_str().filter(|id| !members.contains(id))?;
        let (name, version, licence) = (text(package, "name"), text(package, "version"), text(package, "license"));
        Some(Package { name, version, licence, shipped: shipped.contains(id) })
    };
    list(&metadata["packages"]).filter_map(package).collect()
}

/// The ids that normal dependencies lead to, from the members on.
fn shipped<'m>(metadata: &'m Value, members: &BTreeSet<&'m str>) -> BTreeSet<&'m str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let (mut seen, mut open) = (BTreeSet::new(), members.iter().copied().collect::<Vec<_>>());
    while let Some(id) = open.pop() {
        if let (true, Some(node)) = (seen.insert(id), nodes.get(id)) {
            let normal = |dep: &&Value| list(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null());
            open.extend(list(&node["deps"]).filter(normal).filter_map(|dep| dep["pkg"].as_str()));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_with_their_precedence() {
        let fine = |id: &str| ["A", "B", "A WITH x"].contains(&id);
        for (expression, expect) in [
            ("A", Some(true)),
            ("C", Some(false)),
            ("A OR C", Some(true)),
            ("C or A", Some(true)),
            ("C/A", Some(true)),
            ("C / D", Some(false)),
            ("A AND C", Some(false)),
            ("A AND B", Some(true)),
            ("C AND A OR B", Some(true)),
            ("C AND (A OR B)", Some(false)),
            ("(A OR C) AND B", Some(true)),
            ("((C OR B))", Some(true)),
            ("A WITH x", Some(true)),
            ("B WITH x", Some(false)),
            ("B WITH x OR A", Some(true)),
            ("", None),
            ("A B", None),
            ("A OR", None),
            ("(A", None),
            ("A)", None),
            ("AND A", None),
        ] {
            assert_eq!(satisfied(expression, &fine), expect, "{expression:?}");
        }
    }

    #[test]
    fn a_crate_is_judged_by_name_licence_and_use() {
        for (name, licence, shipped, fine) in [
            ("a", "MIT OR Apache-2.0", true, true),
            ("a", "GPL-3.0-only", true, false),
            ("a", "GPL-3.0-only", false, true),
            ("a", "MIT OR LGPL-2.1-or-later", true, true),
            ("a", "MIT AND LGPL-2.1-or-later", true, false),
            ("a", "MPL-2.0", true, false),
            ("a", "", true, false),
            ("a", "see LICENSE", true, false),
            ("webpki-roots", "CDLA-Permissive-2.0", true, true),
            ("a", "CDLA-Permissive-2.0", true, false),
            ("serde_yaml", "MIT", true, false),
            ("openssl-sys", "MIT", false, false),
            ("aws-lc-rs", "ISC", true, false),
        ] {
            let package =
                Package { name: name.to_owned(), version: "1.0.0".to_owned(), licence: licence.to_owned(), shipped };
            assert_eq!(check(&[package], "").is_empty(), fine, "{name} {licence} {shipped}");
        }
    }

    #[test]
    fn what_only_tests_use_is_not_shipped_and_findings_name_the_line() {
        let metadata = serde_json::json!({
            "workspace_members": ["own"],
            "packages": [
                {"id": "own", "name": "own", "version": "0.1.0", "license": null},
                {"id": "n", "name": "normal", "version": "1.0.0", "license": "GPL-2.0"},
                {"id": "d", "name": "dev", "version": "1.0.0", "license": "GPL-2.0"},
                {"id": "i", "name": "indirect", "version": "1.0.0", "license": null},
            ],
            "resolve": {"nodes": [
                {"id": "own", "deps": [
                    {"pkg": "n", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                    {"pkg": "d", "dep_kinds": [{"kind": "dev"}]},
                ]},
                {"id": "n", "deps": [{"pkg": "i", "dep_kinds": [{"kind": null}]}]},
                {"id": "d", "deps": []},
                {"id": "i", "deps": []},
            ]},
        });
        let lock = "[[package]]\nname = \"indirect\"\n\n[[package]]\nname = \"normal\"\n";
        let found = check(&packages(&metadata), lock);
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [5, 2]);
    }
}
