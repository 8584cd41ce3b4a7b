//! Checks of `bash` in toolset `lean`. Numbers are those of the acceptance list; names of cases stand behind them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests, and what they share")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_tools::policy::{Gate, Mode, Permissions, Policy};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Details, Host, Jobs, Place, Status, ToolContext, ToolOutput, Tools, dispatch};
use async_trait::async_trait;
use tempfile::TempDir;
use tokio::sync::Notify;

use super::sandbox::Fixed;

/// Far more than any call here takes, on a machine however loaded.
const LONG: Duration = Duration::from_secs(60);
/// Tells what answers from what waits for its children: they sleep for longer.
const SOON: Duration = Duration::from_secs(10);

/// A session in a directory of its own, confined as is usual.
struct Session {
    at: TempDir,
    tools: Tools,
    cx: ToolContext,
}

impl Session {
    fn new() -> Self {
        Self::with(LONG, 10_000)
    }

    fn with(timeout: Duration, max_output: usize) -> Self {
        let at = TempDir::new().unwrap();
        let mut parts = Parts::of(Toolset::Lean);
        (parts.timeout, parts.max_output, parts.files) = (timeout, max_output, false);
        let mut cx = ToolContext::new(at.path(), Fixed(Mode::DEFAULT));
        let mut place = Place::new(at.path());
        place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("HOME".into(), at.path().into())];
        cx.place = Arc::new(place);
        Self { at, tools: tools(Toolset::Lean, &parts), cx }
    }

    fn env(mut self, variables: &[(&str, &str)]) -> Self {
        let mut place = (*self.cx.place).clone();
        place.env.extend(variables.iter().map(|(n, v)| (n.into(), v.into())));
        self.cx.place = Arc::new(place);
        self
    }

    fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.cx.policy = Arc::new(policy);
        self
    }

    fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.cx.host = host;
        self
    }

    fn path(&self) -> &Path {
        self.at.path()
    }

    async fn run(&self, command: &str) -> ToolOutput {
        let arguments = serde_json::json!({ "command": own(command) }).to_string();
        dispatch(&self.tools, &Call::new("1", "bash", arguments), &self.cx).await
    }

    /// Runs a command; the text without one final newline must be this.
    async fn check(&self, command: &str, expect: &str) {
        let text = self.run(command).await.text();
        assert_eq!(text.strip_suffix('\n').unwrap_or(&text), expect, "{command}");
    }
}

fn exit(output: &ToolOutput) -> &agent_tools::Exit {
    match &output.details {
        Details::Shell(exit) => exit,
        other => panic!("no exit: {other:?} {}", output.text()),
    }
}

/// Runs a future and tells how long it took.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (work.await, begun.elapsed())
}

/// The text with the number of this process for `PID`, so that tests that run elsewhere do not count.
fn own(text: &str) -> String {
    text.replace("PID", &std::process::id().to_string())
}

/// How many processes have this in their command line.
fn processes(marker: &str) -> usize {
    let marker = &own(marker);
    let lines = fs::read_dir("/proc").unwrap().filter_map(|e| fs::read(e.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(marker)).count()
}

/// Waits for what takes a moment: a child that starts, a killed process that goes.
pub(super) async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not in time: {what}");
}

async fn gone(marker: &str) {
    until(&format!("{marker} is gone"), || processes(marker) == 0).await;
}

/// Children of this process that ended and were not taken note of.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc").unwrap().filter_map(|e| fs::read_to_string(e.ok()?.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(&format!("Z {own} ")))).count()
}

#[test]
fn check_001_002_007_one_argument_and_only_where_the_shell_is_wanted() {
    let mut parts = Parts::of(Toolset::Lean);
    parts.files = false;
    let declared = tools(Toolset::Lean, &parts);
    let bash = declared.declarations().find(|d| d.name == "bash").unwrap();
    assert_eq!(bash.schema["required"], serde_json::json!(["command"]));
    assert_eq!(bash.schema["properties"].as_object().unwrap().len(), 1);
    assert_eq!(bash.schema["properties"]["command"]["type"], "string");
    parts.shell = false;
    assert!(tools(Toolset::Lean, &parts).declarations().all(|d| d.name != "bash"));
}

