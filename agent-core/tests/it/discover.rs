//! Which model is found: over settings, variables, and real servers on this machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, Instant};

use agent_core::agent::{connect, doubts};
use agent_core::discover::{Choice, Dirs, KeyFrom, LocalServer, Outside, Remote, discover, fallbacks};
use agent_core::settings::{Settings, Source, file};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is found with these settings and variables, and servers at these addresses.
async fn find(yaml: &str, variables: &[(&str, &str)], servers: &[LocalServer]) -> Result<Choice, String> {
    let settings = settings(yaml);
    let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
    let mut outside = Outside::new("/", Dirs::all_in("/nowhere"), &lookup);
    (outside.servers, outside.patience) = (servers, PATIENCE);
    // Frontends that serve several sessions move it between threads.
    let found: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(discover(&settings, &outside));
    found.await.map_err(|e| e.to_string())
}

fn settings(yaml: &str) -> Settings {
    let layer = file::layer(Source::User("config.yaml".into()), yaml.as_bytes()).unwrap();
    Settings::resolve(vec![layer]).unwrap().0
}

async fn remote(yaml: &str, variables: &[(&str, &str)], servers: &[LocalServer]) -> Result<Remote, String> {
    match find(yaml, variables, servers).await? {
        Choice::Remote(remote) => Ok(remote),
        Choice::Local { .. } => Err("local".into()),
    }
}

/// A server that gives every client these bytes; it keeps the connection open.
async fn server(name: &'static str, answer: impl Into<Vec<u8>>) -> LocalServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let _ = stream.write_all(&answer).await;
            held.push(stream);
        }
    });
    LocalServer { name, address }
}

fn ok(json: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{json}", json.len())
}

fn nobody() -> LocalServer {
    LocalServer { name: "nobody", address: SocketAddr::from(([127, 0, 0, 1], 1)) }
}

#[tokio::test]
async fn keys_and_names_choose_a_provider() {
    const A: (&str, &str) = ("ANTHROPIC_API_KEY", "ka");
    const O: (&str, &str) = ("OPENAI_API_KEY", "ko");
    const D: (&str, &str) = ("DEEPSEEK_API_KEY", "kd");
    for (yaml, variables, provider, key) in [
        ("", &[O, A][..], "anthropic", "ANTHROPIC_API_KEY"),
        ("", &[D, O], "openai", "OPENAI_API_KEY"),
        ("", &[D], "deepseek", "DEEPSEEK_API_KEY"),
        ("", &[("ANTHROPIC_API_KEY", " "), D], "deepseek", "DEEPSEEK_API_KEY"),
        ("", &[("OPENROUTER_API_KEY", "k"), ("GEMINI_API_KEY", "k"), D], "gemini", "GEMINI_API_KEY"),
        ("provider: openai", &[O, A], "openai", "OPENAI_API_KEY"),
        ("provider: openai\napiKeyEnv: MINE", &[O, ("MINE", "k")], "openai", "MINE"),
        ("model: gpt-5", &[O, A], "openai", "OPENAI_API_KEY"),
        ("model: claude-x", &[O, A], "anthropic", "ANTHROPIC_API_KEY"),
        ("model: claude-x", &[O], "openai", "OPENAI_API_KEY"),
        ("model: a/b", &[A, ("OPENROUTER_API_KEY", "k")], "openrouter", "OPENROUTER_API_KEY"),
        ("model: strange", &[O, A], "anthropic", "ANTHROPIC_API_KEY"),
        ("baseUrl: http://127.0.0.1:9/v1\nmodel: m", &[O, A], "openai", "OPENAI_API_KEY"),
    ] {
        let found = remote(yaml, variables, &[]).await.unwrap_or_else(|e| panic!("{yaml:?} {variables:?}: {e}"));
        assert_eq!((found.provider.as_str(), found.key), (provider, KeyFrom::Variable(key.into())), "{yaml:?}");
    }
}

#[tokio::test]
async fn addresses_need_no_key() {
    for (yaml, variables, base_url) in [
        ("baseUrl: http://127.0.0.1:9\nmodel: m", &[][..], "http://127.0.0.1:9"),
        ("provider: openai\nmodel: m", &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "http://127.0.0.1:9/v1"),
        ("model: m", &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "http://127.0.0.1:9/v1"),
        ("baseUrl: http://a/\nmodel: m", &[("OPENAI_BASE_URL", "http://b/")], "http://a/"),
    ] {
        let found = remote(yaml, variables, &[]).await.unwrap();
        assert_eq!((found.base_url.as_str(), found.key, found.model.as_str()), (base_url, KeyFrom::Nowhere, "m"));
    }
}

