//! The end of the server: however it comes, the commands end with it, and soon.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::editor::{Editor, Test, lives, sleep, until};
use crate::model::{Answer, bash, last_content, says};

/// How long the end may take.
const SOON: Duration = Duration::from_secs(2);

fn signal(editor: &Editor, signal: Signal) {
    kill_process(Pid::from_child(&editor.child), signal).unwrap();
}

#[test]
fn n7_however_the_end_comes_commands_end_with_it() {
    type End = fn(&mut Editor);
    let ends: [(&str, u32, End); 4] = [
        ("EOF", 500, |editor| editor.hangs_up()),
        ("SIGTERM", 501, |editor| signal(editor, Signal::TERM)),
        ("SIGINT", 502, |editor| signal(editor, Signal::INT)),
        ("SIGHUP", 503, |editor| signal(editor, Signal::HUP)),
    ];
    for (name, number, end) in ends {
        let sleep = sleep(number);
        // It does not end by being asked, and has a child.
        let test = Test::new([bash(&format!("trap '' TERM HUP INT; {sleep} & {sleep}"))]);
        let (mut editor, session) = test.session();
        editor.consent = Some("allow");
        editor.prompts(&session, "go");
        editor.runs(&sleep);
        end(&mut editor);
        let (took, _) = editor.ended();
        assert!(took < SOON, "{name}: {took:?}");
        assert!(!lives(&sleep), "{name}: a command is left");
        // The log is whole: the session goes on.
        let test = test.answers([says("Here again.")]);
        let mut editor = test.editor();
        let again = editor.again(&session);
        editor.call("session/load", again).unwrap();
        assert_eq!(editor.prompt(&session, "again").said(), "Here again.", "{name}");
    }
}

#[test]
fn an_editor_that_closes_its_end_of_stdout_ends_the_server() {
    let test = Test::new([bash(&sleep(510))]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    editor.prompts(&session, "go");
    editor.runs(&sleep(510));
    editor.stops_reading();
    // What is said next finds nobody.
    let begun = Instant::now();
    until("the end of the server", || {
        editor.request("session/list", &json!({}));
        editor.child.try_wait().unwrap().is_some()
    });
    let took = begun.elapsed();
    assert!(took < SOON, "{took:?}");
    assert!(!lives(&sleep(510)));
}

#[test]
fn a_kill_leaves_no_command() {
    let test = Test::minded(|request| {
        let number: u32 = last_content(request).parse().unwrap();
        bash(&sleep(520 + number))
    });
    let mut editor = test.editor();
    editor.consent = Some("allow");
    let commands: Vec<String> = (520..530).map(sleep).collect();
    for at in 0..10 {
        let session = editor.begin();
        editor.prompts(&session, &at.to_string());
    }
    commands.iter().for_each(|command| editor.runs(command));
    let killed = Instant::now();
    signal(&editor, Signal::KILL);
    editor.ended();
    until("the end of all commands", || !commands.iter().any(|command| lives(command)));
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
}

#[test]
fn an_open_question_and_a_model_that_stalls_hold_no_end_up() {
    for answer in [bash("touch m"), Answer::Stalls("Half".into())] {
        let test = Test::new([answer]);
        let (mut editor, session) = test.session();
        editor.prompts(&session, "go");
        until("the model is asked", || test.model.asked().len() == 1);
        editor.settle();
        editor.hangs_up();
        let (took, _) = editor.ended();
        assert!(took < SOON, "{took:?}");
        assert_eq!(test.read("m"), None);
    }
}

#[test]
fn a_prompt_that_runs_is_answered_before_a_polite_end() {
    let test = Test::new([Answer::Stalls("Half".into())]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    editor.update("agent_message_chunk");
    signal(&editor, Signal::TERM);
    assert_eq!(editor.turn(id).stop(), "cancelled", "#6");
    editor.ended();
}