#[tokio::test]
async fn checks_013_014_015_016_019_021_022_034_035_simple_commands() {
    let session = Session::new();
    for (command, expect) in [
        ("echo hi", "hi"),
        ("echo a; echo b >&2; echo c", "a\nb\nc"),
        ("exit 3", "[exit code: exit status 3]"),
        ("echo x; exit 1", "x\n[exit code: exit status 1]"),
        ("printf x; exit 1", "x\n[exit code: exit status 1]"),
        ("kill -9 $$", "[exit code: signal: killed]"),
        ("echo before; kill $$", "before\n[exit code: signal: terminated]"),
        ("kill -USR1 $$", "[exit code: signal: user defined signal 1]"),
        ("true", ""),
        ("cat; read x; echo $?", "1"),
        ("echo \"$0\"; shopt -q login_shell && echo L; true", "bash"),
        ("printf '\\xff\\xfe'", "\u{fffd}\u{fffd}"),
        ("set -e; echo one; false; echo two", "one\n[exit code: exit status 1]"),
        ("cat <<'EOF'\nline $x `y` \"q\" 'z' \\n\nEOF", "line $x `y` \"q\" 'z' \\n"),
        ("(cat; echo eof) & wait; sort | wc -l", "eof\n0"),
        ("for i in 1 2 3; do echo o$i; echo e$i >&2; done", "o1\ne1\no2\ne2\no3\ne3"),
        ("tty", "not a tty\n[exit code: exit status 1]"),
        ("{ : < /dev/tty; } 2>/dev/null || echo no terminal", "no terminal"),
        (
            "printf 'ok1\\n\\xff\\xfe\\xc3\\n\\xed\\xa0\\x80ok2'",
            "ok1\n\u{fffd}\u{fffd}\u{fffd}\n\u{fffd}\u{fffd}\u{fffd}ok2",
        ),
    ] {
        session.check(command, expect).await;
    }
}

#[tokio::test]
async fn check_017_an_unknown_command_is_named() {
    let output = Session::new().run("nosuchcmd_zz").await;
    let text = output.text();
    assert!(text.contains("command not found") && text.ends_with("\n[exit code: exit status 127]"), "{text}");
    assert_eq!((output.status, exit(&output).exit_code), (Status::Ok, Some(127)));
}

#[tokio::test]
async fn check_018_a_signal_is_told_in_the_details() {
    let output = Session::new().run("kill -9 $$").await;
    assert_eq!((exit(&output).exit_code, exit(&output).signal, output.status), (None, Some(9), Status::Ok));
}

#[tokio::test]
async fn check_020_023_025_nothing_carries_over_and_sessions_have_places_of_their_own() {
    let (one, two) = (Session::new(), Session::new());
    one.run("cd /tmp; export V=1").await;
    let here = |s: &Session| s.path().canonicalize().unwrap().display().to_string();
    one.check("pwd -P; echo \"[$V]\"", &format!("{}\n[]", here(&one))).await;
    two.check("pwd -P", &here(&two)).await;
    one.check("pwd -P", &here(&one)).await;
}

#[tokio::test]
async fn check_027_within_the_limit_nothing_is_said_of_it() {
    Session::with(Duration::from_secs(20), 100).check("sleep 1; echo ok", "ok").await;
}

#[tokio::test]
async fn check_026_at_the_limit_the_output_so_far_is_kept() {
    let session = Session::with(Duration::from_secs(1), 10_000);
    let (output, took) = timed(session.run("echo start; sleep 41.PID26")).await;
    assert_eq!(output.text(), "start\n[error: 1s timeout exceeded]");
    assert_eq!((output.status, exit(&output).timed_out, exit(&output).exit_code), (Status::Failed, true, None));
    assert!((Duration::from_secs(1)..SOON).contains(&took), "{took:?}");
    gone("sleep 41.PID26").await;
}

#[tokio::test]
async fn check_028_what_ignores_the_request_to_end_is_killed() {
    let session = Session::with(Duration::from_millis(500), 10_000);
    let (output, took) = timed(session.run("trap '' TERM; (trap '' TERM; sleep 300.PID28) & sleep 300.PID28")).await;
    assert_eq!(output.text(), "[error: 0.5s timeout exceeded]");
    assert!(took < SOON, "{took:?}");
    gone("sleep 300.PID28").await;
}

#[tokio::test]
async fn what_is_told_to_end_may_say_a_last_word() {
    let session = Session::with(Duration::from_millis(500), 10_000);
    let output = session.run("trap 'echo bye; exit' TERM; echo hello; sleep 30.PID51 & wait").await;
    assert_eq!(output.text(), "hello\nbye\n[error: 0.5s timeout exceeded]");
    gone("sleep 30.PID51").await;
}

