//! What a person chooses: modes, models, efforts; each way in step with the others; and plans.

use serde_json::{Value, json};

use crate::editor::{Editor, Test, text_of};
use crate::model::{Answer, bash, calls, says};

/// The value of an option among these.
fn value<'o>(options: &'o Value, id: &str) -> &'o Value {
    options.as_array().unwrap().iter().find(|option| option["id"] == id).map_or(&Value::Null, |o| &o["currentValue"])
}

/// What can be chosen.
fn choices(options: &Value, id: &str) -> Vec<String> {
    let option = options.as_array().unwrap().iter().find(|option| option["id"] == id).unwrap();
    option["options"].as_array().unwrap().iter().map(|choice| choice["value"].as_str().unwrap().to_owned()).collect()
}

fn new(editor: &mut Editor, test: &Test) -> (String, Value) {
    let new = editor.call("session/new", json!({"cwd": test.work(), "mcpServers": []})).unwrap();
    (new["sessionId"].as_str().unwrap().to_owned(), new)
}

fn set(editor: &mut Editor, session: &str, id: &str, value: &str) -> Value {
    let params = json!({"sessionId": session, "configId": id, "value": value});
    editor.call("session/set_config_option", params).unwrap()["configOptions"].clone()
}

#[test]
fn modes_and_options_say_the_same() {
    for (full, modes) in [(false, vec!["ask", "auto", "allow"]), (true, vec!["ask", "auto", "plan", "allow"])] {
        let test = if full { Test::new([]).full() } else { Test::new([]) };
        let mut editor = test.editor();
        let (session, new) = new(&mut editor, &test);
        let offered: Vec<&str> = new["modes"]["availableModes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|mode| mode["id"].as_str().unwrap())
            .collect();
        assert_eq!(offered, modes, "n140, #36");
        assert_eq!(choices(&new["configOptions"], "mode"), modes);
        assert_eq!(
            (&new["modes"]["currentModeId"], value(&new["configOptions"], "mode")),
            (&json!("ask"), &json!("ask"))
        );
        let categories: Vec<&Value> = new["configOptions"].as_array().unwrap().iter().map(|o| &o["category"]).collect();
        assert_eq!(categories[..2], [&json!("mode"), &json!("model")]);

        // Whichever way it is set, the other is told.
        editor.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).unwrap();
        let told = editor.update("config_option_update");
        assert_eq!(value(&told["configOptions"], "mode"), "auto");
        let all = set(&mut editor, &session, "mode", "allow");
        assert_eq!(value(&all, "mode"), "allow");
        assert_eq!(all.as_array().unwrap().len(), new["configOptions"].as_array().unwrap().len(), "the complete list");
        assert_eq!(editor.update("current_mode_update")["currentModeId"], "allow");
        editor.hears_nothing();

        let (code, _) = match full {
            true => continue,
            false => editor.fails("session/set_mode", json!({"sessionId": session, "modeId": "plan"})),
        };
        assert_eq!(code, -32602, "a toolset without plans has no mode for them");
    }
}

#[test]
fn a_mode_holds_from_the_next_call_on() {
    let test = Test::new([bash("touch a"), bash("touch b"), bash("touch c"), says("x")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let question = editor.question();
    // While the turn runs.
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "allow"})).unwrap();
    editor.choose(&question, "reject");
    let turn = editor.turn(id);
    assert_eq!(turn.questions.len(), 1);
    assert_eq!([test.read("a").is_some(), test.read("b").is_some(), test.read("c").is_some()], [false, true, true]);
}

#[test]
fn auto_asks_beyond_the_ceiling_only() {
    let test = Test::new([bash("touch a"), bash("touch ../elsewhere/b"), says("x")]);
    let (mut editor, session) = test.session();
    set(&mut editor, &session, "mode", "auto");
    editor.consent = Some("reject");
    let turn = editor.prompt(&session, "go");
    let asked: Vec<&Value> = turn.questions.iter().map(|question| &question["toolCall"]["title"]).collect();
    assert_eq!(asked, [&json!("touch ../elsewhere/b")]);
    assert!(test.read("a").is_some() && !test.elsewhere().join("b").exists());
}

