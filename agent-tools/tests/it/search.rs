//! Glob and Grep: what they answer, and that they find what `rg` finds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_tools::builtin::{glob::Glob, grep::Grep};
use agent_tools::policy::{Gate, Mode, Open, Permissions};
use agent_tools::text::Cut;
use agent_tools::{Call, Host, Place, Status, ToolContext, ToolOutput, Tools, dispatch};
use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// As much as is shown in these tests, in bytes.
const ROOM: usize = 51_200;

struct Tree {
    dir: TempDir,
    cx: ToolContext,
    tools: Tools,
    runtime: Runtime,
}

impl Tree {
    /// Files by name and contents. A name that ends with a slash is a directory; contents of `-> x` are a link to x.
    fn new(files: &[(&str, &[u8])]) -> Self {
        Self::under("0467", files)
    }

    /// The same under this ceiling.
    fn under(mode: &str, files: &[(&str, &[u8])]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("ws");
        fs::create_dir(&cwd).unwrap();
        files.iter().for_each(|(name, contents)| put(&cwd, name, contents));
        let mut cx = ToolContext::new(&cwd, Gate::new(mode.parse().unwrap_or(Mode::NONE), Permissions::Auto));
        let mut place = Place::new(&cwd);
        place.home = Some(dir.path().join("home"));
        cx.place = place.into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { cx, tools: tools(ROOM), runtime, dir }
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn call(&self, tool: &str, arguments: &Value) -> ToolOutput {
        self.runtime.block_on(dispatch(&self.tools, &Call::new("1", tool, arguments.to_string()), &self.cx))
    }

    fn good(&self, tool: &str, arguments: &Value) -> String {
        let output = self.call(tool, arguments);
        assert_eq!(output.status, Status::Ok, "{arguments} {}", output.text());
        output.text()
    }

    fn glob(&self, pattern: &str, path: &str) -> String {
        self.good("Glob", &json!({"pattern": pattern, "path": path}))
    }

    fn grep(&self, arguments: &Value) -> String {
        self.good("Grep", arguments)
    }

    /// What `rg` prints in the working directory, as text.
    fn rg(&self, arguments: &[&str]) -> String {
        let output = Command::new("rg")
            .args(["--no-config", "--no-messages", "--color=never", "--no-mmap", "--sort=path"])
            .args(arguments)
            .current_dir(self.cwd())
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.dir.path())
            .stdin(Stdio::null())
            .output();
        let output = output.expect("`rg` cannot be run; install ripgrep: these tests compare with it");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn tools(room: usize) -> Tools {
    Tools::default().with(Glob::new(Cut::HeadTailBytes(room))).with(Grep::new(Cut::HeadTailBytes(room)))
}

fn put(cwd: &Path, name: &str, contents: &[u8]) {
    let path = cwd.join(name);
    if name.ends_with('/') {
        return fs::create_dir_all(path).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match contents.strip_prefix(b"-> ") {
        Some(target) => symlink(std::str::from_utf8(target).unwrap(), path).unwrap(),
        None => fs::write(path, contents).unwrap(),
    }
}

const NEEDLES: &[(&str, &[u8])] = &[
    ("a.txt", b"one\nneedle\nthree\n"),
    ("b/c.rs", b"needle 1\n\n\n\nneedle 2"),
    ("b/d e [1].txt", b"no\n"),
    ("crates/x/src/lib.rs", b"needle\n"),
    ("crates/x/src/deep/m.rs", b"pub fn f() {}\n"),
    (".hidden/h.txt", b"needle\n"),
    (".dot.txt", b"needle\n"),
    ("out/o.txt", b"needle\n"),
    (".gitignore", b"out/\n*.log\n"),
    ("x.log", b"needle\n"),
    (".git/HEAD", b"needle\n"),
    ("link.txt", b"-> a.txt"),
    ("up", b"-> .."),
    ("etc", b"-> /etc"),
];

#[test]
fn files_are_found_by_name() {
    let tree = Tree::under("7777", NEEDLES);
    let left_out =
        "[out/o.txt exists, but ignore rules or a hidden directory leave it out; use its path with Read or Grep]";
    let outside = "[a pattern does not lead out of the directory that is searched; set path]";
    let absolute = tree.cwd().join("b/*.rs").display().to_string();
    let (here, found) = (tree.cwd().display().to_string(), tree.cwd().join("b/c.rs").display().to_string());
    for (pattern, path, expect) in [
        ("*.txt", "", ".dot.txt\na.txt\nb/d e [1].txt"),
        ("*.txt", ".", "./.dot.txt\n./a.txt\n./b/d e [1].txt"),
        ("**/*.rs", "", "b/c.rs\ncrates/x/src/deep/m.rs\ncrates/x/src/lib.rs"),
        ("*.rs", "crates/x/", "crates/x/src/deep/m.rs\ncrates/x/src/lib.rs"),
        ("/*.txt", "b/..", "b/../.dot.txt\nb/../a.txt"),
        ("./*.txt", "", ".dot.txt\na.txt"),
        ("./b/*", "", "b/c.rs\nb/d e [1].txt"),
        ("b/*.{rs,py}", "", "b/c.rs"),
        ("src/*.rs", "crates/x", "crates/x/src/lib.rs"),
        ("crates/x/src/*.rs", "crates/x", "crates/x/src/lib.rs"),
        (r"d e \[1\].txt", "", "b/d e [1].txt"),
        ("!*.{txt,log}", "b", "b/c.rs"),
        ("#*", "", ""),
        ("nothing*", "", ""),
        ("*.rs", &here, &found),
        (&absolute, &here, &found),
        ("out/o.txt", "", left_out),
        ("up/x.txt", "", ""),
        ("etc/passwd", "", ""),
        ("etc/*", "", ""),
        ("x/../*", ".", outside),
        ("HEAD", ".git", ".git/HEAD"),
        ("HEAD", "", ""),
    ] {
        let expect = if pattern == "*.rs" && path == here {
            format!("{found}\n{here}/crates/x/src/deep/m.rs\n{here}/crates/x/src/lib.rs")
        } else {
            expect.to_owned()
        };
        assert_eq!(tree.glob(pattern, path), expect, "{pattern} {path}");
    }
    let all = tree.glob("**/*", "");
    assert!(all.contains(".hidden/h.txt") && !all.contains(".git/") && all.contains(".gitignore"), "{all}");
}

#[test]
fn lines_are_found_by_expression() {
    let tree = Tree::new(NEEDLES);
    let all = "a.txt\n2:needle\n\nb/c.rs\n1:needle 1\n5:needle 2\n\ncrates/x/src/lib.rs\n1:needle";
    for (arguments, expect) in [
        (json!({"pattern": "needle"}), all),
        (json!({"pattern": "needle", "context": null, "path": null, "glob": ""}), all),
        (json!({"pattern": "needle", "path": "a.txt"}), "2:needle"),
        (json!({"pattern": "needle", "path": "./a.txt", "context": "1"}), "1-one\n2:needle\n3-three"),
        (json!({"pattern": "needle", "path": "b", "context": 1}), "b/c.rs\n1:needle 1\n2-\n--\n4-\n5:needle 2"),
        (json!({"pattern": "needle", "path": "b", "context": 2}), "b/c.rs\n1:needle 1\n2-\n3-\n4-\n5:needle 2"),
        (json!({"pattern": "needle", "path": "./b"}), "./b/c.rs\n1:needle 1\n5:needle 2"),
        (json!({"pattern": "^needle$", "glob": "*.{txt,py}"}), "a.txt\n2:needle\n\n.dot.txt\n1:needle"),
        (json!({"pattern": "needle", "glob": "!*.rs"}), "a.txt\n2:needle"),
        (json!({"pattern": "needle", "glob": "src/**", "path": "crates/x"}), "crates/x/src/lib.rs\n1:needle"),
        (json!({"pattern": "(?i)NEEDLE \\d"}), "b/c.rs\n1:needle 1\n5:needle 2"),
        (json!({"pattern": "-needle"}), ""),
        (json!({"pattern": "needle", "path": "out/o.txt"}), "1:needle"),
        (json!({"pattern": "needle", "path": "link.txt"}), "2:needle"),
        (
            json!({"pattern": "x", "glob": "*.go"}),
            "[no file was searched: none that ignore rules leave matches the glob]",
        ),
    ] {
        let found = tree.grep(&arguments);
        let (mut found, mut expect): (Vec<_>, Vec<_>) = (found.split("\n\n").collect(), expect.split("\n\n").collect());
        if arguments["glob"] == "*.{txt,py}" {
            found.sort_unstable();
            expect.sort_unstable();
        }
        assert_eq!(found, expect, "{arguments}");
    }
}

#[test]
fn what_cannot_be_searched_is_answered_with_the_reason() {
    let tree = Tree::new(NEEDLES);
    for (tool, arguments, expect) in [
        ("Grep", json!({"pattern": ""}), "no pattern provided"),
        ("Glob", json!({"pattern": " "}), "no pattern provided"),
        ("Glob", json!({}), "`pattern` is missing; it is required"),
        ("Grep", json!({"pattern": "f("}), "bad pattern: regex parse error:\n    f(\n     ^\nerror: unclosed group"),
        ("Grep", json!({"pattern": "[a-"}), "unclosed character class"),
        ("Grep", json!({"pattern": "a{2,1}"}), "invalid repetition count range"),
        ("Grep", json!({"pattern": "(?=a)"}), "look-around"),
        ("Grep", json!({"pattern": "a\nb"}), "Lines are searched one by one"),
        ("Grep", json!({"pattern": "a\\nb"}), "Lines are searched one by one"),
        ("Grep", json!({"pattern": "\\w{1000}{1000}"}), "exceeds size limit"),
        ("Grep", json!({"pattern": "a", "path": "nope"}), "path not found: nope. "),
        ("Grep", json!({"pattern": "a", "path": "a.txt/x"}), "cannot search a.txt/x: a parent of it is a file"),
        ("Grep", json!({"pattern": "a", "path": "/dev/null"}), "a device"),
        ("Grep", json!({"pattern": "a", "glob": "{a"}), "bad glob \"{a\": unclosed alternate group"),
        ("Grep", json!({"pattern": "a", "context": -1}), "context is -1; it is a number of lines from 0 to 1000"),
        ("Grep", json!({"pattern": "a", "context": 1001}), "context is 1001"),
        ("Glob", json!({"pattern": "a", "path": "nope"}), "directory not found: nope. "),
        ("Glob", json!({"pattern": "a", "path": "a.txt"}), "directory not found: a.txt: it is a file"),
        ("Glob", json!({"pattern": "[a"}), "bad glob \"[a\": unclosed character class"),
    ] {
        let output = tree.call(tool, &arguments);
        assert_eq!(output.status, Status::Failed, "{arguments} {}", output.text());
        assert!(output.text().contains(expect), "{arguments}\n{}", output.text());
    }
}

#[test]
fn odd_contents_are_shown_as_text() {
    let long = format!("{}needle{}\n", "x".repeat(5000), "y".repeat(5000));
    let late = format!("needle\n{}\0\nneedle\n", "x\n".repeat(100_000));
    let utf16: Vec<u8> = "\u{feff}a\nneedle é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let tree = Tree::new(&[
        ("crlf", b"a\r\nneedle\r\n"),
        ("latin1", b"needle caf\xe9\n"),
        ("utf16", &utf16),
        ("bom", b"\xef\xbb\xbfneedle\n"),
        ("long", long.as_bytes()),
        ("empty", b""),
        ("early", b"\0\0\nneedle\n"),
        ("late", late.as_bytes()),
        ("x\ny", b"needle\n"),
    ]);
    let around = format!("1:…{}needle{}… [cut: the line has 10006 characters]", "x".repeat(100), "y".repeat(394));
    let late = r#"late: WARNING: stopped searching binary file after match (found "\0" byte around offset 200007)"#;
    let files = [
        "bom\n1:needle".into(),
        "crlf\n2:needle\r".into(),
        format!("late\n1:needle\n{late}"),
        "latin1\n1:needle caf\u{fffd}".into(),
        format!("long\n{around}"),
        "utf16\n2:needle é".into(),
        "x\\ny\n1:needle".into(),
    ];
    assert_eq!(tree.grep(&json!({"pattern": "needle"})), files.join("\n\n"));
    let binary = r#"binary file matches (found "\0" byte around offset 0)"#;
    assert_eq!(tree.grep(&json!({"pattern": "needle", "path": "early"})), binary);
    assert_eq!(tree.glob("x*", ""), "x\\ny");
    for named in ["crlf", "latin1", "utf16", "bom", "empty", "early", "late", "x\ny"] {
        // With context `rg` may say nothing of a binary file that matches.
        let contexts = if ["early", "late"].contains(&named) { 0..1 } else { 0..2 };
        for context in contexts {
            let arguments = json!({"pattern": "needle", "path": named, "context": context});
            let expect = tree.rg(&["-n", "--heading", "-C", &context.to_string(), "--", "needle", named]);
            assert_eq!(plain(&tree.grep(&arguments)), plain(&expect), "{named}");
        }
    }
}

#[test]
fn what_a_search_needs_is_what_its_place_needs() {
    let mut tree = Tree::new(NEEDLES);
    let mut place = Place::new(tree.cwd());
    place.home = Some("/home/somebody".into());
    tree.cx.place = place.into();
    for (tool, arguments, expect) in [
        ("Grep", json!({"pattern": "a"}), "0004"),
        ("Grep", json!({"pattern": "a", "path": "b"}), "0004"),
        ("Grep", json!({"pattern": "a", "path": "/tmp"}), "0000"),
        ("Grep", json!({"pattern": "a", "path": "/etc/hosts"}), "4000"),
        ("Grep", json!({"pattern": "a", "path": ".env"}), "4000"),
        ("Grep", json!({"pattern": "a", "path": "~/notes"}), "0400"),
        ("Grep", json!({"pattern": "a", "path": "/tmp/../etc"}), "4000"),
        ("Grep", json!({"pattern": "a", "path": "etc"}), "4000"),
        ("Glob", json!({"pattern": "*", "path": "etc"}), "4000"),
        ("Glob", json!({"pattern": "etc/p*", "path": "."}), "4004"),
        ("Glob", json!({"pattern": "*"}), "0004"),
        ("Glob", json!({"pattern": "/etc/*"}), "4000"),
        ("Glob", json!({"pattern": "../*"}), "4000"),
        ("Glob", json!({"pattern": "*", "path": "/tmp"}), "0000"),
        ("Glob", json!({"pattern": "*", "path": "~"}), "0400"),
        ("Glob", json!({"pattern": ".ssh/*", "path": "~"}), "4400"),
        ("Glob", json!({"pattern": "/etc/*", "path": "b"}), "4004"),
        ("Glob", json!({"pattern": "!/etc/*", "path": "b"}), "4004"),
        ("Glob", json!({"pattern": "src/*.rs", "path": "crates/x"}), "0004"),
    ] {
        let call = Call::new("1", tool, arguments.to_string());
        let opened = tree.tools.open(&call, &tree.cx).unwrap_or_else(|answer| panic!("{}", answer.text()));
        assert_eq!(opened.outline().needs.mode.to_string(), expect, "{tool} {arguments}");
        assert!(opened.only_reads() && opened.outline().title == arguments["pattern"]);
    }
    for pattern in ["/etc/*", "../*"] {
        assert_eq!(tree.call("Glob", &json!({ "pattern": pattern })).status, Status::Blocked);
    }
}

const SECRETS: &[(&str, &[u8])] = &[
    ("src/token.rs", b"needle\n"),
    ("server.pem", b"needle\n"),
    ("config/token.json", b"needle\n"),
    ("config/app.json", b"needle\n"),
    (".env", b"needle\n"),
    ("own/settings.yaml", b"needle\n"),
    ("id_rsa", b"nothing\n"),
];

#[test]
fn keys_are_searched_only_where_the_system_may_be_read() {
    let mut tree = Tree::new(SECRETS);
    let mut place = Place::clone(&tree.cx.place);
    place.private = vec![tree.cwd().join("own/settings.yaml")];
    tree.cx.place = Arc::new(place);
    let shown = "config/app.json\n1:needle\n\nsrc/token.rs\n1:needle";
    let note = |n: usize| {
        format!("[... skipped {n} files that may hold keys or secrets; set path to one of them to ask for it ...]")
    };
    // The number is that of all such files: it must not tell in which of them the text is.
    for (arguments, expect) in [
        (json!({"pattern": "needle"}), format!("{shown}\n{}", note(4))),
        (json!({"pattern": "needle", "glob": "*"}), format!("{shown}\n{}", note(5))),
        (json!({"pattern": "nowhere", "glob": "*"}), note(5)),
    ] {
        assert_eq!(tree.grep(&arguments), expect, "{arguments}");
    }
    assert_eq!(tree.call("Grep", &json!({"pattern": "needle", "path": "server.pem"})).status, Status::Blocked);
    tree.cx.policy = Arc::new(Gate::new("4467".parse().unwrap(), Permissions::Auto));
    let all = tree.grep(&json!({"pattern": "needle", "glob": "*"}));
    assert_eq!(all.matches("needle").count(), 6, "{all}");
    assert_eq!(tree.grep(&json!({"pattern": "needle", "path": ".env"})), "1:needle");
}

/// Many files with matches, so that only some fit.
fn many(files: usize, lines: usize) -> Tree {
    let contents: String = (0..lines).map(|line| format!("line {line}\n")).collect();
    let names: Vec<String> = (0..files).map(|i| format!("d{}/f{i}.txt", i % 7)).collect();
    let list: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), contents.as_bytes())).collect();
    Tree::new(&list)
}

