//! What is typed while the agent works, and a terminal that wakes up by itself.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::model::{Answer, bash, calls, conversation, says};
use crate::pty::{CTRL_C, CTRL_D, PROMPT, Terminal};
use crate::run::{Test, until};

const CTRL_O: &str = "\u{f}";
/// A command that waits until the test lets it go on. It says that it runs: before, a terminal's Ctrl-C would still reach it.
const WAITS: &str = "touch began; until [ -e go ]; do sleep 0.02; done; echo waited";

/// A turn that runs until `goes_on`, and what the model says after it.
fn working(answers: impl IntoIterator<Item = Answer>) -> (Test, Terminal) {
    let test = Test::new([bash(WAITS)]).answers(answers).args(["--permissions", "auto"]);
    let mut terminal = test.terminal();
    terminal.enters("begin");
    terminal.sees("echo waited\r\n");
    until("the command runs", || test.work().join("began").exists());
    (test, terminal)
}

fn goes_on(test: &Test) {
    fs::write(test.work().join("go"), "").unwrap();
}

/// Types, and waits until it is shown.
#[track_caller]
fn types(terminal: &mut Terminal, keys: &str, shown: &str) {
    terminal.types(keys);
    terminal.sees(shown);
}

#[track_caller]
fn leaves(mut terminal: Terminal) -> String {
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0)
}

/// What a person said last in a request.
fn last_said(request: &serde_json::Value) -> String {
    conversation(request).into_iter().rfind(|(role, _)| role == "user").unwrap().1
}

#[test]
fn a_line_waits_and_is_the_next_prompt() {
    let (test, mut terminal) = working([says("One."), says("Two."), says("Three.")]);
    types(&mut terminal, "second", "\u{bb} second");
    types(&mut terminal, "\r", "queued: second");
    types(&mut terminal, "third", "\u{bb} third");
    types(&mut terminal, "\r", "queued: third");
    goes_on(&test);
    for shown in ["waited", "One.", "> second", "Two.", "> third", "Three."] {
        terminal.sees(shown);
    }
    leaves(terminal);
    let said: Vec<String> = test.model.asked().iter().map(last_said).collect();
    assert_eq!(said, ["begin", "begin", "second", "third"]);
}

#[test]
fn output_waits_while_a_line_is_typed_and_the_turn_goes_on() {
    let (test, mut terminal) = working([says("One."), says("Two.")]);
    types(&mut terminal, "half", "\u{bb} half");
    goes_on(&test);
    until("the turn goes on", || test.model.asked().len() == 2);
    assert!(!terminal.all().contains("    waited"), "{:?}", terminal.all());
    // Where the turn ends meanwhile the text is at the prompt.
    terminal.sees("One.");
    terminal.sees("> half");
    types(&mut terminal, " a thought\r", "Two.");
    leaves(terminal);
    assert_eq!(last_said(&test.model.asked()[2]), "half a thought");
}

#[test]
fn output_goes_on_when_the_line_is_left() {
    for key in ["\u{1b}", "\u{15}", "\u{7f}\u{7f}"] {
        let (test, mut terminal) = working([Answer::Stalls("One.".into())]);
        types(&mut terminal, "no", "\u{bb} no");
        goes_on(&test);
        until("the turn goes on", || test.model.asked().len() == 2);
        types(&mut terminal, key, "waited");
        terminal.sees("One.");
        types(&mut terminal, CTRL_C, "stopped");
        leaves(terminal);
    }
}

