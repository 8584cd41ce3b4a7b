//! Commands of an interactive session.

use std::fs;

use crate::model::{bash, calls, conversation, says};
use crate::pty::{CTRL_D, PROMPT, Terminal};
use crate::run::{Test, until};

/// Enters a line at the prompt, and gives what was shown up to the next prompt.
#[track_caller]
fn shows(terminal: &mut Terminal, line: &str, wanted: &str) -> String {
    terminal.enters(line);
    terminal.sees(wanted)
}

#[track_caller]
fn leaves(mut terminal: Terminal) -> String {
    terminal.sees(PROMPT);
    terminal.types(CTRL_D);
    terminal.ends(0)
}

fn texts(request: &serde_json::Value) -> Vec<String> {
    conversation(request).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn what_only_tells_asks_no_model() {
    let test = Test::new([says("hi")]).file("skills/review.md", "---\ndescription: How we review\n---\nx\n");
    let mut terminal = test.terminal();
    for (line, wanted) in [
        ("/help", "/resume [ID|NAME]"),
        ("/tools", "bash"),
        ("/skills", "review — How we review"),
        ("/tasks", "there are no background commands"),
        ("/cost", "0 requests"),
        ("/model", "openai/"),
        ("/mode", "permissions ask, bashMode 0467"),
        ("/mode auto 0467", "permissions auto, bashMode 0467"),
        ("/mode 9999", "is not a mode"),
        ("/new things", "/new takes nothing behind it"),
        ("/fork", "there is nothing to copy yet"),
        ("/resume", "there is no session before this one"),
        ("/resume nope", "nope"),
        ("/export", "there is nothing to export"),
        ("/context", "system prompt"),
        ("/rewind", "there is nothing to go back to"),
        ("/rewind 7", "there is no turn 7"),
        ("/rewind x", "that is none of: /rewind"),
    ] {
        shows(&mut terminal, line, wanted);
    }
    assert!(test.model.asked().is_empty());
    shows(&mut terminal, "hello", "hi");
    shows(&mut terminal, "/cost", "11 tokens sent");
    leaves(terminal);
}

#[test]
fn sessions_are_left_and_gone_on_with() {
    let test = Test::new([says("One."), says("Two."), says("Three."), says("Four.")]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "first", "One.");
    let first = test.log();
    let id = first.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    shows(&mut terminal, "/new", "0 messages so far");
    shows(&mut terminal, "second", "Two.");
    let kept = fs::read(&first).unwrap();
    shows(&mut terminal, "/resume", "2 messages so far");
    shows(&mut terminal, &format!("/resume {id}"), "that is this session");
    shows(&mut terminal, "/fork", "2 messages so far");
    shows(&mut terminal, "third", "Three.");
    assert_eq!(fs::read(&first).unwrap(), kept, "the copy is written to, not the session");
    shows(&mut terminal, "/new", "0 messages so far");
    shows(&mut terminal, "fourth", "Four.");
    leaves(terminal);
    let asked = test.model.asked();
    assert_eq!(texts(&asked[1]), ["second"]);
    assert_eq!(texts(&asked[2]), ["first", "One.", "third"]);
    assert_eq!(texts(&asked[3]), ["fourth"]);
    assert_eq!(test.logs().len(), 4);
}

#[test]
fn a_new_mode_holds_from_the_next_call_on() {
    let test = Test::new([bash("touch f"), says("Done.")]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "/mode auto", "permissions auto");
    shows(&mut terminal, "go", "Done.");
    leaves(terminal);
    assert!(test.work().join("f").exists(), "nobody was asked");
}

#[test]
fn the_model_can_be_changed_between_prompts() {
    let test = Test::new([says("One."), says("Two.")]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "first", "One.");
    shows(&mut terminal, "/model another-one", "Using another-one");
    shows(&mut terminal, "/model anthropic/claude", "The provider anthropic needs a key");
    shows(&mut terminal, "second", "Two.");
    leaves(terminal);
    let asked = test.model.asked();
    assert_ne!(asked[0]["model"], "another-one");
    assert_eq!(asked[1]["model"], "another-one");
    assert_eq!(texts(&asked[1]), ["first", "One.", "second"]);
}

#[test]
fn another_session_ends_what_runs_in_the_background() {
    let background = serde_json::json!({"command": "sleep 98.301", "background": true});
    let test = Test::new([calls("Bash", &background), says("It runs.")]).full();
    let test = test.args(["--permissions", "allow"]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "go", "It runs.");
    shows(&mut terminal, "/tasks", "sleep 98.301");
    shows(&mut terminal, "/new", "1 background command(s) of the session before were stopped");
    until("the command is gone", || !crate::pty::lives("sleep 98.301"));
    leaves(terminal);
}

#[test]
fn conversation_and_files_go_back() {
    let write = |content: &str| calls("write_file", &serde_json::json!({"path": "f", "content": content}));
    let test = Test::new([write("one\n"), says("One."), write("two\n"), says("Two."), says("Three."), says("Four.")]);
    let test = test.settings("editTools: true\n").args(["--permissions", "allow"]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "first", "One.");
    shows(&mut terminal, "second", "Two.");
    shows(&mut terminal, "third", "Three.");
    shows(&mut terminal, "/rewind", "   2  second");
    let preview = shows(&mut terminal, "/rewind 2", "does it");
    assert!(preview.contains("to before turn 2: second") && preview.contains("/f is put back"), "{preview}");
    let file = test.work().join("f");
    fs::write(&file, "mine\n").unwrap();
    shows(&mut terminal, "/rewind 2 both", "`force`");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    fs::write(&file, "two\n").unwrap();
    shows(&mut terminal, "/rewind 2 both", "conversation and files are those of before turn 2");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n");
    shows(&mut terminal, "fourth", "Four.");
    leaves(terminal);
    let said = texts(&test.model.asked()[5]);
    assert!(said.contains(&"One.".to_owned()) && !said.contains(&"Two.".to_owned()), "{said:?}");
}

#[test]
fn a_conversation_is_compacted_when_a_person_says_so() {
    let test = Test::new([says("One.")]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "first", "One.");
    // There is hardly anything to summarise; either way the person is told and goes on.
    shows(&mut terminal, "/compact", "compact");
    leaves(terminal);
}

#[test]
fn a_conversation_is_exported_into_a_new_file() {
    let test = Test::new([says("One.")]);
    let mut terminal = test.terminal();
    shows(&mut terminal, "first", "One.");
    shows(&mut terminal, "/export talk.md", "written to talk.md");
    shows(&mut terminal, "/export talk.md", "talk.md is there already");
    shows(&mut terminal, "/export talk.json", "written to talk.json");
    leaves(terminal);
    let page = fs::read_to_string(test.work().join("talk.md")).unwrap();
    assert!(page.contains("first") && page.contains("One."), "{page}");
    let json = fs::read(test.work().join("talk.json")).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&json).unwrap().is_object());
}
