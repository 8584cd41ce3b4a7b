//! Files that are open in the editor and not saved: read and written through it, where it offers that.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::editor::{Editor, Test, diffs_of, text_of};
use crate::model::{Answer, bash, calls, last_content, says};

fn able(reads: bool, writes: bool) -> Value {
    json!({"fs": {"readTextFile": reads, "writeTextFile": writes}})
}

fn read() -> Answer {
    calls("read_file", &json!({"path": "f"}))
}

/// The methods of the editor that were called.
fn called(editor: &Editor) -> Vec<String> {
    let methods = editor.frames.iter().filter(|f| f.from_agent).filter_map(|f| f.message["method"].as_str());
    let mut methods: Vec<String> = methods.filter(|m| m.starts_with("fs/")).map(str::to_owned).collect();
    methods.dedup();
    methods
}

/// A place with a file, and an editor in which it is open and not saved.
fn open(answers: Vec<Answer>, capabilities: Value, unsaved: Option<&str>) -> (Test, Editor, String) {
    let test = Test::new(answers).settings("editTools: true\n").file("f", "saved\n").capable(capabilities);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let buffer = unsaved.map(|text| (test.work().join("f"), text.to_owned()));
    editor.buffers = Some(buffer.into_iter().collect::<BTreeMap<_, _>>());
    (test, editor, session)
}

#[test]
fn n43_what_is_not_saved_is_read_from_editors_that_offer_it() {
    for (row, capabilities, unsaved, expect, asks) in [
        ("offered", able(true, true), Some("unsaved\n"), "unsaved\n", true),
        ("not open", able(true, true), None, "saved\n", true),
        ("not offered", able(false, false), Some("unsaved\n"), "saved\n", false),
        ("writing alone", able(false, true), Some("unsaved\n"), "saved\n", false),
        ("nothing said", json!({}), Some("unsaved\n"), "saved\n", false),
    ] {
        let (test, mut editor, session) = open(vec![read(), says("x")], capabilities, unsaved);
        let turn = editor.prompt(&session, "go");
        assert_eq!(last_content(&test.model.asked()[1]), expect, "{row}");
        assert_eq!(text_of(turn.call().1), expect, "{row}");
        assert_eq!(called(&editor).contains(&"fs/read_text_file".to_owned()), asks, "{row}: {:?}", called(&editor));
    }
}

#[test]
fn n43_behind_a_command_of_ours_the_disk_is_right() {
    let (test, mut editor, session) =
        open(vec![bash("echo changed > f"), read(), says("x")], able(true, true), Some("unsaved\n"));
    editor.prompt(&session, "go");
    assert_eq!(last_content(&test.model.asked()[2]), "changed\n");
}

#[test]
fn n44_changes_go_through_editors_that_offer_it() {
    let edit = || calls("edit_file", &json!({"path": "f", "edits": [{"old": "saved", "new": "SAVED"}]}));
    for (row, capabilities, unsaved, after, writes) in [
        ("offered", able(true, true), Some("unsaved\n"), "unSAVED\n", true),
        ("not offered", able(false, false), Some("unsaved\n"), "SAVED\n", false),
    ] {
        let (test, mut editor, session) = open(vec![edit(), says("x")], capabilities, unsaved);
        let turn = editor.prompt(&session, "go");
        assert_eq!(test.read("f").as_deref(), Some(after), "{row}");
        assert_eq!(diffs_of(turn.call().1)[0]["newText"], after, "{row}");
        assert_eq!(called(&editor).contains(&"fs/write_text_file".to_owned()), writes, "{row}: {:?}", called(&editor));
    }
}

#[test]
fn an_editor_that_does_not_answer_holds_nothing_up() {
    let (test, mut editor, session) = open(vec![read(), says("x")], able(true, true), None);
    editor.buffers = None;
    assert_eq!(editor.prompt(&session, "go").stop(), "end_turn");
    assert_eq!(last_content(&test.model.asked()[1]), "saved\n");
}
