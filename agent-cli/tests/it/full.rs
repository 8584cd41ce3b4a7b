//! Toolset `full`, the default: what a person meets of it on the command line and at a terminal.

use std::fs;

use serde_json::{Value, json};

use crate::model::{all, calls, last_content, says};
use crate::pty::{CTRL_D, PROMPT};
use crate::run::Test;

fn bash(command: &str) -> crate::model::Answer {
    calls("Bash", &json!({"command": command}))
}

/// The system prompt of a request.
fn system(request: &Value) -> &str {
    request["messages"][0]["content"].as_str().unwrap()
}

#[test]
fn the_eleven_tools_are_declared_in_their_order() {
    let out = Test::new([]).full().args(["tool", "list", "--json"]).run().code(0);
    let list: Vec<Value> = serde_json::from_str(&out.stdout).unwrap();
    let names: Vec<&str> = list.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["Read", "Write", "Edit", "Bash", "Glob", "Grep", "TodoWrite", "PlanConfirm", "PlanClear", "Skill", "SubAgent"]
    );
    let out = Test::new([]).full().args(["tool", "list", "--json", "--set", "provider=local"]).run().code(0);
    assert!(out.stdout.contains("\"bash\""), "the embedded model has lean: {}", out.stdout);
}

#[test]
fn a_batch_is_one_session_with_a_plan_that_holds() {
    let lines = [
        json!({"name": "TodoWrite", "input": {"todos": [{"content": "a", "status": "pending"}]}}),
        json!({"name": "PlanConfirm", "input": {}}),
        json!({"name": "Write", "input": {"path": "f", "content": "x"}}),
        json!({"name": "Grep", "input": {"pattern": "x"}}),
        json!({"name": "SubAgent", "input": {"prompt": "x"}}),
    ];
    let stdin: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let out = Test::new([]).full().args(["tool", "call", "--batch"]).stdin(stdin).run().code(1);
    let answers: Vec<Value> = out.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = answers.iter().map(|answer| answer["text"].as_str().unwrap()).collect();
    assert_eq!(texts[0], "- [ ] a\n");
    assert!(texts[1].starts_with("Error: no plan draft found to confirm. Write it to "), "{}", texts[1]);
    assert_eq!(texts[2..4], ["OK: wrote 1 bytes to f", "f\n1:x"]);
    assert_eq!(texts[4], "Error: sub-agents are not available here; do the work yourself");
}

#[test]
fn a_plan_is_drafted_confirmed_and_in_the_prompt_from_then_on() {
    let test = Test::new([says("hello")]).full().args(["hi"]);
    test.run().code(0);
    let draft = system(&test.model.asked()[0]).split("Plan draft: ").nth(1).unwrap().trim().to_owned();
    let test = test.again(["--continue", "plan it"]).answers([
        calls("Write", &json!({"path": draft, "content": "1. dance\n"})),
        all(&[("Write", json!({"path": "f", "content": "x"})), ("PlanConfirm", json!({}))]),
        says("a plan was made"),
        calls("Write", &json!({"path": "f", "content": "x"})),
        says("ok"),
    ]);
    test.run().code(0);
    let asked = test.model.asked();
    let texts: Vec<String> = asked[4..].iter().map(last_content).collect();
    assert_eq!(texts, ["Plan confirmed and locked in.", "OK: wrote 1 bytes to f"]);
    let after = asked[4]["messages"].to_string();
    assert!(after.contains("a plan was made") && !after.contains("hello"), "{after}");
    let blocked = asked[4]["messages"].to_string();
    assert!(blocked.contains("Error: a plan draft is open"), "{blocked}");
    for (number, expect) in [(2, false), (3, false), (4, true), (5, true)] {
        assert_eq!(system(&asked[number]).contains("1. dance\n</current-plan>"), expect, "{number}");
    }
}

#[test]
fn the_prompt_has_the_skills_and_those_that_were_given() {
    let skill = "---\ndescription: makes things tidy\n---\nUse ${SKILL_DIR}/broom.\n";
    let test = Test::new([calls("Skill", &json!({"name": "tidy"})), says("ok")])
        .full()
        .file(".agents/skills/tidy/SKILL.md", skill)
        .file("skills/given/SKILL.md", "Always sing.")
        .args(["--skill", "given", "go"]);
    test.run().code(0);
    let asked = test.model.asked();
    let prompt = system(&asked[0]);
    assert!(prompt.contains("- given: Always sing.\n- tidy: makes things tidy"), "{prompt}");
    assert!(prompt.contains("<skill name=\"given\">\nAlways sing.\n</skill>"), "{prompt}");
    let loaded = last_content(&asked[1]);
    let base = test.work().join(".agents/skills/tidy");
    assert!(loaded.starts_with(&format!("Skill: tidy\nBase directory: {}\n\n---", base.display())), "{loaded}");
    assert!(loaded.contains(&format!("Use {}/broom.", base.display())), "{loaded}");
    let out = test.again(["--skill", "nope", "go"]).run().code(2);
    assert!(out.stderr.contains("--skill: there is no skill nope; there are: given, tidy"), "{}", out.stderr);
}

