//! The prompt cache: a session of thirty turns with todos, a skill, a plan and compactions, request by request, in bytes.

use std::fs;
use std::sync::Arc;

use agent_core::prompt::{Facts, Sections};
use agent_core::provider::anthropic::Anthropic;
use agent_core::provider::http::Endpoint;
use agent_core::provider::openai::OpenAi;
use agent_core::provider::{Model, Provider};
use agent_core::session::{Journal, Memory};
use agent_core::{Agent, Event, Limits, Prompt, Session, SessionId, start, start_compacting};
use agent_skills::Catalogue;
use agent_tools::Place;
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::fake_server::{FakeServer, stream};
use crate::turns::Noon;

const TURNS: usize = 30;
const PLAN: usize = 11;
const COMPACT: usize = 20;

/// What the model does in a turn before it says that it is done.
fn call(turn: usize, store: &str) -> Option<(&'static str, serde_json::Value)> {
    Some(match turn {
        5 => ("TodoWrite", json!({"todos": [{"content": "all of it", "status": "in_progress"}]})),
        8 => ("Skill", json!({"name": "greet"})),
        10 => ("Write", json!({"path": format!("{store}/plan.draft"), "content": "1. go on"})),
        PLAN => ("PlanConfirm", json!({})),
        even if even % 2 == 0 => ("Bash", json!({"command": format!("echo {even}")})),
        _ => return None,
    })
}

/// An answer of one call or of words, as the form has it.
fn answer(form: &str, number: usize, call: Option<&(&str, serde_json::Value)>) -> String {
    let event = |data: serde_json::Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or("x"));
    let (id, words) = (format!("c{number}"), format!("done {number}"));
    if form == "openai" {
        let (delta, reason) = match call {
            Some((name, input)) => {
                let function = json!({"name": name, "arguments": input.to_string()});
                (json!({"tool_calls": [{"index": 0, "id": id, "function": function}]}), "tool_calls")
            }
            None => (json!({"content": words}), "stop"),
        };
        let chunk = |delta, reason: Option<&str>| json!({"choices": [{"delta": delta, "finish_reason": reason}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 9}});
        let lines =
            [chunk(delta, None), chunk(json!({}), Some(reason)), usage].map(|chunk| format!("data: {chunk}\n\n"));
        return format!("{}data: [DONE]\n\n", lines.concat());
    }
    let (block, delta, reason) = match call {
        Some((name, input)) => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": words}), "end_turn"),
    };
    [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 900, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
    .map(event)
    .concat()
}

/// All answers of the session, in the order of its requests.
fn answers(form: &str, store: &str) -> Vec<String> {
    let mut all = Vec::new();
    for turn in 1..=TURNS {
        if turn == COMPACT {
            all.push(answer(form, all.len(), None));
        }
        if let Some(call) = call(turn, store) {
            all.push(answer(form, all.len(), Some(&call)));
        }
        if turn == PLAN {
            all.push(answer(form, all.len(), None));
        }
        all.push(answer(form, all.len(), None));
    }
    all
}

/// The parts of a request, in their bytes, without the marks of the cache.
#[derive(Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    messages: &'a RawValue,
    #[serde(borrow)]
    tools: &'a RawValue,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
}

