//! What a person says: text, files, pictures, commands; and what comes back besides words. Check 138.

use serde_json::{Value, json};

use crate::editor::Start;
use crate::model::{Answer, says};

#[test]
fn check_138_words_come_in_pieces_before_the_answer() {
    let mut editor = Start::default().session([says("One two three four.")]);
    let answer = editor.prompt("go");
    assert_eq!(editor.said(), "One two three four.");
    let ids: Vec<Value> =
        editor.updates("agent_message_chunk").iter().map(|chunk| chunk["messageId"].clone()).collect();
    assert!(ids.iter().all(|id| id.is_string() && *id == ids[0]));
    assert_eq!(editor.log.last(), Some(&answer), "nothing comes behind it");
    assert_eq!(answer["result"]["usage"]["inputTokens"], 11);
    let usage = editor.updates("usage_update").remove(0);
    assert!(usage["used"].as_u64().unwrap() > 0 && usage["size"].as_u64().unwrap() > 1000, "{usage}");
    assert_eq!(editor.updates("session_info_update")[0]["title"], "go");
}

#[test]
fn blocks_reach_the_model() {
    let mut editor = Start::default().session([says("Seen.")]);
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
        {"type": "resource", "resource": {"uri": "file:///w/b.rs", "text": "fn b() {}"}},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]);
    editor.call("session/prompt", json!({"sessionId": editor.session, "prompt": prompt}));
    let sent = editor.model.asked().last().unwrap()["messages"].to_string();
    for part in ["look at [a.rs](/w/a.rs)", "fn b() {}", "file:///w/b.rs", "a picture (image/png)"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
    for wrong in
        [json!([]), json!([{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]), json!([{"type": "odd"}])]
    {
        let answer = editor.call("session/prompt", json!({"sessionId": editor.session, "prompt": wrong}));
        assert_eq!(answer["error"]["code"], -32602, "{wrong}");
    }
}

#[test]
fn commands_are_answered_without_the_model() {
    let mut editor = Start::default().session([says("A prompt.")]);
    let menu = editor.update("available_commands_update");
    let names: Vec<&str> =
        menu["availableCommands"].as_array().unwrap().iter().map(|command| command["name"].as_str().unwrap()).collect();
    for (name, there) in [("compact", true), ("cost", true), ("rewind", true), ("quit", false), ("resume", false)] {
        assert_eq!(names.contains(&name), there, "{name}");
    }
    for (command, part) in [
        ("/cost", "cost: "),
        ("/context", "tokens"),
        ("/help", "/rewind"),
        ("/tools", "Bash"),
        ("/mode", "mode ask, bashMode 0467"),
        ("/skills", "there are no skills"),
        ("/tasks", "no background commands"),
        ("/rewind", "nothing to go back to"),
        ("/model", "openai/m"),
    ] {
        let before = editor.said().len();
        assert_eq!(editor.prompt(command)["result"]["stopReason"], "end_turn");
        assert!(editor.said()[before..].contains(part), "{command}: {}", &editor.said()[before..]);
    }
    assert!(editor.model.asked().iter().all(Value::is_null));
    for line in ["/no-such-command", "/quit"] {
        editor.prompt(line);
        assert!(editor.model.asked().last().unwrap()["messages"].to_string().contains(line), "{line} is a prompt");
    }
}

#[test]
fn what_a_server_says_reaches_the_person() {
    let error = |text: &str| format!(r#"{{"error":{{"message":"{text}"}}}}"#);
    for (status, text, code, kind) in [
        ("401 Unauthorized", "bad key", -32000, "auth"),
        ("404 Not Found", "no such model", -32603, "not_found"),
        ("400 Bad Request", "it is wrong", -32603, "invalid"),
    ] {
        let mut editor = Start::default().session([Answer::Http(status, "application/json", error(text))]);
        let answer = editor.prompt("go");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(text), "{answer}");
        assert_eq!(answer["error"]["data"]["errorKind"], kind);
        assert_eq!(editor.prompt("more")["result"]["stopReason"], "end_turn");
    }
}

#[test]
fn notices_go_to_whoever_shows_them() {
    for advertised in [true, false] {
        let caps = if advertised { json!({"session": {"notices": {}}}) } else { json!({}) };
        let start = Start::default().caps(caps).settings("noSuchKey: 1\n");
        let mut editor = start.session([says("Done.")]);
        editor.prompt("go");
        let notices = editor.updates("notice");
        assert_eq!(notices.iter().any(|notice| notice["title"].to_string().contains("noSuchKey")), advertised);
    }
}

#[test]
fn a_client_can_word_the_system_prompt() {
    for (mode, ours) in [("append", true), ("override", false)] {
        let mut editor = Start::default().ready([says("Done.")]);
        let prompt = json!({"mode": mode, "content": [{"type": "text", "text": "Speak like a pirate."}]});
        let cwd = editor.work.path().to_owned();
        let opened = editor.call("session/new", json!({"cwd": cwd, "mcpServers": [], "systemPrompt": prompt}));
        editor.session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
        editor.prompt("go");
        let system = editor.model.asked().last().unwrap()["messages"][0]["content"].to_string();
        assert!(system.contains("Speak like a pirate."));
        assert_eq!(system.contains("coding agent"), ours, "{mode}: {system}");
    }
}
