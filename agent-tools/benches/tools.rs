//! What the tools cost beside the least that the same work could cost: `cargo bench -p agent-tools`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot be set up has failed")]

mod beside;

use std::cell::LazyCell;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use agent_tools::diff::Diff;
use agent_tools::policy::shell::judge;
use agent_tools::policy::{Gate, Mode, Open, Permissions};
use agent_tools::toolset::{self, Parts, Toolset};
use agent_tools::{Call, Place, Sandbox, Status, ToolContext, Tools, dispatch, simple};
use beside::beside;
use criterion::{BenchmarkId, Criterion};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const MB: usize = 1 << 20;
const LINE: &str = "a line of some forty characters of text\n";

/// The tools at work in a directory of their own.
struct Bench {
    runtime: Runtime,
    tools: Tools,
    cx: ToolContext,
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(toolset::tools(Toolset::Lean, &Parts::of(Toolset::Lean)))
    }

    fn with(tools: Tools) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut cx = ToolContext::new(dir.path(), Open);
        let mut place = Place::new(dir.path());
        place.env.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
        cx.place = place.into();
        Self { runtime, tools, cx, dir }
    }

    /// With the usual mode, a home directory with the caches of all tools that are here, and this sandbox.
    fn confined(sandbox: Sandbox) -> Self {
        let mut bench = Self::new();
        bench.cx.policy = Arc::new(Gate::new(Mode::DEFAULT, Permissions::Auto));
        let mut place = (*bench.cx.place).clone();
        (place.home, place.sandbox) = (Some(bench.dir.path().join("home")), sandbox);
        place.env.push(("HOME".into(), bench.dir.path().join("home").into()));
        fs::create_dir(bench.dir.path().join("home")).unwrap();
        bench.cx.place = place.into();
        bench
    }

    fn file(&self, name: &str, text: &[u8]) -> std::path::PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn call(&self, call: &Call) -> String {
        let output = self.runtime.block_on(dispatch(&self.tools, call, &self.cx));
        assert_eq!(output.status, Status::Ok, "{}", output.text());
        output.text()
    }
}

fn text(bytes: usize) -> String {
    LINE.repeat(bytes / LINE.len())
}

fn reads(c: &mut Criterion) {
    let bench = Bench::new();
    let lines = 256 * MB / LINE.len();
    // Made when it is first read: it takes longer than other benchmarks.
    let path = LazyCell::new(|| bench.file("large.txt", LINE.repeat(lines).as_bytes()));
    let last = Call::new("1", "read_file", json!({"path": "large.txt", "start": lines - 9}).to_string());
    let last_lines = || {
        LazyCell::force(&path);
        assert_eq!(bench.call(&last).len(), 10 * LINE.len());
    };
    for kib in [64, 256, 1024] {
        let mut piece = vec![0; kib << 10];
        let name = format!("the last lines of 256 MB, beside counting in {kib} KiB");
        beside(c, &name, last_lines, || assert_eq!(count_lines(&path, &mut piece), lines));
    }
    let path = bench.file("small.txt", text(4096).as_bytes());
    let small = Call::new("1", "read_file", json!({"path": "small.txt"}).to_string());
    beside(c, "read 4 kB, beside a plain read", || bench.call(&small), || fs::read_to_string(&path).unwrap());
}

fn count_lines(path: &Path, piece: &mut [u8]) -> usize {
    let mut file = File::open(path).unwrap();
    let mut lines = 0;
    loop {
        match file.read(piece).unwrap() {
            0 => return lines,
            count => lines += memchr::memchr_iter(b'\n', &piece[..count]).count(),
        }
    }
}

