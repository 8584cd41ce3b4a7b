//! The providers over real sockets: what comes in pieces, late, cut, wrong or not at all.

use std::time::{Duration, Instant};

use agent_core::provider::anthropic::Anthropic;
use agent_core::provider::http::Endpoint;
use agent_core::provider::openai::OpenAi;
use agent_core::provider::responses::Responses;
use agent_core::provider::{Delta, ErrorKind, Model, Provider, ProviderError, Request, Stop};
use agent_core::{Block, Message};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::fake_server::{FakeServer, Step, answer, begun, stream};

const KEY: &str = "sk-case-2001";

fn endpoint(url: &str) -> Endpoint {
    Endpoint::new(url).with_key(KEY, "TEST_API_KEY")
}

fn openai(url: &str) -> OpenAi {
    OpenAi::new(Model::new("openai", "m"), endpoint(url))
}

fn anthropic(url: &str) -> Anthropic {
    Anthropic::new(Model::new("anthropic", "m"), endpoint(url))
}

fn responses(url: &str) -> Responses {
    Responses::new(Model::new("responses", "m"), endpoint(url))
}

/// What an answer came to: its text, calls and end, or the error.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    calls: Vec<String>,
    stop: Option<Stop>,
}

async fn ask(provider: &dyn Provider) -> Result<Told, ProviderError> {
    let messages = [Message::user("go")];
    let mut replies = provider.reply(Request::new("sys", &messages, &[])).await?;
    let mut told = Told::default();
    let mut text = String::new();
    while let Some(delta) = replies.next().await {
        match delta? {
            Delta::Text(more) => text.push_str(&more),
            Delta::Block(Block::Text { text }) => told.text.push_str(&text),
            Delta::Block(Block::Call { call }) => told.calls.push(format!("{}({})", call.name, call.arguments)),
            Delta::Block(Block::Opaque { .. }) | Delta::Thinking(_) | Delta::Usage(_) => {}
            Delta::Stop(stop) => told.stop = Some(stop),
        }
    }
    assert_eq!(text, told.text, "the pieces are the whole");
    Ok(told)
}

async fn answered(provider: &dyn Provider, text: &str) {
    let told = ask(provider).await.unwrap();
    assert_eq!(told, Told { text: text.into(), calls: Vec::new(), stop: Some(Stop::End) });
}

async fn failed(provider: &dyn Provider, kind: ErrorKind, words: &str) -> ProviderError {
    let error = ask(provider).await.unwrap_err();
    assert_eq!(error.kind, kind, "{}", error.message);
    assert!(error.message.contains(words), "{}", error.message);
    assert!(error.message.chars().count() < 500 && !error.message.contains(KEY), "{}", error.message);
    error
}

fn chat(text: &str) -> String {
    let piece = |t: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{t}\"}}}}]}}\n\n");
    let pieces: String = text.split_inclusive(' ').map(piece).collect();
    format!("{pieces}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n")
}

fn messages(text: &str) -> String {
    let event = |data: String| format!("event: x\ndata: {data}\n\n");
    [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}"#.into(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.into(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.into(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#.into(),
        r#"{"type":"message_stop"}"#.into(),
    ]
    .map(event)
    .concat()
}

fn items(text: &str) -> String {
    let event = |data: String| format!("event: x\ndata: {data}\n\n");
    let whole = format!(r#"{{"type":"message","id":"a","content":[{{"type":"output_text","text":"{text}"}}]}}"#);
    [
        r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#.into(),
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a","content":[]}}"#
            .into(),
        format!(r#"{{"type":"response.output_text.delta","output_index":0,"item_id":"a","delta":"{text}"}}"#),
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{whole}}}"#),
        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{whole}]}}}}"#),
    ]
    .map(event)
    .concat()
}

const UNICODE: &str = "Größe 日本語 🙂 é 👩‍💻.";

#[tokio::test]
async fn pieces_of_any_size_make_the_same_answer() {
    for size in [1, 2, 3, 7, 1000] {
        let bodies = [chat(UNICODE), messages(UNICODE), items(UNICODE)];
        let server = FakeServer::start(bodies.map(|body| stream(&body, size))).await;
        answered(&openai(&server.url), UNICODE).await;
        answered(&anthropic(&server.url), UNICODE).await;
        answered(&responses(&server.url), UNICODE).await;
    }
}