#[test]
fn more_than_fits_is_cut_in_order_and_counted() {
    let mut tree = many(700, 30);
    tree.tools = tools(2000);
    let (names, lines) = (tree.rg(&["--files", "-g", "*.txt"]), tree.rg(&["-n", "--heading", "e"]));
    let found = tree.glob("*.txt", "");
    let (shown, note) = found.rsplit_once('\n').unwrap();
    let count = shown.lines().count();
    assert!(names.starts_with(shown) && found.len() <= 2000 && found.len() > 1980, "{found}");
    assert_eq!(note, format!("[... {} more files not shown; narrow the pattern or set path ...]", 700 - count));

    let found = tree.grep(&json!({"pattern": "e"}));
    let (shown, note) = found.rsplit_once('\n').unwrap();
    assert!(lines.starts_with(shown) && found.len() <= 2000 && found.len() > 1900, "{found}");
    let matches = 700 * 30 - shown.matches(":line").count();
    let files = 700 - shown.matches(":line 29").count();
    let expect =
        format!("[... {matches} more matches in {files} files not shown; narrow the pattern, or set path or glob ...]");
    assert_eq!(note, expect);
    // Whatever the threads do.
    for _ in 0..8 {
        assert_eq!(tree.grep(&json!({"pattern": "e"})), found);
    }
}

