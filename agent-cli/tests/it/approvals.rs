//! Questions at a terminal: `a` once, `s` for the session, `r` not at all, other keys nothing.

use std::fs;

use serde_json::json;

use crate::model::{all, bash, calls, last_content, says};
use crate::pty::{CTRL_C, CTRL_D, PROMPT, Terminal};
use crate::run::{Test, until};

const QUESTION: &str = "[a/s/r] ";

/// A terminal that was given a prompt.
fn asked(test: &Test) -> Terminal {
    let mut terminal = test.terminal();
    terminal.enters("go");
    terminal
}

fn leaves(mut terminal: Terminal) -> String {
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0)
}

#[test]
fn a_runs_it_once() {
    let test = Test::new([bash("echo one > f"), bash("echo two > f"), says("Done.")]);
    let mut terminal = asked(&test);
    terminal.sees("bash: echo one > f");
    terminal.sees(QUESTION);
    assert!(!test.work().join("f").exists(), "nothing happens before the answer");
    terminal.types("a");
    terminal.sees("bash: echo two > f");
    terminal.sees(QUESTION);
    assert_eq!(fs::read_to_string(test.work().join("f")).unwrap(), "one\n");
    terminal.types("A");
    terminal.sees("Done.");
    leaves(terminal);
    assert_eq!(fs::read_to_string(test.work().join("f")).unwrap(), "two\n");
}

#[test]
fn s_covers_the_next_equal_command() {
    let test = Test::new([bash("touch f"), bash("touch f"), bash("mkdir d"), says("Done.")]);
    let mut terminal = asked(&test);
    let question = terminal.sees(QUESTION);
    assert!(question.contains("`touch` for this session"), "it says what it covers: {question}");
    terminal.types("s");
    terminal.sees("bash: touch f");
    let question = terminal.sees(QUESTION);
    assert!(question.contains("bash: mkdir d"), "another program is asked about: {question}");
    terminal.types("r");
    terminal.sees("Done.");
    leaves(terminal);
    assert!(!test.work().join("d").exists());
}

#[test]
fn r_tells_the_model_in_the_agreed_words() {
    let answers = [bash("touch f"), calls("write_file", &json!({"path": "f", "content": "new\n"})), says("Fine.")];
    let test = Test::new(answers).settings("editTools: true\n");
    let mut terminal = asked(&test);
    terminal.sees(QUESTION);
    terminal.types("r");
    let question = terminal.sees(QUESTION);
    assert!(question.contains("write_file: f") && question.contains("new"), "the change is shown: {question}");
    terminal.types("r");
    terminal.sees("Fine.");
    leaves(terminal);
    let asked = test.model.asked();
    assert_eq!(last_content(&asked[1]), "[command rejected by the user]");
    assert_eq!(last_content(&asked[2]), "[change rejected by the user]");
    assert!(!test.work().join("f").exists());
}

#[test]
fn other_keys_do_nothing() {
    let test = Test::new([bash("touch f"), says("Done.")]).args(["go", "--permissions", "ask"]);
    let mut terminal = test.terminal();
    terminal.sees(QUESTION);
    // An arrow ends in a letter, a pasted text has any.
    for keys in ["y", "n ", "x\r", "\u{1b}[A", "\u{1b}OA", "1", "ls -la"] {
        terminal.types(keys);
    }
    // Keys that come together with others are no answer: once more, until it is one alone.
    until("the question is answered", || {
        terminal.types("r");
        test.model.asked().len() == 2
    });
    terminal.sees("Done.");
    terminal.ends(0);
    assert_eq!(last_content(&test.model.asked()[1]), "[command rejected by the user]");
    assert!(!test.work().join("f").exists());
}

#[test]
fn keys_that_were_typed_before_the_question_do_not_answer_it() {
    let test = Test::new([bash("until [ -e on ]; do sleep 0.05; done"), bash("touch f"), says("Done."), says("Next.")]);
    let mut terminal = asked(&test);
    terminal.sees(QUESTION);
    terminal.types("a");
    terminal.sees("\r\n");
    terminal.types("aaa\rsss");
    terminal.sees("» sss");
    fs::write(test.work().join("on"), "").unwrap();
    terminal.sees(QUESTION);
    terminal.types("r");
    terminal.sees("Done.");
    // It was kept for later.
    terminal.sees("> aaa");
    terminal.sees("Next.");
    terminal.sees("> sss");
    terminal.types("\u{15}");
    terminal.types(CTRL_D);
    terminal.ends(0);
    assert!(!test.work().join("f").exists());
}

