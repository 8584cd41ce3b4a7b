//! Questions: what they show, what the answers do, and that nothing is done before.

use serde_json::{Value, json};

use crate::editor::{Test, text_of};
use crate::model::{all, bash, calls, delegates, last_content, says};

const REFUSED: &str = "[command rejected by the user]";

#[test]
fn n85_n130_n131_a_question_shows_what_is_meant_before_anything_is_done() {
    let test = Test::new([bash("touch m"), says("x")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let question = editor.question();
    let asked = &question["params"];
    assert_eq!(asked["sessionId"], *session);
    let mut kinds: Vec<&str> =
        asked["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["allow_always", "allow_once", "reject_once"]);
    let call = &asked["toolCall"];
    assert_eq!((&call["kind"], &call["title"]), (&json!("execute"), &json!("touch m")));
    assert_eq!((&call["status"], &call["rawInput"]["command"]), (&json!("pending"), &json!("touch m")));
    let shown = text_of(call);
    assert!(shown.contains("touch m") && shown.contains(test.work().to_str().unwrap()), "{shown}");
    editor.hears_nothing();
    assert_eq!(test.read("m"), None, "130: nothing is done before the answer");
    let told = editor.frames.iter().filter_map(|f| f.update()).any(|update| update["status"] == "in_progress");
    assert!(!told, "#12: in_progress comes behind the answer");
    editor.choose(&question, "allow");
    let turn = editor.turn(id);
    assert!(test.read("m").is_some());
    let (call, _) = turn.call();
    assert_eq!(call["kind"], "execute");
    assert_eq!(call["toolCallId"], question["params"]["toolCall"]["toolCallId"]);
    assert_eq!(turn.statuses(call), ["pending", "in_progress", "completed"]);
}

#[test]
fn n132_what_is_allowed_runs_and_shows_what_it_printed() {
    let test = Test::new([bash("echo out; echo err >&2; exit 3"), says("x")]);
    let (mut editor, session) = test.session();
    editor.consent = Some("allow");
    let turn = editor.prompt(&session, "go");
    let (call, end) = turn.call();
    assert_eq!(turn.statuses(call).first(), Some(&"pending"));
    assert_eq!(turn.statuses(call).last(), Some(&"completed"), "a command that ran has ended");
    assert_eq!(text_of(end), "out\nerr\n[exit code: exit status 3]");
}

#[test]
fn n133_n134_whatever_is_no_consent_is_a_refusal() {
    let selected = |option: &str| json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}});
    for (row, reply, stop) in [
        ("133 reject", selected("reject"), "end_turn"),
        ("unknown option", selected("yes"), "end_turn"),
        ("a kind is no option", selected("allow_once"), "end_turn"),
        ("nothing", selected(""), "end_turn"),
        ("134 cancelled", json!({"result": {"outcome": {"outcome": "cancelled"}}}), "cancelled"),
        ("unknown outcome", json!({"result": {"outcome": {"outcome": "sure"}}}), "end_turn"),
        ("no outcome", json!({"result": {}}), "end_turn"),
        ("null", json!({"result": null}), "end_turn"),
        ("an error", json!({"error": {"code": -32603, "message": "unknown session"}}), "end_turn"),
        ("not known", json!({"error": {"code": -32601, "message": "no such method"}}), "end_turn"),
    ] {
        let test = Test::new([bash("touch m"), says("x")]);
        let (mut editor, session) = test.session();
        let id = editor.prompts(&session, "go");
        let question = editor.question();
        let mut reply = reply;
        reply["jsonrpc"] = json!("2.0");
        reply["id"] = question["id"].clone();
        editor.send(&reply);
        let turn = editor.turn(id);
        assert_eq!(turn.stop(), stop, "{row}");
        let (call, _) = turn.call();
        assert_eq!(turn.statuses(call).last(), Some(&"failed"), "{row}");
        assert!(!turn.statuses(call).contains(&"in_progress"), "{row}");
        assert_eq!(test.read("m"), None, "{row}");
        if stop == "end_turn" {
            assert_eq!(last_content(&test.model.asked()[1]), REFUSED, "{row}");
        }
    }
}