#[tokio::test]
async fn the_line_says_which_and_why() {
    for (yaml, variables, line) in [
        ("model: m", &[("ANTHROPIC_API_KEY", "secret")][..], "Using m of anthropic (ANTHROPIC_API_KEY)"),
        ("model: m\nbaseUrl: http://u:secret@x/v1", &[], "Using m at http://***@x/v1 (openai)"),
        ("model: m\nprovider: openai\napiKeyCommand: pass secret", &[], "Using m of openai (apiKeyCommand)"),
        (
            "model: m\nprovider: anthropic\nbaseUrl: http://x",
            &[("ANTHROPIC_API_KEY", "secret")],
            "Using m at http://x (anthropic, ANTHROPIC_API_KEY)",
        ),
    ] {
        assert_eq!(find(yaml, variables, &[]).await.unwrap().line(), line);
    }
}

#[tokio::test]
async fn mistakes_say_what_to_do() {
    for (yaml, variables, parts) in [
        ("provider: nope", &[][..], &["no provider `nope`", "anthropic, openai"][..]),
        ("provider: openai", &[("ANTHROPIC_API_KEY", "k")], &["openai needs a key", "OPENAI_API_KEY"]),
        ("provider: openai\napiKeyEnv: MINE", &[], &["MINE, which is not set"]),
        ("apiKeyEnv: MINE", &[("MINE", "k")], &["--provider"]),
        ("model: m", &[], &["No model was found that runs m", "ANTHROPIC_API_KEY, OPENAI_API_KEY"]),
    ] {
        let error = find(yaml, variables, &[]).await.unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{yaml:?}: {error}");
        }
    }
}

