//! The provider as its callers see it. What needs the weights runs only with `AGENT_E2E_MODEL=1` (some minutes on a
//! busy machine); they are looked for in `AGENT_MODEL_PATH` and in `~/.cache/agent/models`.

use super::*;
use agent_tools::{Declaration, Part};
use futures_util::StreamExt;
use serde_json::Value;
use std::time::Instant;

use crate::message::CallResult;

#[tokio::test]
async fn weights_that_are_missing_or_damaged_are_told_in_words() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("x.gguf");
    let messages = [Message::user("hi")];
    let request = Request::new("", &messages, &[]);
    let missing = Local::open(&path, None).reply(request).await.err().unwrap();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    assert!(missing.message.contains("agent model fetch"), "{missing}");
    for damaged in [&b""[..], b"GGUF", b"<html>"] {
        std::fs::write(&path, damaged).unwrap();
        let mut replies = Local::open(&path, None).reply(request).await.unwrap();
        let failure = replies.next().await.unwrap().unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Invalid);
        assert!(failure.message.contains("fetch it again") && !failure.message.contains('\n'), "{failure}");
        assert!(replies.next().await.is_none());
    }
}

/// The weights, where a test with them is wanted.
fn weights() -> Option<PathBuf> {
    std::env::var_os("AGENT_E2E_MODEL")?;
    let named = std::env::var_os("AGENT_MODEL_PATH").map(PathBuf::from);
    let fetched = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache/agent/models").join(file_name()));
    let path = named.or_else(fetched).unwrap();
    assert!(path.is_file(), "no weights at {}: run `agent model fetch`", path.display());
    Some(path)
}

fn tools() -> Vec<Declaration> {
    let about = "Available skills:\n  pdf-report — making a PDF report\n  release-notes — writing release notes";
    ["bash", "read_file", "write_file", "edit_file", "read_skill"]
        .map(|name| Declaration { name: name.into(), description: about.into(), schema: Value::Null })
        .to_vec()
}

/// All of an answer: the words as they came, the blocks, the usage, the end.
async fn answer(local: &Local, messages: &[Message]) -> (String, Vec<Block>, Usage, Option<Stop>) {
    let tools = tools();
    let tools: Vec<&Declaration> = tools.iter().collect();
    let mut replies = local.reply(Request::new("", messages, &tools)).await.unwrap();
    let (mut text, mut blocks, mut usage, mut stop) = (String::new(), Vec::new(), Usage::default(), None);
    while let Some(delta) = replies.next().await {
        match delta.unwrap() {
            Delta::Text(bit) => text.push_str(&bit),
            Delta::Thinking(_) => {}
            Delta::Block(block) => blocks.push(block),
            Delta::Usage(last) => usage = last,
            Delta::Stop(end) => stop = Some(end),
        }
    }
    (text, blocks, usage, stop)
}

/// With `AGENT_E2E_MODEL=1`: requests, what they lead to, and what is remembered between them and between runs.
#[tokio::test]
async fn the_model_calls_tools_and_answers() {
    let Some(weights) = weights() else { return };
    let cache = tempfile::tempdir().unwrap();
    let local = Local::open(&weights, Some(cache.path()));
    let mut messages = vec![Message::user("Create hello.txt containing hi")];
    let (text, blocks, first, stop) = answer(&local, &messages).await;
    let call = blocks[0].as_call().unwrap();
    assert_eq!(
        (text.as_str(), call.id.as_str(), call.name.as_str(), stop),
        ("", "local_1", "write_file", Some(Stop::End))
    );
    let given: Value = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!((given["path"].as_str(), given["content"].as_str().map(str::trim)), (Some("hello.txt"), Some("hi")));
    let parts = vec![Part::text("Created hello.txt (1 lines)")];
    let result = CallResult { id: call.id.clone(), name: call.name.clone(), failed: false, parts };
    messages.extend([Message::Assistant(blocks.clone()), Message::Results(vec![result])]);
    let (text, blocks, second, stop) = answer(&local, &messages).await;
    assert!(text.contains("hello.txt") && stop == Some(Stop::End), "{text}");
    assert!(matches!(&blocks[..], [Block::Text { text: block }] if *block == text));
    // Of the second request, what the first had is not read again.
    assert!(second.cache_read_input_tokens > first.cache_read_input_tokens && second.input_tokens < 60, "{second:?}");
    // Another run takes the opening from disk, and says the same.
    let begun = Instant::now();
    let again = answer(&Local::open(&weights, Some(cache.path())), &messages[..1]).await;
    assert_eq!(again.1[0].as_call().unwrap().arguments, call_arguments(&messages));
    assert_eq!(again.2, first, "{:?}", begun.elapsed());
}

fn call_arguments(messages: &[Message]) -> String {
    messages.iter().flat_map(Message::calls).next().unwrap().arguments.clone()
}

/// With `AGENT_E2E_MODEL=1`: an answer that nobody wants any more makes way for the next.
#[tokio::test]
async fn a_dropped_answer_is_given_up() {
    let Some(weights) = weights() else { return };
    let cache = tempfile::tempdir().unwrap();
    let local = Local::open(&weights, Some(cache.path()));
    let tell = [Message::user("Tell me a very long story about a fox, in many sentences.")];
    let mut replies = local.reply(Request::new("", &tell, &[])).await.unwrap();
    let first = replies.next().await;
    assert!(matches!(first, Some(Ok(Delta::Text(_)))), "{first:?}");
    drop(replies);
    // The lock is free again long before the story would have been told.
    let begun = Instant::now();
    while local.held.loaded.try_lock().is_err() {
        assert!(begun.elapsed().as_secs() < 20);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let long = "word ".repeat(6000);
    let messages = [Message::user(long)];
    let mut replies = local.reply(Request::new("", &messages, &[])).await.unwrap();
    assert_eq!(replies.next().await.unwrap().unwrap_err().kind, ErrorKind::TooLong);
}
