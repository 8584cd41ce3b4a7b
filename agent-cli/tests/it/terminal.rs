//! Terminal mode: what is shown, in what order and how. Numbers are those of the acceptance list of the lean toolset.

use std::fs;

use serde_json::json;

use crate::model::{Answer, all, bash, calls, conversation, last_content, says};
use crate::pty::{CTRL_D, PROMPT};
use crate::run::Test;

const DIM: &str = "\u{1b}[2m";
const NORMAL: &str = "\u{1b}[0m";

/// One prompt at a terminal, without questions: all that was shown, with plain ends of lines.
fn shown(test: Test) -> (Test, String) {
    let test = test.args(["go", "--permissions", "allow"]);
    let all = test.terminal().ends(0).replace("\r\n", "\n");
    (test, all)
}

#[test]
fn t23_commands_run_where_the_program_was_started() {
    let (test, all) = shown(Test::new([bash("pwd"), says("ok")]));
    let here = test.work().to_str().unwrap().to_owned();
    assert_eq!(last_content(&test.model.asked()[1]), format!("{here}\n"));
    assert!(all.contains(&here), "{all:?}");
}

#[test]
fn t36_the_header_is_there_before_the_output() {
    let waits = "until [ -e go ]; do sleep 0.05; done; echo waited";
    let test = Test::new([bash(waits), says("ok")]).args(["go", "--permissions", "allow"]);
    let mut terminal = test.terminal();
    terminal.sees(&format!("🛠️  bash: {waits}\r\n"));
    fs::write(test.work().join("go"), "").unwrap();
    terminal.sees("waited");
    terminal.sees("ok\r\n");
    terminal.ends(0);
}

#[test]
fn t37_the_preview_is_short_and_the_model_gets_all() {
    let (test, all) = shown(Test::new([bash("seq 10; exit 4"), says("ok")]).settings("previewLines: 3\n"));
    let dim = |line: &str| format!("    {DIM}{line}{NORMAL}\n");
    let lines: String = ["1", "2", "3", "… (+7 lines)", "[exit code: exit status 4]"].into_iter().map(dim).collect();
    assert!(all.contains(&format!("🛠️  bash: seq 10; exit 4\n{lines}")), "{all:?}");
    let all_ten: String = (1..=10).map(|n| format!("{n}\n")).collect();
    assert!(last_content(&test.model.asked()[1]).starts_with(&all_ten));
}

#[test]
fn t38_previews_are_dim_and_plain_where_colours_are_not_wanted() {
    let answers = || [bash("echo hi"), says("ok")];
    assert!(shown(Test::new(answers())).1.contains(&format!("    {DIM}hi{NORMAL}\n")));
    let (_, all) = shown(Test::new(answers()).env("NO_COLOR", "1"));
    assert!(all.contains("    hi\n") && !all.contains('\u{1b}'), "{all:?}");
    let out = Test::new(answers()).args(["go"]).run().code(0);
    assert!(out.stderr.contains("    hi\n") && !out.stderr.contains('\u{1b}'), "{out:#?}");
}

#[test]
fn t38_where_only_one_of_the_outputs_is_a_terminal_nothing_is_dim() {
    for redirect in ["2>other", ">other"] {
        let test = Test::new([bash("echo hi"), says("ok")]);
        let mut shell = std::process::Command::new("sh");
        let command = test.command();
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        let line = format!("exec {} --toolset lean go {redirect}", env!("CARGO_BIN_EXE_agent"));
        shell.args(["-c", &line]).current_dir(test.work());
        let all = crate::pty::Terminal::start(shell).ends(0);
        let other = fs::read_to_string(test.work().join("other")).unwrap();
        assert!(!all.contains('\u{1b}') && !other.contains('\u{1b}'), "{redirect} {all:?} {other:?}");
        assert!(format!("{all}{other}").contains("    hi"), "{all:?} {other:?}");
    }
}

#[test]
fn t39_no_output_is_said() {
    assert!(
        shown(Test::new([bash("true"), says("ok")]))
            .1
            .contains(&format!("🛠️  bash: true\n    {DIM}(no output){NORMAL}\n"))
    );
}

#[test]
fn t40_nothing_of_the_model_or_its_commands_controls_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}";
    let answers = [
        bash("printf '\\033[2J\\033]0;title\\007x'"),
        bash(&format!("true # {evil}")),
        calls("read_file", &json!({"path": evil})),
        calls(evil, &json!({})),
        Answer::Says(vec!["o\u{1b}".into(), "[2Jk".into(), evil.into()]),
    ];
    let (test, all) = shown(Test::new(answers).env("NO_COLOR", "1").settings("editTools: true\n"));
    assert!(!all.contains(['\u{1b}', '\u{7}']), "{all:?}");
    assert!(last_content(&test.model.asked()[1]).contains("x"));
}

#[test]
fn t49_a_skill_is_named_and_not_shown() {
    let skill = calls("read_skill", &json!({"name": "a"}));
    let (test, all) = shown(Test::new([skill, says("ok")]).file("skills/a.md", "Secret way of working\n"));
    assert!(all.contains("📖 read_skill: a\n") && !all.contains("Secret way"), "{all:?}");
    assert_eq!(last_content(&test.model.asked()[1]), "Secret way of working\n");
}

