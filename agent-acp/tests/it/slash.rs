//! Commands that are typed into the prompt.

use serde_json::Value;

use crate::editor::Test;
use crate::model::{bash, says};

#[test]
fn n21_the_menu_has_the_commands() {
    let test = Test::new([]);
    let mut editor = test.session().0;
    let menu = editor.update("available_commands_update");
    let names: Vec<&str> =
        menu["availableCommands"].as_array().unwrap().iter().map(|command| command["name"].as_str().unwrap()).collect();
    for name in ["help", "compact", "cost", "context", "mode", "rewind", "export"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(names.iter().all(|name| !name.starts_with('/')));
    assert!(menu["availableCommands"].as_array().unwrap().iter().all(|command| command["description"] != Value::Null));
}

#[test]
fn commands_are_done_without_the_model() {
    let test = Test::new([bash("touch f"), says("x")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    editor.prompt(&session, "go");
    for (typed, says) in [
        ("/help", "/cost"),
        ("/cost", "$0.0005"),
        ("/context", "of 1,050,000 tokens"),
        ("/tools", "bash"),
        ("/model", "gpt-5.5"),
        ("/mode auto", "mode auto"),
        ("/mode nonsense", "is no mode"),
        ("/rewind", "go"),
        ("/export out.md", "written to"),
        ("/tasks", ""),
        ("/skills", ""),
    ] {
        let turn = editor.prompt(&session, typed);
        assert_eq!(turn.stop(), "end_turn", "{typed}");
        assert!(turn.said().contains(says) && !turn.said().is_empty(), "{typed}: {}", turn.said());
    }
    assert_eq!(test.model.asked().len(), 2);
    assert!(test.read("out.md").unwrap().contains("touch f"));
    let told: Vec<Value> = editor
        .frames
        .iter()
        .filter_map(|f| f.update())
        .filter(|u| u["sessionUpdate"] == "current_mode_update")
        .map(|u| u["currentModeId"].clone())
        .collect();
    assert_eq!(told, ["auto"], "the client's menu of modes follows");
}

#[test]
fn what_is_no_command_is_a_prompt() {
    for typed in ["/nonsense", "/usr/bin/env is a path", "/quit", " /help", "/"] {
        let test = Test::new([says("read")]);
        let (mut editor, session) = test.session();
        assert_eq!(editor.prompt(&session, typed).said(), "read", "{typed}");
    }
}
