//! A turn: what the model says and thinks, what it costs, how it ends, in which order all of it comes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::editor::{Test, said};
use crate::model::{Answer, bash, conversation, says};

/// A stream of these deltas that ends for this reason.
fn stream(deltas: &[Value], reason: &str) -> Answer {
    let event = |delta: &Value, reason: Value| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
    };
    let deltas: String = deltas.iter().map(|delta| event(delta, Value::Null)).collect();
    let body = format!("{deltas}{}data: [DONE]\n\n", event(&json!({}), json!(reason)));
    Answer::Http("200 OK", "text/event-stream", body)
}

#[test]
fn n138_an_answer_comes_in_pieces_that_are_one_message() {
    let long = "word ".repeat(5000);
    let test = Test::new([says(&long), says("five")]);
    let (mut editor, session) = test.session();
    let turn = editor.prompt(&session, "count");
    let chunks = turn.of("agent_message_chunk");
    assert!(chunks.len() >= 2, "{chunks:?}");
    assert_eq!((turn.said(), turn.stop()), (long, "end_turn"));
    let id = &chunks[0]["messageId"];
    assert!(id.is_string() && chunks.iter().all(|chunk| chunk["messageId"] == *id), "#47: {chunks:?}");
    let next = editor.prompt(&session, "more");
    assert_ne!(next.of("agent_message_chunk")[0]["messageId"], *id);
}

#[test]
fn thoughts_are_thoughts() {
    let thinks = stream(
        &[json!({"reasoning_content": "let me "}), json!({"reasoning_content": "see"}), json!({"content": "so"})],
        "stop",
    );
    let test = Test::new([thinks]);
    let (mut editor, session) = test.session();
    let turn = editor.prompt(&session, "think");
    assert_eq!(said(&turn.updates, "agent_thought_chunk"), "let me see");
    assert_eq!(turn.said(), "so");
}

#[test]
fn n17_n18_nothing_of_a_turn_comes_behind_its_answer() {
    let long = "word ".repeat(2000);
    let test = Test::new([says(&long), says("x"), bash("seq 1 5000"), says("done")]);
    let (mut editor, session) = test.session();
    assert_eq!(editor.prompt(&session, "long").said(), long);
    editor.hears_nothing();
    editor.prompt(&session, "again");
    editor.hears_nothing();
    editor.consent = Some("allow");
    editor.prompt(&session, "run");
    editor.hears_nothing();
}

#[test]
fn the_ways_a_turn_ends() {
    let limits = |text: &str| text.to_owned();
    for (row, settings, answers, stop) in [
        ("done", limits(""), vec![says("x")], "end_turn"),
        ("cut", limits(""), vec![stream(&[json!({"content": "x"})], "length")], "max_tokens"),
        ("refused", limits(""), vec![stream(&[json!({"content": "x"})], "content_filter")], "refusal"),
        ("limit", limits("maxTurns: 1\n"), vec![bash("true"), says("x")], "max_turn_requests"),
    ] {
        let test = Test::new(answers).settings(&settings);
        let (mut editor, session) = test.session();
        editor.consent = Some("allow");
        let turn = editor.prompt(&session, "go");
        assert_eq!(turn.answer.map(|a| a["stopReason"].clone()), Ok(json!(stop)), "{row}");
    }
}

#[test]
fn n39_what_the_provider_says_reaches_the_person() {
    for (row, status, body, code, kind) in [
        ("rate", "429 Too Many Requests", "You are out of quota until noon", -32603, "rate_limited"),
        ("key", "401 Unauthorized", "Incorrect key", -32000, "auth"),
        ("model", "404 Not Found", "no such model m", -32603, "not_found"),
        ("invalid", "400 Bad Request", "tools are wrong", -32603, "invalid"),
    ] {
        let body = json!({"error": {"message": body}}).to_string();
        let answers =
            std::iter::repeat_n(Answer::Http(status, "application/json\r\nretry-after-ms: 1", body.clone()), 20);
        let test = Test::new(answers);
        let (mut editor, session) = test.session();
        let error = editor.prompt(&session, "go").answer.unwrap_err();
        let message = error["message"].as_str().unwrap();
        let said: Value = serde_json::from_str(&body).unwrap();
        assert!(message.contains(said["error"]["message"].as_str().unwrap()), "{row}: {error}");
        assert_eq!((&error["code"], &error["data"]["errorKind"]), (&json!(code), &json!(kind)), "{row}");
    }
}

#[test]
fn a_session_lives_on_after_an_error() {
    let refusal = Answer::Http("400 Bad Request", "text/plain", "no".into());
    let test = Test::new([refusal, says("better")]);
    let (mut editor, session) = test.session();
    editor.prompt(&session, "go").answer.unwrap_err();
    let turn = editor.prompt(&session, "again");
    assert_eq!((turn.said().as_str(), turn.stop()), ("better", "end_turn"));
}

