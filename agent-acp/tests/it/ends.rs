//! How the server ends, and what it leaves: nothing.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::editor::{Editor, Policy, Start, processes, until};
use crate::model::{Answer, calls, says};

fn sleeps() -> Answer {
    calls("Bash", &json!({"command": "echo started; sleep 300"}))
}

/// A server with so many sessions, each of which runs a command.
fn working(sessions: usize) -> Editor {
    let mut editor = Start::default().args(["--permissions", "allow"]).ready(std::iter::repeat_n(sleeps(), sessions));
    for _ in 0..sessions {
        editor.open();
        editor.start_prompt("go");
    }
    until("all commands run", || processes("sleep 300", editor.work.path()) >= sessions);
    editor
}

fn signal(editor: &Editor, signal: Signal) {
    let pid = i32::try_from(editor.child.id()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn however_it_ends_its_commands_end_with_it() {
    for how in ["EOF", "TERM", "INT", "HUP"] {
        let mut editor = working(1);
        match how {
            "EOF" => editor.hang_up(),
            "TERM" => signal(&editor, Signal::TERM),
            "INT" => signal(&editor, Signal::INT),
            _ => signal(&editor, Signal::HUP),
        }
        assert!(editor.ends_within(Duration::from_secs(3)), "{how}");
        until("no command is left", || processes("sleep 300", editor.work.path()) == 0);
    }
}

#[test]
fn a_kill_leaves_no_command_after_two_seconds() {
    let mut editor = working(10);
    signal(&editor, Signal::KILL);
    let begun = Instant::now();
    assert!(editor.ends_within(Duration::from_secs(1)));
    until("no command is left", || processes("sleep 300", editor.work.path()) == 0);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn an_open_question_holds_nothing_up() {
    let mut editor = Start::default().session([calls("Bash", &json!({"command": "touch m"}))]);
    editor.policy = Policy::Hold;
    editor.start_prompt("go");
    editor.until("the question", |message| message["method"] == "session/request_permission");
    editor.hang_up();
    assert!(editor.ends_within(Duration::from_secs(3)));
    assert!(!editor.path("m").exists());
}

/// What is printed and not read costs no memory, and a stop still works.
#[test]
fn an_editor_that_does_not_read_costs_nothing() {
    let start = Start::default().args(["--permissions", "allow"]);
    let mut editor = start.deaf([calls("Bash", &json!({"command": "yes 0123456789abcdef | head -c 1000000000"}))]);
    std::thread::sleep(Duration::from_secs(3));
    let memory = editor.memory();
    assert!(memory < 60, "{memory} MiB");
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    until("the command is stopped", || processes("head -c", editor.work.path()) == 0);
}

#[test]
fn a_hundred_sessions_work_at_once() {
    let answers =
        (0..100).flat_map(|_| [calls("Bash", &json!({"command": "sleep 0.2; echo x > done-$$"})), says("Done.")]);
    // Which session gets which answer is all the same: calls first.
    let (calls, words): (Vec<_>, Vec<_>) = answers.partition(|answer| matches!(answer, Answer::Calls(_)));
    let start = Start::default().args(["--permissions", "allow"]);
    let mut editor = start.ready(calls.into_iter().chain(words));
    let ids: Vec<u64> = (0..100)
        .map(|_| {
            editor.open();
            editor.start_prompt("go")
        })
        .collect();
    for id in ids {
        editor.until_answered(id);
    }
    let memory = editor.memory();
    assert!(memory < 120, "{memory} MiB");
}

impl Editor {
    /// The answer may have come already.
    fn until_answered(&mut self, id: u64) {
        if !self.log.iter().any(|message| message["id"] == id && message.get("result").is_some()) {
            self.answer(id);
        }
    }
}

impl Start {
    /// A session whose editor stops reading with its first prompt.
    fn deaf(self, answers: impl IntoIterator<Item = Answer>) -> Editor {
        let mut editor = self.session(answers);
        editor.stop_reading();
        editor.start_prompt("go");
        editor
    }
}

#[test]
fn nothing_is_read_from_the_commands_stdin() {
    let mut editor = Start::default()
        .args(["--permissions", "allow"])
        .session([calls("Bash", &json!({"command": "cat; echo read nothing"})), says("Done.")]);
    assert_eq!(editor.prompt("go")["result"]["stopReason"], "end_turn");
    assert!(editor.told().contains("read nothing"));
}
