//! Bad input: keys, addresses, servers, settings, files and arguments that are wrong, and what is said of them.

use std::fs;
use std::net::TcpListener;

use serde_json::json;

use crate::model::{Answer, bash, calls, last_content, says};
use crate::run::Test;
#[cfg(feature = "local")]
use crate::run::until;

#[test]
fn a_missing_key_is_told_with_its_variable() {
    let test = Test::new([]).args(["go", "--provider", "anthropic"]);
    test.run().code(2).stdout("").tells(&["error: ", "anthropic", "ANTHROPIC_API_KEY"]);
    let test = Test::new([]).args(["go", "--provider", "openai"]).unset("OPENAI_BASE_URL").unset("OPENAI_API_KEY");
    test.run().code(2).stdout("").tells(&["OPENAI_API_KEY"]);
}

#[test]
fn with_nothing_to_talk_to_the_ways_to_go_on_are_shown() {
    let test = Test::new([]).args(["fix it"]).unset("OPENAI_BASE_URL").unset("OPENAI_API_KEY");
    let out = test.run().code(2).stdout("");
    if cfg!(feature = "local") {
        out.tells(&[
            "No model is set up",
            "ANTHROPIC_API_KEY=... agent 'fix it'",
            "OPENAI_API_KEY=... agent 'fix it'",
            "agent --local 'fix it'",
            "agent model fetch",
        ]);
    } else {
        out.tells(&["No model was found", "OPENAI_API_KEY", "--base-url"]);
    }
    assert!(test.logs().is_empty());
}

#[cfg(feature = "local")]
#[test]
fn the_embedded_model_is_fetched_only_with_consent() {
    let test = Test::new([]).args(["fix it"]).unset("OPENAI_BASE_URL").unset("OPENAI_API_KEY");
    let mut terminal = test.terminal();
    terminal.sees("1.1 GB");
    terminal.sees("[y/N] ");
    terminal.types("n\r");
    assert!(terminal.ends(2).contains("agent --local 'fix it'"));
    // The question can also be left.
    let mut terminal = test.terminal();
    terminal.sees("[y/N] ");
    terminal.types(crate::pty::CTRL_C);
    until("the program ends", || terminal.has_ended());
    assert!(test.logs().is_empty());
}