#[test]
fn ctrl_c_at_a_question_rejects_and_stops_the_turn() {
    let test = Test::new([bash("touch f"), says("Next turn.")]);
    let mut terminal = asked(&test);
    terminal.sees(QUESTION);
    terminal.types(CTRL_C);
    terminal.sees("stopped");
    terminal.enters("again");
    terminal.sees("Next turn.");
    leaves(terminal);
    assert!(!test.work().join("f").exists());
    let asked = test.model.asked();
    assert_eq!(asked.len(), 2, "the turn ended without another request");
    let results: Vec<String> = asked[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "tool")
        .map(|m| m["content"].to_string())
        .collect();
    assert_eq!(results.len(), 1, "{results:?}");
    assert!(results[0].contains("rejected by the user") || results[0].contains("cancelled by the user"), "{results:?}");
}

#[test]
fn one_prompt_at_a_terminal_asks_about_what_is_beyond_the_mode() {
    let test = Test::new([bash("cat /etc/hostname"), says("Done.")]).args(["go"]);
    let mut terminal = test.terminal();
    let question = terminal.sees(QUESTION);
    assert!(question.contains("/etc/hostname"), "{question}");
    terminal.types("r");
    terminal.sees("Done.");
    terminal.ends(0);
    assert_eq!(last_content(&test.model.asked()[1]), "[command rejected by the user]");
}

#[test]
fn what_destroys_work_says_so_and_cannot_be_granted() {
    let test = Test::new([bash("rm -rf src"), says("Done.")]).file("src/x", "x");
    let mut terminal = asked(&test);
    let question = terminal.sees(QUESTION);
    assert!(!question.contains("s: "), "{question}");
    terminal.types("r");
    terminal.sees("Done.");
    leaves(terminal);
    assert!(test.work().join("src/x").exists());
}

#[test]
fn a_question_names_its_call_and_where_it_would_run() {
    let both = all(&[("bash", json!({"command": "touch a"})), ("bash", json!({"command": "touch b"}))]);
    let test = Test::new([both, says("Done.")]);
    let here = test.work().to_str().unwrap().to_owned();
    let mut terminal = asked(&test);
    for (own, other) in [("bash: touch a", "bash: touch b"), ("bash: touch b", "bash: touch a")] {
        let question = terminal.sees(QUESTION);
        assert!(question.rfind(own) > question.rfind(other), "{question}");
        assert!(question.contains(&format!("  in {here}\r\n")), "{question}");
        terminal.types("r");
    }
    terminal.sees("Done.");
    leaves(terminal);
}

#[test]
fn nothing_is_hidden_in_what_is_asked_about() {
    let answers = [
        bash("touch f # \u{202e}x\u{200b}\u{1b}[8m\r"),
        calls("write_file", &json!({"path": "\u{2066}f", "content": "a\u{202e}b\n"})),
        says("Done."),
    ];
    let test = Test::new(answers).settings("editTools: true\n").env("NO_COLOR", "1");
    let mut terminal = asked(&test);
    let question = terminal.sees(QUESTION);
    let shown = r"bash: touch f # \u{202e}x\u{200b}\u{1b}[8m\u{d}";
    assert_eq!(question.matches(shown).count(), 2, "in the header and in the question: {question}");
    terminal.types("r");
    let question = terminal.sees(QUESTION);
    assert!(question.contains(r"write_file: \u{2066}f") && question.contains(r"+1 a\u{202e}b"), "{question}");
    terminal.types("r");
    terminal.sees("Done.");
    leaves(terminal);
}

#[test]
fn a_long_call_is_cut_and_a_question_says_how_much_is_missing() {
    let lines: String = (0..300).map(|n| format!("touch f{n}\n")).collect();
    let test = Test::new([bash(&lines), bash(&format!("touch {}", "x".repeat(30_000))), says("Done.")]);
    let mut terminal = asked(&test);
    let question = terminal.sees(QUESTION);
    assert!(question.contains("touch f19…\r\n"), "the header is short: {question}");
    assert!(question.contains("touch f199\r\n") && !question.contains("touch f200"), "{question}");
    assert!(question.contains("in 100 line(s))"), "{question}");
    terminal.types("r");
    let question = terminal.sees(QUESTION);
    assert!(question.contains("x…\r\n") && question.contains("not shown: 10006 more characters"), "{question}");
    assert!(question.matches('x').count() < 30_000, "{}", question.len());
    terminal.types("r");
    terminal.sees("Done.");
    leaves(terminal);
}
