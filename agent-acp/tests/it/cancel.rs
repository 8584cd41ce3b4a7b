//! Stop: it ends what runs and what waits, at once, in every race, and the prompt is answered.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::editor::{Test, lives, sleep, until};
use crate::model::{Answer, all, bash, delegates, says};

/// Stop means now.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn n136_a_command_is_stopped() {
    let test = Test::new([bash(&sleep(301)), says("next")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    editor.runs(&sleep(301));
    let begun = Instant::now();
    editor.cancel(&session);
    let turn = editor.turn(id);
    assert_eq!(turn.stop(), "cancelled");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(!lives(&sleep(301)), "#4");
    assert_eq!(turn.call().1["status"], "failed", "no call is left open");
    assert_eq!(editor.prompt(&session, "again").said(), "next", "#2");
}

#[test]
fn n137_n16_an_open_dialog_is_taken_back() {
    let test = Test::new([bash("touch m"), says("next")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let question = editor.question();
    editor.cancel(&session);
    // The client's answer is not waited for.
    let turn = editor.turn(id);
    assert_eq!(turn.stop(), "cancelled");
    assert_eq!(turn.call().1["status"], "failed");
    assert!(editor.took_back(&question), "before the answer");
    // It comes late, and is a yes.
    editor.choose(&question, "allow");
    editor.hears_nothing();
    assert_eq!(test.read("m"), None);
    assert_eq!(editor.prompt(&session, "again").said(), "next");
}

#[test]
fn all_open_dialogs_are_taken_back() {
    let test =
        Test::new([all(&[("bash", json!({"command": "cat a"})), ("bash", json!({"command": "wc b"}))]), says("next")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let questions = [editor.question(), editor.question()];
    editor.cancel(&session);
    let turn = editor.turn(id);
    assert_eq!(turn.stop(), "cancelled");
    assert!(turn.calls().iter().all(|call| turn.end_of(call)["status"] == "failed"));
    assert!(questions.iter().all(|question| editor.took_back(question)));
}

#[test]
fn races() {
    let slow = || Answer::Late(Duration::from_millis(150), Box::new(says("slow")));
    // Right behind the prompt, in the same write.
    let test = Test::new([slow(), slow(), says("next")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    editor.cancel(&session);
    assert_eq!(editor.turn(id).stop(), "cancelled", "right behind the prompt");

    // Twice.
    let id = editor.prompts(&session, "go");
    editor.cancel(&session);
    editor.cancel(&session);
    assert_eq!(editor.turn(id).stop(), "cancelled", "twice");

    // Without a turn: the next one is not hit.
    editor.cancel(&session);
    editor.cancel(&session);
    let id = editor.prompts(&session, "go");
    assert_eq!(editor.turn(id).stop(), "end_turn", "without a turn");
}

#[test]
fn a_model_that_says_nothing_more_is_left() {
    for stall in [Answer::Stalls("Half".into()), Answer::Stalls(String::new())] {
        let test = Test::new([stall, says("next")]);
        let (mut editor, session) = test.session();
        let id = editor.prompts(&session, "go");
        until("the model is asked", || test.model.asked().len() == 1);
        editor.settle();
        let begun = Instant::now();
        editor.cancel(&session);
        assert_eq!(editor.turn(id).stop(), "cancelled");
        assert!(begun.elapsed() < SOON);
        assert_eq!(editor.prompt(&session, "again").said(), "next");
    }
}

#[test]
fn what_waits_is_cancelled_too_and_what_comes_behind_is_not() {
    let test = Test::new([Answer::Stalls("Half".into()), says("next")]);
    let (mut editor, session) = test.session();
    let waiting = [1, 2, 3].map(|_| editor.prompts(&session, "go"));
    editor.update("agent_message_chunk");
    editor.cancel(&session);
    let behind = editor.prompts(&session, "behind");
    for id in waiting {
        assert_eq!(editor.turn(id).stop(), "cancelled", "{id}");
    }
    assert!(editor.turn(behind).said().ends_with("next"));
    assert_eq!(test.model.asked().len(), 2, "what waited was not asked");
}

#[test]
fn a_request_is_cancelled_by_its_id() {
    let test = Test::new([Answer::Stalls("Half".into()), says("next")]);
    let (mut editor, session) = test.session();
    let (first, second, third) =
        (editor.prompts(&session, "1"), editor.prompts(&session, "2"), editor.prompts(&session, "3"));
    editor.update("agent_message_chunk");
    editor.notify("$/cancel_request", &json!({"requestId": second}));
    editor.notify("$/cancel_request", &json!({"requestId": 4711}));
    editor.notify("$/cancel_request", &json!({"requestId": first}));
    assert_eq!(editor.turn(first).stop(), "cancelled", "#5: an answer, no error");
    assert_eq!(editor.turn(second).stop(), "cancelled");
    assert!(editor.turn(third).said().ends_with("next"));
}

#[test]
fn one_session_is_stopped_and_the_other_goes_on() {
    let test = Test::minded(|request| match request.to_string().contains("stop me") {
        true => Answer::Stalls("Half".into()),
        false => Answer::Late(Duration::from_millis(200), Box::new(says("whole"))),
    });
    let (mut editor, one) = test.session();
    let other = editor.begin();
    let ids = [editor.prompts(&one, "stop me"), editor.prompts(&other, "let me")];
    editor.update("agent_message_chunk");
    editor.cancel(&one);
    assert_eq!(editor.turn(ids[0]).stop(), "cancelled");
    let turn = editor.turn(ids[1]);
    assert_eq!((turn.stop(), turn.said().as_str()), ("end_turn", "whole"));
}

#[test]
fn n3_stop_reaches_a_session_that_was_loaded_while_it_runs() {
    let test = Test::new([bash(&sleep(302))]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    editor.runs(&sleep(302));
    let again = editor.again(&session);
    editor.call("session/load", again).unwrap();
    editor.cancel(&session);
    assert_eq!(editor.turn(id).stop(), "cancelled");
    assert!(!lives(&sleep(302)));
}

#[test]
fn closing_a_session_answers_its_prompts_and_ends_its_commands() {
    let test = Test::new([bash(&sleep(303))]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let ids = [editor.prompts(&session, "go"), editor.prompts(&session, "wait")];
    editor.runs(&sleep(303));
    let begun = Instant::now();
    editor.call("session/close", json!({"sessionId": session})).unwrap();
    assert!(begun.elapsed() < SOON);
    assert!(!lives(&sleep(303)));
    for id in ids {
        assert_eq!(editor.turn(id).stop(), "cancelled");
    }
    assert_eq!(
        editor.fails("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})).0,
        -32002
    );
}

#[test]
fn a_sub_agent_is_stopped_with_its_turn() {
    let test = Test::minded(|request| delegates(request, &sleep(304))).full();
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "main task");
    editor.runs(&sleep(304));
    editor.cancel(&session);
    let turn = editor.turn(id);
    assert_eq!(turn.stop(), "cancelled");
    assert!(!lives(&sleep(304)));
    for call in turn.calls() {
        assert!(matches!(turn.statuses(call).last(), Some(&"completed" | &"failed")), "{call}");
    }
}

#[test]
fn stop_reaches_a_sub_agents_dialog() {
    let test = Test::minded(|request| delegates(request, "touch m")).full();
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "main task");
    let question = editor.question();
    editor.cancel(&session);
    let turn = editor.turn(id);
    assert_eq!(turn.stop(), "cancelled");
    assert!(editor.took_back(&question), "before the answer");
    for call in turn.calls() {
        assert!(matches!(turn.statuses(call).last(), Some(&"completed" | &"failed")), "{call}");
    }
    assert_eq!(test.read("m"), None);
}