#[test]
fn one_large_file_is_counted_to_its_end() {
    let tree = many(1, 300_000);
    let found = tree.grep(&json!({"pattern": "line", "path": "d0/f0.txt"}));
    let shown = found.lines().count() - 1;
    let expect = format!("[... {} more matches in 1 file not shown", 300_000 - shown);
    assert!(
        found.len() <= ROOM && found.len() > ROOM - 100 && found.contains(&expect),
        "{}",
        &found[found.len() - 200..]
    );
}

#[test]
fn a_line_that_is_too_long_ends_the_search_of_its_file() {
    let tree = Tree::new(&[("big", b"needle\n"), ("small", b"needle\n")]);
    let long = [&b"needle\n"[..], &vec![b'x'; 40 << 20], b"\nneedle\n"].concat();
    fs::write(tree.cwd().join("big"), long).unwrap();
    let expect = "big\n1:needle\n\nsmall\n1:needle\n[... 1 file searched only up to a line longer than 32 MiB ...]";
    assert_eq!(tree.grep(&json!({"pattern": "needle"})), expect);
}

/// A call that is to stop after a while.
struct Impatient(Duration);

#[async_trait]
impl Host for Impatient {
    async fn cancelled(&self) {
        tokio::time::sleep(self.0).await;
    }
}