#[test]
fn usage_and_cost_are_told_and_in_the_answer() {
    let test = Test::new([bash("true"), says("x"), says("y")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    let told = turn.of("usage_update");
    assert!(!told.is_empty());
    let last = told.last().unwrap();
    assert_eq!(last["size"], 1_050_000, "{last}");
    assert!(last["used"].as_u64().unwrap() >= 18, "{last}");
    assert_eq!(last["cost"]["currency"], "USD");
    // Twice 11 tokens in and 7 out of gpt-5.5.
    let cost = 2.0 * (11.0 * 5.0 + 7.0 * 30.0) / 1e6;
    assert!((last["cost"]["amount"].as_f64().unwrap() - cost).abs() < 1e-9, "{last}");
    let usage = &turn.answer.unwrap()["usage"];
    assert_eq!(
        (&usage["inputTokens"], &usage["outputTokens"], &usage["totalTokens"]),
        (&json!(22), &json!(14), &json!(36))
    );
    let usage = &editor.prompt(&session, "more").answer.unwrap()["usage"];
    assert_eq!(usage["totalTokens"], 18, "a turn's own");
}

#[test]
fn a_session_gets_the_title_of_its_first_prompt_once() {
    let test = Test::new([says("x"), says("y")]);
    let (mut editor, session) = test.session();
    let turn = editor.prompt(&session, "mend  the\nroof");
    let titles: Vec<&Value> = turn.of("session_info_update").iter().map(|update| &update["title"]).collect();
    assert_eq!(titles, [&json!("mend the roof")]);
    assert!(editor.prompt(&session, "and the door").of("session_info_update").is_empty());
}

#[test]
fn prompts_wait_for_each_other() {
    let late = Answer::Late(Duration::from_millis(100), Box::new(says("first")));
    let test = Test::new([late, says("second"), says("third")]);
    let (mut editor, session) = test.session();
    let ids = ["one", "two", "three"].map(|text| editor.prompts(&session, text));
    let turns = ids.map(|id| editor.turn(id));
    assert!(turns.iter().all(|turn| turn.stop() == "end_turn"));
    let answers: Vec<&Value> = editor
        .frames
        .iter()
        .filter(|f| f.message["result"]["stopReason"].is_string())
        .map(|f| &f.message["id"])
        .collect();
    assert_eq!(answers, ids.iter().map(|id| json!(id)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    let told: Vec<String> = conversation(&test.model.asked()[2]).into_iter().map(|(_, text)| text).collect();
    assert_eq!(told, ["one", "first", "two", "second", "three"]);
}

#[test]
fn what_is_too_much_to_wait_is_refused_at_once() {
    let test = Test::new([Answer::Stalls("Half".into())]);
    let (mut editor, session) = test.session();
    let ids: Vec<u64> = (0..110).map(|_| editor.prompts(&session, "go")).collect();
    let (code, last) = (-32600, *ids.last().unwrap());
    assert_eq!(editor.answer(last).unwrap_err()["code"], code);
    editor.cancel(&session);
    let answers: Vec<Result<Value, Value>> = ids.into_iter().map(|id| editor.answer(id)).collect();
    let cancelled = answers.iter().filter(|a| a.as_ref().is_ok_and(|a| a["stopReason"] == "cancelled")).count();
    let refused = answers.iter().filter(|a| a.as_ref().is_err_and(|e| e["code"] == code)).count();
    assert_eq!((cancelled, refused), (100, 10));
}

#[test]
fn a_turn_that_runs_is_steered() {
    let test = Test::new([bash("sleep 0.4"), says("turned")]);
    let (mut editor, session) = test.session();
    let blocks = json!([{"type": "text", "text": "to the left"}]);
    let steer = json!({"sessionId": session, "prompt": blocks});
    assert_eq!(editor.call("_session/steering", steer.clone()).unwrap()["outcome"], "promptRequired");
    editor.consent = Some("allow");
    let id = editor.prompts(&session, "go");
    editor.until("the command", |f| f.update().is_some_and(|update| update["status"] == "in_progress"));
    assert_eq!(editor.call("_session/steering", steer).unwrap()["outcome"], "injected");
    assert_eq!(editor.turn(id).said(), "turned");
    assert!(test.model.asked()[1].to_string().contains("to the left"));
}

#[test]
fn the_client_adds_to_the_system_prompt_or_takes_its_place() {
    for (mode, keeps) in [("append", true), ("override", false)] {
        let test = Test::new([says("x")]);
        let mut editor = test.editor();
        let prompt = json!({"mode": mode, "content": [{"type": "text", "text": "Speak like a pirate."}]});
        let new = json!({"cwd": test.work(), "mcpServers": [], "systemPrompt": prompt});
        let session = editor.call("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
        editor.prompt(&session, "hi");
        let asked = test.model.asked();
        let with = asked[0]["messages"][0]["content"].as_str().unwrap().to_owned();
        assert!(with.contains("Speak like a pirate."), "{mode}");
        let plain = Test::new([says("x")]);
        let (mut editor, session) = plain.session();
        editor.prompt(&session, "hi");
        let without = plain.model.asked()[0]["messages"][0]["content"].as_str().unwrap().to_owned();
        let first = without.lines().find(|line| line.len() > 20).unwrap();
        assert_eq!(with.contains(first), keeps, "{mode}: {first}");
    }
}

#[test]
fn the_todo_list_is_the_clients_plan() {
    let todos = json!({"todos": [
        {"content": "look", "status": "completed"},
        {"content": "do", "status": "in_progress"},
        {"content": "check", "status": "pending"},
    ]});
    let test = Test::new([crate::model::calls("TodoWrite", &todos), says("x")]).full();
    let (mut editor, session) = test.session();
    let turn = editor.prompt(&session, "go");
    let plan = turn.of("plan");
    let entries: Vec<(&str, &str)> = plan[0]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["content"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    assert_eq!(entries, [("look", "completed"), ("do", "in_progress"), ("check", "pending")]);
    assert!(turn.questions.is_empty());
    // And again when it is loaded.
    let (live, from) = (plan[0].clone(), editor.frames.len());
    let again = editor.again(&session);
    editor.call("session/load", again).unwrap();
    let told = editor.frames[from..].iter().filter_map(|f| f.update()).filter(|u| u["sessionUpdate"] == "plan");
    assert_eq!(told.collect::<Vec<_>>(), [&live], "#23");
}
