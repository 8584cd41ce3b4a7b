//! The beginning: what the server says of itself, what opens a session, and what it says of messages that are wrong.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::editor::Test;
use crate::model::says;

#[test]
fn n123_n124_version_1_is_answered_whatever_was_asked_for() {
    for version in [1, 99, 0] {
        let test = Test::new([]);
        let mut editor = test.silent();
        let answer = editor.call("initialize", json!({"protocolVersion": version})).unwrap();
        assert_eq!(answer["protocolVersion"], 1, "{version}");
        assert_eq!(answer["authMethods"], json!([]));
        assert_eq!(answer["agentInfo"]["name"], "agent");
        let can = &answer["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(can["promptCapabilities"]["image"], true);
        assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
        assert_ne!(can["promptCapabilities"]["audio"], true);
        for name in ["list", "resume", "close", "delete", "fork", "additionalDirectories", "systemPrompt"] {
            assert!(can["sessionCapabilities"][name].is_object(), "{name} in {can}");
        }
        assert!(test.stores().is_empty());
    }
}

#[test]
fn pictures_are_offered_where_the_model_is_known_to_see() {
    let told = "models: {mine: {sees: true}}\n";
    for (model, settings, sees) in [("gpt-5.5", "", true), ("mine", "", false), ("mine", told, true)] {
        let test = Test::new([]).args(["--model", model]).settings(settings);
        let answer = test.silent().call("initialize", json!({"protocolVersion": 1})).unwrap();
        assert_eq!(answer["agentCapabilities"]["promptCapabilities"]["image"], sees, "{model} {settings}");
    }
}

#[test]
fn n40_n41_the_beginning_waits_for_no_model() {
    // A server that takes connections and says nothing: neither its models nor an answer.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let test = Test::new([]).env("OPENAI_BASE_URL", format!("http://{}/v1", dead.local_addr().unwrap()));
    let begun = Instant::now();
    let (mut editor, session) = test.session();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let id = editor.prompts(&session, "hi");
    editor.cancel(&session);
    assert_eq!(editor.turn(id).stop(), "cancelled");
}

#[test]
fn a_terminal_login_is_offered_to_editors_that_have_terminals() {
    for (capabilities, offered) in [
        (json!({}), false),
        (json!({"auth": {"terminal": true}}), true),
        (json!({"_meta": {"terminal-auth": true}}), true),
        (json!({"_meta": {"terminal-auth": false}}), false),
    ] {
        let mut editor = Test::new([]).silent();
        let hello = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let answer = editor.call("initialize", hello).unwrap();
        let ways = answer["authMethods"].as_array().unwrap();
        assert_eq!(!ways.is_empty(), offered, "{capabilities}");
        assert!(ways.iter().all(|way| way["type"] == "terminal" && way["args"] == json!(["--setup"])), "{ways:?}");
    }
}

#[test]
fn n126_n139_new_sessions_have_ids_of_their_own_and_are_answered_before_their_updates() {
    let test = Test::new([]);
    let mut editor = test.editor();
    let (one, other) = (editor.begin(), editor.begin());
    assert_ne!(one, other);
    for session in [one, other] {
        let answer = editor.frames.iter().position(|f| f.from_agent && f.message["result"]["sessionId"] == *session);
        let update = editor.frames.iter().position(|f| f.message["params"]["sessionId"] == *session);
        assert!(answer.unwrap() < update.unwrap(), "#19, #20");
    }
}

#[test]
fn a_session_that_was_never_prompted_can_be_loaded() {
    let test = Test::new([says("hello")]);
    let (editor, session) = test.session();
    editor.end();
    let mut editor = test.editor();
    let again = editor.again(&session);
    editor.call("session/load", again).unwrap();
    assert_eq!(editor.prompt(&session, "hi").said(), "hello");
}

#[test]
fn requests_that_are_wrong_have_their_codes() {
    let test = Test::new([says("alive")]);
    let (mut editor, session) = test.session();
    let (work, missing) = (test.work(), test.work().join("missing"));
    let text = json!([{"type": "text", "text": "hi"}]);
    for (row, method, params, code) in [
        ("127 relative cwd", "session/new", json!({"cwd": "work", "mcpServers": []}), -32602),
        ("127 no directory", "session/new", json!({"cwd": missing, "mcpServers": []}), -32602),
        ("no cwd", "session/new", json!({"mcpServers": []}), -32602),
        ("cwd is a number", "session/new", json!({"cwd": 5, "mcpServers": []}), -32602),
        ("servers are no list", "session/new", json!({"cwd": work, "mcpServers": 7}), -32602),
        (
            "relative further directory",
            "session/new",
            json!({"cwd": work, "mcpServers": [], "additionalDirectories": ["x"]}),
            -32602,
        ),
        ("128", "session/nonsense", json!({}), -32601),
        ("128 extension", "_own/nonsense", json!({}), -32601),
        ("129", "session/prompt", json!({"sessionId": "nope", "prompt": text}), -32002),
        ("no session", "session/prompt", json!({"prompt": text}), -32602),
        ("no prompt", "session/prompt", json!({"sessionId": session}), -32602),
        ("empty prompt", "session/prompt", json!({"sessionId": session, "prompt": []}), -32602),
        ("load unknown", "session/load", json!({"sessionId": "nope", "cwd": work, "mcpServers": []}), -32002),
        ("resume unknown", "session/resume", json!({"sessionId": "nope", "cwd": work}), -32002),
        ("fork unknown", "session/fork", json!({"sessionId": "nope", "cwd": work}), -32002),
        ("load a path", "session/load", json!({"sessionId": "../../x", "cwd": work, "mcpServers": []}), -32002),
        ("load nothing", "session/load", json!({"sessionId": "", "cwd": work, "mcpServers": []}), -32002),
        ("load relative", "session/load", json!({"sessionId": session, "cwd": "x", "mcpServers": []}), -32602),
        ("close unknown", "session/close", json!({"sessionId": "nope"}), -32002),
        ("mode of unknown", "session/set_mode", json!({"sessionId": "nope", "modeId": "ask"}), -32002),
        ("unknown mode", "session/set_mode", json!({"sessionId": session, "modeId": "yolo"}), -32602),
        (
            "unknown option",
            "session/set_config_option",
            json!({"sessionId": session, "configId": "x", "value": "y"}),
            -32602,
        ),
        (
            "unknown value",
            "session/set_config_option",
            json!({"sessionId": session, "configId": "mode", "value": "y"}),
            -32602,
        ),
        (
            "unknown model",
            "session/set_config_option",
            json!({"sessionId": session, "configId": "model", "value": "openai/nope"}),
            -32602,
        ),
        (
            "a boolean that was not offered",
            "session/set_config_option",
            json!({"sessionId": session, "configId": "compact", "type": "boolean", "value": true}),
            -32602,
        ),
        ("cursor", "session/list", json!({"cursor": "garbage"}), -32602),
        ("authenticate", "authenticate", json!({"methodId": "x"}), -32602),
    ] {
        let (came, error) = editor.fails(method, params);
        assert_eq!(came, code, "{row}: {error}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{row}");
    }
    let (_, error) = editor.fails("session/prompt", json!({"sessionId": "nope", "prompt": text}));
    assert_eq!(error["data"]["sessionId"], "nope");
    assert_eq!(editor.prompt(&session, "hi").said(), "alive", "129: the process lives");
}

#[test]
fn lines_that_are_no_messages_are_told_and_what_follows_is_read() {
    let test = Test::new([says("alive")]);
    let (mut editor, session) = test.session();
    for (line, code) in [
        ("{broken", Some(-32700)),
        ("\"text\"", Some(-32600)),
        ("[]", Some(-32600)),
        (r#"{"jsonrpc":"2.0","id":"a"}"#, Some(-32600)),
        ("", None),
        ("   ", None),
        (r#"{"jsonrpc":"2.0","method":"nonsense"}"#, None),
        (r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nope"}}"#, None),
        (r#"{"jsonrpc":"2.0","method":"session/cancel","params":7}"#, None),
        (r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#, None),
    ] {
        let from = editor.frames.len();
        editor.line(line);
        match code {
            Some(code) => {
                let frame = editor.until_from(from, line, |f| f.from_agent);
                assert_eq!(frame.message["error"]["code"], code, "{line}");
            }
            None => editor.hears_nothing(),
        }
    }
    assert_eq!(editor.prompt(&session, "hi").said(), "alive");
}

#[test]
fn text_that_is_no_unicode_is_refused_under_its_id() {
    let test = Test::new([says("alive")]);
    let (mut editor, session) = test.session();
    let block = r#"{"type":"text","text":"\ud800"}"#;
    editor.line(&format!(
        r#"{{"jsonrpc":"2.0","id":"odd","method":"session/prompt","params":{{"sessionId":"{session}","prompt":[{block}]}}}}"#
    ));
    let frame = editor.until("an answer", |f| f.from_agent && f.message["id"] == "odd");
    assert_eq!(frame.message["error"]["code"], -32602);
    assert_eq!(editor.prompt(&session, "hi").said(), "alive");
}

#[test]
fn ids_come_back_as_they_were() {
    let mut editor = Test::new([]).editor();
    for id in [json!("a text"), json!(-7), json!(9_007_199_254_740_993_u64)] {
        editor.send(&json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}}));
        editor.until(&id.to_string(), |f| f.from_agent && f.message["id"] == id && f.message["result"].is_object());
    }
}

#[test]
fn nothing_is_done_before_initialize() {
    let test = Test::new([]);
    let mut editor = test.silent();
    for method in ["session/new", "session/list", "nonsense", "session/prompt"] {
        let (code, _) = editor.fails(method, json!({"cwd": test.work(), "mcpServers": []}));
        assert_eq!(code, -32600, "{method}");
    }
    editor.call("initialize", json!({"protocolVersion": 1})).unwrap();
    editor.begin();
}

#[test]
fn without_a_key_a_session_says_how_to_get_one() {
    let test = Test::new([]).unset("OPENAI_API_KEY").unset("OPENAI_BASE_URL");
    let mut editor = test.editor();
    let (code, error) = editor.fails("session/new", json!({"cwd": test.work(), "mcpServers": []}));
    assert_eq!(code, -32000, "{error}");
    assert!(error["message"].as_str().unwrap().contains("OPENAI_API_KEY"), "{error}");
    assert_eq!(error["data"]["errorKind"], "no_model");
    assert!(test.stores().is_empty(), "no session is left behind");
}

#[test]
fn n46_a_key_that_comes_later_is_seen() {
    let test = Test::new([says("hello")]).unset("OPENAI_API_KEY").unset("OPENAI_BASE_URL");
    let mut editor = test.editor();
    editor.fails("session/new", json!({"cwd": test.work(), "mcpServers": []}));
    let url = test.model.url.clone();
    let test = test.settings(&format!("provider: openai\nbaseUrl: {url}\nmodel: m\napiKeyCommand: echo sk-test\n"));
    let session = editor.begin();
    assert_eq!(editor.prompt(&session, "hi").said(), "hello");
    drop(test);
}

#[test]
fn settings_that_are_wrong_are_told() {
    let test = Test::new([]).settings("toolset: [\n");
    let mut editor = test.editor();
    let (_, error) = editor.fails("session/new", json!({"cwd": test.work(), "mcpServers": []}));
    assert!(error["message"].as_str().unwrap().contains("config.yaml"), "{error}");
}

#[test]
fn nothing_but_the_protocol_is_on_stdout() {
    let test = Test::new([says("hello")]).settings("nonsense: 1\n");
    let (mut editor, session) = test.session();
    editor.prompt(&session, "hi");
    let told = editor.end();
    assert!(told.contains("nonsense"), "a warning that no client shows is on stderr: {told:?}");
}
