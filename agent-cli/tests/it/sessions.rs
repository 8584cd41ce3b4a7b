//! Sessions on the disk: going on, copies, none at all, and files that are none.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::model::{bash, conversation, says};
use crate::run::Test;

fn told(model: &crate::model::Model, request: usize) -> Vec<String> {
    conversation(&model.asked()[request]).into_iter().map(|(_, text)| text).collect()
}

fn id(log: &Path) -> String {
    log.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

/// The numbers of a log's lines.
fn numbers(log: &Path) -> Vec<u64> {
    let lines = fs::read_to_string(log).unwrap();
    lines.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["seq"].as_u64().unwrap()).collect()
}

/// A place where one turn was had.
fn begun() -> Test {
    let test = Test::new([says("First answer."), says("Second answer.")]).args(["first"]);
    test.run().code(0).stdout("First answer.\n");
    test
}

const BOTH: [&str; 3] = ["first", "First answer.", "second"];

#[test]
fn a_session_goes_on() {
    let by_id = |test: &Test| vec!["--resume".to_owned(), id(&test.log())];
    let by_path = |test: &Test| vec!["--resume".to_owned(), test.log().to_str().unwrap().to_owned()];
    let by_directory = |test: &Test| vec!["--resume".into(), test.log().parent().unwrap().to_str().unwrap().into()];
    let last = |_: &Test| vec!["--continue".to_owned()];
    for ways in [&by_id as &dyn Fn(&Test) -> Vec<String>, &by_path, &by_directory, &last] {
        let test = begun();
        let args = ways(&test);
        let (log, before) = (test.log(), fs::read(test.log()).unwrap());
        let test = test.again(args.clone()).args(["second"]);
        test.run().code(0).stdout("Second answer.\n");
        assert_eq!(told(&test.model, 1), BOTH, "{args:?}");
        assert_eq!(test.log(), log);
        assert!(fs::read(&log).unwrap().starts_with(&before), "what was there is kept");
        assert!(numbers(&log).into_iter().eq(1..=numbers(&log).len() as u64), "{:?}", numbers(&log));
    }
}

#[test]
fn a_copy_leaves_the_session_as_it_was() {
    for with_id in [true, false] {
        let test = begun();
        let (log, before) = (test.log(), fs::read(test.log()).unwrap());
        let args = if with_id { vec!["--resume".to_owned(), id(&log)] } else { Vec::new() };
        let test = test.again(args).args(["--fork", "second"]);
        test.run().code(0).stdout("Second answer.\n");
        assert_eq!(told(&test.model, 1), BOTH);
        assert_eq!(fs::read(&log).unwrap(), before);
        let copy = test.logs().into_iter().find(|l| *l != log).unwrap();
        assert!(fs::read(&copy).unwrap().starts_with(&before));
        assert!(numbers(&copy).into_iter().eq(1..=numbers(&copy).len() as u64));
    }
}

#[test]
fn no_session_leaves_nothing() {
    let test = Test::new([bash("echo x"), says("ok")]).args(["go", "--no-session"]);
    test.run().code(0).stdout("ok\n");
    assert_eq!(test.logs(), Vec::<std::path::PathBuf>::new());

    let test = begun();
    let before = fs::read(test.log()).unwrap();
    let test = test.again(["--no-session", "--continue", "second"]);
    test.run().code(0);
    assert_eq!(told(&test.model, 1), BOTH);
    assert_eq!(fs::read(test.log()).unwrap(), before);
}

#[test]
fn the_last_session_is_that_of_this_project() {
    let test = begun();
    let other = test.work().join("other");
    fs::create_dir(&other).unwrap();
    let test = test.again(["--continue", "second", "--cwd", "other"]);
    test.run().code(0).tells(&["new session"]);
    assert_eq!(told(&test.model, 1), ["second"]);
    assert_eq!(test.logs().len(), 2);
}

#[test]
fn a_session_of_another_project_is_found_by_its_id() {
    let test = begun().file("other/x", "");
    let id = id(&test.log());
    let test = test.again(["--cwd", "other", "--resume", &id, "second"]);
    test.run().code(0);
    assert_eq!(told(&test.model, 1), BOTH);
}

#[test]
fn what_is_no_session_is_named_and_left_alone() {
    let test = begun()
        .file("poem/log.jsonl", "roses are red\nviolets are blue\n")
        .file("json/log.jsonl", "{\"type\":\"message\",\"role\":\"user\"}\n{\"type\":\"other\"}\n")
        .file("binary/log.jsonl", [0xff, 0xfe, 0, 1])
        .file("notes.txt", "notes")
        .file("empty/x", "");
    for (name, wanted) in [
        ("2026-01-01-none", "there is no session 2026-01-01-none"),
        ("./nowhere/log.jsonl", "there is no session ./nowhere/log.jsonl"),
        ("poem/log.jsonl", "is no session"),
        ("json/log.jsonl", "is no session"),
        ("binary/log.jsonl", "is no session"),
        ("./notes.txt", "is no session"),
        ("./empty", "reading the session ./empty/log.jsonl"),
    ] {
        let file = test.work().join(name);
        let before = fs::read(&file).ok();
        let out = test.command().args(["--resume", name, "second"]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(wanted) && said.contains("error: "), "{name}: {said}");
        assert_eq!(fs::read(&file).ok(), before, "{name}");
    }
    assert_eq!(test.model.asked().len(), 1);
}

#[test]
fn a_log_that_was_torn_goes_on_with_what_is_whole() {
    let test = begun();
    let mut log = fs::read(test.log()).unwrap();
    log.extend_from_slice(br#"{"type":"text","conte"#);
    fs::write(test.log(), &log).unwrap();
    let test = test.again(["--continue", "second"]);
    test.run().code(0).stdout("Second answer.\n").tells(&["damaged"]);
    assert_eq!(told(&test.model, 1), BOTH);
}

#[test]
fn a_session_is_looked_for_before_a_model() {
    let test = Test::new([]).args(["go", "--resume", "nope"]).unset("OPENAI_BASE_URL").unset("OPENAI_API_KEY");
    test.run().code(2).tells(&["there is no session nope", "hint: "]).conceals(&["odel"]);
}

#[test]
fn a_session_that_cannot_be_saved_is_told_with_its_path_and_the_way_round() {
    let test = Test::new([says("ok")]).args(["go"]);
    let sessions = test.settings_file().with_file_name("sessions");
    fs::write(&sessions, "in the way").unwrap();
    test.run().code(1).stdout("").tells(&["could not be saved", sessions.to_str().unwrap(), "--no-session"]);
    let test = test.args(["--no-session"]);
    test.run().code(0).stdout("ok\n");
}
