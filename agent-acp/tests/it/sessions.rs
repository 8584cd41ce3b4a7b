//! Sessions that outlive the server: listed, told again, gone on with, copied, deleted. Checks 121, 126.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::{Editor, Start};
use crate::model::{Answer, calls, says};

/// Another server over the same home.
fn again(editor: &Editor, answers: impl IntoIterator<Item = Answer>) -> Editor {
    let start = Start { home: Arc::clone(&editor.home), work: Arc::clone(&editor.work), ..Start::default() };
    let mut next = start.ready(answers);
    next.session.clone_from(&editor.session);
    next
}

fn end(editor: &mut Editor) {
    editor.hang_up();
    assert!(editor.ends_within(Duration::from_secs(3)));
}

fn open_params(editor: &Editor) -> Value {
    json!({"sessionId": editor.session, "cwd": editor.work.path(), "mcpServers": []})
}

fn told(editor: &Editor) -> Vec<(String, String)> {
    let kinds = ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update"];
    let updates = editor.updates("").into_iter();
    updates
        .filter(|update| kinds.iter().any(|kind| update["sessionUpdate"] == *kind))
        .map(|update| {
            let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
            let what = update["content"]["text"].as_str().or(update["title"].as_str()).or(update["status"].as_str());
            (kind, what.unwrap_or_default().to_owned())
        })
        .collect()
}

fn worked() -> Editor {
    let mut editor = Start::default().session([
        calls("Write", &json!({"path": "f.txt", "content": "one\n"})),
        says("Written."),
        says("Second answer."),
    ]);
    editor.prompt("write it");
    editor.prompt("again");
    editor
}

#[test]
fn a_session_is_told_again_and_goes_on() {
    let mut first = worked();
    end(&mut first);
    let mut editor = again(&first, [says("Third.")]);
    let params = open_params(&editor);
    let id = editor.start("session/load", params);
    // What comes right behind waits for it.
    let prompt = editor.start_prompt("more");
    let loaded = editor.answer(id);
    assert!(loaded["result"]["modes"].is_object(), "{loaded}");
    let pair = |kind: &str, what: &str| (kind.to_owned(), what.to_owned());
    assert_eq!(
        told(&editor),
        [
            pair("user_message_chunk", "write it"),
            pair("tool_call", "Write f.txt"),
            pair("tool_call_update", "completed"),
            pair("agent_message_chunk", "Written."),
            pair("user_message_chunk", "again"),
            pair("agent_message_chunk", "Second answer."),
        ]
    );
    let called = editor.updates("tool_call").remove(0);
    assert_eq!((&called["kind"], &called["content"][0]["newText"]), (&json!("edit"), &json!("one\n")));
    assert_eq!(called["toolCallId"], first.updates("tool_call")[0]["toolCallId"]);
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    let sent = editor.model.asked().last().unwrap()["messages"].to_string();
    assert!(sent.contains("write it") && sent.contains("Second answer."));
}

#[test]
fn a_session_is_resumed_without_being_told() {
    let mut first = worked();
    end(&mut first);
    let mut editor = again(&first, [says("Third.")]);
    let params = open_params(&editor);
    assert!(editor.call("session/resume", params)["result"].is_object());
    editor.wait(Duration::from_millis(200));
    assert_eq!(told(&editor), []);
    editor.prompt("more");
    assert!(editor.model.asked().last().unwrap()["messages"].to_string().contains("write it"));
}

