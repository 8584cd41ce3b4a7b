//! Killed at a random moment, then resumed: nothing that was acknowledged is lost, files are whole, and the next request is
//! one that strict servers take.
//!
//! `CRASH_RUNS` says how many runs, `CRASH_SEED` which moments; a failure tells its seed.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::model::{Answer, Model, all, calls, says};
use crate::run::{Outcome, Test, ended};

const RUNS: u64 = 60;
const ROUNDS: usize = 20;
const LINES: usize = 300;

/// A session of twenty rounds with edits, commands and sub-agents. What comes next is told by the conversation alone, so
/// that it goes on wherever it was cut off.
fn mind(request: &Value) -> Answer {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let told = request.to_string();
    let rounds = messages.iter().filter(|message| message["role"] == "assistant").count();
    if told.contains("sub task") && !told.contains("main task") {
        return if rounds == 0 { calls("Bash", &json!({"command": "echo sub"})) } else { says("sub done") };
    }
    let file = |round: usize| format!("f{}.txt", round - round % 5);
    match rounds {
        round if round >= ROUNDS => says("all done"),
        round => match round % 5 {
            0 => calls("Write", &json!({"path": file(round), "content": body("written")})),
            1 => calls(
                "Edit",
                &json!({"path": file(round), "old_string": body("written"), "new_string": body("edited")}),
            ),
            2 => calls("Bash", &json!({"command": format!("echo {round} >> log.txt; seq 1 2000")})),
            3 => all(&[
                ("SubAgent", json!({"prompt": format!("sub task {round}"), "description": "sub"})),
                ("Bash", json!({"command": "sleep 0.02; echo beside"})),
            ]),
            _ => all(&[
                ("Read", json!({"path": file(round)})),
                ("TodoWrite", json!({"todos": [{"content": format!("round {round}"), "status": "pending"}]})),
            ]),
        },
    }
}

fn body(word: &str) -> String {
    format!("{word}\n").repeat(LINES)
}

struct Killed {
    /// Whole lines that were on stdout.
    acknowledged: String,
    /// It had ended by itself.
    finished: bool,
}

fn test(form: &str) -> Test {
    let mut test = Test::new([]).full();
    test.model = Model::minded(mind);
    let url = test.model.url.clone();
    test.args([
        "--permissions",
        "allow",
        "--set",
        "sandbox=off",
        "--output",
        "stream-json",
        "--provider",
        form,
        "--model",
        "m",
    ])
    .args(["--base-url", &url, "--set", "maxSubAgents=2"])
    .env("ANTHROPIC_API_KEY", "sk-test")
}