#[tokio::test]
async fn requests_go_to_the_right_address_with_the_key() {
    let server = FakeServer::start([
        stream(&chat("a"), 1000),
        stream(&chat("a"), 1000),
        stream(&messages("a"), 1000),
        stream(&messages("a"), 1000),
        stream(&items("a"), 1000),
        stream(&items("a"), 1000),
    ])
    .await;
    answered(&openai(&server.url), "a").await;
    answered(&openai(&format!("{}/s/x/", server.url)), "a").await;
    answered(&anthropic(&server.url), "a").await;
    answered(&anthropic(&format!("{}/v1", server.url)), "a").await;
    answered(&responses(&server.url), "a").await;
    answered(&responses(&format!("{}/s/x/", server.url)), "a").await;
    let asked = server.asked();
    for (at, (path, key)) in [
        ("/v1/chat/completions", "authorization: bearer sk-case-2001"),
        ("/s/x/chat/completions", "authorization: bearer sk-case-2001"),
        ("/v1/messages", "x-api-key: sk-case-2001"),
        ("/v1/messages", "anthropic-version: 2023-06-01"),
        ("/v1/responses", "authorization: bearer sk-case-2001"),
        ("/s/x/responses", "authorization: bearer sk-case-2001"),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(asked[at].head.starts_with(&format!("post {path} http/1.1\r\n")), "{}", asked[at].head);
        assert!(asked[at].head.lines().any(|l| l == key), "{}", asked[at].head);
        assert_eq!((asked[at].body["model"].as_str(), asked[at].body["stream"].as_bool()), (Some("m"), Some(true)));
    }
}

#[tokio::test]
async fn one_connection_serves_all_requests() {
    let server = FakeServer::start([
        stream(&chat("a"), 1000),
        answer("429 Too Many Requests", "", "{}"),
        stream(&chat("b"), 10),
        stream(&chat("c"), 1000),
    ])
    .await;
    let provider = openai(&server.url);
    answered(&provider, "a").await;
    failed(&provider, ErrorKind::RateLimited, "429").await;
    answered(&provider, "b").await;
    answered(&provider, "c").await;
    let connections: Vec<_> = server.asked().iter().map(|a| a.connection).collect();
    assert_eq!(connections, [0, 0, 0, 0]);
}

#[tokio::test]
async fn an_answer_ends_at_its_mark_though_the_connection_stays_open() {
    let hang = || Step::Wait(Duration::from_secs(60));
    let without_mark = chat("x").replace("data: [DONE]\n\n", "");
    let server = FakeServer::start([
        begun(&chat("lingers"), [hang()]),
        begun(&messages("lingers"), [hang()]),
        begun(&items("lingers"), [hang()]),
        begun(&without_mark, [Step::Reset]),
        begun(&without_mark, [Step::End]),
    ])
    .await;
    let begin = Instant::now();
    answered(&openai(&server.url), "lingers").await;
    answered(&anthropic(&server.url), "lingers").await;
    answered(&responses(&server.url), "lingers").await;
    answered(&openai(&server.url), "x").await;
    answered(&openai(&server.url), "x").await;
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_that_can_be_tried_again() {
    let call = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"bash","arguments":"{\"command\":\"ls"}}]}}]}"#;
    let half = format!("{}{call}\n\n", &chat("one two")[..120]);
    for end in [Step::End, Step::Close, Step::Reset] {
        let server = FakeServer::start([
            begun(&chat("one two")[..60], [end.clone()]),
            begun(&half, [end.clone()]),
            begun(&messages("x")[..200], [end.clone()]),
            begun(&items("x")[..300], [end]),
        ])
        .await;
        for provider in [
            &openai(&server.url) as &dyn Provider,
            &openai(&server.url),
            &anthropic(&server.url),
            &responses(&server.url),
        ] {
            assert!(failed(provider, ErrorKind::Cut, "Asking m at http://").await.retryable());
        }
    }
    let server = FakeServer::start([vec![Step::Close], vec![Step::Reset], stream("", 1)]).await;
    let provider = openai(&server.url);
    failed(&provider, ErrorKind::Network, "before the answer began").await;
    failed(&provider, ErrorKind::Network, "before the answer began").await;
    failed(&provider, ErrorKind::Cut, "the answer is empty").await;
}