fn unmarked(raw: &str) -> String {
    raw.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

async fn play(form: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("session");
    fs::create_dir_all(&store).unwrap();
    fs::create_dir_all(folder.path().join("skills/greet")).unwrap();
    fs::write(folder.path().join("skills/greet/SKILL.md"), "---\nname: greet\ndescription: says hello\n---\nHello")
        .unwrap();
    let answers = answers(form, store.to_str().unwrap());
    let server = FakeServer::start(answers.iter().map(|body| stream(body, 64))).await;
    let endpoint = Endpoint::new(&server.url);
    let provider: Arc<dyn Provider> = match form {
        "openai" => Arc::new(OpenAi::new(Model::new("openai", "m"), endpoint)),
        _ => Arc::new(Anthropic::new(Model::new("anthropic", "m"), endpoint)),
    };
    let skills = Arc::new(Catalogue::discover(&[folder.path().join("skills")]));
    let mut parts = Parts::of(Toolset::Full);
    parts.skills = skills.clone();
    let facts = Facts { cwd: folder.path().to_owned(), platform: "linux".into(), git: false };
    let agent = Agent {
        provider,
        fallbacks: Vec::new(),
        tools: tools(Toolset::Full, &parts),
        policy: Arc::new(Gate::new(Mode::DEFAULT, Permissions::Allow)),
        prompt: Arc::new(Sections::new(Toolset::Full, &facts, &[]).with_skills(Toolset::Full, &skills, &[])),
        limits: Limits::default(),
    };
    let mut place = Place::new(folder.path());
    place.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
    place.store = Some(store);
    let journal = Journal::new(SessionId::named("s"), Box::new(Memory::default()), Arc::new(Noon), "/w");
    let mut session = Session::new(place, journal);
    for turn in 1..=TURNS {
        let stop = CancellationToken::new;
        if turn == COMPACT {
            let mut running = start_compacting(agent.clone(), &mut session, stop());
            while running.next().await.is_some() {}
        }
        let prompt = Prompt::text(format!("turn {turn}: tell me more of it, please, and be so kind as to be brief"));
        let mut running = start(agent.clone(), &mut session, prompt, stop());
        while let Some(stamped) = running.next().await {
            if let Event::Ended(ended) = stamped.event {
                ended.unwrap();
            }
        }
    }
    assert_eq!(server.asked().len(), answers.len());
    server.asked().into_iter().map(|asked| asked.raw).collect()
}

/// How a message of the user begins.
const USER: &str = r#"{"role":"user","content":"#;

/// Whether these messages begin with those; a request for a summary, behind its instruction aside, with a part of those.
fn continues(before: &str, after: &str) -> bool {
    match after.find("The conversation is getting long.") {
        Some(at) => after[..at].rfind(USER).is_some_and(|end| before.starts_with(after[..end].trim_end_matches(','))),
        None => after.starts_with(before.trim_end_matches(']')),
    }
}

#[tokio::test]
async fn each_request_begins_with_the_bytes_of_the_one_before() {
    for form in ["openai", "anthropic"] {
        let raw: Vec<String> = play(form).await.iter().map(|raw| unmarked(raw)).collect();
        let requests: Vec<Sent<'_>> = raw.iter().map(|raw| serde_json::from_str(raw).unwrap()).collect();
        let mut breaks = 0;
        for (at, pair) in requests.windows(2).enumerate() {
            let [before, after] = pair else { unreachable!() };
            assert_eq!(before.tools.get(), after.tools.get(), "{form} {at}");
            let same = before.system.map(RawValue::get) == after.system.map(RawValue::get);
            let goes_on = same && continues(before.messages.get(), after.messages.get());
            breaks += usize::from(!goes_on);
            let summarised = before.messages.get().contains("The conversation is getting long.");
            assert!(goes_on || summarised, "{form}: request {} is not begun by that before it", at + 1);
        }
        assert_eq!(breaks, 2, "{form}: the cache is cold once after each compaction, and at no other time");
    }
}

#[tokio::test]
async fn what_stays_is_marked_for_the_cache_of_anthropic() {
    for raw in play("anthropic").await {
        let sent: serde_json::Value = serde_json::from_str(&raw).unwrap();
        let marked = |value: &serde_json::Value| value["cache_control"]["type"] == "ephemeral";
        let last = |list: &serde_json::Value| list.as_array().unwrap().last().is_some_and(marked);
        assert!(last(&sent["system"]) && last(&sent["tools"]));
        let users: Vec<_> = sent["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "user").collect();
        for (back, message) in users.iter().rev().enumerate() {
            assert_eq!(last(&message["content"]), back < 2, "the last two messages of the user, and no other");
        }
        assert_eq!(raw.matches("cache_control").count(), 2 + users.len().min(2), "four at most");
    }
}