/// A file that takes minutes to search: it is a hole.
fn endless() -> Tree {
    let mut tree = Tree::new(&[]);
    fs::File::create(tree.cwd().join("hole")).unwrap().set_len(1 << 40).unwrap();
    tree.cx.policy = Arc::new(Open);
    tree
}

#[test]
fn a_search_ends_when_it_is_cancelled_or_dropped() {
    let mut tree = endless();
    let arguments = json!({"pattern": "needle", "path": "hole"});
    let begun = Instant::now();
    let call = Call::new("1", "Grep", arguments.to_string());
    let dropped = tree.runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(50), dispatch(&tree.tools, &call, &tree.cx)).await
    });
    assert!(dropped.is_err());
    tree.cx.host = Arc::new(Impatient(Duration::from_millis(50)));
    let output = tree.call("Grep", &arguments);
    assert_eq!((output.status, output.text().as_str()), (Status::Failed, "cannot search hole: the call was cancelled"));
    // The end of a runtime waits for the threads on which the searches ran.
    drop(tree);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

// Beside `rg`, over trees that are made up.

const DIRECTORIES: &[&str] = &["", "src/", "src/deep/", "a b/", ".hid/", "out/", "é/", "-d/"];
const NAMES: &[&str] =
    &["a.rs", "b.txt", ".h.rs", "two words.txt", "-x.rs", "ü.txt", "x\ny.txt", "[1].txt", "Z.RS", "o.log"];