#[tokio::test]
async fn silence_is_limited_and_slowness_is_not() {
    let impatient = |url: &str| {
        let mut endpoint = endpoint(url);
        endpoint.idle_timeout = Duration::from_secs(1);
        OpenAi::new(Model::new("openai", "m"), endpoint)
    };
    let hang = || Step::Wait(Duration::from_secs(60));
    let slow: Vec<Step> = stream(&chat("a b c d e f g h"), 30)
        .into_iter()
        .flat_map(|step| [Step::Wait(Duration::from_millis(100)), step])
        .collect();
    assert!(slow.len() > 30, "slower than the limit as a whole");
    let server = FakeServer::start([vec![hang()], begun(&chat("a b")[..60], [hang()]), slow]).await;
    let provider = impatient(&server.url);
    failed(&provider, ErrorKind::Idle, "sent nothing for 1 s").await;
    failed(&provider, ErrorKind::Idle, "sent nothing for 1 s").await;
    answered(&provider, "a b c d e f g h").await;
}

#[tokio::test]
async fn noise_between_events_is_borne_and_damage_is_not() {
    let good = chat("a b");
    let first_end = good.find("\n\n").unwrap() + 2;
    let with = |noise: &str| format!("{}{noise}{}", &good[..first_end], &good[first_end..]);
    for noise in
        [": keep-alive\n\n\n\n", "data: {not json at all\n\n", "event: surprise\ndata: {\"type\":\"surprise\"}\n\n"]
    {
        let server = FakeServer::start([stream(&with(noise), 1000)]).await;
        answered(&openai(&server.url), "a b").await;
    }
    let server = FakeServer::start([stream(&with("data: {\"choices\":[{\"delta\":{\"cont\n\n"), 1000)]).await;
    failed(&openai(&server.url), ErrorKind::Cut, "cannot be read").await;
}

#[tokio::test]
async fn an_endless_event_is_refused() {
    let chunk = || Step::Chunk(vec![b'x'; 1 << 20]);
    let flood = [Step::Chunk(b"data: ".into())].into_iter().chain((0..17).map(|_| chunk()));
    let server = FakeServer::start([begun("", []).into_iter().take(1).chain(flood).collect()]).await;
    failed(&openai(&server.url), ErrorKind::Invalid, "larger than 16777216 bytes").await;
}

