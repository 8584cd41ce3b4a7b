//! Stopping: checks 136 and 137, and the races around them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::editor::{Editor, Policy, Start, processes, until};
use crate::model::{Answer, calls, says};

const SLEEP: &str = "echo started; sleep 300";

fn sleeps() -> Answer {
    calls("Bash", &json!({"command": SLEEP}))
}

fn working(answers: impl IntoIterator<Item = Answer>) -> (Editor, u64) {
    let mut editor = Start::default().session(std::iter::once(sleeps()).chain(answers));
    let id = editor.start_prompt("go");
    editor.until("it runs", |message| message["params"]["update"]["status"] == "in_progress");
    until("the command runs", || processes("sleep 300", editor.work.path()) > 0);
    (editor, id)
}

#[track_caller]
fn gone(editor: &Editor) {
    until("the command is gone", || processes("sleep 300", editor.work.path()) == 0);
}

#[test]
fn check_136_a_cancel_ends_command_and_turn_and_the_session_goes_on() {
    let (mut editor, id) = working([says("Again.")]);
    let begun = Instant::now();
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(3));
    gone(&editor);
    assert_eq!(editor.states().last().unwrap(), "failed");
    let before = editor.log.len();
    editor.wait(Duration::from_millis(300));
    assert_eq!(editor.log.len(), before, "silence behind the answer");
    // A cancel without a turn does not hit the next one.
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    assert_eq!(editor.prompt("more")["result"]["stopReason"], "end_turn");
    assert_eq!(editor.said(), "Again.");
}

#[test]
fn check_137_a_cancel_takes_the_question_back() {
    let mut editor = Start::default().session([calls("Bash", &json!({"command": "touch m"})), says("Again.")]);
    editor.policy = Policy::Hold;
    let id = editor.start_prompt("go");
    let asked = editor.until("the question", |message| message["method"] == "session/request_permission");
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    let taken = |message: &serde_json::Value| {
        message["method"] == "$/cancel_request" && message["params"]["requestId"] == asked["id"]
    };
    if !editor.log.iter().any(taken) {
        editor.until("it is taken back", taken);
    }
    // An answer that comes too late does nothing.
    editor.decide(Policy::Allow);
    editor.policy = Policy::Allow;
    assert_eq!(editor.prompt("more")["result"]["stopReason"], "end_turn");
    assert!(!editor.path("m").exists());
}

#[test]
fn a_cancel_right_behind_the_prompt_is_not_lost() {
    for _ in 0..5 {
        let mut editor = Start::default().session([sleeps()]);
        let id = editor.start_prompt("go");
        editor.notify("session/cancel", json!({"sessionId": editor.session}));
        assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
        gone(&editor);
    }
}

#[test]
fn a_request_is_cancelled_by_its_id() {
    let (mut editor, id) = working([]);
    editor.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    gone(&editor);
}

#[test]
fn what_waits_is_cancelled_with_what_runs() {
    let (mut editor, first) = working([says("never")]);
    let second = editor.start_prompt("second");
    let third = editor.start_prompt("third");
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    for id in [first, second, third] {
        assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(editor.said(), "");
    assert_eq!(editor.model.asked().iter().filter(|request| request.is_object()).count(), 1);
}

#[test]
fn prompts_wait_for_each_other() {
    let mut editor = Start::default().session([says("One. "), says("Two.")]);
    let first = editor.start_prompt("first");
    let second = editor.start_prompt("second");
    editor.answer(first);
    editor.answer(second);
    assert_eq!(editor.said(), "One. Two.");
}

#[test]
fn closing_ends_what_runs() {
    let (mut editor, id) = working([]);
    let close = editor.start("session/close", json!({"sessionId": editor.session}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    assert!(editor.answer(close)["result"].is_object());
    gone(&editor);
    assert_eq!(editor.prompt("more")["error"]["code"], -32002);
}

#[test]
fn words_reach_the_turn_that_runs() {
    let command = json!({"command": "until [ -e go ]; do sleep 0.02; done"});
    let mut editor = Start::default().session([calls("Bash", &command), says("Done.")]);
    let id = editor.start_prompt("begin");
    editor.until("it runs", |message| message["params"]["update"]["status"] == "in_progress");
    let words = json!({"sessionId": editor.session, "prompt": [{"type": "text", "text": "use tabs"}]});
    assert_eq!(editor.call("_session/steering", words.clone())["result"]["outcome"], "injected");
    editor.write("go", "");
    editor.answer(id);
    assert!(editor.model.asked().last().unwrap()["messages"].to_string().contains("use tabs"));
    assert_eq!(editor.call("_session/steering", words)["result"]["outcome"], "promptRequired");
}
