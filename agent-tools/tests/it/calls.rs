//! What calls do: files before, calls and their output, files after.
//!
//! A case is `=== NAME` and its sections; a section is a line `--- HEAD` and the text up to the next line that begins so,
//! exactly (a text with a final newline ends with an empty line). Heads: `limit N`, `file PATH`, `call TOOL`,
//! `output STATUS`, `after PATH`. ` json` behind a path: the text is a JSON string; ` hex`: bytes. A file that has no
//! `after` must be the very same file with the same time; no other files may appear. Numbers in names are those of the
//! toolset's list of checks. The session's directory is `session`; `@dir` stands for the directory of the case.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_skills::Catalogue;
use agent_tools::builtin::own_files;
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Place, Status, ToolContext, Tools, dispatch};

use crate::{data, golden};

#[tokio::test]
async fn lean_calls_do_what_their_files_say() {
    check(Toolset::Lean).await;
}

#[tokio::test]
async fn full_calls_do_what_their_files_say() {
    check(Toolset::Full).await;
}

async fn check(toolset: Toolset) {
    let dir = data(&format!("calls/{toolset}"));
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for case in Case::all(&text) {
            found.push_str(&case.run(toolset).await);
        }
        golden(&path, &found);
    }
}

struct Case<'t> {
    name: &'t str,
    sections: Vec<(&'t str, &'t str)>,
}

impl<'t> Case<'t> {
    fn all(text: &'t str) -> Vec<Self> {
        let text = text.strip_prefix("=== ").expect("a file begins with a case");
        text.strip_suffix('\n').unwrap_or(text).split("\n=== ").map(Self::parse).collect()
    }

    fn parse(text: &'t str) -> Self {
        let mut parts = text.split("\n--- ");
        let name = parts.next().unwrap_or_default();
        Self { name, sections: parts.map(|part| part.split_once('\n').unwrap_or((part, ""))).collect() }
    }

    /// Runs the case and tells it again with the output and the files that were found.
    async fn run(&self, toolset: Toolset) -> String {
        let dir = tempfile::tempdir().unwrap();
        let mut told = format!("=== {}\n", self.name);
        for (head, text) in self.sections.iter().filter(|(head, _)| head.starts_with("file ")) {
            let (path, bytes) = file(head, text);
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), bytes).unwrap();
        }
        let before = tree(dir.path());
        let (tools, cx) = self.tools(toolset, dir.path());
        for (number, (head, text)) in self.sections.iter().enumerate() {
            if head.starts_with("output ") || head.starts_with("after ") {
                continue;
            }
            told.push_str(&format!("--- {head}\n{text}\n"));
            if let Some(name) = head.strip_prefix("call ") {
                cx.policy.planning(own_files::open_draft(&cx.place));
                let arguments = text.replace("@dir", dir.path().to_str().unwrap());
                let output = dispatch(&tools, &Call::new(number.to_string(), name, arguments), &cx).await;
                let status = match output.status {
                    Status::Ok => "ok",
                    Status::Failed => "failed",
                    Status::Rejected | Status::Blocked => "blocked",
                };
                let text = output.text().replace(dir.path().to_str().unwrap(), "@dir");
                told.push_str(&format!("--- output {status}\n{text}\n"));
            }
        }
        told.push_str(&self.after(&before, dir.path()));
        told
    }

    fn tools(&self, toolset: Toolset, dir: &Path) -> (Tools, ToolContext) {
        let mut parts = Parts::of(toolset);
        parts.skills = Arc::new(Catalogue::discover(&[dir.join("skills")]));
        if let Some((head, _)) = self.sections.iter().find(|(head, _)| head.starts_with("limit ")) {
            parts.max_output = head["limit ".len()..].parse().unwrap();
        }
        let mut cx = ToolContext::new(dir, Gate::new(Mode::ALL, Permissions::Auto));
        let mut place = Place::new(dir);
        place.store = Some(dir.join("session"));
        place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        cx.place = Arc::new(place);
        (tools(toolset, &parts), cx)
    }

    /// The files that are not as they were, in the form that the case gives them.
    fn after(&self, before: &BTreeMap<PathBuf, Stamp>, dir: &Path) -> String {
        let after = tree(dir);
        let forms: BTreeMap<&str, &str> = self
            .sections
            .iter()
            .filter_map(|(head, _)| head.strip_prefix("after ").or(head.strip_prefix("file ")))
            .map(path_and_form)
            .collect();
        let mut told = String::new();
        for (path, stamp) in after.iter().filter(|(path, stamp)| before.get(*path) != Some(stamp)) {
            let name = path.to_str().unwrap();
            let plain = if stamp.bytes.contains(&b'\r') { "json" } else { "" };
            let form = forms.get(name).copied().unwrap_or(plain);
            let space = if form.is_empty() { "" } else { " " };
            told.push_str(&format!("--- after {name}{space}{form}\n{}\n", formed(&stamp.bytes, form)));
        }
        for path in before.keys().filter(|path| !after.contains_key(*path)) {
            told.push_str(&format!("--- gone {}\n", path.display()));
        }
        told
    }
}

fn path_and_form(text: &str) -> (&str, &str) {
    let formed = ["json", "hex"].into_iter().find_map(|form| Some((text.strip_suffix(form)?.strip_suffix(' ')?, form)));
    formed.unwrap_or((text, ""))
}

fn file<'t>(head: &'t str, text: &str) -> (&'t str, Vec<u8>) {
    let (path, form) = path_and_form(&head["file ".len()..]);
    let bytes = match form {
        "json" => serde_json::from_str::<String>(text).unwrap().into_bytes(),
        "hex" => (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect(),
        _ => text.as_bytes().to_vec(),
    };
    (path, bytes)
}

fn formed(bytes: &[u8], form: &str) -> String {
    let text = || String::from_utf8(bytes.to_vec()).unwrap();
    match form {
        "json" => serde_json::to_string(&text()).unwrap(),
        "hex" => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => text(),
    }
}

/// What is in a file, and which file it is: a file that was not touched has the same.
#[derive(PartialEq)]
struct Stamp {
    bytes: Vec<u8>,
    inode: u64,
    changed: (i64, i64),
}

fn tree(dir: &Path) -> BTreeMap<PathBuf, Stamp> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                open.push(entry.path());
                continue;
            }
            let stamp = Stamp {
                bytes: fs::read(entry.path()).unwrap(),
                inode: about.ino(),
                changed: (about.mtime(), about.mtime_nsec()),
            };
            found.insert(entry.path().strip_prefix(dir).unwrap().to_owned(), stamp);
        }
    }
    found
}
