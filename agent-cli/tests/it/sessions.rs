//! Sessions on the disk: going on, copies, none at all, and files that are none.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::model::{bash, conversation, says};
use crate::run::{Test, until};

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

/// A command that waits until the file `go` is in the workspace.
fn waits() -> crate::model::Answer {
    bash("until [ -e go ]; do sleep 0.02; done; echo went")
}

/// Starts a run whose model waits in a command.
fn waiting(test: &Test) -> crate::run::Piped {
    let asked = test.model.asked().len();
    let running = test.start();
    until("the command runs", || test.model.asked().len() > asked && test.logs().iter().any(|log| has_call(log)));
    running
}

/// Whether the last thing in a log is a call.
fn has_call(log: &Path) -> bool {
    fs::read_to_string(log).unwrap_or_default().trim_end().lines().last().is_some_and(|l| l.contains("\"tool_call\""))
}

#[test]
fn a_session_is_in_one_process_and_a_copy_of_it_in_another() {
    let test = Test::new([waits(), says("First answer."), says("Copy's answer.")]).args(["first"]);
    let first = waiting(&test);
    let log = test.log();
    for way in [vec!["--continue".to_owned()], vec!["--resume".to_owned(), id(&log)]] {
        let out = test.command().args(way).arg("second").output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("is in use by another process") && said.contains("--fork goes on in a copy"), "{said}");
    }
    fs::write(test.work().join("go"), "").unwrap();
    first.wait().code(0).stdout("First answer.\n");
    let test = test.file("x", "").again(["--continue", "--fork", "second"]);
    test.run().code(0).stdout("Copy's answer.\n");
    assert_eq!(test.logs().len(), 2);
}

#[test]
fn a_copy_can_be_taken_while_the_session_is_in_use() {
    let test = Test::new([waits(), says("Copy's answer."), says("First answer.")]).args(["first"]);
    let first = waiting(&test);
    let log = test.log();
    let out = test.command().args(["--fork", "second"]).output().unwrap();
    assert_eq!((out.status.code(), out.stdout.as_slice()), (Some(0), &b"Copy's answer.\n"[..]));
    // The call that was open has its answer in the copy, and its own in the session.
    assert!(told(&test.model, 1).iter().any(|text| text.contains("cut off")), "{:?}", told(&test.model, 1));
    fs::write(test.work().join("go"), "").unwrap();
    first.wait().code(0).stdout("First answer.\n");
    assert!(told(&test.model, 2).iter().any(|text| text.contains("went")));
    assert!(numbers(&log).into_iter().eq(1..=numbers(&log).len() as u64));
}

#[test]
fn a_process_that_was_killed_leaves_a_session_that_goes_on() {
    let test = Test::new([waits(), says("Second answer.")]).args(["first"]);
    let mut first = waiting(&test);
    first.child.kill().unwrap();
    first.wait();
    let test = test.again(["--continue", "second"]);
    test.run().code(0).stdout("Second answer.\n").tells(&["1 call was without a result"]);
    let said = told(&test.model, 1);
    assert!(said.contains(&"first".to_owned()) && said.contains(&"second".to_owned()), "{said:?}");
    assert!(said.iter().any(|text| text.contains("cut off")), "{said:?}");
    fs::write(test.work().join("go"), "").unwrap();
}

#[test]
fn a_session_that_was_deleted_while_it_ran_is_made_anew() {
    let test = Test::new([waits(), says("First answer."), says("Second answer.")]).args(["first"]);
    let first = waiting(&test);
    fs::remove_dir_all(test.settings_file().with_file_name("sessions")).unwrap();
    fs::write(test.work().join("go"), "").unwrap();
    first.wait().code(0).stdout("First answer.\n").tells(&["was deleted; it was made anew"]);
    let test = test.again(["--continue", "second"]);
    test.run().code(0).stdout("Second answer.\n").conceals(&["damaged", "without"]);
    let said = told(&test.model, 2);
    assert!(said.contains(&"first".to_owned()) && said.contains(&"First answer.".to_owned()), "{said:?}");
}

#[test]
fn a_session_of_a_newer_program_is_left_as_it_is() {
    let test = begun();
    let log = fs::read_to_string(test.log()).unwrap().replacen("\"version\":1", "\"version\":999", 1);
    fs::write(test.log(), &log).unwrap();
    let test = test.again(["--continue", "second"]);
    test.run().code(2).tells(&["format version 999"]);
    assert_eq!(fs::read_to_string(test.log()).unwrap(), log);
}

