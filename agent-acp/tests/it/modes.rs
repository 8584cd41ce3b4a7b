//! Modes and options: what a person chooses, and that both ways of choosing agree. Check 140.

use serde_json::{Value, json};

use crate::editor::{Policy, Start};
use crate::model::{calls, says};

fn option(options: &Value, id: &str) -> Value {
    options.as_array().unwrap().iter().find(|option| option["id"] == id).cloned().unwrap_or_default()
}

fn values(option: &Value) -> Vec<String> {
    let all = option["options"].as_array().cloned().unwrap_or_default();
    all.iter().map(|value| value["value"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn check_140_a_session_begins_by_asking_whatever_the_settings_say() {
    for (settings, args, expect) in [
        ("permissions: allow\n", vec![], "ask"),
        ("", vec!["--permissions", "auto"], "auto"),
        ("permissions: ask\n", vec!["--permissions", "allow"], "allow"),
    ] {
        let mut start = Start::default().settings(settings);
        start.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut editor = start.ready([]);
        let opened = editor.open()["result"].clone();
        assert_eq!(opened["modes"]["currentModeId"], expect, "{settings} {args:?}");
        assert_eq!(option(&opened["configOptions"], "mode")["currentValue"], expect);
    }
}

#[test]
fn modes_are_those_of_the_toolset() {
    for (toolset, modes) in [("full", vec!["ask", "auto", "plan", "allow"]), ("lean", vec!["ask", "auto", "allow"])] {
        let mut editor = Start::toolset(toolset).ready([]);
        let opened = editor.open()["result"].clone();
        assert_eq!(values(&option(&opened["configOptions"], "mode")), modes);
        let wrong = json!({"sessionId": editor.session, "modeId": "no-such"});
        assert_eq!(editor.call("session/set_mode", wrong)["error"]["code"], -32602);
    }
}

#[test]
fn both_ways_of_choosing_a_mode_agree() {
    let mut editor = Start::default().session([calls("Bash", &json!({"command": "touch m"})), says("Done.")]);
    let session = editor.session.clone();
    let set = json!({"sessionId": session, "configId": "mode", "value": "auto"});
    let all = editor.call("session/set_config_option", set)["result"]["configOptions"].clone();
    assert_eq!(option(&all, "mode")["currentValue"], "auto");
    assert_eq!(editor.update("current_mode_update")["currentModeId"], "auto");
    editor.prompt("go");
    assert!(editor.path("m").exists() && editor.log.iter().all(|m| m["method"] != "session/request_permission"));
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "ask"}));
    let update = editor.update("config_option_update");
    assert_eq!(option(&update["configOptions"], "mode")["currentValue"], "ask");
}

#[test]
fn a_plan_comes_first_and_is_agreed_to() {
    let mut editor = Start::default().session([]);
    let session = editor.session.clone();
    let draft = editor.home.path().join("sessions");
    let draft = std::fs::read_dir(draft).unwrap().flatten().next().unwrap().path().join(&session).join("plan.draft");
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    editor.model_says([
        calls("Bash", &json!({"command": "touch early"})),
        calls("Write", &json!({"path": draft, "content": "# Plan\n1. touch it\n"})),
        calls("PlanConfirm", &json!({})),
        says("A summary of what was planned, long enough to be one."),
        calls("Bash", &json!({"command": "touch late"})),
        says("Done."),
    ]);
    editor.policy = Policy::Hold;
    let id = editor.start_prompt("do it");
    let asked = editor.until("the question", |message| message["method"] == "session/request_permission");
    assert!(asked["params"]["toolCall"]["content"].to_string().contains("1. touch it"), "{asked}");
    assert_eq!(asked["params"]["toolCall"]["kind"], "switch_mode");
    assert!(!editor.path("early").exists());
    editor.decide(Policy::Allow);
    editor.policy = Policy::Allow;
    editor.answer(id);
    assert!(editor.path("late").exists());
    assert_eq!(editor.updates("current_mode_update").last().unwrap()["currentModeId"], "ask");
    assert!(editor.model.asked()[0]["messages"].to_string().contains("wants a plan first"));
}

#[test]
fn a_plan_that_is_not_agreed_to_changes_nothing() {
    let mut editor = Start::default().session([calls("Bash", &json!({"command": "touch m"})), says("No.")]);
    editor.call("session/set_mode", json!({"sessionId": editor.session, "modeId": "plan"}));
    editor.prompt("go");
    assert!(!editor.path("m").exists() && editor.asked.is_empty());
    assert!(editor.told().contains("wants a plan first"), "{}", editor.told());
}

#[test]
fn options_are_those_of_the_model_and_the_client() {
    let boolean = json!({"session": {"configOptions": {"boolean": {}}}});
    for (model, caps, effort, compact) in
        [("m", json!({}), false, false), ("gpt-5.5", json!({}), true, false), ("m", boolean.clone(), false, true)]
    {
        let mut start = Start::default().caps(caps);
        start.args = vec!["--set".into(), format!("model={model}")];
        let mut editor = start.ready([]);
        let options = editor.open()["result"]["configOptions"].clone();
        assert_eq!(option(&options, "thought_level").is_object(), effort, "{model}");
        assert_eq!(option(&options, "compact").is_object(), compact, "{model}");
        for (id, value) in [("mode", "no-such"), ("model", "no-such"), ("no-such", "x"), ("thought_level", "no-such")] {
            let wrong = json!({"sessionId": editor.session, "configId": id, "value": value});
            assert_eq!(editor.call("session/set_config_option", wrong)["error"]["code"], -32602, "{id}");
        }
        if effort {
            let set = json!({"sessionId": editor.session, "configId": "thought_level", "value": "low"});
            editor.call("session/set_config_option", set);
            editor.prompt("go");
            assert_eq!(editor.model.asked().last().unwrap()["reasoning_effort"], "low");
        }
        if compact {
            let set = json!({"sessionId": editor.session, "configId": "compact", "type": "boolean", "value": false});
            let all = editor.call("session/set_config_option", set)["result"]["configOptions"].clone();
            assert_eq!(option(&all, "compact")["currentValue"], false);
        }
    }
}