const CONTENTS: &[&[u8]] = &[
    b"",
    b"needle\n",
    b"no end needle",
    b"one\ntwo\nneedle\nfour\nfive\nsix\nseven\neight\nneedle two\n",
    b"a\r\nneedle\r\n",
    b"needle \xff\xfe caf\xe9\n",
    b"needle\nbinary \0 needle\n",
    b"\0needle\n",
    "é needle ü\n\n\nneedle needle\n".as_bytes(),
    b"Needle\nNEEDLE\n",
];
const RULES: &[&str] = &[
    "*.txt",
    "!b.txt",
    "out/",
    "/src/deep",
    "*.rs\n!a.rs",
    "deep/*",
    "# no rule",
    "a b",
    "[",
    "**/o.log",
    "src/*\n!src/a.rs",
];
const GLOBS: &[&str] = &[
    "*.rs",
    "**/*.txt",
    "src/**",
    "*.{rs,txt}",
    "!*.txt",
    "/*.rs",
    "src/*.rs",
    "*",
    "[a-z]*",
    "out/o.log",
    ".*",
    "**/deep/*",
];
const PATTERNS: &[&str] =
    &["needle", "^needle$", "(?i)needle", "e{2}", r"\bn\w+", "^$", "nothing", r"needle\s", "[^a-z\n]"];
