//! Changes of files: diffs, in the question and at the end; what is refused leaves no trace.

use std::fs;

use serde_json::{Value, json};

use crate::editor::{Test, diffs_of};
use crate::model::{Answer, calls, last_content, says};

const REFUSED: &str = "[change rejected by the user]";

struct Row {
    name: &'static str,
    call: Answer,
    /// The file before, and the option that is chosen; none: nobody is to be asked.
    before: Option<&'static str>,
    option: Option<&'static str>,
    /// How the call ends, the old and new text of its diff, and the file.
    status: &'static str,
    diff: Option<(Option<&'static str>, &'static str)>,
    after: Option<&'static str>,
}

fn write(content: &str) -> Answer {
    calls("write_file", &json!({"path": "d/f", "content": content}))
}

fn edit(edits: &Value) -> Answer {
    calls("edit_file", &json!({"path": "d/f", "edits": edits}))
}

#[test]
fn changes_are_shown_whole_asked_about_and_done_as_they_were_shown() {
    let two = || edit(&json!([{"old": "two", "new": "TWO"}]));
    let dry = calls("edit_file", &json!({"path": "d/f", "edits": [{"old": "two", "new": "TWO"}], "dry_run": true}));
    let (g, changed) = (Some("one\ntwo\nthree\n"), "one\nTWO\nthree\n");
    for Row { name, call, before, option, status, diff, after } in [
        Row {
            name: "81 new file",
            call: write("x\n"),
            before: None,
            option: Some("allow"),
            status: "completed",
            diff: Some((None, "x\n")),
            after: Some("x\n"),
        },
        Row {
            name: "81 empty file",
            call: write(""),
            before: None,
            option: Some("allow"),
            status: "completed",
            diff: Some((None, "")),
            after: Some(""),
        },
        Row {
            name: "82 existing",
            call: write("x\n"),
            before: g,
            option: Some("allow"),
            status: "completed",
            diff: Some((g, "x\n")),
            after: Some("x\n"),
        },
        Row {
            name: "83 reject, new",
            call: write("x\n"),
            before: None,
            option: Some("reject"),
            status: "failed",
            diff: None,
            after: None,
        },
        Row {
            name: "83 reject, existing",
            call: write("x\n"),
            before: g,
            option: Some("reject"),
            status: "failed",
            diff: None,
            after: g,
        },
        Row {
            name: "84 same content",
            call: write("one\ntwo\nthree\n"),
            before: g,
            option: None,
            status: "completed",
            diff: None,
            after: g,
        },
        Row {
            name: "108 edit",
            call: two(),
            before: g,
            option: Some("allow"),
            status: "completed",
            diff: Some((g, changed)),
            after: Some(changed),
        },
        Row {
            name: "109 reject",
            call: two(),
            before: g,
            option: Some("reject"),
            status: "failed",
            diff: None,
            after: g,
        },
        Row {
            name: "110 not found",
            call: edit(&json!([{"old": "zzz", "new": "y"}])),
            before: g,
            option: None,
            status: "failed",
            diff: None,
            after: g,
        },
        Row { name: "110 no file", call: two(), before: None, option: None, status: "failed", diff: None, after: None },
        Row { name: "111 dry run", call: dry, before: g, option: None, status: "completed", diff: None, after: g },
    ] {
        let mut test = Test::new([call, says("x")]).settings("editTools: true\n");
        if let Some(before) = before {
            test = test.file("d/f", before);
        }
        let path = json!(test.work().join("d/f"));
        let (mut editor, session) = test.session();
        let id = editor.prompts(&session, "go");
        if let Some(option) = option {
            let question = editor.question();
            let asked = &question["params"]["toolCall"];
            assert_eq!(asked["kind"], "edit", "{name}");
            assert_eq!(asked["locations"][0]["path"], path, "{name}");
            let shown = diffs_of(asked);
            assert_eq!(shown.len(), 1, "{name}: the question shows the diff");
            assert_eq!(shown[0]["path"], path, "{name}");
            assert_eq!(shown[0]["oldText"].as_str(), before, "{name}");
            assert_eq!(test.read("d/f").as_deref(), before, "85 {name}");
            editor.choose(&question, option);
        }
        let turn = editor.turn(id);
        assert_eq!(turn.questions.len(), usize::from(option.is_some()), "{name}");
        let (call, end) = turn.call();
        assert_eq!((&call["kind"], &end["status"]), (&json!("edit"), &json!(status)), "{name}");
        let diffs: Vec<_> =
            diffs_of(end).iter().map(|d| (d["oldText"].as_str(), d["newText"].as_str().unwrap())).collect();
        assert_eq!(diffs, diff.into_iter().collect::<Vec<_>>(), "{name}, #28");
        assert!(diffs_of(end).iter().all(|diff| diff["path"] == path), "{name}");
        assert_eq!(test.read("d/f").as_deref(), after, "{name}");
        if option == Some("reject") {
            assert_eq!(last_content(&test.model.asked()[1]), REFUSED, "{name}");
        }
    }
}

