//! What a search costs beside `rg` with two threads over 50,000 files: `cargo bench -p agent-tools --bench search`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark that cannot be set up has failed"
)]

mod beside;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use agent_tools::builtin::{glob::Glob, grep::Grep};
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::text::Cut;
use agent_tools::{Call, Status, ToolContext, Tools, dispatch};
use beside::beside;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const FILES: usize = 50_000;

/// A tree like one of sources: it is made once and kept in the target directory.
fn tree() -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("search-tree");
    let whole = root.join(".whole");
    if !whole.exists() {
        (0..FILES).for_each(|number| file(&root, number));
        fs::write(root.join(".gitignore"), "*.o\n/build/\n").unwrap();
        fs::write(whole, "").unwrap();
    }
    root
}

fn file(root: &Path, number: usize) {
    let directory = root.join(format!("part{}/module{}/src", number / 2_500, number / 50 % 50));
    fs::create_dir_all(&directory).unwrap();
    let body: String =
        (0..60).map(|line| format!("    let value_{line} = compute({line}, \"some text {number}\");\n")).collect();
    let rare = if number % 10_000 == 77 { "// a rare needle\n" } else { "" };
    let text = format!("//! Module {number}.\n\nfn common_name() {{\n{body}{rare}}}\n");
    fs::write(directory.join(format!("file_{number}.{}", ["rs", "md", "py"][number % 3])), text).unwrap();
}

struct Bench {
    runtime: Runtime,
    tools: Tools,
    cx: ToolContext,
    root: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let root = tree();
        let cut = Cut::HeadTailBytes(51_200);
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            tools: Tools::default().with(Glob::new(cut)).with(Grep::new(cut)),
            cx: ToolContext::new(&root, Gate::new(Mode::DEFAULT, Permissions::Auto)),
            root,
        }
    }

    fn call(&self, tool: &str, arguments: &Value) -> String {
        let call = Call::new("1", tool, arguments.to_string());
        let output = self.runtime.block_on(dispatch(&self.tools, &call, &self.cx));
        assert_eq!(output.status, Status::Ok, "{}", output.text());
        output.text()
    }

    fn rg(&self, arguments: &[&str]) -> usize {
        let mut rg = Command::new("rg");
        rg.args(["--no-config", "--threads=2"]).args(arguments).current_dir(&self.root).stdin(Stdio::null());
        rg.output().expect("install ripgrep: the searches are measured beside it").stdout.len()
    }
}

fn main() {
    let bench = Bench::new();
    let mut c = beside::quick();
    for (name, pattern) in [("common", "common_name"), ("rare", "rare needle"), ("costly", r"\w+_name|n[e]{2}dle")] {
        let arguments = json!({ "pattern": pattern });
        let name = format!("Grep for what is {name}, beside rg");
        beside(&mut c, &name, || bench.call("Grep", &arguments), || bench.rg(&["-n", "--heading", "--", pattern]));
    }
    for pattern in ["*.rs", "**/src/*_77*.md"] {
        let arguments = json!({ "pattern": pattern });
        let name = format!("Glob {pattern}, beside rg --files");
        beside(&mut c, &name, || bench.call("Glob", &arguments), || bench.rg(&["--files", "-g", pattern]));
    }
    c.final_summary();
}