/// The line of counters of a turn; empty where there is none.
fn counted(all: &str) -> String {
    let line = all.lines().find(|l| l.contains("(s)")).unwrap_or_default();
    line.replace(DIM, "").replace(NORMAL, "")
}

#[test]
fn t148_to_t152_calls_are_counted() {
    let edit = json!({"path": "f", "edits": [{"old": "a", "new": "b"}]});
    let mixed = all(&[
        ("bash", json!({"command": "echo 1"})),
        ("bash", json!({"command": "echo 2"})),
        ("read_file", json!({"path": "f"})),
        ("write_file", json!({"path": "g", "content": "g"})),
        ("edit_file", edit.clone()),
        ("read_skill", json!({"name": "s"})),
    ]);
    let failing = all(&[
        ("bash", json!({"command": "exit 1"})),
        ("edit_file", json!({"path": "f", "edits": [{"old": "zzz", "new": "b"}]})),
        ("read_skill", json!({"name": "nope"})),
        ("read_file", json!({"path": "nope"})),
    ]);
    let twelve = (0..12).map(|n| bash(&format!("echo {n}"))).chain([says("ok")]);
    for (number, answers, expect) in [
        (148, vec![mixed, says("ok")], "⚙ 2 command(s) · 📝 3 file op(s) · 📖 1 skill(s)"),
        (149, vec![failing, says("ok")], "⚙ 1 command(s) · 📝 2 file op(s) · 📖 1 skill(s)"),
        (150, vec![says("ok")], ""),
        (151, vec![bash("echo 1"), says("ok")], "⚙ 1 command(s)"),
        (152, twelve.collect(), "⚙ 12 command(s)"),
    ] {
        let test = Test::new(answers).file("f", "a\n").file("skills/s.md", "S").settings("editTools: true\n");
        assert_eq!(counted(&shown(test).1), expect, "{number}");
    }
}

#[test]
fn t149_rejected_calls_are_counted_too() {
    let out = Test::new([bash("cat /etc/hostname"), says("ok")]).args(["go"]).run().code(4);
    out.tells(&["⚙ 1 command(s)"]);
}

#[test]
fn t150_counters_start_again_with_each_turn() {
    let test = Test::new([bash("echo a"), bash("echo b"), says("One."), says("Two."), bash("echo c"), says("Three.")]);
    let test = test.args(["--permissions", "auto"]);
    let mut terminal = test.terminal();
    terminal.enters("first");
    terminal.sees("One.");
    terminal.sees("⚙ 2 command(s)");
    terminal.enters("second");
    terminal.sees("Two.");
    assert!(!terminal.sees(PROMPT).contains("(s)"));
    terminal.types("third\r");
    terminal.sees("Three.");
    terminal.sees("⚙ 1 command(s)");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert_eq!(conversation(&test.model.asked()[5]).len(), 11);
}

#[test]
fn a_pasted_block_is_one_prompt() {
    let test = Test::new([says("Got it.")]);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.types("\u{1b}[200~one\ntwo\nthree\u{1b}[201~");
    terminal.sees("three");
    assert!(test.model.asked().is_empty());
    terminal.types("\r");
    terminal.sees("Got it.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert_eq!(conversation(&test.model.asked()[0]), [("user".to_owned(), "one\ntwo\nthree".to_owned())]);
}

#[test]
fn the_history_survives_the_program() {
    let test = Test::new([says("Got it."), says("Got it again.")]);
    let mut terminal = test.terminal();
    terminal.enters("remember the milk");
    terminal.sees("Got it.");
    terminal.sees(PROMPT);
    terminal.types("/quit\r");
    terminal.ends(0);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.types("\u{1b}[A\u{1b}[A");
    terminal.sees("remember the milk");
    terminal.types("\r");
    terminal.sees("Got it again.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert_eq!(conversation(&test.model.asked()[1])[0].1, "remember the milk");
}

#[test]
fn a_first_prompt_can_come_from_the_command_line() {
    let test = Test::new([says("First."), says("Second.")]).args(["-i", "hello"]);
    let mut terminal = test.terminal();
    terminal.sees("First.");
    terminal.enters("more");
    terminal.sees("Second.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert_eq!(conversation(&test.model.asked()[1]).len(), 3);
}

#[test]
fn an_error_does_not_end_the_conversation() {
    let refused = Answer::Http("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#.into());
    let test = Test::new([refused, says("Now it works.")]);
    let mut terminal = test.terminal();
    terminal.enters("first");
    terminal.sees("error: ");
    terminal.enters("second");
    terminal.sees("Now it works.");
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn a_slash_and_one_word_is_no_prompt() {
    let test = Test::new([says("read")]);
    let mut terminal = test.terminal();
    terminal.sees(PROMPT);
    terminal.types("/hlep\r");
    terminal.sees("there is no command /hlep; did you mean /help?");
    terminal.types("/usr/bin is what?\r");
    terminal.sees("read");
    terminal.types("/quit\r");
    terminal.ends(0);
    assert_eq!(test.model.asked().len(), 1);
}