#[test]
fn an_edit_says_where_it_changed() {
    let test = Test::new([edit(&json!([{"old": "three", "new": "3"}])), says("x")])
        .settings("editTools: true\n")
        .file("d/f", "one\ntwo\nthree\n");
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    let locations = &turn.call().1["locations"];
    assert_eq!(*locations, json!([{"path": test.work().join("d/f"), "line": 3}]));
}

#[test]
fn n24_n25_n72_each_session_works_in_its_own_directory() {
    let test = Test::minded(|request| {
        let results = request["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
        match results {
            0 => crate::model::bash("pwd"),
            1 => calls("read_file", &json!({"path": "name"})),
            _ => says("x"),
        }
    })
    .settings("editTools: true\n")
    .file("name", "work");
    fs::create_dir(test.root().join("second")).unwrap();
    fs::write(test.root().join("second/name"), "second").unwrap();
    fs::write(test.elsewhere().join("name"), "elsewhere").unwrap();
    let mut editor = test.editor();
    editor.consent = Some("allow");
    let places = [test.work(), test.root().join("second")];
    let sessions = places.clone().map(|place| editor.begin_in(&place));
    let ids = [0, 1].map(|at| editor.prompts(&sessions[at], "go"));
    for (id, place) in ids.into_iter().zip(&places) {
        let turn = editor.turn(id);
        let calls = turn.calls();
        let texts = [0, 1].map(|at| crate::editor::text_of(turn.end_of(calls[at])));
        assert_eq!(texts[0].trim(), place.to_str().unwrap(), "#32");
        assert_eq!(texts[1], place.file_name().unwrap().to_str().unwrap());
        assert_eq!(calls[1]["locations"][0]["path"], json!(place.join("name")));
    }
}

#[test]
fn n34_further_directories_are_part_of_the_workspace() {
    for further in [true, false] {
        let test = Test::new([calls("write_file", &json!({"path": "../second/f", "content": "x"})), says("x")])
            .settings("editTools: true\n");
        let second = test.root().join("second");
        fs::create_dir(&second).unwrap();
        let mut editor = test.editor();
        let dirs = if further { json!([second]) } else { json!([]) };
        let new = json!({"cwd": test.work(), "mcpServers": [], "additionalDirectories": dirs});
        let session = editor.call("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
        editor.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
        editor.consent = Some("reject");
        let turn = editor.prompt(&session, "go");
        assert_eq!(turn.questions.is_empty(), further);
        assert_eq!(second.join("f").exists(), further);
    }
}

#[test]
fn the_largest_diffs_are_left_out_and_the_change_is_made() {
    let big = "line\n".repeat(100_000);
    let test = Test::new([calls("write_file", &json!({"path": "d/f", "content": big})), says("x")])
        .settings("editTools: true\n");
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    assert_eq!(turn.call().1["status"], "completed");
    assert_eq!(test.read("d/f"), Some(big));
    let most = turn.frames.iter().filter(|f| f.from_agent).map(|f| f.bytes).max().unwrap();
    assert!(most < 1 << 16, "#27: {most}");
}
