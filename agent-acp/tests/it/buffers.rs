//! Buffers that an editor has not saved: a person sees them, so the model does.

use serde_json::json;

use crate::editor::{Editor, Start};
use crate::model::{Answer, calls, says};

fn editor(answers: impl IntoIterator<Item = Answer>, both: bool) -> Editor {
    let caps = json!({"fs": {"readTextFile": true, "writeTextFile": both}});
    let mut editor = Start::default().caps(caps).args(["--permissions", "allow"]).session(answers);
    editor.write("f.txt", "saved\n");
    let path = editor.path("f.txt").canonicalize().unwrap().display().to_string();
    let given = editor.path("f.txt").display().to_string();
    for path in [path, given] {
        editor.buffers.insert(path, "not saved\n".into());
    }
    editor
}

fn wrote(editor: &Editor) -> bool {
    editor.log.iter().any(|message| message["method"] == "fs/write_text_file")
}

#[test]
fn what_is_not_saved_is_read() {
    let mut editor = editor([calls("Read", &json!({"path": "f.txt"})), says("Done.")], true);
    editor.prompt("go");
    assert!(editor.told().contains("not saved"), "{}", editor.told());
}

#[test]
fn what_is_not_saved_is_changed_in_the_editor() {
    let change = calls("Edit", &json!({"path": "f.txt", "old_string": "not saved", "new_string": "changed"}));
    let mut editor = editor([change, says("Done.")], true);
    editor.prompt("go");
    assert!(wrote(&editor));
    assert_eq!(editor.read("f.txt"), "changed\n");
}

#[test]
fn what_is_saved_is_changed_on_the_disk() {
    let change = calls("Edit", &json!({"path": "f.txt", "old_string": "saved", "new_string": "changed"}));
    let mut editor = editor([change, says("Done.")], true);
    // An editor holds lines apart by `\n` alone: that is no difference.
    editor.write("f.txt", "saved\r\nmore\r\n");
    editor.buffers.values_mut().for_each(|text| *text = "saved\nmore\n".into());
    editor.prompt("go");
    assert!(!wrote(&editor));
    assert_eq!(editor.read("f.txt"), "changed\r\nmore\r\n");
}

#[test]
fn behind_a_command_the_disk_is_right() {
    let steps = [
        calls("Bash", &json!({"command": "echo by the command > f.txt"})),
        calls("Read", &json!({"path": "f.txt"})),
        says("Done."),
    ];
    let mut editor = editor(steps, true);
    editor.prompt("go");
    assert!(editor.told().contains("by the command"), "{}", editor.told());
}

#[test]
fn an_editor_that_offers_nothing_is_not_asked() {
    let mut editor = Start::default().session([calls("Read", &json!({"path": "f.txt"})), says("Done.")]);
    editor.write("f.txt", "saved\n");
    editor.prompt("go");
    assert!(editor.log.iter().all(|message| !message["method"].to_string().contains("fs/")));
    assert!(editor.told().contains("saved"));
}