#[test]
fn n35_n37_models_are_those_of_the_server_and_one_is_chosen_for_the_next_prompt() {
    let test = Test::new([bash("true"), says("x"), says("y")]);
    test.model.has(&["gpt-5.5", "own-model"]);
    let mut editor = test.editor();
    let (session, new) = new(&mut editor, &test);
    assert_eq!(*value(&new["configOptions"], "model"), "openai/gpt-5.5");
    assert!(!choices(&new["configOptions"], "model").contains(&"openai/own-model".to_owned()), "nobody was asked yet");
    let told = editor.update("config_option_update");
    let listed = choices(&told["configOptions"], "model");
    assert!(
        ["openai/gpt-5.5", "openai/own-model"].iter().all(|id| listed.iter().filter(|l| l == id).count() == 1),
        "{listed:?}"
    );

    let id = editor.prompts(&session, "go");
    let question = editor.question();
    let all = set(&mut editor, &session, "model", "openai/own-model");
    assert_eq!(*value(&all, "model"), "openai/own-model");
    assert_eq!(*value(&all, "thought_level"), Value::Null, "nobody knows that this model takes an effort");
    editor.choose(&question, "allow");
    editor.turn(id);
    editor.prompt(&session, "again");
    let asked: Vec<String> =
        test.model.asked().iter().map(|asked| asked["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(asked, ["gpt-5.5", "gpt-5.5", "own-model"], "the turn that ran kept its model");
}

#[test]
fn an_effort_is_for_models_that_take_one() {
    for (model, takes) in [("gpt-5.5", true), ("gpt-4o", false), ("nobody-knows", false)] {
        let test = Test::new([says("x"), says("y")]).settings(&format!("model: {model}\n"));
        let mut editor = test.editor();
        let (session, new) = new(&mut editor, &test);
        let options = &new["configOptions"];
        assert_eq!(!value(options, "thought_level").is_null(), takes, "{model}: {options}");
        if !takes {
            let params = json!({"sessionId": session, "configId": "thought_level", "value": "high"});
            assert_eq!(editor.fails("session/set_config_option", params).0, -32602);
            continue;
        }
        assert_eq!(*value(options, "thought_level"), "default");
        let level = options.as_array().unwrap().iter().find(|o| o["id"] == "thought_level").unwrap();
        assert_eq!(level["category"], "thought_level");
        editor.prompt(&session, "one");
        let all = set(&mut editor, &session, "thought_level", "low");
        assert_eq!(*value(&all, "thought_level"), "low");
        editor.prompt(&session, "two");
        let asked = test.model.asked();
        assert_eq!((&asked[0]["reasoning_effort"], &asked[1]["reasoning_effort"]), (&Value::Null, &json!("low")));
    }
}

#[test]
fn options_that_are_on_or_off_are_for_clients_that_know_them() {
    for (capabilities, offered) in [(json!({}), false), (json!({"session": {"configOptions": {"boolean": {}}}}), true)]
    {
        let test = Test::new([]).capable(capabilities);
        let mut editor = test.editor();
        let (session, new) = new(&mut editor, &test);
        assert_eq!(*value(&new["configOptions"], "compact"), if offered { json!(true) } else { Value::Null });
        if offered {
            let off = json!({"sessionId": session, "configId": "compact", "type": "boolean", "value": false});
            let all = editor.call("session/set_config_option", off).unwrap();
            assert_eq!(*value(&all["configOptions"], "compact"), false);
        }
    }
}

/// Where the plan is drafted, as the model was told.
fn draft(test: &Test) -> String {
    let asked = test.model.asked();
    let system = asked.last().unwrap()["messages"][0]["content"].as_str().unwrap().to_owned();
    system.split("Plan draft: ").nth(1).unwrap().lines().next().unwrap().trim().to_owned()
}

#[test]
fn a_plan_is_made_shown_and_agreed_to_before_anything_is_changed() {
    let test = Test::new([says("hello")]).full().file("f", "text\n");
    let (mut editor, session) = test.session();
    editor.prompt(&session, "hi");
    let draft = draft(&test);
    set(&mut editor, &session, "mode", "plan");
    test.model.add([
        calls("Bash", &json!({"command": "touch m"})),
        calls("Write", &json!({"path": "n", "content": "x"})),
        calls("Read", &json!({"path": "f"})),
        calls("Write", &json!({"path": draft, "content": "1. dance\n2. sing\n"})),
        calls("PlanConfirm", &json!({})),
        says("a plan was made"),
        calls("Write", &json!({"path": "n", "content": "x"})),
        says("done"),
    ]);
    let id = editor.prompts(&session, "plan it");
    let question = editor.question();
    let call = &question["params"]["toolCall"];
    assert_eq!(call["kind"], "switch_mode", "nothing else was asked about: {call}");
    assert!(text_of(call).contains("1. dance\n2. sing"), "it shows the plan: {}", text_of(call));
    assert_eq!((test.read("m"), test.read("n")), (None, None), "nothing but reading ran");
    let told = test.model.asked()[1].to_string();
    assert!(told.contains("wants a plan first") && told.contains(&draft), "the model knows");
    editor.choose(&question, "allow");
    // The mode is that of before; what is changed now is asked about again.
    let question = editor.question();
    assert_eq!(question["params"]["toolCall"]["title"], "Write n");
    let told: Vec<Value> = editor
        .frames
        .iter()
        .filter_map(|f| f.update())
        .filter(|u| u["sessionUpdate"] == "current_mode_update")
        .map(|u| u["currentModeId"].clone())
        .collect();
    assert_eq!(told, [json!("plan"), json!("ask")]);
    editor.choose(&question, "allow");
    let turn = editor.turn(id);
    assert_eq!((turn.stop(), test.read("n").as_deref()), ("end_turn", Some("x")));
    let status = |title: &str| {
        let call = turn.calls().into_iter().find(|call| call["title"].as_str().unwrap().starts_with(title)).unwrap();
        turn.end_of(call)["status"].as_str().unwrap().to_owned()
    };
    assert_eq!([status("touch m"), status("Read f"), status("PlanConfirm")], ["failed", "completed", "completed"]);
}

#[test]
fn the_plan_is_a_page_for_clients_that_show_one() {
    for shows in [true, false] {
        let capabilities = if shows { json!({"plan": {}}) } else { json!({}) };
        let test = Test::new([says("hello")]).full().args(["--permissions", "allow"]).capable(capabilities);
        let (mut editor, session) = test.session();
        editor.prompt(&session, "hi");
        let write = |text: &str| calls("Write", &json!({"path": draft(&test), "content": text}));
        test.model.add([
            write("1. dance\n"),
            write("1. sing\n"),
            calls("PlanConfirm", &json!({})),
            says("a plan was made"),
            calls("PlanClear", &json!({})),
            says("it was done"),
            says("done"),
        ]);
        let turn = editor.prompt(&session, "plan it");
        let told: Vec<&str> = turn.of("plan_update").iter().map(|u| u["plan"]["content"].as_str().unwrap()).collect();
        let expect = if shows { vec!["1. dance\n", "1. sing\n", "1. sing\n"] } else { Vec::new() };
        assert_eq!(told, expect);
        assert_eq!(turn.of("plan_removed").len(), usize::from(shows));
    }
}

#[test]
fn a_plan_that_is_not_agreed_to_changes_nothing() {
    let test = Test::new([says("hello")]).full();
    let (mut editor, session) = test.session();
    editor.prompt(&session, "hi");
    let draft = draft(&test);
    set(&mut editor, &session, "mode", "plan");
    editor.update("current_mode_update");
    test.model.add([
        calls("Write", &json!({"path": draft, "content": "1. dance\n"})),
        calls("PlanConfirm", &json!({})),
        calls("Write", &json!({"path": "n", "content": "x"})),
        says("well"),
    ]);
    editor.consent = Some("reject");
    let turn = editor.prompt(&session, "plan it");
    assert_eq!((turn.questions.len(), turn.stop()), (1, "end_turn"));
    assert_eq!(test.read("n"), None);
    assert!(turn.of("current_mode_update").is_empty(), "still planning");
}

#[test]
fn what_a_client_did_not_ask_for_it_is_not_told() {
    let limited = || Answer::Http("429 Too Many Requests", "text/plain\r\nretry-after-ms: 1", "slow down".into());
    for (capabilities, told) in [(json!({}), false), (json!({"session": {"notices": {}}}), true)] {
        let test = Test::new([limited(), says("x"), bash("true")]).capable(capabilities).args(["--set", "maxTurns=1"]);
        let (mut editor, session) = test.session();
        editor.consent = Some("allow");
        let turn = editor.prompt(&session, "go");
        let notices = turn.of("notice");
        assert_eq!(
            notices.iter().any(|n| n["severity"] == "warning" && n["title"].as_str().unwrap().contains("slow down")),
            told,
            "#48: {notices:?}"
        );
        let turn = editor.prompt(&session, "again");
        let notices = turn.of("notice");
        assert_eq!(notices.iter().any(|n| n["title"].as_str().unwrap().contains("maxTurns")), told, "{notices:?}");
        assert_eq!(turn.stop(), "max_turn_requests");
        let on_stderr = editor.end();
        assert_eq!(on_stderr.contains("slow down"), !told, "{on_stderr}");
    }
}

#[test]
fn compactions_and_sub_agents_are_shown_to_clients_that_know_them() {
    for (capabilities, compactions, sub_agents) in
        [(json!({}), 0, 0), (json!({"session": {"compaction": {}}}), 1, 0), (json!({"subagents": {}}), 0, 2)]
    {
        let test =
            Test::minded(|request| match request.to_string().contains("Summarize") || request["tools"].is_null() {
                true => says("a summary"),
                false => crate::model::delegates(request, "echo sub"),
            })
            .full()
            .capable(capabilities.clone());
        let (mut editor, session) = test.session();
        editor.consent = Some("allow");
        let turn = editor.prompt(&session, "main task");
        let told = turn.of("subagent_update");
        assert_eq!(told.len(), sub_agents, "{capabilities}");
        if let [begun, ended] = told[..] {
            assert_eq!((&begun["title"], &begun["subagentId"]), (&json!("helper"), &ended["subagentId"]));
            assert_eq!(ended["state"], json!({"state": "idle", "stopReason": "end_turn"}), "{ended}");
        }
        editor.prompt(&session, "more words");
        let turn = editor.prompt(&session, "/compact");
        assert_eq!(turn.of("compaction_update").len(), compactions, "{capabilities}: {:?}", turn.updates);
        let known = ["compaction_update", "subagent_update", "notice"];
        let strange = turn.updates.iter().filter(|u| known.contains(&u["sessionUpdate"].as_str().unwrap())).count();
        assert_eq!(strange, compactions, "#48");
    }
}