#[tokio::test]
async fn errors_of_the_server_are_told_shortly() {
    let page = format!("<html><title>502 Bad Gateway</title>{}</html>", "<p>bad gateway</p>".repeat(60000));
    let html = "content-type: text/html\r\n";
    let json = "content-type: application/json\r\n";
    let echo = r#"{"error":{"message":"invalid key sk-case-2001"}}"#;
    let cases = [
        (answer("401 Unauthorized", json, echo), ErrorKind::Auth, "invalid key ***. Check TEST_API_KEY"),
        (answer("502 Bad Gateway", html, &page), ErrorKind::Server, "502 Bad Gateway: 502 Bad Gateway"),
        (answer("200 OK", html, &page), ErrorKind::Server, "an unexpected text: 502 Bad Gateway"),
        (answer("200 OK", html, "<html><body>502 Bad Gateway</body></html>"), ErrorKind::Server, "502 Bad Gateway"),
        (answer("200 OK", "", "upstream is gone"), ErrorKind::Server, "an unexpected text: upstream is gone"),
        (
            answer("200 OK", json, r#"{"error":{"message":"slow down","code":429}}"#),
            ErrorKind::RateLimited,
            "slow down",
        ),
        (
            stream("data: {\"error\":{\"message\":\"upstream timed out\",\"code\":504}}\n\n", 9),
            ErrorKind::Server,
            "upstream timed out",
        ),
        (stream("event: error\ndata: busy\n\n", 9), ErrorKind::Server, "busy"),
        (
            answer("307 Temporary Redirect", "location: http://elsewhere/\r\n", ""),
            ErrorKind::NotFound,
            "moved to http://elsewhere/",
        ),
        (answer("404 Not Found", "", "no such model"), ErrorKind::NotFound, "Check the model's name and the base URL"),
    ];
    for (steps, kind, words) in cases {
        let server = FakeServer::start([steps]).await;
        failed(&openai(&server.url), kind, words).await;
    }
}

#[tokio::test]
async fn errors_of_responses_are_told_too() {
    let json = "content-type: application/json\r\n";
    for (steps, kind, words) in [
        (answer("401 Unauthorized", json, r#"{"error":{"message":"no"}}"#), ErrorKind::Auth, "Check TEST_API_KEY"),
        (answer("200 OK", json, r#"{"error":{"message":"busy","code":503}}"#), ErrorKind::Server, "busy"),
        (answer("404 Not Found", json, r#"{"detail":"Not Found"}"#), ErrorKind::NotFound, "the base URL"),
        (
            stream(
                "event: response.failed\ndata: {\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\"}}}\n\n",
                9,
            ),
            ErrorKind::RateLimited,
            "rate_limit_exceeded",
        ),
        (stream("event: error\ndata: busy\n\n", 9), ErrorKind::Server, "busy"),
    ] {
        let server = FakeServer::start([steps]).await;
        failed(&responses(&server.url), kind, words).await;
    }
}

#[tokio::test]
async fn what_responses_want_back_is_sent_back() {
    const REASONING: &str = r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"abc=="}"#;
    const CALL: &str = r#"{"type":"function_call","id":"fc","call_id":"c1","name":"bash","arguments":"{}"}"#;
    let end = format!(r#"{{"type":"response.completed","response":{{"output":[{REASONING},{CALL}]}}}}"#);
    let server = FakeServer::start([stream(&format!("data: {end}\n\n"), 50), stream(&items("a"), 100)]).await;
    let provider = responses(&server.url);
    let mut messages = vec![Message::user("go")];
    let replies = provider.reply(Request::new("sys", &messages, &[])).await.unwrap();
    let blocks = replies.filter_map(|delta| async {
        match delta.unwrap() {
            Delta::Block(block) => Some(block),
            Delta::Text(_) | Delta::Thinking(_) | Delta::Usage(_) | Delta::Stop(_) => None,
        }
    });
    messages.push(Message::Assistant(blocks.collect().await));
    let parts = vec![agent_tools::Part::text("done")];
    let result = agent_core::CallResult { id: "c1".into(), name: "bash".into(), failed: false, parts };
    messages.push(Message::Results(vec![result]));
    let _ = provider.reply(Request::new("sys", &messages, &[])).await.unwrap().count().await;
    let body = &server.asked()[1].body;
    let kinds: Vec<_> = body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["message", "reasoning", "function_call", "function_call_output"]);
    assert_eq!(body["input"][1].to_string(), serde_json::from_str::<serde_json::Value>(REASONING).unwrap().to_string());
    assert_eq!((&body["store"], &body["instructions"]), (&serde_json::json!(false), &serde_json::json!("sys")));
}

#[tokio::test]
async fn the_server_says_how_long_to_wait() {
    let server = FakeServer::start([answer("429 Too Many Requests", "retry-after: 2\r\n", "{}")]).await;
    let error = failed(&openai(&server.url), ErrorKind::RateLimited, "429").await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
}

#[tokio::test]
async fn an_answer_without_stream_or_with_another_type_is_understood() {
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"whole","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let server = FakeServer::start([
        answer("200 OK", "content-type: application/json\r\n", whole),
        answer("200 OK", "content-type: text/plain\r\n", &chat("typed wrong")),
    ])
    .await;
    let told = ask(&openai(&server.url)).await.unwrap();
    assert_eq!((told.text.as_str(), told.calls, told.stop), ("whole", vec!["f({})".to_owned()], Some(Stop::End)));
    answered(&openai(&server.url), "typed wrong").await;
}

#[tokio::test]
async fn packed_answers_are_unpacked() {
    // `data: {"choices":[{"delta":{"content":"zip"},"finish_reason":"stop"}]}`, packed with gzip.
    const PACKED: &[u8] = include_bytes!("../data/zip.sse.gz");
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";
    let pieces = PACKED.chunks(11).map(|c| Step::Chunk(c.to_vec()));
    let steps = [Step::Raw(head.into())].into_iter().chain(pieces).chain([Step::End]).collect();
    let server = FakeServer::start([steps]).await;
    answered(&openai(&server.url), "zip").await;
    assert!(server.asked()[0].head.contains("accept-encoding: gzip"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_a_hint() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    failed(&openai(&format!("http://{free}")), ErrorKind::Network, "is the server running?").await;
    failed(&openai("localhost:1"), ErrorKind::Invalid, "http:// or https://").await;
    failed(&openai("http://h:port"), ErrorKind::Invalid, "invalid port number").await;
    let broken_key = OpenAi::new(Model::new("openai", "m"), Endpoint::new("http://h").with_key("a\nb", "TEST_API_KEY"));
    failed(&broken_key, ErrorKind::Auth, "Check TEST_API_KEY").await;
}

#[tokio::test]
async fn certificates_are_checked_and_further_ones_can_be_trusted() {
    let data = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let with = |url: &str, ca_cert: Option<&str>| {
        let mut endpoint = endpoint(url);
        endpoint.ca_cert = ca_cert.map(data);
        OpenAi::new(Model::new("openai", "m"), endpoint)
    };
    let server = FakeServer::encrypted([stream(&chat("safe"), 5)]).await;
    failed(&with(&server.url, None), ErrorKind::Network, "the setting `caCert`").await;
    failed(&with(&server.url, Some("nothing.pem")), ErrorKind::Invalid, "nothing.pem could not be read").await;
    failed(&with(&server.url, Some("zip.sse.gz")), ErrorKind::Invalid, "zip.sse.gz could not be read").await;
    answered(&with(&server.url, Some("ca.pem")), "safe").await;
}

#[tokio::test]
async fn a_proxy_is_used_where_one_is_named() {
    let proxy = FakeServer::start([stream(&chat("by proxy"), 1000)]).await;
    let mut endpoint = endpoint("http://nowhere.invalid/v1");
    endpoint.proxy = Some(proxy.url.clone());
    answered(&OpenAi::new(Model::new("openai", "m"), endpoint), "by proxy").await;
    assert!(proxy.asked()[0].head.starts_with("post http://nowhere.invalid/v1/chat/completions http/1.1\r\n"));
}

/// A proxy that leads every connection to this address, if it is greeted with `CONNECT`; and what it was told.
async fn tunnel(to: String) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && client.read_buf(&mut head).await.unwrap() > 0 {}
            let head = String::from_utf8(head).unwrap();
            let answer: &[u8] = if head.contains("Basic dTpwdw==") {
                b"HTTP/1.1 200 OK\r\n\r\n"
            } else {
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
            };
            tell.send(head).unwrap();
            client.write_all(answer).await.unwrap();
            let mut server = TcpStream::connect(&to).await.unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    });
    (address, told)
}

#[tokio::test]
async fn what_is_encrypted_goes_through_a_proxy_that_sees_only_the_name() {
    let server = FakeServer::encrypted([stream(&chat("through"), 5)]).await;
    let (proxy, mut told) = tunnel(server.url.replace("https://", "")).await;
    let by = |proxy: &str| {
        let mut endpoint = endpoint("https://model.test/v1");
        endpoint.proxy = Some(proxy.to_owned());
        endpoint.ca_cert = Some(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ca.pem"));
        OpenAi::new(Model::new("openai", "m"), endpoint)
    };
    answered(&by(&format!("http://u:pw@{proxy}")), "through").await;
    let head = told.recv().await.unwrap();
    assert!(head.starts_with("CONNECT model.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains(KEY) && !head.to_lowercase().contains("bearer"), "{head}");
    assert!(server.asked()[0].head.contains("authorization: bearer sk-case-2001"));
    let error = failed(&by(&format!("http://u:wrong@{proxy}")), ErrorKind::Network, "no connection").await;
    assert!(!error.message.contains("wrong"), "{}", error.message);
}

#[tokio::test]
async fn servers_here_and_those_named_are_asked_without_the_proxy() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let server = FakeServer::start([stream(&chat("direct"), 1000)]).await;
    let mut here = endpoint(&server.url);
    here.proxy = Some(format!("http://{free}"));
    answered(&OpenAi::new(Model::new("openai", "m"), here), "direct").await;
    for (no_proxy, words) in [("other.invalid", "is the server running?"), ("nowhere.invalid", "is the address right")]
    {
        let mut endpoint = endpoint("http://nowhere.invalid/v1");
        endpoint.proxy = Some(format!("http://{free}"));
        endpoint.no_proxy = vec![no_proxy.to_owned()];
        failed(&OpenAi::new(Model::new("openai", "m"), endpoint), ErrorKind::Network, words).await;
    }
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let chunks = (0..200).flat_map(|_| [Step::Wait(Duration::from_millis(20)), Step::Chunk(b": x\n\n".to_vec())]);
    let server = FakeServer::start([begun(&chat("a b")[..60], chunks), stream(&chat("next"), 1000)]).await;
    let provider = openai(&server.url);
    let messages = [Message::user("go")];
    let mut replies = provider.reply(Request::new("", &messages, &[])).await.unwrap();
    assert!(matches!(replies.next().await, Some(Ok(Delta::Text(_)))));
    drop(replies);
    answered(&provider, "next").await;
    assert_eq!(server.asked()[1].connection, 1);
}

#[tokio::test]
async fn twenty_thousand_pieces_are_cheap() {
    let words = "word ".repeat(20_000);
    let server = FakeServer::start([stream(&chat(&words), 4000)]).await;
    let begin = Instant::now();
    answered(&openai(&server.url), &words).await;
    // 10 µs a piece when optimised; this build is not, and the machine may be busy.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
