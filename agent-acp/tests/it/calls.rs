//! What calls look like, and how a person is asked about them.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::{Editor, Policy, Start};
use crate::model::{Answer, all, calls, says};

/// The tools of both toolsets by what they do.
struct Named {
    toolset: &'static str,
    shell: &'static str,
    read: &'static str,
    write: &'static str,
}

const BOTH: [Named; 2] = [
    Named { toolset: "full", shell: "Bash", read: "Read", write: "Write" },
    Named { toolset: "lean", shell: "bash", read: "read_file", write: "write_file" },
];

fn edit(toolset: &str, path: &str, old: &str, new: &str) -> Answer {
    match toolset {
        "full" => calls("Edit", &json!({"path": path, "old_string": old, "new_string": new})),
        _ => calls("edit_file", &json!({"path": path, "edits": [{"old": old, "new": new}]})),
    }
}

fn command(named: &Named, line: &str) -> Answer {
    calls(named.shell, &json!({"command": line}))
}

fn finished(editor: &Editor) -> Value {
    let updates = editor.updates("tool_call_update");
    updates.into_iter().rfind(|update| matches!(update["status"].as_str(), Some("completed" | "failed"))).unwrap()
}

fn diffs(update: &Value) -> Vec<Value> {
    let content = update["content"].as_array().cloned().unwrap_or_default();
    content.into_iter().filter(|part| part["type"] == "diff").collect()
}