#[test]
fn n135_always_holds_for_the_program_and_the_session() {
    let write = calls("write_file", &json!({"path": "f", "content": "x"}));
    let test = Test::new([
        bash("git status --short"),
        bash("git status"),
        bash("git init -q ."),
        bash("env true"),
        write,
        says("x"),
        bash("git status"),
        says("y"),
    ])
    .settings("editTools: true\n");
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let first = editor.question();
    assert_eq!(first["params"]["toolCall"]["title"], "git status --short");
    let always = &first["params"]["options"].as_array().unwrap().iter().find(|o| o["kind"] == "allow_always").unwrap();
    assert!(always["name"].as_str().unwrap().contains("git status"), "it says for what: {always}");
    editor.choose(&first, "allow_always");
    for expect in ["git init -q .", "env true", "write_file f"] {
        let question = editor.question();
        assert_eq!(question["params"]["toolCall"]["title"], expect);
        editor.choose(&question, "reject");
    }
    assert_eq!(editor.turn(id).stop(), "end_turn");
    let other = editor.begin();
    let id = editor.prompts(&other, "go");
    let question = editor.question();
    assert_eq!(question["params"]["sessionId"], *other, "a new session asks again");
    editor.choose(&question, "reject");
    editor.turn(id);
}

#[test]
fn n140_a_settings_file_cannot_make_a_session_ask_less() {
    for (args, asks) in [(vec![], true), (vec!["--permissions", "allow"], false)] {
        let test = Test::new([bash("touch m"), says("x")]).settings("permissions: allow\n").args(args);
        let mut editor = test.editor();
        let new = editor.call("session/new", json!({"cwd": test.work(), "mcpServers": []})).unwrap();
        assert_eq!(new["modes"]["currentModeId"] == "ask", asks, "{new}");
        let session = new["sessionId"].as_str().unwrap().to_owned();
        editor.consent = Some("reject");
        let turn = editor.prompt(&session, "go");
        assert_eq!((turn.questions.len() == 1, test.read("m").is_none()), (asks, asks));
    }
}

#[test]
fn n13_calls_beside_each_other_ask_beside_each_other() {
    let run = |command: &str| ("bash", json!({"command": command}));
    let test = Test::new([all(&[run("cat a"), run("cat b"), run("cat c")]), says("x")]).file("a", "A").file("c", "C");
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let questions = [editor.question(), editor.question(), editor.question()];
    let title = |question: &Value| question["params"]["toolCall"]["title"].as_str().unwrap().to_owned();
    // The last first, and one of them not.
    for question in questions.iter().rev() {
        editor.choose(question, if title(question) == "cat b" { "reject" } else { "allow" });
    }
    let turn = editor.turn(id);
    let ends =
        turn.calls().into_iter().map(|call| (call["title"].clone(), text_of(turn.end_of(call)))).collect::<Vec<_>>();
    assert_eq!(
        ends,
        [("cat a", "A"), ("cat b", REFUSED), ("cat c", "C")].map(|(title, end)| (json!(title), end.to_owned()))
    );
}

