//! `agent sessions rewind`: back to before a turn, from the command line.

use std::fs;

use serde_json::json;

use crate::model::{calls, conversation, says};
use crate::run::Test;

fn write(text: &str) -> crate::model::Answer {
    calls("Write", &json!({"path": "a.txt", "content": text}))
}

#[test]
fn a_session_goes_back_with_a_preview_and_not_over_what_a_person_changed() {
    let test = Test::new([write("one"), says("first"), write("two"), says("second")]).full().args([
        "--permissions",
        "allow",
        "write one",
    ]);
    test.run().code(0);
    let id = test.log().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let test = test.again(["--permissions", "allow", "--continue", "write two"]);
    test.run().code(0);
    let file = test.work().join("a.txt");

    let preview = ["sessions", "rewind", &id, "2", "--dry-run"];
    let test = test.again(preview);
    let told = test.run().code(0).stdout;
    assert!(told.starts_with("to before turn 2: write two\n"), "{told}");
    assert!(told.contains("a.txt is put back\n"), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");

    fs::write(&file, "mine").unwrap();
    let test = test.again(["sessions", "rewind", &id, "2"]);
    test.run().code(2).tells(&["1 of the files were changed", "a.txt was changed by somebody else since", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

    let test = test.again(["sessions", "rewind", &id, "2", "--force"]);
    test.run().code(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    let test = test.answers([says("third")]).again(["--continue", "what now?"]);
    test.run().code(0);
    let asked = conversation(test.model.asked().last().unwrap());
    let said: Vec<&str> = asked.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!((said.len(), said[0], said[3], said[4]), (5, "write one", "first", "what now?"));

    let test = test.again(["sessions", "rewind", &id, "9"]);
    test.run().code(2).tells(&["there is no turn 9: this session has 2", "1  write one", "2  what now?"]);
    let test = test.again(["sessions", "rewind", &id, "1", "--files"]);
    test.run()
        .code(0)
        .stdout(&format!("the files are those of before turn 1\n  {} is removed: it was made since\n", file.display()));
    assert!(!file.exists());
}