#[test]
fn checks_24_25_130_to_132_commands_ask_first_and_run_where_the_session_is() {
    for named in BOTH {
        let mut editor = Start::toolset(named.toolset).session([command(&named, "pwd; touch m"), says("Done.")]);
        editor.policy = Policy::Hold;
        let id = editor.start_prompt("go");
        let asked = editor.until("the question", |message| message["method"] == "session/request_permission");
        assert!(!editor.path("m").exists());
        let called = editor.updates("tool_call").remove(0);
        assert_eq!((&called["kind"], &called["title"]), (&json!("execute"), &json!("pwd; touch m")));
        assert_eq!(called["rawInput"]["command"], "pwd; touch m");
        let question = &asked["params"];
        assert_eq!(question["toolCall"]["toolCallId"], called["toolCallId"]);
        assert!(question["toolCall"]["content"].to_string().contains("pwd; touch m"));
        let kinds: Vec<&str> =
            question["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        assert_eq!(editor.states(), Vec::<String>::new(), "nothing runs before the answer");
        editor.decide(Policy::Allow);
        assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
        assert_eq!(editor.states(), ["in_progress", "completed"]);
        let here = editor.work.path().canonicalize().unwrap();
        assert!(finished(&editor)["content"].to_string().contains(here.to_str().unwrap()));
        assert!(editor.path("m").exists());
    }
}

#[test]
fn checks_83_133_134_what_is_no_consent_changes_nothing() {
    for named in BOTH {
        for policy in [Policy::Reject, Policy::Cancelled, Policy::Bogus, Policy::Error] {
            let mut editor = Start::toolset(named.toolset).session([command(&named, "touch m"), says("Done.")]);
            editor.policy = policy;
            let answer = editor.prompt("go");
            assert!(!editor.path("m").exists(), "{policy:?}");
            assert_eq!(editor.states(), ["failed"], "{policy:?}");
            assert!(finished(&editor)["content"].to_string().contains("[command rejected by the user]"), "{policy:?}");
            let stop = if policy == Policy::Cancelled { "cancelled" } else { "end_turn" };
            assert_eq!(answer["result"]["stopReason"], stop, "{policy:?}");
            if stop == "end_turn" {
                assert_eq!(editor.told(), "[command rejected by the user]");
            }
        }
    }
}

#[test]
fn checks_71_72_reading_asks_nobody_and_says_where() {
    for named in BOTH {
        let read = calls(named.read, &json!({"path": "F"}));
        let mut editor = Start::toolset(named.toolset).session([read, says("Done.")]);
        editor.write("F", "a\nb\n");
        editor.prompt("go");
        let called = editor.updates("tool_call").remove(0);
        assert_eq!(called["kind"], "read");
        let path = called["locations"][0]["path"].as_str().unwrap().to_owned();
        assert_eq!(fs::canonicalize(path).unwrap(), editor.path("F").canonicalize().unwrap());
        assert!(editor.log.iter().all(|message| message["method"] != "session/request_permission"));
        assert!(finished(&editor)["content"].to_string().contains("a\\n"));
    }
}

#[test]
fn checks_81_82_85_108_109_changes_show_whole_texts() {
    for named in BOTH {
        let write = |text: &str| calls(named.write, &json!({"path": "f.txt", "content": text}));
        let steps =
            [write("one\n"), says("1."), write("two\n"), says("2."), edit(named.toolset, "f.txt", "two", "zwei")];
        let mut editor = Start::toolset(named.toolset).session(steps);
        editor.model_says([says("3.")]);
        for (old, new) in [(Value::Null, "one\n"), (json!("one\n"), "two\n"), (json!("two\n"), "zwei\n")] {
            editor.policy = Policy::Hold;
            let before = fs::read_to_string(editor.path("f.txt")).ok();
            let id = editor.start_prompt("go");
            editor.until("the question", |message| message["method"] == "session/request_permission");
            assert_eq!(fs::read_to_string(editor.path("f.txt")).ok(), before);
            let question = editor.decide(Policy::Allow);
            editor.answer(id);
            for diff in [diffs(&question["toolCall"]), diffs(&finished(&editor))].map(|mut diffs| diffs.remove(0)) {
                assert_eq!((&diff["oldText"], &diff["newText"]), (&old, &json!(new)));
                assert!(diff["path"].as_str().unwrap().starts_with('/'));
            }
            assert_eq!(finished(&editor)["status"], "completed");
            assert_eq!(editor.read("f.txt"), new);
        }
        assert!(editor.updates("tool_call").iter().all(|called| called["kind"] == "edit"));
    }
}

#[test]
fn checks_84_110_111_what_would_change_nothing_asks_nobody() {
    for named in BOTH {
        let same = calls(named.write, &json!({"path": "f.txt", "content": "one\n"}));
        let wrong = edit(named.toolset, "f.txt", "zzz", "y");
        let mut editor = Start::toolset(named.toolset).session([same, says("1."), wrong, says("2.")]);
        editor.write("f.txt", "one\n");
        editor.prompt("go");
        editor.prompt("go");
        assert!(editor.log.iter().all(|message| message["method"] != "session/request_permission"));
        assert_eq!(finished(&editor)["status"], "failed");
        assert!(diffs(&finished(&editor)).is_empty());
    }
}

#[test]
fn check_50_skills_are_read_without_asking() {
    let start = Start::toolset("lean");
    fs::create_dir(start.work.path().join("skills")).unwrap();
    fs::write(start.work.path().join("skills/a.md"), "How to a.\n").unwrap();
    let mut editor = start.session([calls("read_skill", &json!({"name": "a"})), says("Done.")]);
    editor.prompt("go");
    let called = editor.updates("tool_call").remove(0);
    assert_eq!((&called["kind"], &called["title"]), (&json!("read"), &json!("read_skill: a")));
    assert!(editor.asked.is_empty() && editor.told().contains("How to a."));
}

#[test]
fn check_135_always_holds_for_the_program_and_the_session() {
    for named in BOTH {
        let steps = ["echo a > x", "echo b > y", "touch z"].map(|line| [command(&named, line), says("ok")]).concat();
        let mut editor = Start::toolset(named.toolset).session(steps);
        editor.policy = Policy::Always;
        let questions = |editor: &Editor| {
            editor.log.iter().filter(|message| message["method"] == "session/request_permission").count()
        };
        for expect in [1, 1, 2] {
            editor.prompt("go");
            assert_eq!(questions(&editor), expect);
        }
        editor.model_says([command(&named, "echo a > x"), says("ok")]);
        editor.open();
        editor.prompt("go");
        assert_eq!(questions(&editor), 3, "a new session asks again");
    }
}

#[test]
fn questions_of_parallel_calls_stand_beside_each_other() {
    let both = all(&[("Read", json!({"path": "/etc/hosts"})), ("Read", json!({"path": "/etc/passwd"}))]);
    let mut editor = Start::default().session([both, says("Done.")]);
    editor.policy = Policy::Hold;
    let id = editor.start_prompt("go");
    for _ in 0..2 {
        editor.until("a question", |message| message["method"] == "session/request_permission");
    }
    assert_eq!(editor.asked.len(), 2);
    // The second is answered first.
    editor.asked.swap(0, 1);
    editor.decide(Policy::Reject);
    editor.decide(Policy::Allow);
    editor.answer(id);
    assert_eq!(editor.states().iter().filter(|state| *state == "failed").count(), 1);
    assert_eq!(editor.states().iter().filter(|state| *state == "completed").count(), 1);
}

#[test]
fn a_sub_agent_asks_in_the_session_that_the_editor_knows() {
    let child = calls("SubAgent", &json!({"prompt": "touch it", "description": "toucher"}));
    let mut editor = Start::default().session([child]);
    editor.model_says([
        says("Waiting."),
        calls("Bash", &json!({"command": "touch m"})),
        says("Child done."),
        says("All done."),
    ]);
    editor.policy = Policy::Hold;
    let id = editor.start_prompt("go");
    let asked = editor.until("the question", |message| message["method"] == "session/request_permission");
    assert_eq!(asked["params"]["sessionId"], editor.session.as_str());
    let call = asked["params"]["toolCall"]["toolCallId"].clone();
    assert!(editor.updates("tool_call").iter().any(|called| called["toolCallId"] == call));
    editor.decide(Policy::Allow);
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    assert!(editor.path("m").exists());
}

#[test]
fn long_output_comes_in_small_pieces() {
    for terminal in [false, true] {
        let slow = "for i in $(seq 200); do seq 1000; sleep 0.01; done";
        let caps = if terminal { json!({"_meta": {"terminal_output": true}}) } else { json!({}) };
        let start = Start::default().caps(caps).args(["--permissions", "allow"]);
        let mut editor = start.session([calls("Bash", &json!({"command": slow})), says("Done.")]);
        let begun = std::time::Instant::now();
        editor.prompt("go");
        let seconds = begun.elapsed().as_secs_f64();
        let updates = editor.updates("tool_call_update");
        assert!(updates.len() > 4 && (updates.len() as f64) < 5.0 * seconds + 6.0, "{} in {seconds} s", updates.len());
        assert!(updates.iter().all(|update| update.to_string().len() < 1 << 17));
        let has = |name: &str| editor.updates("").iter().any(|update| update["_meta"].get(name).is_some());
        for name in ["terminal_info", "terminal_output_delta", "terminal_exit"] {
            assert_eq!(has(name), terminal, "{name}");
        }
        if terminal {
            assert_eq!(finished(&editor)["_meta"]["terminal_exit"]["exit_code"], 0);
            assert_eq!(finished(&editor)["content"][0]["type"], "terminal");
        }
    }
}

#[test]
fn a_todo_list_is_the_plan() {
    let todos =
        json!({"todos": [{"content": "look", "status": "completed"}, {"content": "mend", "status": "in_progress"}]});
    let mut editor = Start::default().session([calls("TodoWrite", &todos), says("Done.")]);
    editor.prompt("go");
    let plan = editor.updates("plan").remove(0);
    let entries: Vec<(&str, &str)> = plan["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["content"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    assert_eq!(entries, [("look", "completed"), ("mend", "in_progress")]);
}

#[test]
fn ids_that_a_server_uses_again_are_told_apart() {
    let step = || [calls("Read", &json!({"path": "F"})), says("ok")];
    let mut editor = Start::default().session([step(), step()].concat());
    editor.write("F", "x");
    editor.prompt("go");
    editor.prompt("go");
    editor.wait(Duration::from_millis(50));
    let ids: Vec<Value> = editor.updates("tool_call").iter().map(|called| called["toolCallId"].clone()).collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}
