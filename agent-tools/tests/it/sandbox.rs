//! What the kernel holds: each row is run by a real shell, confined and, where that makes the difference, free.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and what they share")]

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_tools::builtin::sandbox::{Report, report};
use agent_tools::policy::{Mode, Policy, Verdict};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Details, Outline, Place, Sandbox, ToolContext, ToolOutput, Tools, dispatch};
use tempfile::TempDir;

/// Lets everything through with this mode and no more: the kernel alone holds.
struct Fixed(Mode);

impl Policy for Fixed {
    fn judge(&self, _call: &Outline) -> Verdict {
        Verdict::Allow
    }

    fn permits(&self, _call: &Outline) -> Mode {
        self.0
    }
}

/// A workspace `ws`, a directory `out` beside it with a file `kept`, and a home directory.
struct World {
    at: TempDir,
    tools: Tools,
    cx: ToolContext,
}

impl World {
    fn new(mode: &str, sandbox: Sandbox) -> Self {
        let at = TempDir::with_prefix_in("sandbox-", base()).unwrap();
        for name in ["ws", "out", "home", "store"] {
            fs::create_dir(at.path().join(name)).unwrap();
        }
        fs::write(at.path().join("out/kept"), "kept\n").unwrap();
        let mut cx = ToolContext::new(at.path(), Fixed(mode.parse().unwrap()));
        let mut place = Place::new(at.path().join("ws"));
        place.home = Some(at.path().join("home"));
        place.store = Some(at.path().join("store"));
        place.env =
            vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("HOME".into(), at.path().join("home").into())];
        place.sandbox = sandbox;
        cx.place = Arc::new(place);
        let mut parts = Parts::default();
        parts.files = false;
        Self { at, tools: tools(Toolset::Lean, &parts), cx }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    /// Runs a command; `OUT`, `HOME_DIR`, `STORE` stand for the directories.
    async fn run(&self, command: &str) -> ToolOutput {
        let text = |name: &str| self.path(name).display().to_string();
        let command = command.replace("OUT", &text("out")).replace("STORE", &text("store"));
        let arguments = serde_json::json!({ "command": command }).to_string();
        dispatch(&self.tools, &Call::new("1", "bash", arguments), &self.cx).await
    }

    /// Whether a command ends well, and what it printed.
    async fn works(&self, command: &str) -> (bool, String) {
        let output = self.run(command).await;
        let Details::Shell(exit) = &output.details else { panic!("{command}: {}", output.text()) };
        (exit.exit_code == Some(0), output.text())
    }
}

/// Where nothing may be written by itself, unlike below `/tmp`.
fn base() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if target.starts_with("/tmp") { std::env::home_dir().unwrap() } else { target.to_path_buf() }
}

/// Whether the kernel can hold writing at all. Where it cannot, the report has to say why.
fn held() -> bool {
    let Report { holds, lacking, .. } = report(Sandbox::Auto);
    assert!(holds || lacking.is_some(), "commands run free and nothing is said of it");
    if !holds {
        eprintln!("not checked, for the kernel cannot: {}", report(Sandbox::Auto));
    }
    holds
}

/// Commands that must not work when confined with this mode, and do work when free.
const STOPPED: &[(&str, &str)] = &[
    ("0467", "echo x > OUT/new"),
    ("0467", "echo x >> OUT/kept"),
    ("0467", ": > OUT/kept"),
    ("0467", "truncate -s 0 OUT/kept"),
    ("0467", "rm OUT/kept"),
    ("0467", "mkdir OUT/d"),
    ("0467", "ln -s OUT/kept OUT/link"),
    ("0467", "ln OUT/kept hard"),
    ("0467", "mv OUT/kept ."),
    ("0467", "echo x > f && mv f OUT/"),
    ("0467", "ln -s OUT l && echo x > l/new"),
    ("0467", "mkfifo OUT/pipe"),
    ("0467", "exec 3<>OUT/kept"),
    ("0467", "bash -c 'echo x > OUT/new'"),
    ("0467", "env -i setsid --wait bash -c 'echo x > OUT/new'"),
    ("0467", "python3 -c 'open(\"OUT/new\", \"w\")'"),
    ("0467", "python3 -c 'import os; os.truncate(\"OUT/kept\", 0)'"),
    ("0467", "echo x > ~/.bashrc"),
    ("0467", "echo x > ~/.profile"),
    ("0465", "echo x > new"),
    ("0465", "echo x > ../ws/new"),
    ("0446", "echo x > OUT/new"),
    ("0407", "exec 3<>/dev/tcp/127.0.0.1/TCP"),
    ("0407", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", TCP))'"),
    ("0417", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", TCP))'"),
    ("0407", "exec 3<>/dev/udp/127.0.0.1/UDP && echo x >&3"),
    ("0407", "python3 -c 'import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)'"),
    ("2607", "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM)'"),
    ("0467", "kill -0 $PPID"),
];

/// Commands that work confined: what a day's work needs.
const WORKS: &[(&str, &str)] = &[
    ("0467", "echo x > new && mkdir -p a/b && mv new a/b/ && ln a/b/new hard && rm -r a"),
    ("0467", "echo x > /dev/null && echo x > /dev/stderr && head -c1 /dev/urandom > /dev/zero"),
    ("0467", "f=$(mktemp) && echo x > $f && rm $f && d=$(mktemp -d) && rmdir $d"),
    ("0467", "cat <(echo a) <(echo b) > c && diff c <(printf 'a\\nb\\n')"),
    ("0467", "x=$(head -c 200000 /dev/zero | tr '\\0' x) && cat <<< \"$x\" | wc -c"),
    ("0467", "cat /etc/passwd > copy && ls OUT && cat OUT/kept"),
    ("0467", "echo x > STORE/kept"),
    ("0467", "git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m one && git log --oneline"),
    (
        "0467",
        "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\":\n with m.Pool(2) as p: print(p.map(abs, [-1, 2]))'",
    ),
    ("0467", "python3 -c 'import pty; pty.spawn([\"true\"])'"),
    ("0467", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", TCP))'"),
    ("0427", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", TCP))'"),
    ("0467", "exec 3<>/dev/udp/127.0.0.1/UDP && echo x >&3"),
    (
        "0407",
        "python3 -c 'import socket; a, b = socket.socketpair(); s = socket.socket(socket.AF_UNIX); s.bind(\"sock\"); s.listen()'",
    ),
    ("0467", "sleep 60 & kill $! && wait $!; test $? = 143"),
    ("0667", "echo x > OUT/new && rm OUT/kept"),
    ("2467", "echo x > OUT/new && kill -0 $PPID"),
    ("1467", "echo x > OUT/new && kill -0 $PPID"),
    ("7777", "echo x > OUT/new && kill -0 $PPID"),
];

async fn check(rows: &[(&str, &str)], sandbox: Sandbox, expect: bool) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port().to_string();
    let mut wrong = Vec::new();
    for (mode, command) in rows {
        let world = World::new(mode, sandbox);
        let command = command.replace("TCP", &port(tcp.local_addr())).replace("UDP", &port(udp.local_addr()));
        let (works, text) = world.works(&command).await;
        if works != expect {
            wrong.push(format!("{mode}: {command}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{sandbox:?}, expected to work: {expect}\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_the_mode_does_not_allow_is_stopped() {
    if held() {
        check(STOPPED, Sandbox::Auto, false).await;
    }
}

#[tokio::test]
async fn without_the_sandbox_the_same_works() {
    check(STOPPED, Sandbox::Off, true).await;
}

#[tokio::test]
async fn a_days_work_goes_on() {
    check(WORKS, Sandbox::Auto, true).await;
}