const PATHS: &[&str] = &["", ".", "src", "./src/", "out", ".hid"];

type Made = Vec<(String, Vec<u8>)>;

fn made_up() -> impl Strategy<Value = Made> {
    let place = prop::sample::select(DIRECTORIES);
    let file = (place.clone(), prop::sample::select(NAMES), prop::sample::select(CONTENTS))
        .prop_map(|(place, name, contents)| (format!("{place}{name}"), contents.to_vec()));
    let ignoring = prop::sample::select(&[".gitignore", ".ignore", ".rgignore"][..]);
    let rules = prop::collection::vec(prop::sample::select(RULES), 1..4);
    let rules = (place, ignoring, rules)
        .prop_map(|(place, name, rules)| (format!("{place}{name}"), rules.join("\n").into_bytes()));
    let links = prop::sample::select(&[("link.rs", "src/a.rs"), ("src/up", ".."), ("dead.txt", "nowhere")][..])
        .prop_map(|(name, target)| (name.to_owned(), format!("-> {target}").into_bytes()));
    let git = any::<bool>().prop_map(|git| Vec::from_iter(git.then(|| (".git/".to_owned(), Vec::new()))));
    (prop::collection::vec(file, 1..25), prop::collection::vec(rules, 0..4), prop::collection::vec(links, 0..2), git)
        .prop_map(|(files, rules, links, git)| {
            let mut all = Made::new();
            for (name, contents) in [files, rules, links, git].into_iter().flatten() {
                if all.iter().all(|(other, _)| *other != name) {
                    all.push((name, contents));
                }
            }
            all.push(("src/kept.rs".into(), b"kept\n".to_vec()));
            all.push(("out/kept.rs".into(), b"kept\n".to_vec()));
            all.push((".hid/kept.rs".into(), b"kept\n".to_vec()));
            all
        })
}