/// bash-002, bash-004, and what has left the group.
#[tokio::test]
async fn grandchildren_pipelines_and_those_who_left_the_group_end_at_the_limit() {
    let session = Session::with(Duration::from_millis(300), 10_000);
    for (command, marker) in [
        ("bash -c 'bash -c \"sleep 98.PID7602\" & bash -c \"sleep 98.PID7603\"; :' ; :", "sleep 98.PID760"),
        ("yes markerPID98761 | grep -v nothingPID98761 > /dev/null", "PID98761"),
        ("setsid sleep 97.PID11 & sleep 97.PID12", "sleep 97.PID1"),
        ("setsid bash -c 'trap \"\" TERM; sleep 96.PID11; sleep 96.PID12' & sleep 96.PID13", "sleep 96.PID1"),
        ("kill -STOP $$; echo 95.PID11", "echo 95.PID11"),
    ] {
        let (output, took) = timed(session.run(command)).await;
        assert!(output.text().ends_with("[error: 0.3s timeout exceeded]"), "{command}: {}", output.text());
        assert!(took < SOON, "{command}: {took:?}");
        gone(marker).await;
    }
}

#[tokio::test]
async fn check_029_background_children_are_not_waited_for() {
    let session = Session::new();
    for command in [
        "sleep 60.PID29 & echo started",
        "nohup sleep 60.PID29 >/dev/null & disown; echo started",
        "setsid sleep 60.PID29 & echo started",
        "(sleep 60.PID29; echo late) & echo started",
    ] {
        let (output, took) = timed(session.run(command)).await;
        assert_eq!(output.text(), "started\n", "{command}");
        assert!(took < SOON, "{command}: {took:?}");
    }
    until("they go on", || processes("sleep 60.PID29") >= 4).await;
    drop(session);
    gone("sleep 60.PID29").await;
}

/// bash-012.
#[tokio::test]
async fn the_end_of_the_session_ends_what_was_left_and_nothing_else() {
    let (one, two) = (Session::new(), Session::new());
    one.run("sleep 61.PID01 >/dev/null 2>&1 & setsid sleep 61.PID02 >/dev/null 2>&1 & env -i sleep 61.PID03 & echo ok")
        .await;
    two.run("sleep 61.PID04 & setsid sleep 61.PID05 & echo ok").await;
    let all = ["61.PID01", "61.PID02", "61.PID03", "61.PID04", "61.PID05"];
    until("each runs", || all.map(processes) == [1; 5]).await;
    one.cx.jobs.end_all();
    gone("61.PID01").await;
    gone("61.PID02").await;
    gone("61.PID03").await;
    assert_eq!(["61.PID04", "61.PID05"].map(processes), [1; 2]);
    drop(two);
    gone("61.PID04").await;
    gone("61.PID05").await;
}

#[tokio::test]
async fn a_server_in_the_background_may_go_on_printing() {
    let session = Session::new();
    let talk = "for i in $(seq 12); do head -c 200000 /dev/zero; sleep 0.05; done; touch said";
    assert!(session.run(&format!("echo up; ({talk}) &")).await.text().starts_with("up\n"));
    session.check("for i in $(seq 100); do test -e said && break; sleep 0.05; done; ls", "said").await;
}

#[tokio::test]
async fn checks_030_031_032_long_output_is_cut_at_whole_characters() {
    let session = Session::with(LONG, 100);
    let cut = |c: &str| format!("{}\n[output truncated to 100 characters]", c.repeat(100));
    session.check("printf 'x%.0s' $(seq 500)", &cut("x")).await;
    session.check("printf 'é%.0s' $(seq 500)", &cut("é")).await;
    session.check("printf '\\xff%.0s' $(seq 500)", &cut("\u{fffd}")).await;
    session.check("printf 'x%.0s' $(seq 100)", &"x".repeat(100)).await;
    session.check("printf 'x%.0s' $(seq 500); exit 2", &(cut("x") + "\n[exit code: exit status 2]")).await;
}

/// bash-022, and speed: what is not kept costs nothing.
#[tokio::test]
async fn check_033_endless_output_is_read_and_forgotten() {
    let session = Session::with(Duration::from_secs(1), 100);
    let text = session.run("yes").await.text();
    assert!(text.ends_with("\n[output truncated to 100 characters]\n[error: 1s timeout exceeded]"), "{text}");
    let output = Session::new().run("yes err | head -c 200000000 >&2; echo done >&2").await;
    assert_eq!((output.status, exit(&output).exit_code), (Status::Ok, Some(0)));
    assert!(output.text().len() < 200_000);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
    assert!(peak.parse::<u64>().unwrap() < 250_000, "{peak} kB");
}

