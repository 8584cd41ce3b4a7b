//! Much at once: an editor that does not read, and a hundred sessions.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::editor::{Editor, Test, lives, sleep, until};
use crate::model::{Answer, bash, says};

/// What the server may hold while nobody reads, in bytes.
const MEMORY: u64 = 60 << 20;

/// What the server holds, and the most that it ever held, in bytes.
fn memory(editor: &Editor) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", editor.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn an_editor_that_does_not_read_costs_no_memory_and_can_stop() {
    let sleep = sleep(601);
    let command = format!("yes 0123456789abcdef0123456789abcdef | head -c 1000000000; touch printed; {sleep}");
    let test = Test::new([bash(&command)]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    editor.until("the command", |f| f.update().is_some_and(|update| update["status"] == "in_progress"));
    editor.pauses_reading(true);
    until("1 GB is printed", || test.read("printed").is_some());
    assert!(memory(&editor) < MEMORY, "{} MiB", memory(&editor) >> 20);
    assert!(lives(&sleep));
    editor.cancel(&session);
    until("the end of the command", || !lives(&sleep));
    editor.pauses_reading(false);
    assert_eq!(editor.turn(id).stop(), "cancelled");
    assert!(memory(&editor) < MEMORY, "{} MiB", memory(&editor) >> 20);
}

#[test]
fn a_model_is_asked_for_no_more_than_the_editor_reads() {
    let flood = "word ".repeat(200_000);
    let test = Test::minded(move |_| Answer::Says(vec![flood.clone()]));
    let mut editor = test.editor();
    let sessions = [editor.begin(), editor.begin()];
    editor.pauses_reading(true);
    let ids: Vec<u64> = (0..80).map(|at| editor.prompts(&sessions[at % 2], "go")).collect();
    std::thread::sleep(Duration::from_millis(1500));
    let asked = test.model.asked().len();
    assert!(asked <= 4, "{asked} answers of 1 MB wait to be read");
    assert!(memory(&editor) < MEMORY, "{} MiB", memory(&editor) >> 20);
    sessions.iter().for_each(|session| editor.cancel(session));
    editor.pauses_reading(false);
    let stops: Vec<String> = ids.into_iter().map(|id| editor.turn(id).stop().to_owned()).collect();
    assert!(stops.iter().skip(4).all(|stop| stop == "cancelled"), "{stops:?}");
}

#[test]
fn a_hundred_sessions_work_at_once() {
    let test = Test::minded(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let answer = match last["role"].as_str() {
            Some("tool") => says(&format!("done {}", crate::model::last_content(request).trim())),
            _ => bash(&format!("echo {}", crate::model::last_content(request))),
        };
        Answer::Late(Duration::from_millis(300), Box::new(answer))
    });
    let mut editor = test.editor();
    editor.consent = Some("allow");
    let sessions: Vec<String> = (0..100).map(|_| editor.begin()).collect();
    let begun = Instant::now();
    let ids: Vec<u64> =
        sessions.iter().enumerate().map(|(at, session)| editor.prompts(session, &format!("number-{at}"))).collect();
    until("all are asked at once", || test.model.asked().len() >= 100);
    for (at, id) in ids.into_iter().enumerate() {
        let turn = editor.turn(id);
        assert_eq!((turn.said(), turn.stop()), (format!("done number-{at}"), "end_turn"));
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(memory(&editor) < 2 * MEMORY, "{} MiB", memory(&editor) >> 20);
    assert_eq!(editor.call("session/list", json!({})).unwrap()["sessions"].as_array().unwrap().len(), 50);
}