#[test]
fn a_session_that_runs_is_not_replaced_by_loading_it() {
    let command = json!({"command": "sleep 300"});
    let mut editor = Start::default().args(["--permissions", "allow"]).session([calls("Bash", &command)]);
    let id = editor.start_prompt("go");
    editor.until("it runs", |message| message["params"]["update"]["status"] == "in_progress");
    let params = open_params(&editor);
    assert!(editor.call("session/load", params)["result"].is_object());
    editor.notify("session/cancel", json!({"sessionId": editor.session}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
}

#[test]
fn two_servers_do_not_write_one_session() {
    let first = worked();
    let mut second = again(&first, []);
    let params = open_params(&second);
    let answer = second.call("session/load", params.clone());
    assert_eq!(answer["error"]["data"]["errorKind"], "in_use", "{answer}");
    // A copy can be had.
    let copy = second.call("session/fork", params)["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, second.session);
    second.session = copy;
    second.prompt("more");
    assert!(second.model.asked().last().unwrap()["messages"].to_string().contains("write it"));
}

#[test]
fn sessions_never_prompted_can_be_loaded_and_are_not_listed() {
    let mut first = Start::default().session([]);
    end(&mut first);
    let mut editor = again(&first, [says("Hi.")]);
    assert_eq!(editor.call("session/list", json!({}))["result"]["sessions"], json!([]));
    let params = open_params(&editor);
    assert!(editor.call("session/load", params)["result"].is_object());
    assert_eq!(editor.prompt("go")["result"]["stopReason"], "end_turn");
}

#[test]
fn sessions_are_listed_in_pages_and_deleted() {
    let mut editor = Start::default().ready(std::iter::repeat_n(says("ok"), 60));
    for number in 0..60 {
        editor.open();
        editor.prompt(&format!("prompt {number}"));
    }
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = editor.call("session/list", params)["result"].clone();
        seen.extend(page["sessions"].as_array().unwrap().clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let mut ids: Vec<&str> = seen.iter().map(|info| info["sessionId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 60);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 60);
    assert!(seen.iter().any(|info| info["title"] == "prompt 7" && info["updatedAt"].is_string()));
    let cwd = editor.work.path().to_owned();
    assert_eq!(editor.call("session/list", json!({"cwd": "/nonexistent"}))["result"]["sessions"], json!([]));
    assert_eq!(editor.call("session/list", json!({"cwd": cwd}))["result"]["sessions"].as_array().unwrap().len(), 50);
    for _ in 0..2 {
        assert!(editor.call("session/delete", json!({"sessionId": editor.session}))["result"].is_object());
    }
    assert_eq!(editor.prompt("gone")["error"]["code"], -32002);
}

#[test]
fn check_121_sessions_do_not_count_each_others_calls() {
    let same = || calls("Bash", &json!({"command": "echo a"}));
    let mut editor = Start::default().args(["--permissions", "allow"]).ready([]);
    let sessions: Vec<String> = (0..2)
        .map(|_| {
            editor.open();
            editor.session.clone()
        })
        .collect();
    for session in sessions {
        editor.session = session;
        editor.model_says([same(), same(), says("ok")]);
        editor.prompt("go");
        assert!(!editor.told().contains("LOOP_DETECTED"));
    }
}

#[test]
fn further_directories_are_workspace() {
    let other = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(other.path().join("f"), "x").unwrap();
    let read = calls("Read", &json!({"path": other.path().join("f")}));
    let mut editor = Start::default().args(["--permissions", "auto", "--mode", "0007"]).ready([read, says("ok")]);
    let cwd = editor.work.path().to_owned();
    let params = json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": [other.path()]});
    let opened = editor.call("session/new", params);
    editor.session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    editor.prompt("go");
    assert_eq!(editor.states().last().unwrap(), "completed");
    assert!(editor.asked.is_empty());
}

#[test]
fn a_session_that_is_loaded_twice_at_once_is_one_session() {
    let mut first = worked();
    end(&mut first);
    let mut editor = again(&first, [says("Third.")]);
    let params = open_params(&editor);
    let ids = [editor.start("session/load", &params), editor.start("session/load", &params)];
    let prompt = editor.start_prompt("more");
    let mut waiting = vec![ids[0], ids[1], prompt];
    while !waiting.is_empty() {
        let answer =
            editor.until("an answer", |message| message.get("result").is_some() || message.get("error").is_some());
        assert!(answer["result"].is_object(), "{answer}");
        waiting.retain(|id| answer["id"] != *id);
    }
}