fn edits(c: &mut Criterion) {
    for (size, bytes) in [("10 kB", 10_000), ("1 MB", MB)] {
        let bench = Bench::new();
        let half = text(bytes / 2);
        let contents = format!("{half}one\n{half}");
        let edited = bench.file("edited.txt", contents.as_bytes());
        let plain = bench.file("plain.txt", contents.as_bytes());
        let edit = |old: &str, new: &str| {
            let arguments = json!({"path": "edited.txt", "edits": [{"old": old, "new": new}]});
            Call::new("1", "edit_file", arguments.to_string())
        };
        let calls = [edit("one\n", "two\n"), edit("two\n", "one\n")];
        let (mut turn, mut plain_turn) = (0, 0);
        let ours = || {
            turn ^= 1;
            bench.call(&calls[turn ^ 1])
        };
        let floor = || {
            plain_turn ^= 1;
            plain_edit(&plain, ["two\n", "one\n"][plain_turn], ["one\n", "two\n"][plain_turn]);
        };
        beside(c, &format!("edit a line of {size}, beside read, replace, write, sync, rename"), ours, floor);
        assert_eq!(fs::read(edited).unwrap().len(), contents.len());
    }
}

fn plain_edit(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    let aside = path.with_extension("new");
    let mut file = File::create(&aside).unwrap();
    file.write_all(text.replacen(old, new, 1).as_bytes()).unwrap();
    file.sync_data().unwrap();
    fs::rename(aside, path).unwrap();
}

fn diffs(c: &mut Criterion) {
    let half = text(MB / 2);
    let (old, new) = (format!("{half}one\n{half}"), format!("{half}two\n{half}"));
    let differs = || old.bytes().zip(new.bytes()).position(|(a, b)| a != b);
    beside(c, "diff of one line in 1 MB, beside a byte by byte look", || Diff::between(&old, &new), differs);
}

fn commands(c: &mut Criterion) {
    let bench = Bench::new();
    let call = |command: &str| Call::new("1", "bash", json!({"command": command}).to_string());
    let (nothing, much) = (call("true"), call("yes | head -c 200000000"));
    let plain = || Command::new("bash").args(["-c", "true"]).stdin(Stdio::null()).output().unwrap();
    beside(c, "bash true, beside a plain bash -c true", || bench.call(&nothing), plain);
    let (confined, free) = (Bench::confined(Sandbox::Auto), Bench::confined(Sandbox::Off));
    beside(c, "bash true in the sandbox, beside a plain bash -c true", || confined.call(&nothing), plain);
    beside(c, "bash true in the sandbox, beside outside of it", || confined.call(&nothing), || free.call(&nothing));
    let name = "200 MB of output, beside a plain loop of 64 KiB";
    beside(c, name, || bench.call(&much), || assert_eq!(plain_output(), 200_000_000));
}