fn given(path: &str) -> Vec<&str> {
    if path.is_empty() { Vec::new() } else { vec![path] }
}

/// As it is, but for what versions of `rg` word differently, and for names, which stay on one line here.
fn plain(lines: &str) -> String {
    let lines = lines.replace("x\ny", "x\\ny");
    let same = |line: &'_ str| if line.contains("byte around offset") { "(binary)".into() } else { line.to_owned() };
    lines.trim_end_matches('\n').split('\n').map(same).collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn files_and_lines_are_those_that_rg_finds(
        made in made_up(),
        globs in prop::sample::subsequence(GLOBS, 3),
        patterns in prop::sample::subsequence(PATTERNS, 2),
        path in prop::sample::select(PATHS),
        context in 0_i64..4,
    ) {
        let files: Vec<(&str, &[u8])> = made.iter().map(|(name, contents)| (name.as_str(), contents.as_slice())).collect();
        let tree = Tree::under("7777", &files);
        // Older versions of `rg` read rules with a slash amiss when they start below them.
        let anchored = |(name, rules): &(&str, &[u8])| name.ends_with("ignore") && rules.contains(&b'/');
        let path = if files.iter().any(anchored) && path != "." { "" } else { path };
        for glob in &globs {
            let listed = tree.rg(&[&["--files", "-0", "-g", glob][..], &given(path)].concat());
            let expect: Vec<String> = listed.split_terminator('\0').map(|name| name.replace('\n', "\\n")).collect();
            let found = tree.glob(glob, path);
            if expect.is_empty() && (path.is_empty() || !glob.contains('/')) {
                let told = ["[a pattern does not lead out", &format!("[{glob} exists")].iter().any(|why| found.starts_with(why));
                prop_assert!(found.is_empty() || told, "{glob} {found}");
            } else if !expect.is_empty() {
                prop_assert_eq!(found, expect.join("\n"), "{} in {}", glob, path);
            }
        }
        for pattern in &patterns {
            let around = context.to_string();
            let search = ["-n", "--heading", "-C", &around];
            let expect = tree.rg(&[&search[..], &["--", pattern], &given(path)].concat());
            let found = tree.grep(&json!({"pattern": pattern, "path": path, "context": context}));
            prop_assert_eq!(plain(&found), plain(&expect), "{} in {}", pattern, path);
            let expect = tree.rg(&[&search[..], &["-g", globs[0], "--", pattern], &given(path)].concat());
            let found = tree.grep(&json!({"pattern": pattern, "path": path, "context": context, "glob": globs[0]}));
            if !expect.is_empty() {
                prop_assert_eq!(plain(&found), plain(&expect), "{} in {} of {}", pattern, globs[0], path);
            }
        }
    }
}
