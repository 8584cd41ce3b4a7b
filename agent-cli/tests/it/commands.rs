//! The commands without a model: tools, check, skills, config.

use agent_tools::Sandbox;
use agent_tools::builtin::sandbox::report;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::pty::lives;
use crate::run::{Test, until};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect()
}

#[test]
fn the_list_of_tools_follows_the_settings() {
    for (args, expect) in [
        (&[][..], &["bash"][..]),
        (&["--set", "bashTool=false"], &[]),
        (&["--set", "editTools=true"], &["bash", "read_file", "write_file", "edit_file"]),
    ] {
        let list = Test::new([]).args(["tool", "list", "--json"]).args(args).run().code(0).json();
        assert_eq!(names(&list), expect, "{args:?}");
        for tool in list.as_array().unwrap() {
            assert!(tool["description"].is_string() && tool["schema"]["type"] == "object", "{tool}");
        }
    }
    let test = Test::new([]).file("skills/a/SKILL.md", "# A").args(["tool", "list"]);
    let out = test.run().code(0);
    assert!(out.stdout.contains("read_skill\n") && out.stdout.contains("a — A"), "{out:#?}");
}

#[test]
fn a_call_prints_what_the_model_would_read() {
    for (name, input, code, text) in [
        ("bash", r#"{"command":"echo hi"}"#, 0, "hi\n"),
        ("bash", r#"{"command":"echo x; exit 3"}"#, 0, "x\n[exit code: exit status 3]\n"),
        ("read_file", r#"{"path":"f"}"#, 0, "a\nb\n"),
        ("read_file", r#"{"path":"nope"}"#, 1, "nope does not exist. Create it with write_file\n"),
        (
            "bash",
            r#"{"command":"cat /etc/hostname"}"#,
            1,
            "Error: command blocked by bash safety policy (required=4000 allowed=0467; mode=system/external/network/workspace bits=4:read,2:write,1:execute)\nBeyond what is allowed: `/etc/hostname` needs read in zone system.\n",
        ),
    ] {
        let test = Test::new([]).file("f", "a\nb\n").args(["tool", "call", name, "--input", input]);
        test.args(["--set", "editTools=true"]).run().code(code).stdout(text);
    }
}

#[test]
fn a_call_in_json_has_status_text_and_details() {
    for (input, code, status, text) in [
        (r#"{"command":"echo hi"}"#, 0, "ok", "hi\n"),
        (r#"{"command":"cat /etc/hostname"}"#, 1, "blocked", "Error: command blocked by bash safety policy"),
        (r#"{"command":{"a":1}}"#, 1, "failed", "command"),
        ("{", 1, "failed", "JSON"),
    ] {
        let test = Test::new([]).args(["tool", "call", "bash", "--json", "--input", "-"]).stdin(input);
        let object = test.run().code(code).json();
        assert_eq!(object["status"], status, "{input}");
        assert!(object["text"].as_str().unwrap().contains(text), "{input}: {object}");
        assert!(object.as_object().unwrap().contains_key("details"), "{object}");
    }
    let test = Test::new([]).args(["tool", "call", "bash", "--json", "--permissions", "ask", "--input"]);
    let object = test.args([r#"{"command":"echo hi"}"#]).run().code(1).json();
    assert_eq!((&object["status"], &object["text"]), (&json!("rejected"), &json!("[command rejected by the user]")));
}

#[test]
fn a_batch_answers_line_by_line_in_one_session() {
    let lines = [
        r#"{"name":"write_file","input":{"path":"f","content":"x"}}"#,
        r#"{"name":"bash","input":{"command":"cat f; exit 2"}}"#,
        "no call",
        "",
        r#"["bash", {}]"#,
        r#"{"name":"launch"}"#,
        r#"{"name":"bash","input":{"command":"echo \"$PPID\""}}"#,
    ];
    let test = Test::new([]).args(["tool", "call", "--batch", "--set", "editTools=true"]).stdin(lines.join("\n"));
    let out = test.run().code(1);
    let answers: Vec<Value> = out.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let statuses: Vec<&str> = answers.iter().map(|a| a["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["ok", "ok", "failed", "failed", "failed", "ok"], "{out:#?}");
    assert!(answers[1]["text"].as_str().unwrap().starts_with('x'));
    for (answer, line) in [(&answers[2], "line 3"), (&answers[3], "line 5")] {
        let text = answer["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{line} is no call: it is no JSON object. ")), "{text}");
    }
    let test = Test::new([]).args(["tool", "call", "--batch"]).stdin(lines[1]);
    test.run().code(0);
}

#[test]
fn a_signal_ends_a_call_and_what_it_started() {
    for (signal, args, sleep) in [
        (Signal::INT, &["tool", "call", "bash", "--input", "-"][..], "sleep 98.301"),
        (Signal::TERM, &["tool", "call", "bash", "--input", "-"], "sleep 98.302"),
        (Signal::TERM, &["tool", "call", "--batch"], "sleep 98.303"),
        (Signal::HUP, &["tool", "call", "--batch"], "sleep 98.304"),
    ] {
        let input = json!({"command": format!("echo begun; {sleep}")});
        let input = if args.contains(&"--batch") { json!({"name": "bash", "input": input}) } else { input };
        let test = Test::new([]).args(args).stdin(input.to_string()).file("tmp/x", "");
        let test = test.env("TMPDIR", "tmp");
        let run = test.start();
        until("the command runs", || lives(sleep));
        kill_process(Pid::from_child(&run.child), signal).unwrap();
        run.wait().code(130);
        assert!(!lives(sleep), "{sleep} lives on");
        assert_eq!(std::fs::read_dir(test.work().join("tmp")).unwrap().count(), 1, "nothing but x");
    }
}

#[test]
fn check_tells_what_a_command_needs_without_running_it() {
    for (command, args, code, expect) in [
        ("ls", &[][..], 0, json!({"required": "0004", "allowed": "0467", "decision": "allow", "unsure": false})),
        ("touch made", &[], 0, json!({"required": "0006", "decision": "allow"})),
        ("touch made", &["--mode", "0004"], 1, json!({"allowed": "0004", "decision": "ask"})),
        ("touch made", &["--permissions", "ask"], 1, json!({"decision": "ask"})),
        ("cat /etc/hostname", &[], 1, json!({"required": "4000", "decision": "ask"})),
        ("cat /etc/hostname", &["--permissions", "allow"], 0, json!({"decision": "allow"})),
        ("$(echo ls) made", &[], 1, json!({"decision": "ask", "unsure": true})),
    ] {
        let test = Test::new([]).args(["check", "--json"]).args(args).args(["--", command]);
        let object = test.run().code(code).json();
        for (key, value) in expect.as_object().unwrap() {
            assert_eq!(&object[key], value, "{command} {args:?}: {object}");
        }
        let keys: Vec<&String> = object.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["required", "allowed", "decision", "unsure", "reasons"]);
        assert!(object["reasons"].as_array().unwrap().iter().all(Value::is_string), "{object}");
        assert!(!test.work().join("made").exists());
    }
}

#[test]
fn skills_are_listed_with_what_is_wrong_with_them() {
    let test = Test::new([])
        .file("skills/b.md", "---\ndescription: second\n---\n")
        .file("skills/a/SKILL.md", "---\ndescription: first\n---\n")
        .file("skills/c.md", "---\nname: other\ndescription: third\n---\n")
        .args(["skills", "--json"]);
    let object = test.run().code(0).json();
    let shown: Vec<(&str, &str)> = object["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["name"].as_str().unwrap(), s["description"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("a", "first"), ("b", "second"), ("c", "third")]);
    assert!(object["diagnostics"].to_string().contains("c.md"), "{object}");
    let out = test.again(["skills"]).run().code(0);
    assert!(out.stdout.starts_with("a — first\nb — second\nc — third\n! "), "{out:#?}");
}

#[test]
fn the_config_tells_where_each_value_comes_from() {
    let test = Test::new([])
        .settings("maxTurns: 5\npreviewLines: 2\nmodel: mine\n")
        .file("agent.yaml", "maxTurns: 4\n")
        .env("BASH_AGENT_BASH_MODE", "0004")
        .args(["config", "--json", "--set", "previewLines=7", "--max-tokens", "99"]);
    let object = test.run().code(0).json();
    let file = test.settings_file().to_str().unwrap().to_owned();
    let project = test.work().join("agent.yaml").to_str().unwrap().to_owned();
    for (key, value, source) in [
        ("maxTurns", json!(4), project.as_str()),
        ("model", json!("mine"), &file),
        ("previewLines", json!(7), "--set previewLines"),
        ("maxTokens", json!(99), "--max-tokens"),
        ("bashMode", json!("0004"), "BASH_AGENT_BASH_MODE"),
        ("loopLimit", json!(10), "default"),
    ] {
        assert_eq!(object[key], json!({"value": value, "source": source}), "{key}");
    }
    let out = test.again(["config", "--set", "previewLines=7"]).run().code(0);
    let line = out.stdout.lines().find(|l| l.starts_with("previewLines ")).unwrap();
    assert!(line.ends_with("7  (--set previewLines)"), "{line}");
}

#[test]
fn the_config_tells_what_confines_commands_here() {
    let offered = report(Sandbox::Auto).to_string();
    for (setting, expect) in [("auto", &*offered), ("require", &offered), ("off", "none: the setting `sandbox` is off")]
    {
        let test = Test::new([]).args(["config", "--json", "--set", &format!("sandbox={setting}")]);
        let object = test.run().code(0).json();
        assert_eq!(object["sandbox"]["inForce"], json!(expect), "{setting}");
        let out = test.again(["config", "--set", &format!("sandbox={setting}")]).run().code(0);
        let line = out.stdout.lines().find(|l| l.starts_with("sandbox ")).unwrap();
        assert!(line.ends_with(&format!("{setting}: {expect}  (--set sandbox)")), "{line}");
    }
}

#[test]
fn settings_are_set_by_name() {
    for (pair, key, expect) in [
        ("bashTool=false", "bashTool", json!(false)),
        ("skillsDir=[a, b]", "skillsDir", json!(["a", "b"])),
        ("model=a=b", "model", json!("a=b")),
        ("toolTimeout=5", "toolTimeout", json!(5)),
    ] {
        let object = Test::new([]).args(["config", "--json", "--set", pair]).run().code(0).json();
        assert_eq!(object[key]["value"], expect, "{pair}");
    }
    Test::new([]).args(["config", "--set", "bashTool=perhaps"]).run().code(2).tells(&["bashTool"]);
}
