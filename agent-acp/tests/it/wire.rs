//! JSON-RPC and the first words: checks 123 to 129.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::Start;
use crate::model::says;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

#[test]
fn checks_123_124_the_version_is_ours() {
    for asked in [1, 0, 2, 99, 65535] {
        let mut editor = Start::default().silent([]);
        let answer = editor.call("initialize", json!({"protocolVersion": asked, "clientCapabilities": {}}));
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], 1, "{asked}");
        assert_eq!(result["authMethods"], json!([]));
        assert_eq!(result["agentInfo"]["name"], "agent");
        assert_eq!(result["_meta"]["steering"]["supported"], true);
        for capability in ["list", "resume", "close", "delete", "fork", "additionalDirectories", "systemPrompt"] {
            assert!(result["agentCapabilities"]["sessionCapabilities"][capability].is_object(), "{capability}");
        }
    }
}

#[test]
fn a_terminal_is_offered_to_whoever_has_one() {
    let mut editor = Start::default().caps(json!({"auth": {"terminal": true}})).silent([]);
    let method = editor.hello()["result"]["authMethods"][0].clone();
    assert_eq!((&method["type"], &method["args"]), (&json!("terminal"), &json!(["--setup"])));
}

#[test]
fn what_is_wrong_is_answered_and_nothing_is_lost() {
    let mut editor = Start::default().silent([says("Still here.")]);
    assert_eq!(code(&editor.call("session/new", json!({"cwd": "/", "mcpServers": []}))), -32600);
    editor.hello();
    let cwd = editor.work.path().to_owned();
    for (method, params, expect) in [
        ("no/such", json!({}), -32601),
        ("_vendor/thing", json!({}), -32601),
        ("session/new", json!({"cwd": 5, "mcpServers": "x"}), -32602),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": "/no/such/directory", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": ["x"]}), -32602),
        ("session/prompt", json!({"sessionId": "x"}), -32602),
        ("session/prompt", json!({"sessionId": "nope", "prompt": [{"type": "text", "text": "x"}]}), -32002),
        ("session/load", json!({"sessionId": "../../etc/passwd", "cwd": cwd, "mcpServers": []}), -32002),
        ("session/load", json!({"sessionId": "/etc/passwd", "cwd": cwd, "mcpServers": []}), -32002),
        ("session/load", json!({"sessionId": "", "cwd": cwd, "mcpServers": []}), -32002),
        ("session/load", json!({"sessionId": "x\u{0}y", "cwd": cwd, "mcpServers": []}), -32002),
        ("session/close", json!({"sessionId": "nope"}), -32002),
        ("session/set_mode", json!({"sessionId": "nope", "modeId": "ask"}), -32002),
        ("session/list", json!({"cursor": "garbage!"}), -32602),
        ("authenticate", json!({"methodId": "x"}), -32602),
    ] {
        let answer = editor.call(method, params.clone());
        assert_eq!(code(&answer), expect, "{method} {params} {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{answer}");
        assert!(answer["error"]["data"].get("json").is_none(), "parameters are not echoed: {answer}");
    }
    editor.raw("{this is no json\n\n42\n\"x\"\n{\"jsonrpc\":\"2.0\",\"id\":777,\"result\":{}}\n");
    editor.notify("no/such_notification", json!({}));
    editor.notify("session/cancel", json!({"sessionId": "nope"}));
    editor.notify("$/cancel_request", json!({"requestId": 4242}));
    editor.until("a parse error", |message| message["error"]["code"] == -32700);
    editor.open();
    assert_eq!(editor.prompt("hi")["result"]["stopReason"], "end_turn");
    assert_eq!(editor.said(), "Still here.");
}

#[test]
fn ids_come_back_as_they_were() {
    let mut editor = Start::default().ready([]);
    for id in [json!("text"), json!("x".repeat(300)), json!(1_i64 << 40), json!(null)] {
        editor.send(&json!({"jsonrpc": "2.0", "id": id, "method": "no/such"}));
        editor.until("its id", |message| message["id"] == id && message.get("error").is_some());
    }
}

#[test]
fn check_126_and_139_sessions_differ_and_are_told_of_first() {
    let mut editor = Start::default().ready([]);
    let first = editor.open()["result"]["sessionId"].clone();
    let second = editor.open()["result"]["sessionId"].clone();
    assert_ne!(first, second);
    editor.wait(Duration::from_millis(300));
    for session in [first, second] {
        let told = |message: &Value| message["params"]["sessionId"] == session;
        let answered = |message: &Value| message["result"]["sessionId"] == session;
        let update = editor.log.iter().position(told).unwrap();
        assert!(update > editor.log.iter().position(answered).unwrap());
        assert_eq!(editor.log[update]["params"]["update"]["sessionUpdate"], "available_commands_update");
    }
}

#[test]
fn without_a_model_a_session_says_what_to_do() {
    let start = Start { key: false, ..Start::default() };
    let mut editor = start.ready([]);
    let answer = editor.open();
    assert_eq!(code(&answer), -32000, "{answer}");
    assert_eq!(answer["error"]["data"]["errorKind"], "no_model");
    assert!(answer["error"]["message"].as_str().unwrap().contains("OPENAI_API_KEY"), "{answer}");
}

#[test]
fn a_model_is_set_up_at_a_terminal_and_found_by_sessions() {
    let home = tempfile::tempdir().unwrap();
    let set_up = |typed: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-acp"));
        command.arg("--setup").current_dir(home.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("AGENT_HOME", home.path()).env("AGENT_NO_DISCOVERY", "1");
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (typed, code, part) in [
        ("", 2, "nothing was typed"),
        ("nobody\n", 2, "there is no provider nobody"),
        ("openai\n\n", 2, "that is no key"),
        ("openai\nsk-test 1\n", 2, "that is no key"),
        ("openai\nsk-test-1\n", 0, "The key is in"),
        ("openai\nsk-test-2\n", 0, "There is a model already: openai/"),
    ] {
        let (got, told) = set_up(typed);
        assert!(got == Some(code) && told.contains(part), "{typed:?}: {got:?} {told}");
        assert!(!told.contains("sk-test"), "{told}");
    }
    let key = home.path().join("keys/openai");
    assert_eq!(std::fs::read_to_string(&key).unwrap(), "sk-test-1");
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions()) & 0o777, 0o600);
}