#[test]
fn the_choice_of_the_model_is_told_in_one_line() {
    let test = Test::new([says("hi")]).args(["go", "--model", "small-one"]);
    let out = test.run().code(0);
    assert_eq!(
        out.stderr.lines().next(),
        Some(format!("Using small-one at {} (openai, OPENAI_API_KEY)", test.model.url).as_str())
    );
    assert_eq!(test.model.asked()[0]["model"], "small-one");
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_address() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let test = Test::new([]).args(["go"]).env("OPENAI_BASE_URL", &url);
    let out = test.run().code(1).stdout("");
    let out = out.tells(&["?); trying again", "error: ", &format!("127.0.0.1:{port}"), "refused"]);
    out.conceals(&[".;"]);
    assert!(fs::read_to_string(test.log()).unwrap().contains(r#""type":"error""#));
}

#[test]
fn answers_that_are_no_answers_are_told_as_such() {
    let html = "<html><head><title>Sign in</title></head><body>Please \u{1b}[31msign in</body></html>";
    let missing = r#"{"error":{"message":"The model `gpt-99` does not exist","code":"model_not_found"}}"#;
    for (status, kind, body, told) in [
        ("200 OK", "text/html", html, "Sign in"),
        ("404 Not Found", "application/json", missing, "gpt-99"),
        ("401 Unauthorized", "application/json", r#"{"error":{"message":"Incorrect API key"}}"#, "Incorrect API key"),
        ("400 Bad Request", "text/plain", "", "400"),
        ("400 Bad Request", "application/json", "{broken", "400"),
    ] {
        let answer = Answer::Http(status, kind, body.into());
        // What may be over soon is asked again; then the server says no for good.
        let test = Test::new([answer]).args(["go", "--model", "gpt-99"]);
        let out = test.run().code(1).stdout("");
        out.conceals(&["panicked", "\u{1b}", "sk-test"]).tells(&["error: ", told]);
    }
}

#[test]
fn settings_that_cannot_be_used_are_named_and_left_alone() {
    for (yaml, told) in [
        (&b"previewLines: 3\nmaxTurns: many\n"[..], &["line 2", "maxTurns"][..]),
        (b"permissions: sometimes\n", &["line 1", "permissions", "ask"]),
        (b"model: [a\nmaxTurns: 3\n", &["line "]),
        (b"- a\n- b\n", &["map"]),
        (b"model: \xff\n", &["line 1", "UTF-8"]),
        (b"maxTurns: 1\nmaxTurns: 2\n", &["maxTurns"]),
    ] {
        let test = Test::new([]).settings(yaml).args(["go"]);
        let out = test.run().code(2).stdout("").tells(&["error: ", "config.yaml"]).tells(told);
        assert!(!out.stderr.contains("panicked"));
        assert_eq!(fs::read(test.settings_file()).unwrap(), yaml);
        assert!(test.logs().is_empty() && test.model.asked().is_empty());
    }
}

#[test]
fn help_and_version_need_no_settings() {
    for (args, wanted) in [(["--help"], "Usage: agent"), (["--version"], env!("CARGO_PKG_VERSION"))] {
        let out = Test::new([]).settings("maxTurns: [").args(args).run().code(0);
        assert!(out.stdout.contains(wanted) && out.stderr.is_empty(), "{out:#?}");
    }
}

#[test]
fn an_unknown_setting_is_told_with_the_nearest_one() {
    let test = Test::new([says("ok")]).settings("maxTurn: 3\n").args(["go"]);
    test.run().code(0).stdout("ok\n").tells(&["config.yaml, line 1", "maxTurn", "`maxTurns`"]);
    Test::new([]).args(["go", "--set", "maxTurn=3"]).run().code(2).tells(&["`maxTurns`"]);
}

#[test]
fn options_that_are_wrong_are_usage_errors() {
    for (args, told) in [
        (&["--mode", "9999", "go"][..], "9999"),
        (&["--mode", "46", "go"], "46"),
        (&["--permissions", "maybe", "go"], "--permissions: \"maybe\" is none of ask, auto, allow"),
        (&["--tool-timeout", "-1", "go"], "--tool-timeout: `toolTimeout` takes a whole number from 1"),
        (&["--set", "foo=1", "go"], "`agent config` lists all settings"),
        (&["--max-turns", "few", "go"], "maxTurns"),
        (&["--output", "xml", "go"], "xml"),
        (&["--set", "maxTurns", "go"], "KEY=VALUE"),
        (&["--cwd", "nowhere", "go"], "nowhere"),
        (&["--config", "nowhere.yaml", "go"], "nowhere.yaml does not exist\n  hint: "),
        (&["--provider", "nobody", "go"], "nobody"),
        (&["--colour", "go"], "--colour"),
        (&[], "no prompt"),
        (&[" "], "no prompt"),
    ] {
        let out = Test::new([]).args(args).run();
        assert_eq!((out.code, out.stdout.as_str()), (Some(2), ""), "{args:?} {out:#?}");
        assert!(out.stderr.contains("error: ") && out.stderr.contains(told), "{args:?} {out:#?}");
    }
}

#[test]
fn a_malformed_mode_counts_as_none_and_is_told() {
    for (name, test) in [
        ("variable", Test::new([bash("echo x"), says("no")]).env("BASH_AGENT_BASH_MODE", "rwx")),
        ("setting", Test::new([bash("echo x > f"), says("no")]).settings("bashMode: 99\npermissions: allow\n")),
    ] {
        let test = test.args(["go"]);
        let out = test.run();
        assert!(out.stderr.contains("0000"), "{name} {out:#?}");
        assert!(!test.work().join("f").exists());
    }
    let test = Test::new([bash("cat f"), says("no")]).file("f", "x").env("BASH_AGENT_BASH_MODE", "abc").args(["go"]);
    test.run().code(4).tells(&["BASH_AGENT_BASH_MODE", "allowed=0000"]);
}

#[test]
fn a_project_can_tighten_and_not_widen() {
    let widen = "permissions: allow\nbashMode: 7777\nbaseUrl: http://127.0.0.1:1/v1\napiKeyCommand: touch started\nmaxTurns: 7\n";
    let test = Test::new([bash("cat /etc/hostname"), says("no")]).file("agent.yaml", widen).args(["go"]);
    test.run().code(4).tells(&["agent.yaml, line 1", "line 2", "line 3", "line 4", "blocked by bash safety policy"]);
    assert!(!test.work().join("started").exists());
    assert_eq!(fs::read_to_string(test.work().join("agent.yaml")).unwrap(), widen);

    let test = Test::new([bash("echo x > f"), says("no")]).file("agent.yaml", "bashMode: 0004\n").args(["go"]);
    test.run().code(4).tells(&["allowed=0004"]);
    assert!(!test.work().join("f").exists());
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let answers = [bash("cat data; cat data >&2"), calls("read_file", &json!({"path": "data"})), says("ok")];
    let test = Test::new(answers).file("data", b"a\xff\xfe\x00\x1b[31mb\n").args(["go", "--set", "editTools=true"]);
    test.run().code(0).stdout("ok\n").conceals(&["\u{1b}", "\u{0}", "panicked"]);
    let output = last_content(&test.model.asked()[1]);
    assert!(output.starts_with('a') && output.contains('b'), "{output:?}");
}

#[test]
fn a_prompt_that_is_no_text_does_no_harm() {
    let test = Test::new([says("ok")]).stdin(b"caf\xe9".to_vec());
    test.run().code(0).stdout("ok\n");
    assert_eq!(last_content(&test.model.asked()[0]), "caf\u{fffd}");
}

#[test]
fn calls_that_are_wrong_are_answered_and_the_turn_goes_on() {
    for (call, wanted) in [
        (calls("bash", &json!({"command": {"a": 1}})), "`command`"),
        (calls("bash", &json!({})), "command"),
        (Answer::Calls(vec![("bash".into(), "{broken".into())]), "JSON"),
        (calls("launch", &json!({})), "launch"),
        (calls("read_skill", &json!({"name": "nope"})), "No skill named \"nope\". Available skills: fine"),
    ] {
        let test = Test::new([call, bash("echo on"), says("ok")]).file("skills/fine.md", "Fine.").args(["go"]);
        test.run().code(0).stdout("ok\n");
        let asked = test.model.asked();
        let told = last_content(&asked[1]);
        assert!(told.contains(wanted), "{wanted}: {told}");
        assert_eq!(last_content(&asked[2]), "on\n");
    }
}

#[test]
fn a_broken_skill_does_not_hide_the_others() {
    let test = Test::new([says("ok")])
        .file("skills/good.md", "---\ndescription: The good one\n---\nbody")
        .file("skills/bad.md", b"---\ndescription: [\n---\n\xff")
        .args(["go"]);
    test.run().code(0).stdout("ok\n");
    let tools = test.model.asked()[0]["tools"].to_string();
    assert!(tools.contains("good — The good one"), "{tools}");
    let test = test.again(["skills", "--json"]);
    let listed = test.run().code(0).json();
    assert!(listed["diagnostics"].to_string().contains("bad.md"), "{listed}");
}

#[test]
fn a_picture_that_is_named_goes_to_a_model_that_sees() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let models = "models: {see: {sees: true}, blind: {sees: false}}\n";
    let test = Test::new([says("a cat"), says("no idea")]).settings(models).file("shot.png", png);
    let test = test.args(["--model", "see", "what is in shot.png?"]);
    test.run().code(0).tells(&["with the picture", "shot.png (image/png, 1 kB)"]);
    let content = test.model.asked()[0]["messages"][1]["content"].clone();
    assert_eq!(content[0]["text"], "what is in shot.png?");
    assert_eq!(content[1]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgpyZXN0");
    let test = test.again(["--model", "blind", "what is in shot.png?"]);
    test.run().code(0);
    let path = test.work().join("shot.png");
    let expect = format!("[Image #1] => {}\n</attached-images>", path.display());
    assert!(last_content(&test.model.asked()[1]).ends_with(&expect), "{:?}", test.model.asked()[1]);
}
