//! What a command prints while it runs: live, bounded, and in a terminal where the client has one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::{Test, text_of};
use crate::model::{bash, last_content, says};

/// Seconds of printing, at most so many updates a second.
const SECONDS: usize = 2;
const A_SECOND: usize = 5;

#[test]
fn n25_n26_n27_output_is_live_and_bounded() {
    let flood = format!("end=$((SECONDS+{SECONDS})); while [ $SECONDS -lt $end ]; do seq 100000 101000; done");
    for capabilities in [json!({}), json!({"_meta": {"terminal_output": true}})] {
        let test = Test::new([bash(&flood), says("x")]).capable(capabilities.clone());
        let (mut editor, session) = test.session();
        editor.consent = Some("allow");
        let turn = editor.prompt(&session, "go");
        let own: Vec<_> = turn
            .frames
            .iter()
            .filter(|f| f.update().is_some_and(|u| u["sessionUpdate"] == "tool_call_update"))
            .collect();
        let started = own.iter().position(|f| f.update().unwrap()["status"] == "in_progress").unwrap();
        let live = &own[started + 1..own.len() - 1];
        assert!(live.len() >= 2, "#25: {} updates, {capabilities}", live.len());
        let took = own[own.len() - 1].at - own[started].at;
        let most = (took.as_secs_f64() * A_SECOND as f64).ceil() as usize + 1;
        assert!(live.len() <= most, "#26: {} updates in {took:?}, {capabilities}", live.len());
        let largest = turn.frames.iter().filter(|f| f.from_agent).map(|f| f.bytes).max().unwrap();
        assert!(largest < 1 << 16, "#27: a message of {largest} bytes, {capabilities}");
    }
}

#[test]
fn output_comes_before_the_command_ends() {
    let test = Test::new([bash("echo early; sleep 1; echo late"), says("x")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    let live = editor.until("the output", |f| {
        f.update().is_some_and(|u| u["sessionUpdate"] == "tool_call_update" && text_of(u).contains("early"))
    });
    let turn = editor.turn(id);
    let (_, end) = turn.call();
    assert_eq!(text_of(end), "early\nlate\n");
    let ended = turn.frames.iter().find(|f| f.update().is_some_and(|u| u["status"] == "completed")).unwrap();
    assert!(ended.at - live.at > Duration::from_millis(400), "it was live");
}

fn terminal_texts(updates: &[Value]) -> String {
    updates.iter().filter_map(|u| u["_meta"]["terminal_output_delta"]["data"].as_str()).collect()
}

#[test]
fn a_client_with_terminals_is_told_as_a_terminal() {
    let test = Test::new([bash("echo a; sleep 0.6; echo b; exit 3"), says("x")])
        .capable(json!({"_meta": {"terminal_output": true}}));
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    let (call, end) = turn.call();
    let id = &call["_meta"]["terminal_info"]["terminal_id"];
    assert!(id.is_string());
    assert_eq!(call["_meta"]["terminal_info"]["cwd"], json!(test.work()));
    assert_eq!(call["content"], json!([{"type": "terminal", "terminalId": id}]));
    let printed = terminal_texts(&turn.updates);
    assert!(printed.starts_with("a\r\nb\r\n"), "{printed:?}");
    assert_eq!(printed.matches("a\r\n").count(), 1, "nothing twice: {printed:?}");
    let exit = &end["_meta"]["terminal_exit"];
    assert_eq!((&exit["terminal_id"], &exit["exit_code"]), (id, &json!(3)));
    assert_eq!(end["content"], json!([{"type": "terminal", "terminalId": id}]));
    assert_eq!(end["status"], "completed");
}

#[test]
fn a_client_without_terminals_is_told_in_words() {
    let test = Test::new([bash("echo a; exit 3"), says("x")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    assert!(turn.updates.iter().all(|u| u.get("_meta").is_none()), "{:?}", turn.updates);
    let (_, end) = turn.call();
    assert_eq!(end["rawOutput"]["exitCode"], 3, "{end}");
}

#[test]
fn n11_commands_do_not_eat_the_protocol() {
    let test = Test::new([bash("cat; read x; echo $?"), says("x"), says("alive")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    editor.prompt(&session, "go");
    assert_eq!(last_content(&test.model.asked()[1]), "1\n");
    assert_eq!(editor.prompt(&session, "hi").said(), "alive");
}

#[test]
fn n121_loops_are_counted_by_session() {
    let test = Test::minded(|request| {
        let results = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
        if results < 2 { bash("echo same") } else { says("x") }
    });
    let mut editor = test.editor();
    editor.consent = Some("allow");
    for session in [editor.begin(), editor.begin()] {
        let turn = editor.prompt(&session, "go");
        assert!(turn.calls().iter().all(|call| text_of(turn.end_of(call)) == "same\n"));
    }
    assert!(test.model.asked().iter().all(|asked| !asked["messages"].to_string().contains("[LOOP_DETECTED: ")));
}