fn start(test: &Test, more: &[&str]) -> Child {
    let mut command = test.command();
    command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn killed_after(test: &Test, time: Duration) -> Killed {
    let mut child = start(test, &["main task"]);
    let stdout = child.stdout.take().unwrap();
    let reading = thread::spawn(move || whole_lines(stdout));
    let begin = Instant::now();
    let mut finished = false;
    while begin.elapsed() < time && !finished {
        finished = child.try_wait().unwrap().is_some();
        thread::sleep(Duration::from_millis(1));
    }
    // SIGKILL.
    let _ = child.kill();
    ended(&mut child);
    Killed { acknowledged: reading.join().unwrap(), finished }
}

fn whole_lines(stdout: ChildStdout) -> String {
    let (mut reader, mut text, mut line) = (BufReader::new(stdout), String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        if line.ends_with('\n') {
            text.push_str(&line);
        }
        line.clear();
    }
    text
}

/// Kills a run after this time and resumes it.
fn check(form: &str, time: Duration) {
    let test = test(form);
    let killed = killed_after(&test, time);
    let Some(log) = test.logs().into_iter().find(|log| !log.to_string_lossy().contains("/sub_")) else {
        assert_eq!(killed.acknowledged, "", "lines without a log");
        return;
    };
    files_are_whole(&test.work());
    let kept = fs::read_to_string(&log).unwrap();
    assert!(kept.starts_with(&killed.acknowledged), "what was acknowledged is not in the log");
    let id = log.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let mut resumed = start(&test, &["--resume", &id, "go on with the main task"]);
    let told = whole_lines(resumed.stdout.take().unwrap());
    let code = ended(&mut resumed);
    let faults = test.model.faults();
    assert!(faults.is_empty(), "{form} after {time:?}: {faults:#?}");
    assert_eq!(code, Some(0), "{form} after {time:?}: {}", told.lines().last().unwrap_or_default());
    assert!(told.contains("all done"), "{form} after {time:?}");
    assert!(fs::read_to_string(&log).unwrap().starts_with(&kept), "the log was changed");
    files_are_whole(&test.work());
    for path in written(&kept) {
        assert!(test.work().join(path).is_file(), "{form} after {time:?}: {path} was written and is gone");
    }
    assert!(test.logs().len() > usize::from(killed.acknowledged.contains("sub_agent_start")));
}

/// The files that the log says were written.
fn written(log: &str) -> Vec<&str> {
    let results = log.lines().filter(|line| line.starts_with("{\"type\":\"tool_result\""));
    results.filter_map(|line| line.split_once(" bytes to ")?.1.split('"').next()).collect()
}

/// Nothing but whole versions, and no file that was left over.
fn files_are_whole(work: &Path) {
    let versions: HashSet<String> = [body("written"), body("edited")].into();
    for entry in fs::read_dir(work).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('f') && !name.contains(".tmp") {
            assert!(versions.contains(&fs::read_to_string(entry.path()).unwrap()), "{name} is torn");
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The next of a row of numbers that look like chance (xorshift64*).
fn next(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

#[test]
fn a_session_that_is_killed_at_any_moment_goes_on() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (runs, seed) = (number("CRASH_RUNS", RUNS), number("CRASH_SEED", now));
    println!("{runs} runs, CRASH_SEED={seed}");
    let begin = Instant::now();
    assert!(killed_after(&test("openai"), Duration::from_secs(60)).finished);
    let whole = begin.elapsed().as_micros() as u64;
    let mut state = seed | 1;
    let moments: Vec<Duration> = (0..runs).map(|_| Duration::from_micros(next(&mut state) % whole)).collect();
    thread::scope(|scope| {
        for (form, half) in [("openai", 0), ("anthropic", 1)] {
            let moments = moments.iter().skip(half).step_by(2);
            scope.spawn(move || moments.for_each(|moment| check(form, *moment)));
        }
    });
}

/// The program where its sessions lie on a disk of their own, which is mounted with these options. What was on it is
/// there at the end.
fn on_disk(test: &Test, options: &str) -> Outcome {
    let kept = test.sessions().with_file_name("kept");
    let inner = test.command();
    let mut outer = Command::new("unshare");
    outer.args(["-m", "sh", "-c", DISK, "sh"]).arg(options).arg(test.sessions()).arg(&kept);
    outer.arg(inner.get_program()).args(inner.get_args());
    outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.current_dir(inner.get_current_dir().unwrap()).stdin(Stdio::null());
    let out = outer.output().unwrap();
    fs::remove_dir(test.sessions()).unwrap();
    fs::rename(kept, test.sessions()).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Outcome { code: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
}

const DISK: &str = r#"
mkdir -p "$2" && mount -t tmpfs -o "$1" none "$2" || exit 99
dir=$2 kept=$3; shift 3
"$@"; code=$?
cp -r "$dir/." "$kept"; exit $code"#;

#[test]
fn a_full_disk_ends_the_turn_with_whole_lines_and_the_session_goes_on_where_there_is_room() {
    let test = test("openai").args(["main task"]);
    let out = on_disk(&test, "size=96k");
    let last = out.stdout.lines().last().unwrap_or_default();
    assert_eq!(out.code, Some(1), "{last} {}", out.stderr);
    assert!(last.contains("the session could not be saved") && last.contains("No space left on device"), "{last}");
    assert!(!out.stderr.contains("panicked"), "{}", out.stderr);
    let log = test.logs().into_iter().find(|log| !log.to_string_lossy().contains("/sub_")).unwrap();
    let kept = fs::read_to_string(&log).unwrap();
    for line in kept.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "a torn line: {line}");
    }
    files_are_whole(&test.work());
    let id = log.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let mut resumed = start(&test, &["--resume", &id, "go on with the main task"]);
    let told = whole_lines(resumed.stdout.take().unwrap());
    assert_eq!((ended(&mut resumed), test.model.faults()), (Some(0), Vec::new()));
    assert!(told.contains("all done"));
}

#[test]
fn a_disk_that_cannot_be_written_is_told_before_the_model_is_asked() {
    let test = test("openai").args(["main task"]);
    let out = on_disk(&test, "ro").code(1);
    for words in ["the session could not be saved", "Read-only file system", "--no-session saves nothing"] {
        assert!(out.stdout.contains(words), "{out:#?}");
    }
    assert_eq!(test.model.asked().len(), 0);
}
