//! Sessions on the disk: told again, gone on with, copied, listed, deleted; and shared with the terminal.

use std::fs;

use agent_core::SessionId;
use agent_core::session::Sessions;
use serde_json::{Value, json};

use crate::editor::{Editor, Test, said, sleep, until};
use crate::model::{Answer, bash, calls, conversation, says};

/// A session with a turn of everything, and the server that had it is gone.
fn begun() -> (Test, String) {
    let thinks = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "hm", "content": "Let me see."}}]});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "call_0", "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\":\"echo out\"}"}}]}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let body = format!("data: {thinks}\n\ndata: {call}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let test = Test::new([
        Answer::Http("200 OK", "text/event-stream", body),
        calls("write_file", &json!({"path": "f", "content": "new\n"})),
        calls("read_file", &json!({"path": "f"})),
        says("First answer."),
    ])
    .settings("editTools: true\n");
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    assert_eq!(editor.prompt(&session, "first").stop(), "end_turn");
    editor.end();
    (test, session)
}

/// Opens a session, and gives what was told before the answer, and the answer.
fn open(editor: &mut Editor, method: &str, params: &Value) -> (Vec<Value>, Value) {
    let from = editor.frames.len();
    let id = editor.request(method, params);
    let answer = editor.answer(id).unwrap();
    let end = editor.frames.iter().position(|f| f.from_agent && f.message["id"] == id).unwrap();
    (editor.frames[from..end].iter().filter_map(|f| f.update().cloned()).collect(), answer)
}

#[test]
fn n22_n23_load_tells_all_of_it_again_before_it_answers() {
    let (test, session) = begun();
    let mut editor = test.editor();
    let params = editor.again(&session);
    let (told, answer) = open(&mut editor, "session/load", &params);
    assert!(answer["modes"].is_object() && answer["configOptions"].is_array() && answer.get("sessionId").is_none());
    assert_eq!(said(&told, "user_message_chunk"), "first");
    assert_eq!(said(&told, "agent_thought_chunk"), "hm");
    assert_eq!(said(&told, "agent_message_chunk"), "Let me see.First answer.");
    let starts: Vec<&Value> = told.iter().filter(|u| u["sessionUpdate"] == "tool_call").collect();
    let shown: Vec<(&str, &str)> =
        starts.iter().map(|c| (c["title"].as_str().unwrap(), c["kind"].as_str().unwrap())).collect();
    assert_eq!(shown, [("echo out", "execute"), ("write_file f", "edit"), ("read_file f", "read")]);
    let diff = &starts[1]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["newText"], &diff["path"]),
        (&json!("diff"), &json!("new\n"), &json!(test.work().join("f")))
    );
    let ids: Vec<&Value> = starts.iter().map(|call| &call["toolCallId"]).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "#24: each call has an id of its own: {ids:?}");
    for call in &starts {
        let ends: Vec<&Value> =
            told.iter().filter(|u| u["toolCallId"] == call["toolCallId"] && u["status"] == "completed").collect();
        assert_eq!(ends.len(), 1, "{call}");
    }
    test.model.add([bash("echo more"), says("Second answer.")]);
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "second");
    assert_eq!(turn.said(), "Second answer.");
    assert!(!ids.contains(&&turn.calls()[0]["toolCallId"]), "a new call has a new id");
    let told: Vec<String> =
        conversation(test.model.asked().last().unwrap()).into_iter().map(|(role, _)| role).collect();
    assert_eq!(told.iter().filter(|role| *role == "user").count(), 2);
    assert!(turn.of("session_info_update").is_empty(), "it has its title");
}

#[test]
fn the_ids_of_messages_are_the_same_when_told_again() {
    let test = Test::new([says("one"), says("two"), says("three")]);
    let (mut editor, session) = test.session();
    let live: Vec<Value> = ["a", "b"].iter().flat_map(|text| editor.prompt(&session, text).updates).collect();
    let ids = |updates: &[Value]| -> Vec<Value> {
        let chunks = updates.iter().filter(|u| u["sessionUpdate"] == "agent_message_chunk");
        chunks.map(|u| json!([u["content"]["text"], u["messageId"]])).collect()
    };
    let params = editor.again(&session);
    let (again, _) = open(&mut editor, "session/load", &params);
    let mut all: Vec<Value> = again.iter().filter_map(|u| u.get("messageId").cloned()).collect();
    all.dedup();
    assert_eq!(all.len(), 4, "each message has its own: {all:?}");
    editor.end();
    let mut editor = test.editor();
    let (later, _) = open(&mut editor, "session/load", &params);
    assert_eq!(ids(&again), ids(&later), "whoever tells it");
    let next = editor.prompt(&session, "c");
    assert!(!all.contains(&next.of("agent_message_chunk")[0]["messageId"]));
    assert_eq!(said(&live, "agent_message_chunk"), "onetwo");
}

