//! What a prompt may hold, and how it reaches the model.

use serde_json::{Value, json};

use crate::editor::Test;
use crate::model::says;

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(kind: &str) -> Value {
    json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": kind})
}

#[test]
fn blocks_reach_the_model() {
    let embedded = json!({"type": "resource", "resource": {"uri": "file:///w/notes.md", "text": "remember the milk"}});
    let link = json!({"type": "resource_link", "name": "main.rs", "uri": "file:///w/src/main%20x.rs"});
    let blob = json!({"type": "resource", "resource": {"uri": "file:///w/p.png", "blob": "iVBORw0KGgo=", "mimeType": "image/png"}});
    for (row, model, blocks, has) in [
        ("texts", "gpt-5.5", json!([text("one "), text("two")]), vec!["one two"]),
        ("embedded", "gpt-5.5", json!([text("see"), embedded]), vec!["remember the milk", "file:///w/notes.md"]),
        ("link", "gpt-5.5", json!([text("see"), link]), vec!["/w/src/main x.rs"]),
        (
            "#38 picture",
            "gpt-5.5",
            json!([text("see"), image("image/png")]),
            vec!["image_url", "data:image/png;base64,iVBORw0KGgo="],
        ),
        (
            "#38 picture as a resource",
            "gpt-5.5",
            json!([text("see"), blob]),
            vec!["data:image/png;base64,iVBORw0KGgo="],
        ),
        (
            "a model without eyes",
            "deepseek-chat",
            json!([text("see"), image("image/png")]),
            vec!["cannot be seen by this model"],
        ),
        ("unknown picture", "gpt-5.5", json!([text("see"), image("image/bmp")]), vec!["is no PNG"]),
        ("unknown command", "gpt-5.5", json!([text("/nonsense is a path")]), vec!["/nonsense is a path"]),
    ] {
        let test = Test::new([says("x")]).settings(&format!("model: {model}\n"));
        let (mut editor, session) = test.session();
        let id = editor.prompts_blocks(&session, &blocks);
        assert_eq!(editor.turn(id).stop(), "end_turn", "{row}");
        let asked = test.model.asked();
        let last = asked[0]["messages"].as_array().unwrap().last().unwrap().to_string();
        for has in has {
            assert!(last.contains(has), "{row}: {last}");
        }
    }
}

#[test]
fn what_was_not_offered_is_refused() {
    let test = Test::new([says("alive")]);
    let (mut editor, session) = test.session();
    let audio = json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"});
    for (row, blocks) in [
        ("audio", json!([text("hear"), audio])),
        ("unknown", json!([{"type": "smell", "data": "AA=="}])),
        ("blank", json!([text("  \n")])),
        ("text without text", json!([{"type": "text"}])),
    ] {
        let error = editor.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).unwrap_err();
        assert_eq!(error["code"], -32602, "{row}: {error}");
    }
    assert_eq!(editor.prompt(&session, "hi").said(), "alive");
    assert_eq!(test.model.asked().len(), 1);
}

#[test]
fn long_lines_are_read() {
    let test = Test::new([says("x")]);
    let (mut editor, session) = test.session();
    let long = "a long text ".repeat(200_000);
    assert_eq!(editor.prompt(&session, &long).stop(), "end_turn");
    assert!(test.model.asked()[0].to_string().contains(&long));
}