#[tokio::test]
async fn the_first_server_in_order_wins_and_others_are_passed_over() {
    let list = |id: &str| ok(&format!(r#"{{"object":"list","data":[{{"id":"{id}","object":"model"}}]}}"#));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n17\r\n{\"data\":[{\"id\":\"chunk\"}\r\n2\r\n]}\r\n0\r\n\r\n";
    let redirect = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    for (yaml, answers, expect) in [
        ("", vec![list("first"), list("second")], Some(("first", "0"))),
        ("", vec![ok("<html>"), list("second")], Some(("second", "1"))),
        ("", vec![ok(r#"{"data":[]}"#), list("second")], Some(("second", "1"))),
        ("", vec![ok(r#"{"models":["x"]}"#), list("second")], Some(("second", "1"))),
        ("", vec![redirect.into(), list("second")], Some(("second", "1"))),
        ("", vec!["HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(), list("second")], Some(("second", "1"))),
        ("", vec!["SSH-2.0-x\r\n".into(), list("second")], Some(("second", "1"))),
        ("", vec![String::new(), list("second")], Some(("second", "1"))),
        ("", vec![format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1 << 20)), list("second")], Some(("second", "1"))),
        ("", vec![list("nomic-embed-text"), list("second")], Some(("second", "1"))),
        ("", vec![chunked.into()], Some(("chunk", "0"))),
        ("model: second", vec![list("first"), list("second:latest")], Some(("second:latest", "1"))),
        ("model: third", vec![list("first"), list("second")], None),
        ("", vec![ok("nonsense")], None),
    ] {
        let mut servers = Vec::new();
        for (name, answer) in ["0", "1"].into_iter().zip(&answers) {
            servers.push(server(name, answer.as_str()).await);
        }
        let found = remote(yaml, &[], &servers).await.ok();
        let line = found.as_ref().map(|r| (r.model.as_str(), r.why.clone()));
        let expect = expect.map(|(model, name)| {
            let address = servers.iter().find(|s| s.name == name).unwrap().address;
            (model, format!("at http://{address} ({name})"))
        });
        assert_eq!(line, expect, "{answers:?}");
    }
}

#[tokio::test]
async fn nobody_is_waited_for_long() {
    let mut silent = vec![nobody()];
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        silent.push(server(name, "").await);
    }
    let start = Instant::now();
    assert!(remote("", &[], &silent).await.is_err());
    assert!(start.elapsed() < 5 * PATIENCE, "{:?}", start.elapsed());
}

#[tokio::test]
async fn nobody_is_asked_where_that_is_unwanted_or_needless() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let servers = [LocalServer { name: "a", address }];
    let base = format!("baseUrl: http://{address}\nmodel: m");
    for (yaml, variables) in [
        ("", &[("AGENT_NO_DISCOVERY", "1")][..]),
        ("", &[("OPENAI_API_KEY", "k")]),
        ("provider: openai\nmodel: m", &[]),
        (&base, &[]),
    ] {
        let _ = find(yaml, variables, &servers).await;
        let asked = tokio::time::timeout(Duration::from_millis(20), listener.accept()).await;
        assert!(asked.is_err(), "{yaml:?}");
    }
}

#[tokio::test]
async fn a_server_of_ones_own_names_its_model() {
    let own = server("own", ok(r#"{"data":[{"id":"qwen"}]}"#)).await;
    let yaml = format!("baseUrl: http://{}", own.address);
    assert_eq!(remote(&yaml, &[], &[]).await.unwrap().model, "qwen");
    let variables = [("OPENAI_BASE_URL", format!("http://{}/v1", own.address))];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(remote("", &variables, &[]).await.unwrap().model, "qwen");
}

#[tokio::test]
async fn what_is_known_of_a_model_comes_from_its_place_the_table_and_the_settings() {
    const K: (&str, &str) = ("OPENAI_API_KEY", "k");
    for (yaml, variables, input, context, sees) in [
        ("model: gpt-5.5", &[K][..], Some(5.0), 1_050_000, true),
        ("model: gpt-5.5\nbaseUrl: http://localhost:9", &[], Some(0.0), 1_050_000, true),
        ("model: gpt-5.5\nbaseUrl: http://localhost:9", &[K], Some(5.0), 1_050_000, true),
        ("model: strange\nbaseUrl: http://127.0.0.1:9/v1", &[], Some(0.0), 200_000, false),
        ("model: strange\nbaseUrl: http://far.example/v1", &[], None, 200_000, false),
        ("model: strange\nmaxContext: 9000", &[K], None, 9000, false),
        (
            "model: strange-2\nmodels: {strange: {context: 7000, sees: true, cost: {input: 3, output: 4}}}",
            &[K],
            Some(3.0),
            7000,
            true,
        ),
        ("model: gpt-5.5\nmodels: {gpt-5: {sees: false}}", &[K], Some(5.0), 1_050_000, false),
    ] {
        let found = remote(&format!("provider: openai\n{yaml}"), variables, &[]).await.unwrap();
        let provider = connect(&found, None, &settings(yaml)).unwrap();
        let model = provider.model();
        let known = (model.prices.map(|prices| prices.input), model.context, model.sees);
        assert_eq!(known, (input, context, sees), "{yaml:?}");
    }
}

#[tokio::test]
async fn fallbacks_are_found_by_name_and_left_out_without_a_key() {
    const K: (&str, &str) = ("OPENAI_API_KEY", "k");
    const A: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
    let own = "provider: openai\nmodel: m\nbaseUrl: http://own.example/v1\napiKeyEnv: MINE";
    for (yaml, variables, expect, told) in [
        ("provider: openai\nmodel: m", &[K, A][..], "", ""),
        (
            "provider: openai\nmodel: m\nfallback: next",
            &[K],
            "openai next at https://api.openai.com/v1 OPENAI_API_KEY",
            "",
        ),
        (
            &format!("{own}\nfallback: [n, openai/o, anthropic/claude-x]"),
            &[("MINE", "k"), A],
            "openai n at http://own.example/v1 MINE, openai o at http://own.example/v1 MINE, \
             anthropic claude-x at https://api.anthropic.com ANTHROPIC_API_KEY",
            "",
        ),
        (
            "provider: openai\nmodel: m\nfallback: [org/n, deepseek/x, local/y, openrouter/a/b]",
            &[K, ("OPENROUTER_API_KEY", "k")],
            "openai org/n at https://api.openai.com/v1 OPENAI_API_KEY, \
             openrouter a/b at https://openrouter.ai/api/v1 OPENROUTER_API_KEY",
            "config.yaml: the fallback `deepseek/x` is left out: The provider deepseek needs a key: set DEEPSEEK_API_KEY",
        ),
    ] {
        let first = remote(yaml, variables, &[]).await.unwrap();
        let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        let outside = Outside::new("/", Dirs::all_in("/nowhere"), &lookup);
        let (found, left_out) = fallbacks(&settings(yaml), &first, &outside).await;
        let shown = |r: &Remote| match &r.key {
            KeyFrom::Variable(name) => format!("{} {} at {} {name}", r.provider, r.model, r.base_url),
            other => format!("{other:?}"),
        };
        assert_eq!(found.iter().map(shown).collect::<Vec<_>>().join(", "), expect, "{yaml}");
        let left_out = left_out.join("\n");
        assert!(left_out.starts_with(told) && left_out.is_empty() == told.is_empty(), "{left_out}");
        assert_eq!(left_out.contains("`local/y`"), yaml.contains("local/y"), "{left_out}");
    }
}

#[tokio::test]
async fn a_model_that_takes_no_effort_is_told_and_not_refused() {
    for (yaml, told) in [
        ("provider: openai\nmodel: gpt-5.5\neffort: high", ""),
        ("provider: openai\nmodel: gpt-4.1", ""),
        ("provider: openai\nmodel: gpt-4.1\neffort: high", "`effort` has no effect: gpt-4.1"),
        ("provider: responses\nmodel: gpt-4.1\neffort: high", "`effort` has no effect: gpt-4.1"),
        ("provider: openai\nmodel: llama\nbaseUrl: http://127.0.0.1:9\neffort: low", "`effort` has no effect: llama"),
    ] {
        let found = remote(yaml, &[("OPENAI_API_KEY", "k")], &[]).await.unwrap();
        let doubts = doubts(&found, &settings(yaml)).join("\n");
        assert!(doubts.starts_with(told) && doubts.is_empty() == told.is_empty(), "{yaml}: {doubts}");
    }
}