#[test]
fn resume_tells_nothing_again() {
    let (test, session) = begun();
    let mut editor = test.editor();
    let (told, answer) = open(&mut editor, "session/resume", &json!({"sessionId": session, "cwd": test.work()}));
    assert_eq!(told, Vec::<Value>::new());
    assert!(answer["configOptions"].is_array());
    test.model.add([says("Second answer.")]);
    assert_eq!(editor.prompt(&session, "second").said(), "Second answer.");
    let told = conversation(test.model.asked().last().unwrap());
    assert_eq!((told[0].1.as_str(), told.last().unwrap().1.as_str()), ("first", "second"));
}

#[test]
fn a_prompt_right_behind_load_waits_for_it() {
    for method in ["session/load", "session/resume"] {
        let (test, session) = begun();
        test.model.add([says("Second answer.")]);
        let mut editor = test.editor();
        let again = editor.again(&session);
        let (load, prompt) = (editor.request(method, &again), editor.prompts(&session, "second"));
        editor.answer(load).unwrap();
        assert_eq!(editor.turn(prompt).answer.unwrap()["stopReason"], "end_turn", "{method}");
        let at = |id: u64| editor.frames.iter().position(|f| f.from_agent && f.message["id"] == id).unwrap();
        // Words come in as many pieces as they like.
        let begins = |update: &Value| update["content"]["text"].as_str().is_some_and(|text| text.starts_with("Second"));
        let told = editor.frames.iter().position(|frame| frame.update().is_some_and(begins)).unwrap();
        assert!(at(load) < told && told < at(prompt));
        assert_eq!(conversation(test.model.asked().last().unwrap())[0].1, "first");
    }
    // Behind one that fails it is answered too.
    let test = Test::new([]);
    let mut editor = test.editor();
    let again = editor.again("nope");
    let (load, prompt) = (editor.request("session/load", &again), editor.prompts("nope", "x"));
    assert_eq!(editor.answer(load).unwrap_err()["code"], -32002);
    assert_eq!(editor.answer(prompt).unwrap_err()["code"], -32002);
}

#[test]
fn a_cancel_right_behind_load_and_prompt_is_not_lost() {
    let (test, session) = begun();
    test.model.add([Answer::Stalls("Half".into())]);
    let mut editor = test.editor();
    let again = editor.again(&session);
    editor.request("session/load", &again);
    let prompt = editor.prompts(&session, "second");
    editor.cancel(&session);
    assert_eq!(editor.turn(prompt).stop(), "cancelled");
}

#[test]
fn what_is_typed_right_behind_load_is_answered_behind_it() {
    let (test, session) = begun();
    let mut editor = test.editor();
    let again = editor.again(&session);
    let load = editor.request("session/load", &again);
    let prompts = ["/cost", "/help"].map(|typed| editor.prompts(&session, typed));
    let twice = editor.request("session/load", &again);
    prompts.iter().for_each(|id| assert_eq!(editor.turn(*id).stop(), "end_turn"));
    assert!(editor.answer(twice).is_ok(), "loaded twice at once it is one session");
    let answers: Vec<u64> =
        editor.frames.iter().filter(|f| f.from_agent).filter_map(|f| f.message["id"].as_u64()).collect();
    let own: Vec<u64> = answers.into_iter().filter(|id| [load, prompts[0], prompts[1]].contains(id)).collect();
    assert_eq!(own, [load, prompts[0], prompts[1]]);
}