#[test]
fn changes_ask_one_by_one() {
    let run = |command: &str| ("bash", json!({"command": command}));
    let test = Test::new([all(&[run("touch a"), run("test -e a && touch b")]), says("x")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let first = editor.question();
    editor.hears_nothing();
    editor.choose(&first, "allow");
    let second = editor.question();
    assert!(test.read("a").is_some());
    editor.choose(&second, "allow");
    assert_eq!(editor.turn(id).stop(), "end_turn");
    assert!(test.read("b").is_some());
}

#[test]
fn n14_a_sub_agent_asks_through_the_session() {
    for (option, done) in [("allow", true), ("reject", false)] {
        let test = Test::minded(|request| delegates(request, "touch m")).full();
        let (mut editor, session) = test.session();
        let id = editor.prompts(&session, "main task");
        let question = editor.question();
        assert_eq!(question["params"]["sessionId"], *session, "the client knows this session");
        let known = question["params"]["toolCall"]["toolCallId"].clone();
        assert!(
            editor
                .frames
                .iter()
                .filter_map(|f| f.update())
                .any(|u| u["sessionUpdate"] == "tool_call" && u["toolCallId"] == known),
            "the client was told of the call that is asked about"
        );
        editor.choose(&question, option);
        let turn = editor.turn(id);
        assert_eq!(turn.stop(), "end_turn");
        assert_eq!(test.read("m").is_some(), done);
        for call in turn.calls() {
            let end = turn.statuses(call).last().copied();
            assert!(matches!(end, Some("completed" | "failed")), "{call} is closed, {end:?}");
        }
        assert_eq!(test.model.faults(), Vec::<String>::new());
    }
}

#[test]
fn sub_agents_ask_beside_each_other() {
    let test = Test::minded(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap().to_string();
        let task = |file: &str| ("SubAgent", json!({"prompt": format!("sub task: touch {file}"), "description": file}));
        match last.split_once("sub task: ") {
            _ if last.contains("main task") => all(&[task("a"), task("b")]),
            Some((_, command)) => calls("Bash", &json!({"command": command.split(['"', '\\']).next().unwrap()})),
            None => says("done"),
        }
    })
    .full();
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "main task");
    let questions = [editor.question(), editor.question()];
    let calls: Vec<&Value> = questions.iter().map(|question| &question["params"]["toolCall"]["toolCallId"]).collect();
    assert_ne!(calls[0], calls[1]);
    for question in questions.iter().rev() {
        let a = question["params"]["toolCall"]["title"].as_str().unwrap().contains("touch a");
        editor.choose(question, if a { "allow" } else { "reject" });
    }
    assert_eq!(editor.turn(id).stop(), "end_turn");
    assert_eq!((test.read("a").is_some(), test.read("b").is_some()), (true, false));
}

#[test]
fn n29_n31_calls_that_are_wrong_or_have_no_arguments_are_shown() {
    for (name, arguments) in [("read_file", "{}"), ("read_file", "{\"path\":"), ("nonsense", "{}"), ("bash", "")] {
        let call = crate::model::Answer::Calls(vec![(name.to_owned(), arguments.to_owned())]);
        let test = Test::new([call, says("x")]).settings("editTools: true\n");
        let (mut editor, session) = test.session();
        let turn = editor.prompt(&session, "go");
        let (call, end) = turn.call();
        assert!(call["title"].as_str().unwrap().contains(name), "{call}");
        assert_eq!(end["status"], "failed", "{name} {arguments}");
        assert!(call.get("locations").is_none_or(|locations| *locations == json!([])), "{call}");
        assert_eq!((turn.questions.len(), turn.stop()), (0, "end_turn"));
    }
}

#[test]
fn n15_other_requests_are_answered_while_a_dialog_is_open() {
    let test = Test::new([bash("touch m"), says("x"), says("other")]);
    let (mut editor, session) = test.session();
    let id = editor.prompts(&session, "go");
    let question = editor.question();
    editor.call("session/list", json!({})).unwrap();
    let other = editor.begin();
    assert!(test.model.asked().len() == 1 && other != session);
    editor.choose(&question, "reject");
    assert_eq!(editor.turn(id).stop(), "end_turn");
}

#[test]
fn what_only_reads_is_not_asked_about() {
    let skill = "---\ndescription: tidies\n---\nSweep.\n";
    let test = Test::new([
        calls("read_skill", &json!({"name": "tidy"})),
        calls("read_file", &json!({"path": "f"})),
        says("x"),
    ])
    .settings("editTools: true\nskillsDir: skills\n")
    .file("f", "a\nb\n")
    .file("skills/tidy/SKILL.md", skill);
    let (mut editor, session) = test.session();
    let turn = editor.prompt(&session, "go");
    assert!(turn.questions.is_empty(), "50, 71");
    let calls = turn.calls();
    assert!(calls.iter().all(|call| call["kind"] == "read"), "{calls:?}");
    assert_eq!(calls[0]["title"], "read_skill: tidy");
    assert_eq!(calls[1]["title"], "read_file f");
    assert_eq!(calls[1]["locations"][0]["path"], json!(test.work().join("f")), "71: absolute");
    assert!(calls.iter().all(|call| turn.end_of(call)["status"] == "completed"));
    assert_eq!(text_of(turn.end_of(calls[1])), "a\nb\n");
}
