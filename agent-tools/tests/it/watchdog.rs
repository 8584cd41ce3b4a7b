//! Nothing that commands started outlives the agent, however that ends.

#![allow(clippy::unwrap_used, reason = "tests, and what they share")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use agent_tools::policy::Mode;
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Place, ToolContext, dispatch};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use super::sandbox::Fixed;

/// Where the test below finds that it is to be an agent, and what its commands are told by.
const MARKER: &str = "TEST_AGENT_MARKER";

/// Commands that go on, each in another way.
const COMMANDS: [&str; 10] = [
    "sleep 71.X &",
    "sleep 72.X >/dev/null 2>&1 & disown",
    "setsid sleep 73.X &",
    "setsid sleep 74.X >/dev/null 2>&1 < /dev/null &",
    "nohup sleep 75.X >/dev/null 2>&1 &",
    "(trap '' HUP TERM INT; sleep 76.X; :) &",
    "setsid bash -c 'trap \"\" TERM; sleep 77.X; sleep 77.X' &",
    "env -i sleep 78.X &",
    "setsid setsid sleep 79.X & sleep 79.X &",
    "sleep 70.X & sleep 70.X",
];

/// The agent: not a test by itself, but what the others start.
#[test]
#[ignore = "started by the others"]
fn an_agent() {
    let Ok(marker) = env::var(MARKER) else { return };
    let at = TempDir::new().unwrap();
    let mut parts = Parts::of(Toolset::Lean);
    (parts.files, parts.timeout) = (false, Duration::from_secs(300));
    let tools = tools(Toolset::Lean, &parts);
    let mut cx = ToolContext::new(at.path(), Fixed(Mode::DEFAULT));
    let mut place = Place::new(at.path());
    place.env = vec![("PATH".into(), env::var_os("PATH").unwrap())];
    cx.place = Arc::new(place);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let calls = COMMANDS.map(|command| {
            let command = command.replace('X', &marker);
            Call::new("1", "bash", serde_json::json!({ "command": command }).to_string())
        });
        let (last, first) = calls.split_last().unwrap();
        for call in first {
            dispatch(&tools, call, &cx).await;
        }
        let ready = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            eprintln!("ready");
            let mut word = String::new();
            std::io::stdin().read_line(&mut word).unwrap();
            std::process::exit(0);
        };
        tokio::join!(dispatch(&tools, last, &cx), ready);
    });
}

/// Starts an agent in a session of its own, and waits until its commands run.
fn agent(marker: &str) -> Child {
    let mut command = Command::new("setsid");
    command
        .arg(env::current_exe().unwrap())
        .args(["--exact", "watchdog::an_agent", "--ignored", "--nocapture"])
        .env(MARKER, marker);
    let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(agent.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    agent
}

/// The processes that have this in their arguments or are in the agent's session, but for the agent itself.
fn found(marker: &str, agent: &Child) -> Vec<String> {
    let own = agent.id().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let at = entry.ok()?.path();
        let number = at.file_name()?.to_str()?.parse::<u32>().ok()?.to_string();
        let text = fs::read(at.join("cmdline")).ok()?;
        let text = String::from_utf8_lossy(&text).replace('\0', " ");
        let stat = fs::read_to_string(at.join("stat")).ok()?;
        // Behind the name in brackets: state, parent, group, session.
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        let own_one = text.contains(marker) || *fields.get(3)? == own;
        (own_one && number != own && fields[0] != "Z").then_some(text)
    });
    processes.collect()
}

/// Ends an agent in some way; then all that it started has to go, and the process that watched too.
fn ended_by(marker: &str, end: impl FnOnce(&mut Child, Pid)) {
    let marker = format!("{marker}{}", std::process::id());
    let mut agent = agent(&marker);
    let running = found(&marker, &agent);
    assert!(COMMANDS.len() < running.len(), "{running:#?}");
    assert!(running.iter().any(|text| text.contains("agent-watchdog")), "{running:#?}");
    let pid = Pid::from_child(&agent);
    end(&mut agent, pid);
    agent.wait().unwrap();
    let begun = Instant::now();
    while !found(&marker, &agent).is_empty() {
        // Two seconds are promised; a machine may be busy with other things.
        assert!(begun.elapsed() < Duration::from_secs(20), "{:#?}", found(&marker, &agent));
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_agent_that_is_killed_leaves_nothing() {
    ended_by("881", |_, pid| kill_process(pid, Signal::KILL).unwrap());
}

#[test]
fn an_agent_whose_group_is_signalled_leaves_nothing() {
    ended_by("882", |_, pid| {
        for signal in [Signal::HUP, Signal::INT, Signal::TERM, Signal::KILL] {
            // After the first the group may be gone.
            let _ = kill_process_group(pid, signal);
        }
    });
}

#[test]
fn an_agent_that_just_exits_leaves_nothing() {
    ended_by("883", |agent, _| drop(agent.stdin.take()));
}