#[test]
fn a_prompt_without_a_session_leaves_nothing() {
    let big = "seq 1 20000";
    let test = Test::new([bash(big), says("ok")]).full().args(["--no-session", "go"]);
    test.run().code(0);
    assert_eq!(test.logs().len(), 0);
    let told = last_content(&test.model.asked()[1]);
    let path = told.split("all of it is in ").nth(1).unwrap().split(" ...]").next().unwrap().to_owned();
    assert!(!std::path::Path::new(&path).exists(), "{path} is gone with the run");
}

#[test]
fn the_whole_of_a_long_output_lies_in_the_session() {
    let test = Test::new([bash("seq 1 20000"), says("ok")]).full().args(["go"]);
    test.run().code(0);
    let told = last_content(&test.model.asked()[1]);
    let path = told.split("all of it is in ").nth(1).unwrap().split(" ...]").next().unwrap();
    let whole: String = (1..=20000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), whole);
    assert!(told.len() <= 51_200 && told.ends_with("\n19999\n20000\n"));
    assert_eq!(std::path::Path::new(path).parent().unwrap().parent(), test.log().parent());
}

#[test]
fn what_was_allowed_for_good_is_allowed_next_time_and_no_more() {
    let first = Test::new([bash("touch f"), says("Done.")]).full();
    let mut terminal = first.terminal();
    terminal.enters("go");
    let question = terminal.sees("[a/s/r] ");
    assert!(question.contains("s: the command `touch` for this session · p: for good"), "{question}");
    terminal.types("p");
    terminal.sees("rules.json: the command `touch`");
    terminal.sees("Done.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    let rules = fs::read_to_string(first.settings_file().with_file_name("rules.json")).unwrap();
    assert!(rules.contains("the command `touch`"), "{rules}");

    // Another time: it runs without a question, and what is beside it asks.
    let other = Test::new([bash("touch f"), bash("mkdir g"), says("Done.")]).full();
    fs::write(other.settings_file().with_file_name("rules.json"), rules).unwrap();
    let mut terminal = other.terminal();
    terminal.enters("go");
    let question = terminal.sees("[a/s/r] ");
    assert!(question.contains("mkdir g") && other.work().join("f").exists(), "{question}");
    terminal.types("r");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert!(!other.work().join("g").exists());
}

#[test]
fn background_commands_are_listed_for_the_person() {
    let start = calls("Bash", &json!({"command": "echo up; sleep 30", "background": true}));
    let test = Test::new([start, says("Started.")]).full().args(["--permissions", "auto"]);
    let mut terminal = test.terminal();
    terminal.enters("go");
    terminal.sees("Started.");
    terminal.enters("/tasks");
    terminal.sees("(running for ");
    terminal.sees("echo up; sleep 30");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn several_searches_of_one_answer_are_answered_in_their_order() {
    let test = Test::new([
        all(&[
            ("Glob", json!({"pattern": "*.rs"})),
            ("Grep", json!({"pattern": "fn"})),
            ("Read", json!({"path": "a.rs"})),
        ]),
        says("ok"),
    ])
    .full()
    .file("a.rs", "fn a() {}\n")
    .file("b.rs", "struct B;\n")
    .args(["go"]);
    test.run().code(0);
    let asked = test.model.asked();
    let messages = asked[1]["messages"].as_array().unwrap();
    let results: Vec<&str> = messages[messages.len() - 3..].iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(results, ["a.rs\nb.rs", "a.rs\n1:fn a() {}", "fn a() {}\n"]);
}

#[test]
fn what_was_said_before_a_result_came_is_no_part_of_the_answer() {
    let start = || calls("Bash", &json!({"command": "sleep 0.2; echo built", "background": true}));
    let script = || [start(), says("Waiting for it."), says("It is built.")];
    let out = Test::new(script()).full().args(["go"]).run().code(0);
    assert_eq!(out.stdout, "It is built.\n");
    assert!(out.stderr.contains("Waiting for it.") && out.stderr.contains("exit_code=0 built"), "{}", out.stderr);
    let out = Test::new(script()).full().args(["--output", "json", "go"]).run().code(0);
    let answer: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(answer["answer"], "It is built.");
}
