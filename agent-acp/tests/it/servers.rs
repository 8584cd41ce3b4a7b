//! The client's own servers of tools: connected beside everything else, asked about, and ended with their session.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::editor::{Editor, Test, text_of, until};
use crate::model::{calls, says};

/// A server that does what it is told by its arguments.
const SERVER: &str = include_str!("../../../agent-core/tests/data/mcp_server.py");

fn server(test: &Test, name: &str, ways: &[&str]) -> Value {
    let script = test.root().join("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let args: Vec<Value> = std::iter::once(json!(script)).chain(ways.iter().map(|way| json!(way))).collect();
    json!({"name": name, "command": "python3", "args": args, "env": []})
}

/// Whether a server of this test runs.
fn runs(test: &Test) -> bool {
    let script = test.root().join("server.py").display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).any(|line| line.contains(&script))
}

fn open(editor: &mut Editor, test: &Test, servers: &[Value]) -> String {
    let new = editor.call("session/new", json!({"cwd": test.work(), "mcpServers": servers})).unwrap();
    new["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn its_tools_are_the_models_and_are_asked_about() {
    let test = Test::minded(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let tools = request["tools"].to_string();
        match last["role"].as_str() {
            Some("user") if tools.contains("mcp__own__echo") => calls("mcp__own__echo", &json!({"text": "again"})),
            Some("user") => says("not yet"),
            _ => says("done"),
        }
    });
    let mut editor = test.editor();
    let session = open(&mut editor, &test, &[server(&test, "own", &[])]);
    let mut question = None;
    editor.consent = None;
    until("the server's tools are there", || {
        let id = editor.prompts(&session, "go");
        let frame = editor.until("a question or an answer", |f| {
            f.from_agent && (f.message["id"] == id || f.message["method"] == "session/request_permission")
        });
        if frame.message["method"].is_string() {
            question = Some((id, frame.message.clone()));
        }
        question.is_some()
    });
    let (id, question) = question.unwrap();
    let asked = &question["params"]["toolCall"];
    assert_eq!((&asked["kind"], &asked["rawInput"]["text"]), (&json!("other"), &json!("again")), "{asked}");
    editor.choose(&question, "allow");
    let turn = editor.turn(id);
    assert_eq!((turn.said().as_str(), text_of(turn.call().1).as_str()), ("done", "again"));
}

#[test]
fn n41_a_server_that_is_broken_or_mute_holds_nothing_up_and_is_told() {
    let test = Test::new([says("x"), says("y")]).capable(json!({"session": {"notices": {}}}));
    let mut editor = test.editor();
    let begun = Instant::now();
    let nowhere = json!({"name": "nowhere", "command": "/no/such/program", "args": [], "env": []});
    let servers = [nowhere, server(&test, "junk", &["junk"]), server(&test, "mute", &["mute"])];
    let session = open(&mut editor, &test, &servers);
    assert_eq!(editor.prompt(&session, "go").said(), "x");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    until("the broken ones are told", || {
        editor.settle();
        test.model.add([says("z")]);
        editor.prompt(&session, "more");
        let told: Vec<String> = editor
            .frames
            .iter()
            .filter_map(|f| f.update())
            .filter(|u| u["sessionUpdate"] == "notice")
            .map(Value::to_string)
            .collect();
        ["nowhere", "junk"].iter().all(|name| told.iter().any(|notice| notice.contains(name)))
    });
}

#[test]
fn a_server_ends_with_its_session_and_with_the_agent() {
    for closes in [true, false] {
        let test = Test::new([]);
        let mut editor = test.editor();
        let session = open(&mut editor, &test, &[server(&test, "own", &[])]);
        editor.until_true("the server runs", || runs(&test));
        if closes {
            editor.call("session/close", json!({"sessionId": session})).unwrap();
        } else {
            editor.hangs_up();
            editor.ended();
        }
        until("the end of the server", || !runs(&test));
    }
}
