//! What the kernel holds: each row is run by a real shell, confined and, where that makes the difference, free.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and what they share")]

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use agent_tools::builtin::sandbox::{Report, report};
use agent_tools::policy::{Mode, Policy, Verdict};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Details, Outline, Place, Sandbox, ToolContext, ToolOutput, Tools, dispatch};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tempfile::TempDir;

use super::bash::until;

/// Lets everything through with this mode and no more: the kernel alone holds.
pub(super) struct Fixed(pub(super) Mode);

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
        for name in ["ws", "out", "home", "store", "bin"] {
            fs::create_dir(at.path().join(name)).unwrap();
        }
        fs::write(at.path().join("out/kept"), "kept\n").unwrap();
        // For its caches; where another one is installed, that comes first.
        fs::write(at.path().join("bin/cargo"), "").unwrap();
        fs::set_permissions(at.path().join("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut cx = ToolContext::new(at.path(), Fixed(mode.parse().unwrap()));
        let mut place = Place::new(at.path().join("ws"));
        place.home = Some(at.path().join("home"));
        place.store = Some(at.path().join("store"));
        let path = format!("{}:{}", std::env::var("PATH").unwrap(), at.path().join("bin").display());
        place.env = vec![("PATH".into(), path.into()), ("HOME".into(), at.path().join("home").into())];
        place.sandbox = sandbox;
        cx.place = Arc::new(place);
        let mut parts = Parts::of(Toolset::Lean);
        parts.files = false;
        Self { at, tools: tools(Toolset::Lean, &parts), cx }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    /// Runs a command; `OUT` and `STORE` stand for the directories.
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
    ("0467", "kill -0 VICTIM"),
    ("0467", "python3 -c 'import resource; resource.prlimit(VICTIM, resource.RLIMIT_CORE, (0, 0))'"),
    ("0467", "mkdir -p ~/.cargo/bin && echo x > ~/.cargo/bin/evil"),
    ("0467", "mkdir -p ~/.cargo && echo x > ~/.cargo/config.toml"),
    ("0467", "mkdir -p ~/.cache && echo x > ~/.cache/shell-start-up"),
    ("0466", "mkdir -p ~/.cargo/registry && echo x > ~/.cargo/registry/x"),
];

/// The same, where only root could do it at all.
const STOPPED_FOR_ROOT: &[(&str, &str)] = &[
    ("0467", "mknod disk b 7 0 && rm disk"),
    ("0467", "mknod STORE/memory c 1 1"),
    ("0467", "unshare -m mount -t tmpfs none OUT"),
    ("0467", "unshare -u hostname elsewhere"),
    ("0467", "python3 -c 'import fcntl, os, termios; fcntl.ioctl(os.openpty()[1], termios.TIOCSTI, b\"x\")'"),
    ("0467", "unshare -n ip link set lo up"),
    (
        "0467",
        "python3 -c 'import ctypes, os, sys; l = ctypes.CDLL(None, use_errno=True); sys.exit(0 if l.ptrace(16, VICTIM, 0, 0) == 0 else 1)'",
    ),
    ("0467", "cat /proc/VICTIM/environ"),
    ("0467", "echo 5 > /proc/VICTIM/oom_score_adj"),
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
    ("0467", "mkdir ~/.cargo/registry/src && echo x > ~/.cargo/registry/index"),
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

/// What the kernel does not hold, whatever the mode: to be told, not to be trusted in.
const NOT_HELD: &[(&str, &str)] = &[
    ("0004", "chmod 600 OUT/kept"),
    ("0004", "touch -d yesterday OUT/kept"),
    ("0004", "cat OUT/kept /etc/passwd"),
    ("0466", "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"),
];

/// A process that is not the session's.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

async fn check(rows: &[(&str, &str)], sandbox: Sandbox, expect: bool) {
    let victim = Victim(Command::new("sleep").arg("300").spawn().unwrap());
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port().to_string();
    let mut wrong = Vec::new();
    for (mode, command) in rows {
        let world = World::new(mode, sandbox);
        let command = command.replace("TCP", &port(tcp.local_addr())).replace("UDP", &port(udp.local_addr()));
        let command = command.replace("VICTIM", &victim.0.id().to_string());
        let (works, text) = world.works(&command).await;
        if works != expect {
            wrong.push(format!("{mode}: {command}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{sandbox:?}, expected to work: {expect}\n{}", wrong.join("\n"));
}

fn is_root() -> bool {
    geteuid().is_root()
}

#[tokio::test]
async fn what_the_mode_does_not_allow_is_stopped() {
    if held() {
        check(STOPPED, Sandbox::Auto, false).await;
    }
}

#[tokio::test]
async fn what_root_could_do_to_the_system_is_stopped() {
    if held() && is_root() {
        check(STOPPED_FOR_ROOT, Sandbox::Auto, false).await;
    }
}

#[tokio::test]
async fn without_the_sandbox_the_same_works() {
    check(STOPPED, Sandbox::Off, true).await;
    if is_root() {
        check(STOPPED_FOR_ROOT, Sandbox::Off, true).await;
    }
}

#[tokio::test]
async fn a_days_work_goes_on() {
    check(WORKS, Sandbox::Auto, true).await;
    check(NOT_HELD, Sandbox::Auto, true).await;
}

/// Whether the kernel keeps signals within a session.
fn holds_signals() -> bool {
    held() && report(Sandbox::Auto).lacking.is_none()
}

/// Whether a process runs: one that ended and was not taken note of does not.
fn runs(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[tokio::test]
async fn a_session_ends_what_it_started_and_nothing_else() {
    let (one, two) = (World::new("0467", Sandbox::Auto), World::new("0467", Sandbox::Auto));
    let text = one.run("sleep 300 >/dev/null & echo $!").await.text();
    let kill = format!("kill {text}");
    assert!(!holds_signals() || !two.works(&kill).await.0, "another session's process was ended");
    assert!(one.works(&kill).await.0);
}

/// Neither a group nor a mark tells of it: the kernel does.
#[tokio::test]
async fn the_end_of_the_session_ends_what_hides_from_it() {
    let (one, two) = (World::new("0467", Sandbox::Auto), World::new("0467", Sandbox::Auto));
    let hidden = "env -i setsid sleep 300 >/dev/null 2>&1 & sleep 0.1; echo $!";
    let pids = [one.run(hidden).await.text(), two.run(hidden).await.text()].map(|text| text.trim().to_owned());
    assert!(pids.iter().all(|pid| runs(pid)), "{pids:?}");
    one.cx.jobs.end_all();
    until("it is gone", || !holds_signals() || !runs(&pids[0])).await;
    assert!(runs(&pids[1]), "another session's process was ended");
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        // One of them is gone.
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[tokio::test]
async fn a_command_that_was_stopped_says_so() {
    let told = |text: &str| text.contains("the sandbox lets this command write only where mode 0467 allows");
    for (sandbox, command, expect) in [
        (Sandbox::Auto, "echo x > OUT/new", held()),
        (Sandbox::Auto, "echo x > OUT/new; true", false),
        (Sandbox::Auto, "false", false),
        (Sandbox::Off, "echo Permission denied; false", false),
    ] {
        let output = World::new("0467", sandbox).run(command).await;
        assert_eq!(told(&output.text()), expect, "{command}: {}", output.text());
    }
}

/// In a thread that the kernel answers as one without Landlock does.
fn without_landlock<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
            let calls = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
            let architecture = std::env::consts::ARCH.try_into().unwrap();
            let filter = SeccompFilter::new(calls, SeccompAction::Allow, unknown, architecture).unwrap();
            apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn without_landlock_it_is_said_and_what_requires_it_does_not_run() {
    without_landlock(|| {
        let reason = "seccomp only: this kernel has no Landlock; writing is not held";
        assert_eq!(report(Sandbox::Auto).to_string(), reason);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let run = |sandbox, mode, command| runtime.block_on(World::new(mode, sandbox).run(command)).text();
        let refused =
            format!("[error: commands may only run in a sandbox here (sandbox: require), and there is {reason};");
        assert!(run(Sandbox::Require, "0467", "echo ran").starts_with(&refused));
        assert_eq!(run(Sandbox::Auto, "0467", "echo ran > OUT/new && cat OUT/new"), "ran\n");
        let closed = run(Sandbox::Auto, "0407", "exec 3<>/dev/udp/127.0.0.1/9");
        assert!(closed.contains("Operation not permitted"), "{closed}");
    });
}

#[tokio::test]
async fn what_is_required_and_there_runs() {
    if held() {
        assert_eq!(World::new("0467", Sandbox::Require).run("echo ran").await.text(), "ran\n");
    }
    assert_eq!(report(Sandbox::Off).to_string(), "none: the setting `sandbox` is off");
}

#[tokio::test]
async fn temporary_files_lie_where_the_session_says_unless_others_do() {
    for (directory, expect) in [("out", true), ("home", !held()), ("", !held()), ("missing", !held())] {
        let mut world = World::new("0467", Sandbox::Auto);
        let mut place = (*world.cx.place).clone();
        place.env.push(("TMPDIR".into(), world.path(directory).into()));
        world.cx.place = Arc::new(place);
        let (works, text) = world.works(&format!("mkdir -p '{}/x'", world.path(directory).display())).await;
        assert_eq!(works, expect, "{directory}: {text}");
    }
}

/// What a session may write is named by paths; a command could put a link where such a path leads.
#[tokio::test]
async fn links_in_the_place_of_what_may_be_written_lead_nowhere() {
    for (variable, name, mode) in [
        ("TMPDIR", "ws/tmp", "0467"),
        ("CARGO_HOME", "ws/cargo", "0467"),
        ("GOMODCACHE", "home/.cargo/registry/mod", "0467"),
        ("", "ws/root", "0467"),
    ] {
        let mut world = World::new(mode, Sandbox::Auto);
        let mut place = (*world.cx.place).clone();
        let dir = world.path(name);
        match variable {
            "" => place.roots.push(dir.clone()),
            _ => place.env.push((variable.into(), dir.clone().into())),
        }
        world.cx.place = Arc::new(place);
        let at = dir.display();
        let (works, text) = world.works(&format!("mkdir -p {at} && rmdir {at} && ln -s OUT {at}")).await;
        assert!(works, "{name}: {text}");
        let (works, text) = world.works("mkdir -p OUT/registry && echo x > OUT/new").await;
        assert_eq!(works, !held(), "{name}: {text}");
    }
}

mod repositories {
    use super::*;

    /// Runs git where the sandbox is not.
    fn git(at: &Path, arguments: &str) {
        let words = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").current_dir(at).args(words).args(arguments.split(' ')).output().unwrap();
        assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }

    const COMMIT: &str =
        "touch f && git add f && git -c user.name=n -c user.email=e commit -qm two && git log --oneline";

    #[tokio::test]
    async fn a_linked_working_tree_is_worked_in() {
        for (mode, command, expect) in [
            ("0467", COMMIT, true),
            ("0467", "git checkout -q -b other && git branch -q -D main2", true),
            ("0466", "git update-ref refs/heads/new HEAD", true),
            ("0466", "echo x > OUT/main/.git/hooks/pre-commit", !held()),
            ("0466", "git config user.name x", !held()),
            ("0465", "git update-ref refs/heads/new HEAD", !held()),
            ("0467", "echo x > OUT/main/f", !held()),
        ] {
            let world = World::new(mode, Sandbox::Auto);
            let main = world.path("out/main");
            fs::create_dir_all(&main).unwrap();
            fs::remove_dir(world.path("ws")).unwrap();
            git(&main, "init -q");
            git(&main, "commit -q --allow-empty -m one");
            git(&main, "branch main2");
            git(&main, "worktree add -q ../../ws");
            let (works, text) = world.works(command).await;
            assert_eq!(works, expect, "{mode}: {command}\n{text}");
        }
    }

    #[tokio::test]
    async fn what_only_claims_to_be_one_is_not_believed() {
        let world = World::new("0467", Sandbox::Auto);
        let other = world.path("out/other");
        fs::create_dir_all(&other).unwrap();
        git(&other, "init -q");
        let hook = "echo x > OUT/other/.git/hooks/pre-commit";
        for claim in ["printf 'gitdir: OUT/other/.git\\n' > .git", "rm .git; ln -s OUT/other/.git .git"] {
            assert!(world.works(claim).await.0);
            assert_eq!(world.works(hook).await.0, !held(), "{claim}");
        }
    }

    /// A directory that names the workspace, and another repository as the one that it belongs to.
    #[tokio::test]
    async fn what_is_made_up_leads_nowhere() {
        let world = World::new("0467", Sandbox::Auto);
        let other = world.path("out/other");
        fs::create_dir_all(&other).unwrap();
        git(&other, "init -q");
        for made_up in [
            "mkdir STORE/g && echo $PWD/.git > STORE/g/gitdir && echo OUT/other/.git > STORE/g/commondir && echo 'gitdir: STORE/g' > .git",
            "mkdir -p STORE/worktrees && mv STORE/g STORE/worktrees/ && echo 'gitdir: STORE/worktrees/g' > .git",
            "rm -r STORE/worktrees/g && ln -s OUT/other/.git STORE/worktrees/g",
        ] {
            let (works, text) = world.works(made_up).await;
            assert!(works, "{text}");
            let (works, text) = world.works("echo x > OUT/other/.git/hooks/pre-commit").await;
            assert_eq!(works, !held(), "{made_up}: {text}");
        }
    }

    #[tokio::test]
    async fn a_part_of_a_repository_is_worked_in() {
        for (mode, command, expect) in [
            ("0467", COMMIT, true),
            ("0467", "echo x > ../f", !held()),
            ("0466", "echo x > ../.git/hooks/pre-commit", !held()),
        ] {
            let world = World::new(mode, Sandbox::Auto);
            fs::create_dir(world.path("out/part")).unwrap();
            git(&world.path("out"), "init -q");
            let mut place = (*world.cx.place).clone();
            place.cwd = world.path("out/part");
            let mut world = world;
            world.cx.place = Arc::new(place);
            let (works, text) = world.works(command).await;
            assert_eq!(works, expect, "{mode}: {command}\n{text}");
        }
    }
}
