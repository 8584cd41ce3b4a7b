//! `agent doctor`: each thing that can be wrong is found and told in plain words.

use std::time::Duration;

use serde_json::{Value, json};

use crate::model::{Answer, calls, says};
use crate::run::{Outcome, Test};

/// A list of these models.
fn list(models: &[&str]) -> Answer {
    let data: Vec<Value> = models.iter().map(|id| json!({"id": id})).collect();
    Answer::Http("200 OK", "application/json", json!({"data": data}).to_string())
}

fn error(status: &'static str, message: &str) -> Answer {
    Answer::Http(status, "application/json", json!({"error": {"message": message}}).to_string())
}

fn counts() -> Answer {
    says("one two three")
}

fn echoes() -> Answer {
    calls("echo", &json!({"word": "ready"}))
}

fn well() -> [Answer; 4] {
    [list(&["gpt-5.5"]), counts(), echoes(), says("ready")]
}

fn doctor(answers: impl IntoIterator<Item = Answer>, args: &[&str]) -> Test {
    Test::new(answers).args(["doctor", "--json", "--model", "gpt-5.5"]).args(args.iter().copied())
}

/// Status, text and hint of the checks of this name.
fn told(out: &Outcome, name: &str) -> String {
    let checks = out.json();
    let named = checks["checks"].as_array().unwrap().iter().filter(|check| check["check"] == name);
    let line = |check: &Value| {
        let hint = check["hint"].as_str().map(|hint| format!(" -> {hint}")).unwrap_or_default();
        format!("{}: {}{hint}", check["status"].as_str().unwrap(), check["text"].as_str().unwrap())
    };
    named.map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_is_well() {
    let out = doctor(well(), &[]).file("skills/a/SKILL.md", "# A").run().code(0);
    assert_eq!(out.json()["ok"], true);
    for (name, text) in [
        ("settings", "ok: no file was read"),
        ("model", "ok: gpt-5.5 at http://127.0.0.1"),
        ("key", "ok: OPENAI_API_KEY is set"),
        ("address", "ok: it is reached, and lists 1 models"),
        ("streaming", "ok: the first words came after"),
        ("tool call", "ok: a tool was called, and its result taken"),
        ("usage", "ok: 33 tokens sent, 21 received"),
        ("cache", "ok: nothing reported"),
        ("context", "ok: 1050000 tokens"),
        ("prices", "ok: 5 and 30 dollars"),
        ("shell", "ok: bash"),
        ("sessions", "ok: "),
        ("skills", "ok: 1 can be loaded"),
    ] {
        assert!(told(&out, name).starts_with(text), "{name}: {}", told(&out, name));
    }
    assert!(!out.stdout.contains("sk-test") && !out.stderr.contains("sk-test"), "{out:?}");
}

#[test]
fn a_person_reads_lines_and_hints() {
    let test = Test::new([list(&["qwen3:8b"]), error("404 Not Found", "model 'qwen' not found")]);
    let out = test.args(["doctor", "--model", "qwen"]).run().code(1);
    for text in [
        "ok    key: OPENAI_API_KEY is set\n",
        "fail  streaming: Asking qwen at http://",
        "\n      hint: the server has no model qwen; it has qwen3:8b (1 in all): set --model\n",
        "warn  prices: not known",
        " failed\n",
    ] {
        assert!(out.stdout.contains(text), "{text:?} in {}", out.stdout);
    }
}

#[test]
fn few_tokens_are_asked_for() {
    let test = doctor(well(), &[]);
    test.run().code(0);
    let asked = test.model.asked();
    assert_eq!(asked.len(), 3, "{asked:#?}");
    for body in &asked {
        assert!(body["max_tokens"].as_u64().unwrap() <= 400 && body["messages"].to_string().len() < 600, "{body}");
    }
    assert_eq!(asked[2]["messages"].as_array().unwrap().last().unwrap()["content"], "ready");
}

#[test]
fn what_the_server_answers_is_explained() {
    let page = || Answer::Http("200 OK", "text/html", "<html><title>Welcome</title></html>".into());
    let listed = || list(&["gpt-5.5"]);
    for (answers, name, texts) in [
        (
            vec![error("401 Unauthorized", "bad key"), error("401 Unauthorized", "bad key")],
            "streaming",
            &["fail: ", "the key is wrong"][..],
        ),
        (vec![listed(), error("402 Payment Required", "Insufficient Balance")], "streaming", &["has no credit"]),
        (vec![listed(), error("429 Too Many Requests", "insufficient_quota")], "streaming", &["has no credit"]),
        (vec![listed(), error("429 Too Many Requests", "slow down")], "streaming", &["wait a while"]),
        (
            vec![list(&["gpt-5.5-mini", "o3"]), error("404 Not Found", "no such model")],
            "streaming",
            &["it has gpt-5.5-mini (2 in all)"],
        ),
        (
            vec![list(&["gpt-5.5-mini"]), error("400 Bad Request", "invalid model")],
            "streaming",
            &["the server has no model gpt-5.5"],
        ),
        (vec![page(), page()], "streaming", &["an unexpected text: Welcome", "not as a model's server does"]),
        (vec![page(), page()], "address", &["ok: it is reached; it does not list its models"]),
        (vec![listed(), error("400 Bad Request", "unknown field")], "streaming", &["does it speak another interface?"]),
        (vec![listed(), says("")], "streaming", &["fail: the answer is empty"]),
        (
            vec![listed(), Answer::Late(Duration::from_millis(1100), Box::new(says("one")))],
            "streaming",
            &["warn: the first words came after 1.", "all at once", "holds answers back"],
        ),
        (vec![listed(), counts(), says("I cannot.")], "tool call", &["fail: the model called no tool"]),
        (
            vec![listed(), counts(), says("<tool_call>{\"name\": \"echo\"}</tool_call>")],
            "tool call",
            &["fail: the call came as text", "--jinja"],
        ),
        (
            vec![listed(), counts(), Answer::Calls(vec![("echo".into(), "{\"word\"".into())])],
            "tool call",
            &["fail: the model called echo with {\"word\", which does not fit"],
        ),
        (
            vec![listed(), counts(), echoes(), error("400 Bad Request", "no tools")],
            "tool call",
            &["fail: ", "no tools"],
        ),
    ] {
        let out = doctor(answers, &[]).run();
        let told = told(&out, name);
        for text in texts {
            assert!(told.contains(text), "{text:?} in {told:?} of {}", out.stdout);
        }
        assert_eq!(out.code, Some(i32::from(out.stdout.contains("\"fail\""))), "{}", out.stdout);
    }
}

#[test]
fn what_is_wrong_before_anybody_is_asked_is_told() {
    for (args, name, text) in [
        (&["--provider", "anthropic"][..], "model", "fail: The provider anthropic needs a key: set ANTHROPIC_API_KEY"),
        (&["--provider", "nobody"], "model", "fail: There is no provider `nobody`"),
        (&["--base-url", "http://127.0.0.1:1/v1"], "address", "fail: Asking gpt-5.5 at http://127.0.0.1:1"),
        (
            &["--set", "apiKeyCommand=false", "--base-url", "http://127.0.0.1:1"],
            "key",
            "fail: the setting apiKeyCommand",
        ),
        (&["--provider", "local"], "model", "fail: "),
    ] {
        let out = doctor([], args).run().code(1);
        assert!(told(&out, name).contains(text), "{text:?} in {}", out.stdout);
    }
}

#[test]
fn what_has_no_effect_and_what_is_missing_are_warnings() {
    let test = doctor(well(), &["--effort", "high", "--set", "model=strange"])
        .settings("fallback: [deepseek/x]\nnonsense: 1\n");
    let out = test.run().code(0);
    assert!(told(&out, "model").contains("`effort` has no effect: strange"), "{}", out.stdout);
    assert!(told(&out, "model").contains("`deepseek/x` is left out"), "{}", out.stdout);
    assert!(
        told(&out, "settings").contains("warn: ") && told(&out, "settings").contains("`nonsense`"),
        "{}",
        out.stdout
    );
    assert!(told(&out, "context").starts_with("warn: not known; 200000 tokens"), "{}", out.stdout);
    assert!(told(&out, "prices").starts_with("warn: not known"), "{}", out.stdout);
}

#[test]
fn a_base_url_without_its_version_is_found() {
    let missing = || error("404 Not Found", "no such page");
    let test = doctor([missing(), missing(), list(&["gpt-5.5"])], &[]);
    let bare = format!("{}/api", test.model.url.trim_end_matches("/v1"));
    let out = test.env("OPENAI_BASE_URL", &bare).run().code(1);
    let told = told(&out, "streaming");
    assert!(told.contains(&format!("the base URL lacks /v1: set baseUrl to {bare}/v1")), "{told}");
}
