//! Whole conversations, as lines: what an editor sends (`->`) and gets (`<-`). Read them as documentation.

use serde_json::{Value, json};

use crate::editor::Start;
use crate::model::{Answer, calls};

/// The lines that came in, without what differs from run to run.
fn shown(log: &[Value], replace: &[(String, &str)]) -> String {
    let mut text: String = log.iter().map(|message| format!("{message}\n")).collect();
    for (what, with) in replace {
        text = text.replace(what, with);
    }
    text
}

#[test]
fn a_file_is_changed_with_consent() {
    let mut editor = Start::default().session([
        calls("Edit", &json!({"path": "a.txt", "old_string": "red", "new_string": "blue"})),
        Answer::Says(vec!["It is blue now.".into()]),
    ]);
    editor.update("available_commands_update");
    editor.log.clear();
    editor.write("a.txt", "color = red\n");
    editor.prompt("Make it blue");
    let here = editor.work.path().canonicalize().unwrap().display().to_string();
    let given = editor.work.path().display().to_string();
    let replace = [(here, "/work"), (given, "/work"), (editor.session.clone(), "SESSION")];
    insta::assert_snapshot!(shown(&editor.log, &replace));
}