#[test]
fn a_session_that_was_begun_elsewhere_goes_on_here() {
    let test = begun().file("other/x", "");
    let log = test.log();
    let moved = test.work().join("taken along");
    fs::create_dir(&moved).unwrap();
    fs::rename(log.parent().unwrap(), moved.join("any name")).unwrap();
    let path = moved.join("any name/log.jsonl").to_str().unwrap().to_owned();
    let test = test.again(["--cwd", "other", "--resume", &path, "second"]);
    test.run().code(0).tells(&["this session was begun in", "it goes on in"]);
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

/// What a sub-command of `agent sessions` prints, and its code.
fn sessions(test: &Test, args: &[&str]) -> (Option<i32>, String, String) {
    let out = test.command().arg("sessions").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// What it prints, where all is well.
#[track_caller]
fn lists(test: &Test, args: &[&str]) -> String {
    let (code, stdout, stderr) = sessions(test, args);
    assert_eq!(code, Some(0), "{args:?} {stderr}");
    stdout
}

fn listed(test: &Test, args: &[&str]) -> Vec<Value> {
    let list: Value = serde_json::from_str(&lists(test, args)).unwrap();
    list["sessions"].as_array().unwrap().clone()
}

/// A place without arguments where two sessions were had: the first with two turns.
fn two_sessions() -> (Test, String, String) {
    let test = begun();
    let first = id(&test.log());
    let test = test.again(["--continue", "second"]);
    test.run().code(0);
    let test = test.answers([says("Another answer.")]).again(["another prompt"]);
    test.run().code(0);
    let second = test.logs().iter().map(|log| id(log)).find(|id| *id != first).unwrap();
    (test.again([""; 0]), first, second)
}

#[test]
fn sessions_are_listed_named_and_gone_on_with_by_name() {
    let (test, first, second) = two_sessions();
    let list = listed(&test, &["--json"]);
    assert_eq!(list.iter().map(|s| s["id"].as_str().unwrap()).collect::<Vec<_>>(), [&second, &first]);
    assert_eq!((&list[1]["turns"], &list[1]["preview"], &list[1]["name"]), (&2.into(), &"first".into(), &Value::Null));
    assert_eq!((&list[1]["agent_request_count"], &list[0]["agent_request_count"]), (&2.into(), &1.into()));
    assert!(list[0]["when"].as_str().unwrap().ends_with('Z'), "{list:?}");

    lists(&test, &["rename", &first, "my first"]);
    let text = lists(&test, &[]);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().next().unwrap().contains("another prompt"), "a name is no use: {text}");
    assert!(text.contains("2 turns  [my first] first"), "{text}");

    let test = test.answers([says("Third answer.")]).again(["--resume", "my first", "third"]);
    test.run().code(0).stdout("Third answer.\n");
    assert_eq!(told(&test.model, 3), ["first", "First answer.", "second", "Second answer.", "third"]);
    let test = test.again([""; 0]);
    assert_eq!(listed(&test, &["--json"])[0]["name"], "my first");
}

#[test]
fn sessions_are_deleted_by_hand_and_by_age() {
    let (test, first, second) = two_sessions();
    for log in test.logs() {
        let file = fs::File::options().append(true).open(&log).unwrap();
        let days = if id(&log) == first { 40 } else { 10 };
        let used = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 24 * 3600);
        file.set_modified(used).unwrap();
    }
    let would = lists(&test, &["clean", "--older-than", "30", "--dry-run"]);
    assert!(would.starts_with(&format!("would delete {first}")) && !would.contains(&second), "{would}");
    assert_eq!(test.logs().len(), 2);
    assert_eq!(lists(&test, &["clean", "--older-than", "30"]), format!("deleted {first}\n"));
    assert_eq!(test.logs().len(), 1);
    assert_eq!(lists(&test, &["delete", &second[..14]]), format!("deleted {second}\n"));
    assert_eq!(test.logs().len(), 0);
    assert!(lists(&test, &[]).starts_with("No sessions"));
}

#[test]
fn a_session_is_written_for_others_to_read() {
    let key = "ghp_aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3aB3";
    let test = Test::new([bash("echo hello"), says("Said hello.")]).args([format!("use {key}")]);
    test.run().code(0);
    let (session, test) = (id(&test.log()), test.again([""; 0]));
    let page = lists(&test, &["export", &session]);
    for expect in
        ["## User\n\nuse [masked: a key of GitHub]", "**bash** command `echo hello`", "hello\n", "Said hello."]
    {
        assert!(page.contains(expect), "{expect} is not in {page}");
    }
    let object: Value = serde_json::from_str(&lists(&test, &["export", &session, "--format", "json"])).unwrap();
    assert_eq!(object["messages"][1]["content"][0]["input"]["command"], "echo hello");
    assert_eq!((&object["turns"], &object["session_id"]), (&1.into(), &session.as_str().into()));
    assert_eq!(lists(&test, &["export", &session, "--out", "page.md"]), "");
    assert_eq!(fs::read_to_string(test.work().join("page.md")).unwrap(), page);
    let (code, _, said) = sessions(&test, &["export", &session, "--out", "page.md"]);
    assert_eq!((code, said.contains("is there already")), (Some(2), true), "{said}");
}

#[test]
fn what_cannot_be_done_with_a_session_is_told() {
    let test = Test::new([waits(), says("ok")]).args(["go"]).file("poem/log.jsonl", "roses\n");
    let running = waiting(&test);
    let session = id(&test.log());
    let test = test.again([""; 0]);
    for (args, code, wanted) in [
        (&["rename", &session, "x"][..], 2, "is in use by another process"),
        (&["delete", &session], 2, "is in use by another process"),
        (&["rename", "nope", "x"], 2, "there is no session nope"),
        (&["delete", "nope"], 2, "there is no session nope"),
        (&["delete", "./poem"], 2, "it is no session that is kept here"),
        (&["export", "./poem"], 2, "it has no line of a log"),
        (&["rename", &session, "a/b"], 2, "none of them a slash"),
        (&["clean"], 2, "--older-than"),
    ] {
        let (exit, stdout, said) = sessions(&test, args);
        assert_eq!((exit, stdout.as_str()), (Some(code), ""), "{args:?} {said}");
        assert!(said.contains(wanted), "{args:?} {said}");
    }
    assert_eq!(fs::read_to_string(test.work().join("poem/log.jsonl")).unwrap(), "roses\n");
    fs::write(test.work().join("go"), "").unwrap();
    running.wait().code(0);
}
