//! The setting `fallback`: another model goes on where one fails.

use crate::model::{Answer, bash, says};
use crate::run::Test;

/// A server that is not to be asked again for an hour.
fn busy() -> Answer {
    Answer::Http("429 Too Many Requests", "text/plain\r\nretry-after: 3600", "slow down".into())
}

#[test]
fn another_model_goes_on_with_the_conversation() {
    let test = Test::new([bash("echo hi"), busy(), says("It said hi.")]);
    let url = test.model.url.clone();
    let test = test
        .settings("fallback: [deepseek/x, anthropic/claude-sonnet-5-5]\n")
        .env("ANTHROPIC_API_KEY", "sk-other")
        .env("ANTHROPIC_BASE_URL", url)
        .args(["--provider", "openai", "--model", "gpt-5.5", "run it"]);
    let out = test.run().code(0).stdout("It said hi.\n");
    let out =
        out.tells(&["the fallback `deepseek/x` is left out", "DEEPSEEK_API_KEY", "going on with claude-sonnet-5-5"]);
    out.conceals(&["sk-other"]);
    let asked = test.model.asked();
    let models: Vec<_> = asked.iter().map(|body| body["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["gpt-5.5", "gpt-5.5", "claude-sonnet-5-5"]);
    let last = &asked[2]["messages"];
    assert_eq!(
        (&last[1]["content"][0]["type"], &last[2]["content"][0]["type"]),
        (&"tool_use".into(), &"tool_result".into())
    );
}

#[test]
fn a_failure_that_any_model_would_meet_is_the_end() {
    let wrong = Answer::Http("400 Bad Request", "text/plain", "no such field".into());
    let test = Test::new([wrong, says("never")]).args(["--set", "fallback=[other]", "--model", "m", "hi"]);
    test.run().code(1).tells(&["no such field"]);
    assert_eq!(test.model.asked().len(), 1);
}