/// bash-057.
#[tokio::test]
async fn a_command_that_closes_its_output_is_waited_for() {
    let session = Session::new();
    let (output, took) = timed(session.run("echo first; exec >&- 2>&-; sleep 0.7; touch finished")).await;
    assert_eq!(output.text(), "first\n");
    assert!(took >= Duration::from_millis(700) && session.path().join("finished").exists());
}

/// bash-050; nobody is asked.
#[tokio::test]
async fn nothing_to_run_is_said_and_not_run() {
    struct NeverAsked;
    #[async_trait]
    impl Host for NeverAsked {
        fn attended(&self) -> bool {
            true
        }
        async fn ask(
            &self,
            _: &Call,
            _: &agent_tools::Outline,
            why: &str,
            _: Option<&agent_tools::Change>,
        ) -> agent_tools::Answer {
            panic!("asked: {why}")
        }
    }
    let session = Session::new().policy(Gate::new(Mode::DEFAULT, Permissions::Ask)).host(Arc::new(NeverAsked));
    for command in ["", "   \n\t "] {
        let output = session.run(command).await;
        assert_eq!(output.text(), "[error: the command is empty; nothing was run]");
        assert_eq!(output.status, Status::Failed);
    }
    let session = Session::new();
    assert!(session.run("echo a\0b").await.text().starts_with("[error: the command contains a NUL"));
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let session = Session::new();
    let long = format!("x='{}'; echo ${{#x}}", "a".repeat(140_000));
    let text = session.run(&long).await.text();
    assert!(text.starts_with("[error: the command has 140016 bytes"), "{text}");
    fs::remove_dir_all(session.path()).unwrap();
    let output = session.run("echo hi").await;
    assert!(output.text().starts_with("[error: the working directory "), "{}", output.text());
    assert_eq!(output.status, Status::Failed);
    let nowhere = Session::new().env(&[("PATH", "/nowhere:relative:")]);
    nowhere.check("echo hi", "[error: bash was not found on the PATH of this session; no command can run here]").await;
}

/// bash-062.
#[tokio::test]
async fn long_commands_arrive_whole() {
    let command = format!("x='{}'; echo ${{#x}}; echo tail", "abcdefghij".repeat(12_000));
    Session::new().check(&command, "120000\ntail").await;
}

#[tokio::test]
async fn a_program_called_bash_in_the_workspace_is_not_the_shell() {
    let session = Session::new();
    let evil = session.path().join("bash");
    fs::write(&evil, "#!/bin/sh\necho evil\n").unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(".::{}", std::env::var("PATH").unwrap());
    session.env(&[("PATH", &path)]).check("echo good", "good").await;
}

/// bash-047: start-up files, those of a remote login's first shell among them.
#[tokio::test]
async fn start_up_files_are_not_read() {
    for variables in [&[][..], &[("SSH_CLIENT", "1.2.3.4 5 6")], &[("SSH_CLIENT", "1.2.3.4 5 6"), ("SHLVL", "0")]] {
        let session = Session::new().env(variables);
        for name in [".bashrc", ".bash_profile", ".profile"] {
            fs::write(session.path().join(name), "echo NOISE\n").unwrap();
        }
        session.check("echo clean", "clean").await;
    }
}

/// bash-055.
#[tokio::test]
async fn the_locale_does_not_matter_for_bytes() {
    let session = Session::new().env(&[("LANG", "C"), ("LC_ALL", "C")]);
    fs::write(session.path().join("日本.txt"), "é\n").unwrap();
    session.check("cat 日本.txt; ls | cat; printf 'ü\\n'", "é\n日本.txt\nü").await;
}

/// bash-060, bash-035.
#[tokio::test]
async fn kill_0_hits_the_commands_own_group_alone() {
    let session = Session::new();
    session.check("echo x; kill 0; sleep 2", "x\n[exit code: signal: terminated]").await;
    session.check("echo survived", "survived").await;
}