#[test]
fn ctrl_o_says_it_at_the_next_step() {
    let (test, mut terminal) = working([says("One.")]);
    types(&mut terminal, "use tabs", "\u{bb} use tabs");
    types(&mut terminal, CTRL_O, "for the next request: use tabs");
    // What waits is said as well, the oldest first.
    terminal.types("and spaces\r");
    terminal.sees("queued: and spaces");
    types(&mut terminal, CTRL_O, "for the next request: and spaces");
    terminal.types(CTRL_O);
    goes_on(&test);
    terminal.sees("waited");
    terminal.sees("[you → now] use tabs");
    terminal.sees("[you → now] and spaces");
    terminal.sees("One.");
    leaves(terminal);
    let asked = test.model.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(last_said(&asked[1]), "use tabs\n\nand spaces");
    let log = fs::read_to_string(test.log()).unwrap();
    assert!(log.contains(r#""type":"user_input","content":"use tabs""#), "{log}");
}

#[test]
fn ctrl_c_clears_then_stops_and_nothing_that_waits_is_lost() {
    let (test, mut terminal) = working([says("One.")]);
    types(&mut terminal, "later\r", "queued: later");
    types(&mut terminal, "now", "\u{bb} now");
    types(&mut terminal, CTRL_O, "for the next request: now");
    types(&mut terminal, "no", "\u{bb} no");
    types(&mut terminal, CTRL_C, "^C");
    types(&mut terminal, CTRL_C, "stopped");
    // The text stands in the prompt, to be edited.
    terminal.sees(PROMPT);
    terminal.sees("later");
    types(&mut terminal, "!\r", "One.");
    leaves(terminal);
    assert_eq!(last_said(&test.model.asked()[1]), "now\nlater!");
}

#[test]
fn a_failed_turn_keeps_what_waits() {
    let refused = Answer::Http("401 Unauthorized", "application/json", r#"{"error":{"message":"bad key"}}"#.into());
    let (test, mut terminal) = working([refused, says("One.")]);
    types(&mut terminal, "later\r", "queued: later");
    goes_on(&test);
    terminal.sees("error: ");
    terminal.sees("> later");
    types(&mut terminal, "\r", "One.");
    leaves(terminal);
}

#[test]
fn pasted_lines_are_one_entry_and_wide_characters_are_erased_whole() {
    let (test, mut terminal) = working([says("One."), says("Two."), says("Three.")]);
    types(&mut terminal, "\u{1b}[200~one\ntwo\u{1b}[201~", "\u{bb} one⏎two");
    types(&mut terminal, "\r", "queued: one⏎two");
    types(&mut terminal, "漢字", "\u{bb} 漢字");
    types(&mut terminal, "\u{7f}x", "\u{8}\u{8}  \u{8}\u{8}x");
    types(&mut terminal, "\r", "queued: 漢x");
    goes_on(&test);
    terminal.sees("Three.");
    leaves(terminal);
    let said: Vec<String> = test.model.asked().iter().skip(2).map(last_said).collect();
    assert_eq!(said, ["one\ntwo", "漢x"]);
}

#[test]
fn a_question_takes_its_keys_alone() {
    let (test, mut terminal) = working([bash("cat /etc/hostname"), says("One."), says("Two.")]);
    types(&mut terminal, "half a", "\u{bb} half a");
    goes_on(&test);
    let shown = terminal.sees("[a/s/r] ");
    assert!(shown.contains("waited"), "what waited is shown before: {shown:?}");
    types(&mut terminal, "r", "\u{bb} half a");
    types(&mut terminal, " thought\r", "queued: half a thought");
    terminal.sees("One.");
    terminal.sees("Two.");
    leaves(terminal);
    let asked = test.model.asked();
    assert_eq!(crate::model::last_content(&asked[2]), "[command rejected by the user]");
    assert_eq!(last_said(&asked[3]), "half a thought");
}

#[test]
fn commands_wait_as_well() {
    let (test, mut terminal) = working([says("One.")]);
    types(&mut terminal, "/cost\r", "queued: /cost");
    types(&mut terminal, "/quit\r", "queued: /quit");
    goes_on(&test);
    terminal.sees("2 requests");
    terminal.ends(0);
}

#[test]
fn signals_leave_the_terminal_as_it_was_whatever_is_typed() {
    for signal in [Signal::TERM, Signal::HUP] {
        let (_test, mut terminal) = working([]);
        types(&mut terminal, "half a thought", "\u{bb} half a thought");
        terminal.signal(signal);
        terminal.ends(130);
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_what_is_typed_comes_back() {
    let test = Test::new([bash(WAITS), says("One."), says("Two.")]).args(["--permissions", "auto"]);
    // A shell with jobs: it gets the terminal as it was, and `fg` goes on.
    let mut shell = std::process::Command::new("bash");
    for (name, value) in test.command().get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let agent = format!("{} --toolset lean --permissions auto", env!("CARGO_BIN_EXE_agent"));
    shell.args(["--norc", "--noediting", "-i"]).env("PS1", "shell: ").current_dir(test.work());
    let mut terminal = Terminal::start(shell);
    terminal.sees("shell: ");
    terminal.types(&format!("{agent}\n"));
    terminal.enters("begin");
    terminal.sees("echo waited\r\n");
    types(&mut terminal, "half a", "\u{bb} half a");
    types(&mut terminal, "\u{1a}", "shell: ");
    types(&mut terminal, "echo $((40+2)) here\n", "42 here");
    types(&mut terminal, "fg\n", "\u{bb} half a");
    types(&mut terminal, " thought\r", "queued: half a thought");
    goes_on(&test);
    terminal.sees("Two.");
    terminal.sees("> ");
    types(&mut terminal, CTRL_D, "shell: ");
    terminal.types("exit\n");
    terminal.ends(0);
}

#[test]
fn a_terminal_without_cursor_keeps_lines_by_itself() {
    let test = Test::new([bash(WAITS), says("One."), says("Two.")]).args(["--permissions", "auto"]).env("TERM", "dumb");
    let mut terminal = test.terminal();
    terminal.enters("begin");
    terminal.sees("echo waited\r\n");
    terminal.types("next\n");
    goes_on(&test);
    terminal.sees("Two.");
    terminal.types(CTRL_D);
    let all = terminal.ends(0);
    assert!(!all.contains("[?2004h"), "{all:?}");
    assert_eq!(last_said(&test.model.asked()[2]), "next");
}

#[test]
fn too_much_that_waits_is_printed_above_the_line() {
    let much = "x".repeat((1 << 20) + 1);
    let waits = json!({"command": "until [ -e end ]; do sleep 0.02; done"}).to_string();
    let (test, mut terminal) = working([Answer::SaysAndCalls(much, vec![("bash".into(), waits)]), says("One.")]);
    types(&mut terminal, "half", "\u{bb} half");
    goes_on(&test);
    terminal.sees("waited");
    terminal.sees("xxx");
    types(&mut terminal, " a", "\u{bb} half");
    fs::write(test.work().join("end"), "").unwrap();
    terminal.sees("One.");
    terminal.sees("> half a");
    terminal.types("\u{15}");
    terminal.types(CTRL_D);
    terminal.ends(0);
}

#[test]
fn an_idle_terminal_wakes_up_for_a_background_command() {
    let background = json!({"command": WAITS, "background": true});
    let test = Test::new([calls("Bash", &background), says("It runs."), says("It is built."), says("Two.")]).full();
    let test = test.args(["--permissions", "allow"]);
    let mut terminal = test.terminal();
    terminal.enters("begin");
    terminal.sees("It runs.");
    terminal.drafts("half a");
    goes_on(&test);
    terminal.sees("[bg-bash ");
    terminal.sees("It is built.");
    terminal.sees("> half a");
    types(&mut terminal, " thought\r", "Two.");
    terminal.sees(PROMPT);
    // Ctrl-C still counts as one.
    types(&mut terminal, CTRL_C, "Ctrl-C again");
    leaves(terminal);
    let asked = test.model.asked();
    assert!(last_said(&asked[2]).contains("exit_code=0"), "{}", asked[2]);
    assert_eq!(last_said(&asked[3]), "half a thought");
}
