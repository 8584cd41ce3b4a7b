//! Whole conversations, line by line as they go over the pipes: `tests/data/frames/*.jsonl`, `>` from the client and `<`
//! from the agent. `INSTA_UPDATE=always` writes them anew; read them as somebody who writes a client would.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::editor::{Editor, Test};
use crate::model::{Answer, bash, calls};

/// What makes one conversation: how the model answers, and what the client does.
struct Conversation {
    name: &'static str,
    answers: Vec<Answer>,
    full: bool,
    talk: fn(&mut Editor, &Test),
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/frames/{name}.jsonl"))
}

/// The lines with all that is another in each run replaced, and what other files say at length shortened.
fn normal(editor: &Editor, test: &Test, sessions: &[String]) -> String {
    let root = test.root().display().to_string();
    let mut lines = String::new();
    for frame in &editor.frames {
        let mut message = frame.message.clone();
        shorten(&mut message);
        let mut line = message.to_string().replace(&root, "/home/me").replace(&test.model.url, "http://model/v1");
        for (at, session) in sessions.iter().enumerate() {
            line = line.replace(session, &format!("session-{}", at + 1));
        }
        let from = if frame.from_agent { '<' } else { '>' };
        lines.push_str(&format!("{from} {line}\n"));
    }
    lines
}

/// Without times and versions; of a menu only how it begins.
fn shorten(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "elapsedMs" => *field = json!(0),
                    "updatedAt" => *field = json!("2026-12-01T00:00:00Z"),
                    "version" => *field = json!("0.0.0"),
                    "availableCommands" => field.as_array_mut().unwrap().truncate(2),
                    _ => shorten(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// Words in one piece: how many pieces others come in is a matter of time.
fn words(text: &str) -> Answer {
    Answer::Says(vec![text.to_owned()])
}

fn check(Conversation { name, answers, full, talk }: Conversation) {
    let mut test = Test::new(answers).settings("editTools: true\n").file("notes.txt", "one\ntwo\n");
    if full {
        test = test.full();
    }
    let mut editor = test.silent();
    talk(&mut editor, &test);
    editor.settle();
    let new = editor.frames.iter().filter_map(|f| f.message["result"]["sessionId"].as_str().map(str::to_owned));
    let came = normal(&editor, &test, &new.collect::<Vec<_>>());
    let file = file(name);
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&file, &came).unwrap();
    }
    let expect = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = came.lines().zip(expect.lines()).position(|(came, expect)| came != expect);
    let at = differs.unwrap_or_else(|| came.lines().count().min(expect.lines().count()));
    let line = |text: &str| text.lines().nth(at).unwrap_or("(nothing more)").to_owned();
    assert!(came == expect, "{name}, line {}:\ncame   {}\nexpect {}", at + 1, line(&came), line(&expect));
}

fn hello(editor: &mut Editor, capabilities: &Value) {
    editor.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).unwrap();
}

#[test]
fn a_command_is_asked_about_and_a_file_is_changed() {
    let edit = calls("edit_file", &json!({"path": "notes.txt", "edits": [{"old": "two", "new": "2"}]}));
    check(Conversation {
        name: "work",
        answers: vec![words("Hello."), bash("echo hi; exit 3"), edit, words("Done.")],
        full: false,
        talk: |editor, _| {
            hello(editor, &json!({}));
            let session = editor.begin();
            editor.prompt(&session, "good morning");
            let id = editor.prompts(&session, "count in digits");
            for _ in 0..2 {
                let question = editor.question();
                editor.choose(&question, "allow");
            }
            editor.turn(id);
        },
    });
}

#[test]
fn a_question_is_refused_and_another_is_taken_back() {
    check(Conversation {
        name: "refuse-and-stop",
        answers: vec![bash("rm notes.txt"), words("As you like."), bash("rm notes.txt")],
        full: false,
        talk: |editor, _| {
            hello(editor, &json!({}));
            let session = editor.begin();
            let id = editor.prompts(&session, "clean up");
            let question = editor.question();
            editor.choose(&question, "reject");
            editor.turn(id);
            let id = editor.prompts(&session, "please");
            let question = editor.question();
            editor.cancel(&session);
            editor.turn(id);
            assert!(editor.took_back(&question));
        },
    });
}

#[test]
fn a_session_is_listed_loaded_and_goes_on() {
    check(Conversation {
        name: "load",
        answers: vec![calls("read_file", &json!({"path": "notes.txt"})), words("Two lines."), words("Again.")],
        full: false,
        talk: |editor, test| {
            hello(editor, &json!({}));
            let session = editor.begin();
            editor.prompt(&session, "what is in notes.txt");
            editor.call("session/close", json!({"sessionId": session})).unwrap();
            editor.call("session/list", json!({"cwd": test.work()})).unwrap();
            let again = editor.again(&session);
            editor.call("session/load", again).unwrap();
            editor.settle();
            editor.prompt(&session, "and now?");
            editor.call("session/delete", json!({"sessionId": session})).unwrap();
        },
    });
}

#[test]
fn a_client_that_knows_much_is_told_much() {
    let todos = json!({"todos": [{"content": "look", "status": "completed"}, {"content": "do", "status": "pending"}]});
    check(Conversation {
        name: "capable",
        answers: vec![calls("TodoWrite", &todos), calls("Bash", &json!({"command": "echo hi"})), words("Done.")],
        full: true,
        talk: |editor, _| {
            hello(
                editor,
                &json!({
                    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
                    "subagents": {},
                    "auth": {"terminal": true},
                    "_meta": {"terminal_output": true},
                }),
            );
            let session = editor.begin();
            let set = |value: &str| json!({"sessionId": session, "configId": "mode", "value": value});
            editor.call("session/set_config_option", set("auto")).unwrap();
            editor.update("current_mode_update");
            editor.prompt(&session, "go");
            editor.prompt(&session, "/cost");
        },
    });
}