#[tokio::test]
async fn children_have_the_usual_signals() {
    let ignored = Session::new().run("grep SigIgn /proc/self/status").await.text();
    let set = u64::from_str_radix(ignored.trim().rsplit('\t').next().unwrap(), 16).unwrap();
    assert_eq!(set & (1 << 12), 0, "SIGPIPE is ignored: {ignored}");
    Session::new().check("yes | head -n 1; echo ${PIPESTATUS[0]}", "y\n141").await;
}

/// bash-042, as far as the frontend filtered.
#[tokio::test]
async fn the_environment_is_the_sessions() {
    let session = Session::new().env(&[("MY_VAR", "kept-value"), ("PAGER", "less"), ("AGENT_CALL", "outer-3")]);
    let text = session.run("env").await.text();
    let has = |line: &str| text.lines().any(|l| l == line);
    assert!(has("MY_VAR=kept-value") && has("PAGER=cat") && has("GIT_TERMINAL_PROMPT=0"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    let mark = |text: &str| text.lines().find_map(|l| l.strip_prefix("AGENT_CALL=outer-3/")).unwrap().to_owned();
    let next = session.run("env").await.text();
    assert_ne!(mark(&text), mark(&next));
    assert_eq!(mark(&text).split('-').next(), mark(&next).split('-').next());
}

/// bash-052.
#[tokio::test]
async fn ended_children_do_not_stay() {
    let session = Session::with(Duration::from_millis(100), 100);
    for _ in 0..50 {
        session.run("sleep 0 & true").await;
    }
    session.run("sleep 62.PID52").await;
    drop(tokio::time::timeout(Duration::from_millis(20), session.run("sleep 62.PID52")).await);
    // Other tests run beside this one and have children that just ended: what matters is that none stays.
    until("no zombies", || zombies() == 0).await;
}

/// Says stop when it is told to, and keeps what it is told.
#[derive(Default)]
struct Watching {
    stop: Notify,
    told: Mutex<Vec<(Instant, String)>>,
}

#[async_trait]
impl Host for Watching {
    fn progress(&self, _call: &Call, tail: &str) {
        self.told.lock().unwrap().push((Instant::now(), tail.to_owned()));
    }

    async fn cancelled(&self) {
        self.stop.notified().await;
    }
}

#[tokio::test]
async fn a_cancelled_command_is_ended_with_all_it_started() {
    let host = Arc::new(Watching::default());
    let session = Session::new().host(Arc::clone(&host) as Arc<dyn Host>);
    let command = "echo begun; setsid sleep 63.PID01 & (trap '' TERM; sleep 63.PID02; :) & sleep 63.PID03";
    let stop = async {
        until("all run", || !host.told.lock().unwrap().is_empty() && processes("sleep 63.PID0") >= 4).await;
        host.stop.notify_one();
        Instant::now()
    };
    let (output, stopped) = tokio::join!(session.run(command), stop);
    assert!(stopped.elapsed() < SOON, "{:?}", stopped.elapsed());
    assert_eq!(output.text(), "begun\n[error: cancelled by the user]");
    assert_eq!((output.status, exit(&output).timed_out), (Status::Failed, false));
    gone("sleep 63.PID0").await;
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let session = Session::new();
    let command = "setsid sleep 64.PID01 & (trap '' TERM; sleep 64.PID02; :) & touch up; sleep 64.PID03";
    let up = async {
        until("all run", || session.path().join("up").exists() && processes("sleep 64.PID0") >= 4).await;
    };
    tokio::select! { _ = session.run(command) => panic!("ended"), () = up => {} }
    gone("sleep 64.PID0").await;
}

#[tokio::test]
async fn progress_is_told_in_time_and_not_too_often() {
    let host = Arc::new(Watching::default());
    let session = Session::new().host(Arc::clone(&host) as Arc<dyn Host>);
    let command = "yes é | head -c 3000; for i in $(seq 40); do echo line $i; sleep 0.01; done; echo quiet; \
        until test -e seen; do sleep 0.02; done; echo end";
    let see = async {
        // The last of a burst is told while nothing more comes.
        let quiet = |(_, tail): &(Instant, String)| tail.ends_with("quiet\n");
        until("it is told", || host.told.lock().unwrap().iter().any(quiet)).await;
        fs::write(session.path().join("seen"), "").unwrap();
    };
    let ((output, took), ()) = tokio::join!(timed(session.run(command)), see);
    assert!(output.text().ends_with("end\n"));
    let told = host.told.lock().unwrap();
    assert!(told.windows(2).all(|pair| pair[1].0 - pair[0].0 >= Duration::from_millis(195)), "more than five a second");
    assert!(told.len() as u128 <= 2 + took.as_millis() / 200, "{}", told.len());
    assert!(told.iter().all(|(_, tail)| tail.len() <= 2048 && !tail.contains('\u{fffd}')));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_do_not_mix() {
    let session = Arc::new(Session::new());
    let calls: Vec<_> = (0..8)
        .map(|i| {
            let session = Arc::clone(&session);
            tokio::spawn(
                async move { session.check(&format!("echo {i}; sleep 0.1; echo {i}"), &format!("{i}\n{i}")).await },
            )
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[test]
fn jobs_end_outside_of_a_runtime_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let session = Session::new();
    runtime.block_on(session.run("sleep 65.PID01 & setsid sleep 65.PID02 & echo ok"));
    let jobs: Arc<Jobs> = Arc::clone(&session.cx.jobs);
    drop((runtime, session));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(until("both run", || processes("sleep 65.PID0") == 2));
    drop(jobs);
    runtime.block_on(gone("sleep 65.PID0"));
}

mod git {
    use super::*;

    const SETUP: &str = "git init -q . && git config user.email a@b.c && git config user.name n && echo 1 > a && \
        git add a && git commit -qm one && echo 2 > a && echo '* filter=x diff=x' > .gitattributes && \
        printf '#!/bin/sh\\ntouch ran-by-git\\ncat\\n' > evil.sh && chmod +x evil.sh && mkdir h && cp evil.sh h/post-index-change";

    /// A setting of the repository, and a command that only reads but starts what is set.
    const PROGRAMS: &[(&str, &str)] = &[
        ("core.fsmonitor ./evil.sh", "git status --short"),
        ("core.hooksPath h", "touch a; git status --short"),
        ("filter.x.clean ./evil.sh", "git diff"),
        ("filter.x.process ./evil.sh", "git diff"),
        ("diff.x.textconv ./evil.sh", "git diff"),
        ("diff.x.command ./evil.sh", "git diff"),
        ("diff.external ./evil.sh", "git diff"),
        ("include.path ../more", "git diff"),
    ];

    async fn run(setting: &str, command: &str, mode: &str) -> (ToolOutput, bool) {
        let session = Session::new();
        let more = "printf '[filter \"x\"] clean = ./evil.sh' > more";
        session.check(&format!("{SETUP} && {more} && git config {setting}"), "").await;
        let session = session.policy(Gate::new(mode.parse().unwrap(), Permissions::Auto));
        let output = session.run(command).await;
        let ran = session.path().join("ran-by-git").exists();
        (output, ran)
    }

    /// policy-116: a repository names programs; without the right to execute they do not run.
    #[tokio::test]
    async fn programs_named_by_the_repository_need_the_right_to_execute() {
        for (setting, command) in PROGRAMS {
            let (output, ran) = run(setting, command, "0446").await;
            assert_eq!((exit(&output).exit_code, ran), (Some(0), false), "{setting}: {}", output.text());
            let shown = if command.ends_with("diff") { "\n+2\n" } else { " M a\n" };
            assert!(output.text().contains(shown), "{setting}: {}", output.text());
        }
    }

    #[tokio::test]
    async fn with_the_right_to_execute_they_run() {
        for (setting, command) in PROGRAMS {
            let (output, ran) = run(setting, command, "0467").await;
            assert!(ran, "{setting}: {}", output.text());
        }
    }

    /// bash-017.
    #[tokio::test]
    async fn no_pager_and_no_editor_waits() {
        let session = Session::new().env(&[("GIT_PAGER", "less"), ("PAGER", "less"), ("EDITOR", "sleep 66.PID17 #")]);
        let command = format!(
            "{SETUP} && git --paginate log --oneline | wc -l; git commit -qa --amend; git log -1 --format=%s; echo end"
        );
        session.check(&command, "1\none\nend").await;
    }

    /// bash-019: a name, a password, a passphrase: nobody can give them.
    #[tokio::test]
    async fn no_prompt_waits() {
        let session = Session::new();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let refuse = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = server.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        });
        let command =
            format!("git -c credential.helper= -c http.proxy= clone -q http://127.0.0.1:{port}/x.git; echo rc=$?");
        let (output, took) = timed(session.env(&[("no_proxy", "*")]).run(&command)).await;
        assert!(output.text().ends_with("rc=128\n"), "{}", output.text());
        assert!(took < SOON);
        refuse.join().unwrap();
    }
}
