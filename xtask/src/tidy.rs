//! Checks what holds the house together and no compiler sees.

mod absences;
mod arrows;
mod code;
mod licences;
mod modules;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the workspace's directory on.
    pub path: String,
    /// Its line, counted from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A file of the workspace.
pub(crate) struct Source {
    /// From the workspace's directory on, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Checks the workspace at `root`.
///
/// # Errors
/// When a file cannot be read or cargo cannot describe the workspace.
pub fn run(root: &Path) -> Result<Vec<Finding>, String> {
    let metadata = metadata(root)?;
    let sources = sources(root, &metadata)?;
    let lock = read(root, Path::new("Cargo.lock"))?;
    let mut findings = arrows::check(&arrows::members(&metadata), &sources);
    findings.extend(absences::check(&sources));
    findings.extend(licences::check(&licences::packages(&metadata), &lock.text));
    findings.extend(modules::check(&sources));
    findings.sort();
    Ok(findings)
}

/// What cargo says of the workspace with all its features. Manifests of other platforms may not be here yet; cargo then
/// fetches them as a build would.
fn metadata(root: &Path) -> Result<Value, String> {
    cargo_metadata(root, &["--offline"]).or_else(|_| cargo_metadata(root, &[]))
}

fn cargo_metadata(root: &Path, more: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["metadata", "--format-version", "1", "--all-features", "--locked"]).args(more);
    let output = command.output().map_err(|e| format!("cargo cannot be started: {e}"))?;
    if !output.status.success() {
        return Err(format!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("`cargo metadata` said what is no JSON: {e}"))
}

/// The manifests and Rust files of the members.
fn sources(root: &Path, metadata: &Value) -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    for (_, package) in arrows::member_packages(metadata) {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().unwrap_or(root);
        for part in ["src", "tests", "examples", "benches", "build.rs"] {
            rust_files(&folder.join(part), &mut paths);
        }
        paths.push(manifest);
    }
    paths.sort();
    paths.iter().map(|path| read(root, path.strip_prefix(root).unwrap_or(path))).collect()
}

fn rust_files(path: &Path, found: &mut Vec<PathBuf>) {
    if let Ok(entries) = fs::read_dir(path) {
        entries.filter_map(Result::ok).for_each(|entry| rust_files(&entry.path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
        found.push(path.to_owned());
    }
}

fn read(root: &Path, path: &Path) -> Result<Source, String> {
    let text = fs::read_to_string(root.join(path)).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    Ok(Source { path: path.to_string_lossy().replace('\\', "/"), text })
}

/// The line of the first one of `text` that `matches`, else 1.
fn line_of(text: &str, matches: impl Fn(&str) -> bool) -> usize {
    text.lines().position(matches).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let findings = run(&crate::root()).unwrap();
        let shown: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
        assert!(findings.is_empty(), "\n{shown}");
    }

    #[test]
    fn all_members_are_read() {
        let root = crate::root();
        let sources = sources(&root, &metadata(&root).unwrap()).unwrap();
        for path in
            ["agent-skills/src/lib.rs", "agent-skills/tests/it/main.rs", "agent-tools/src/tools.rs", "xtask/Cargo.toml"]
        {
            assert!(sources.iter().any(|source| source.path == path), "{path}");
        }
    }
}