fn plain_output() -> usize {
    let mut bash = Command::new("bash");
    bash.args(["-c", "yes | head -c 200000000"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = bash.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (mut piece, mut all) = (vec![0; 64 << 10], 0);
    loop {
        match output.read(&mut piece).unwrap() {
            0 => break,
            count => all += count,
        }
    }
    child.wait().unwrap();
    all
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {
    text: String,
}

fn dispatches(c: &mut Criterion) {
    let run = |input: Nothing, _cx| async move { Ok(input.text) };
    let bench = Bench::with(Tools::default().with(simple("nothing", "Does nothing.", Mode::NONE, run)));
    let call = Call::new("1", "nothing", r#"{"text": "some text"}"#);
    let floor = || bench.runtime.block_on(async { serde_json::from_str::<Nothing>(&call.arguments).unwrap().text });
    beside(c, "dispatch of a tool that does nothing, beside decoding its arguments", || bench.call(&call), floor);
}

const ORDINARY: [&str; 20] = [
    "ls -la",
    "git status",
    "git diff --stat HEAD~1",
    "git log --oneline -n 20",
    "cat src/main.rs",
    "cargo test",
    "cargo build --release 2>&1 | tail -20",
    "grep -rn 'fn main' src",
    "cd src && grep -rn 'fn main' . | head -5",
    "find . -name '*.rs' -not -path './target/*' | xargs wc -l",
    "sed -n '1,80p' src/lib.rs",
    "python3 -m pytest -x tests",
    "npm run build",
    "rm -rf target/tmp",
    "mkdir -p a/b && touch a/b/c.txt",
    "echo $(git rev-parse HEAD)",
    "for f in *.rs; do wc -l \"$f\"; done",
    "curl -s https://example.org/data.json | jq .name",
    "make -j4 > build.log 2>&1 || tail -50 build.log",
    "git add -A && git commit -m 'a message of some words'",
];

fn judgements(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::new(dir.path());
    let parsed = || ORDINARY.iter().filter(|command| rable::parse(command, false).is_ok()).count();
    let judged = || ORDINARY.iter().filter(|command| judge(command, &place).unsure.is_none()).count();
    beside(c, "judge 20 ordinary commands, beside parsing them", judged, parsed);
    let mut each = c.benchmark_group("judge");
    for command in ORDINARY {
        each.bench_with_input(BenchmarkId::from_parameter(command), command, |b, command| {
            b.iter(|| judge(command, &place));
        });
    }
    each.finish();
    for (name, command) in worst() {
        let name = format!("judge {name}, beside parsing it");
        beside(c, &name, || judge(&command, &place), || rable::parse(&command, false).is_ok());
    }
}

/// Commands just below the limits of length, depth and number.
fn worst() -> Vec<(&'static str, String)> {
    vec![
        ("2,000 commands", "git st;".repeat(1_990)),
        ("a pipe of 2,000 commands", format!("{}cat", "cat|".repeat(1_990))),
        ("16 KiB of one word", format!("echo {}", "x".repeat(BYTES))),
        ("16 KiB of words", format!("echo {}", filled(BYTES, |_| "word ".into()))),
        ("16 KiB of paths", format!("cat {}", filled(BYTES, |i| format!("d{i}/f ")))),
        ("16 KiB of patterns", format!("ls {}", filled(BYTES, |_| "a*/*.rs ".into()))),
        ("16 KiB of redirects", filled(1_990, |i| format!("ls>f{i};"))),
        ("90 variables and 1,800 commands", filled(90, |i| format!("v{i}=x;")) + &filled(1_800, |_| "ls -l;".into())),
        (
            "90 functions and 1,800 commands",
            filled(90, |i| format!("f{i}(){{ ls; }};")) + &filled(1_700, |_| "ls -l;".into()),
        ),
        ("1,000 directories in each other", filled(990, |i| format!("cd d{i} && ")) + "ls"),
        ("500 directories that may fail", filled(490, |i| format!("cd d{i} || cd e && ")) + "ls"),
        ("16 levels", format!("{}ls{}", "echo $(".repeat(15), ")".repeat(15))),
        ("16 levels in quotes", format!("{}ls{}", "echo \"$(".repeat(15), ")\"".repeat(15))),
        ("64 substitutions", format!("echo {} $(git log {})", "$(git log)".repeat(63), filled(7_000, |_| "w ".into()))),
        ("30 nested blocks", format!("{}ls{}", "if true; then ".repeat(30), "; fi".repeat(30))),
        ("30 nested loops", format!("{}cd a{}", "while true; do ".repeat(30), "; done".repeat(30))),
        ("5 levels of bash -c", (0..5).fold("ls".to_owned(), |inner, _| format!("bash -c {}", quoted(&inner)))),
    ]
}

/// Room for a few words around what fills a command up.
const BYTES: usize = 16 * 1024 - 16;

/// So many pieces, or as many as fit.
fn filled(most: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for piece in (0..most).map(piece) {
        if text.len() + piece.len() > BYTES {
            break;
        }
        text.push_str(&piece);
    }
    text
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn main() {
    let mut c = beside::quick();
    for group in [dispatches, diffs, judgements, edits, commands, reads] {
        group(&mut c);
    }
    c.final_summary();
}