#[test]
fn a_copy_goes_its_own_way() {
    let (test, session) = begun();
    let before = fs::read(test.stores()[0].join("log.jsonl")).unwrap();
    let mut editor = test.editor();
    let (told, answer) =
        open(&mut editor, "session/fork", &json!({"sessionId": session, "cwd": test.work(), "mcpServers": []}));
    assert_eq!(told, Vec::<Value>::new());
    let copy = answer["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, session);
    test.model.add([says("Second answer.")]);
    editor.prompt(&copy, "second");
    assert_eq!(conversation(test.model.asked().last().unwrap())[0].1, "first");
    let log = test.stores().into_iter().find(|store| store.ends_with(&session)).unwrap();
    assert_eq!(fs::read(log.join("log.jsonl")).unwrap(), before);
}

#[test]
fn a_copy_is_made_while_a_turn_runs() {
    let command = sleep(410);
    let test = Test::minded(move |request| match request.to_string().contains("in the copy") {
        true => says("Here."),
        false => bash(&command),
    });
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    editor.runs(&sleep(410));
    let fork = json!({"sessionId": session, "cwd": test.work(), "mcpServers": []});
    let copy = editor.call("session/fork", fork).unwrap()["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(editor.prompt(&copy, "in the copy").said(), "Here.");
    assert_eq!(test.model.faults(), Vec::<String>::new(), "no call is left without a result");
    editor.cancel(&session);
    assert_eq!(editor.turn(id).stop(), "cancelled");
}

#[test]
fn what_another_process_has_is_not_deleted() {
    let test = Test::new([says("one"), says("two")]);
    let (mut first, session) = test.session();
    first.prompt(&session, "go");
    let mut second = test.editor();
    let (_, error) = second.fails("session/delete", json!({"sessionId": session}));
    assert!(error["message"].as_str().unwrap().contains("in use"), "{error}");
    assert_eq!(first.prompt(&session, "again").said(), "two");
    assert_eq!(test.stores().len(), 1);
}

#[test]
fn another_process_has_it() {
    let test = Test::new([says("one"), says("two")]);
    let (mut first, session) = test.session();
    first.prompt(&session, "go");
    let mut second = test.editor();
    for method in ["session/load", "session/resume"] {
        let again = second.again(&session);
        let (code, error) = second.fails(method, again);
        assert_eq!((code, &error["data"]["errorKind"]), (-32600, &json!("in_use")), "{error}");
        assert!(error["message"].as_str().unwrap().contains("in use by another process"), "{error}");
    }
    assert_eq!(first.prompt(&session, "again").said(), "two");
    // Closed, it is free.
    first.call("session/close", json!({"sessionId": session})).unwrap();
    let again = second.again(&session);
    second.call("session/load", again).unwrap();
}

#[test]
fn n33_another_directory_holds_from_then_on() {
    let test = Test::new([bash("pwd"), says("x"), bash("pwd"), says("y")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    assert_eq!(crate::editor::text_of(turn.call().1).trim(), test.work().to_str().unwrap());
    let elsewhere = test.elsewhere();
    editor.call("session/load", json!({"sessionId": session, "cwd": elsewhere, "mcpServers": []})).unwrap();
    let turn = editor.prompt(&session, "go");
    assert_eq!(crate::editor::text_of(turn.call().1).trim(), elsewhere.to_str().unwrap());
}

#[test]
fn sessions_are_listed_by_page_and_by_directory() {
    let test = Test::minded(|_| says("x"));
    let mut editor = test.editor();
    for at in 0..53 {
        let session = editor.begin();
        editor.prompt(&session, &format!("work {at}"));
    }
    let elsewhere = editor.begin_in(&test.elsewhere());
    editor.prompt(&elsewhere, "other");
    // Never prompted: nothing that anybody would look for.
    editor.begin();
    let list = |editor: &mut Editor, params: Value| {
        let list = editor.call("session/list", params).unwrap();
        let titles: Vec<String> =
            list["sessions"].as_array().unwrap().iter().map(|s| s["title"].as_str().unwrap().to_owned()).collect();
        (titles, list)
    };
    let (here, _) = list(&mut editor, json!({"cwd": test.elsewhere()}));
    assert_eq!(here, ["other"]);
    let (first, answer) = list(&mut editor, json!({"cwd": test.work()}));
    assert_eq!((first.len(), first[0].as_str()), (50, "work 52"), "the last one first");
    let info = &answer["sessions"][0];
    assert!(info["updatedAt"].as_str().unwrap().ends_with('Z') && info["cwd"] == json!(test.work()), "{info}");
    let (second, answer) = list(&mut editor, json!({"cwd": test.work(), "cursor": answer["nextCursor"]}));
    assert_eq!(second, ["work 2", "work 1", "work 0"]);
    assert_eq!(answer.get("nextCursor").unwrap_or(&Value::Null), &Value::Null);
    let (all, _) = list(&mut editor, json!({}));
    assert_eq!(all.len(), 50);
    assert!(all.contains(&"other".to_owned()));
    let (none, _) = list(&mut editor, json!({"cwd": test.root()}));
    assert_eq!(none, Vec::<String>::new());
}

#[test]
fn what_is_deleted_is_gone() {
    let (test, session) = begun();
    let mut editor = test.editor();
    let again = editor.again(&session);
    editor.call("session/load", again.clone()).unwrap();
    for _ in 0..2 {
        editor.call("session/delete", json!({"sessionId": session})).unwrap();
        assert!(test.stores().is_empty());
    }
    editor.call("session/delete", json!({"sessionId": "never there"})).unwrap();
    editor.call("session/delete", json!({"sessionId": "../../../work"})).unwrap();
    assert!(test.work().exists());
    assert_eq!(editor.fails("session/load", again).0, -32002);
    assert_eq!(editor.call("session/list", json!({})).unwrap()["sessions"], json!([]));
}

#[test]
fn without_sessions_nothing_is_kept() {
    let test = Test::new([says("x")]).args(["--no-session"]);
    let (mut editor, session) = test.session();
    assert_eq!(editor.prompt(&session, "go").stop(), "end_turn");
    editor.end();
    assert!(test.stores().is_empty());
}

#[test]
fn n45_what_is_closed_is_forgotten_and_can_be_opened_again() {
    let test = Test::new([says("x"), says("y")]);
    let (mut editor, session) = test.session();
    editor.prompt(&session, "go");
    editor.call("session/close", json!({"sessionId": session})).unwrap();
    assert_eq!(editor.fails("session/close", json!({"sessionId": session})).0, -32002);
    let params = editor.again(&session);
    let (told, _) = open(&mut editor, "session/load", &params);
    assert_eq!(said(&told, "user_message_chunk"), "go");
    assert_eq!(editor.prompt(&session, "more").said(), "y");
}

#[test]
fn the_log_is_the_one_that_the_terminal_reads() {
    let (test, session) = begun();
    // What `agent --continue` looks for, through the same library.
    let sessions = Sessions::of(&test.root().join("agent/sessions"), &test.work());
    let latest = sessions.latest().unwrap();
    assert!(latest.ends_with(&session));
    let loaded = agent_core::session::load(&fs::read(Sessions::log(&latest)).unwrap());
    assert_eq!(loaded.messages.len(), 8, "prompt, three calls with their results, answer");
    // And the other way round: a log that nobody's editor began.
    let copy = SessionId::named("20250101-000000-0001");
    let to = sessions.directory(&copy);
    fs::create_dir_all(&to).unwrap();
    let log = fs::read_to_string(Sessions::log(&latest)).unwrap().replace(&session, copy.as_str());
    fs::write(Sessions::log(&to), log).unwrap();
    let mut editor = test.editor();
    let params = editor.again(copy.as_str());
    let (told, _) = open(&mut editor, "session/load", &params);
    assert_eq!(said(&told, "user_message_chunk"), "first");
    until("both are listed", || {
        editor.call("session/list", json!({})).unwrap()["sessions"].as_array().unwrap().len() == 2
    });
}

#[test]
fn a_session_that_was_killed_in_a_turn_goes_on() {
    let test = Test::new([bash(&sleep(401)), says("Here again.")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    editor.prompts(&session, "go");
    editor.runs(&sleep(401));
    editor.child.kill().unwrap();
    editor.ended();
    let mut editor = test.editor();
    let params = editor.again(&session);
    let (told, _) = open(&mut editor, "session/load", &params);
    let call = told.iter().find(|u| u["sessionUpdate"] == "tool_call").unwrap();
    let mut ends = told.iter().filter(|u| u["toolCallId"] == call["toolCallId"]).filter_map(|u| u["status"].as_str());
    assert_eq!(ends.next_back(), Some("failed"), "no call is told as one that still runs: {told:?}");
    assert_eq!(editor.prompt(&session, "are you there").said(), "Here again.");
}
