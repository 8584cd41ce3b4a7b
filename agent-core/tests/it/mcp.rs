//! Servers of tools: real ones, over pipes and over HTTP, well-behaved and not.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_core::mcp::{Around, ServerSpec, Servers, Transport};
use agent_tools::policy::{Gate, Mode, Open, Permissions, Policy};
use agent_tools::text::Cut;
use agent_tools::{Call, Status, ToolContext, ToolOutput, Tools, dispatch};

/// A server that does what it is told by its arguments; the standard library is all it takes.
const SERVER: &str = include_str!("../data/mcp_server.py");

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.py"), SERVER).unwrap();
        Self { folder }
    }

    fn around(&self) -> Around {
        Around {
            cwd: self.folder.path().to_owned(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            timeout: Duration::from_secs(2),
            cut: Cut::HeadTailBytes(2000),
            proxy: None,
            no_proxy: Vec::new(),
            ca_cert: None,
        }
    }

    fn spec(name: &str, ways: &[&str]) -> ServerSpec {
        let args = std::iter::once("server.py").chain(ways.iter().copied()).map(str::to_owned).collect();
        ServerSpec::new(name, Transport::Stdio { command: "python3".into(), args, env: Vec::new(), cwd: None })
    }

    async fn connected(&self, specs: Vec<ServerSpec>) -> Servers {
        let servers = Servers::connect(specs, &self.around());
        servers.settled(Duration::from_secs(10)).await;
        servers
    }

    async fn call(&self, servers: &Servers, name: &str, arguments: &str) -> ToolOutput {
        self.judged(servers, name, arguments, Open).await
    }

    async fn judged(
        &self,
        servers: &Servers,
        name: &str,
        arguments: &str,
        policy: impl Policy + 'static,
    ) -> ToolOutput {
        let tools = servers.equip(&Tools::default());
        let cx = ToolContext::new(self.folder.path(), policy);
        dispatch(&tools, &Call::new("1", name, arguments), &cx).await
    }
}

fn names(servers: &Servers) -> Vec<String> {
    servers.equip(&Tools::default()).declarations().map(|declared| declared.name.clone()).collect()
}

#[tokio::test]
async fn tools_of_a_server_are_tools() {
    let bench = Bench::new();
    let servers = bench.connected(vec![Bench::spec("a", &[])]).await;
    assert_eq!(
        names(&servers),
        ["mcp__a__die", "mcp__a__echo", "mcp__a__fail", "mcp__a__look", "mcp__a__much", "mcp__a__wait"]
    );
    assert!(servers.told().is_empty());
    for (name, arguments, status, text) in [
        ("mcp__a__echo", r#"{"text": "hi"}"#, Status::Ok, "hi"),
        ("mcp__a__fail", "{}", Status::Failed, "it failed"),
        ("mcp__a__much", "{}", Status::Ok, "truncated"),
        ("mcp__a__wait", "{}", Status::Failed, "2s timeout exceeded"),
    ] {
        let output = bench.call(&servers, name, arguments).await;
        assert_eq!(output.status, status, "{name} {}", output.text());
        assert!(output.text().contains(text), "{name} {}", output.text());
        assert!(output.text().len() < 2500);
    }
    let schema = servers.equip(&Tools::default());
    let echo = schema.declarations().find(|declared| declared.name == "mcp__a__echo").unwrap().schema.clone();
    assert_eq!(echo["properties"]["text"]["type"], "string");
}

#[tokio::test]
async fn what_a_tool_does_is_asked_about() {
    let bench = Bench::new();
    let mut trusted = Bench::spec("b", &[]);
    trusted.trusted = true;
    let servers = bench.connected(vec![Bench::spec("a", &[]), trusted]).await;
    // Nobody is there to ask: what would be asked is refused.
    for (name, status) in [
        ("mcp__a__look", Status::Blocked),
        ("mcp__a__echo", Status::Blocked),
        ("mcp__b__echo", Status::Blocked),
        ("mcp__b__look", Status::Ok),
    ] {
        let gate = Gate::new(Mode::DEFAULT, Permissions::Auto);
        let output = bench.judged(&servers, name, r#"{"text": "x"}"#, gate).await;
        assert_eq!(output.status, status, "{name} {}", output.text());
    }
}

#[tokio::test]
async fn broken_servers_are_told_of_and_in_nobodys_way() {
    let bench = Bench::new();
    let program = |name: &str, command: &str| {
        let command = command.to_owned();
        ServerSpec::new(name, Transport::Stdio { command, args: Vec::new(), env: Vec::new(), cwd: None })
    };
    let specs = vec![
        program("none", "/no/such/program"),
        program("exits", "false"),
        Bench::spec("junk", &["junk"]),
        Bench::spec("good", &[]),
        ServerSpec::new("odd", Transport::Http { url: "no address".into(), headers: Vec::new() }),
        ServerSpec::new("closed", Transport::Http { url: "http://127.0.0.1:9/mcp".into(), headers: Vec::new() }),
    ];
    let begun = Instant::now();
    let servers = Servers::connect(specs, &bench.around());
    assert!(begun.elapsed() < Duration::from_secs(1), "nobody waits");
    servers.settled(Duration::from_secs(10)).await;
    assert!(names(&servers).iter().all(|name| name.starts_with("mcp__good__")));
    let told = servers.told().join("\n");
    for part in
        ["none is not there: `/no/such/program` could not be started", "exits is not there", "junk", "odd", "closed"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("good"), "{told}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let bench = Bench::new();
    let servers = Servers::connect(vec![Bench::spec("mute", &["mute"])], &bench.around());
    let begun = Instant::now();
    servers.settled(Duration::from_millis(300)).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(names(&servers).is_empty());
}

#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let bench = Bench::new();
    let servers = bench.connected(vec![Bench::spec("a", &[])]).await;
    let tools = servers.equip(&Tools::default());
    let cx = ToolContext::new(bench.folder.path(), Open);
    let died = dispatch(&tools, &Call::new("1", "mcp__a__die", "{}"), &cx).await;
    assert_eq!(died.status, Status::Failed);
    assert!(died.text().contains("the MCP server a is not there"), "{}", died.text());
    let mut again = died;
    for _ in 0..100 {
        again = dispatch(&tools, &Call::new("2", "mcp__a__echo", r#"{"text": "back"}"#), &cx).await;
        if again.status == Status::Ok {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(again.text(), "back");
}

#[tokio::test]
async fn a_list_that_changes_is_read_again() {
    let bench = Bench::new();
    let servers = bench.connected(vec![Bench::spec("a", &["grows"])]).await;
    let mut changes = servers.changes();
    while !names(&servers).contains(&"mcp__a__late".to_owned()) {
        tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn some_tools_can_be_left_out() {
    let bench = Bench::new();
    let (mut only, mut without) = (Bench::spec("a", &[]), Bench::spec("b", &[]));
    only.tools = Some(vec!["echo".into()]);
    without.exclude = ["die", "fail", "much", "wait"].map(str::to_owned).to_vec();
    let servers = bench.connected(vec![only, without]).await;
    assert_eq!(names(&servers), ["mcp__a__echo", "mcp__b__echo", "mcp__b__look"]);
}

#[tokio::test]
async fn servers_end_with_the_session() {
    let bench = Bench::new();
    let servers = bench.connected(vec![Bench::spec("a", &["leaves-a-child"])]).await;
    assert!(running(bench.folder.path()) >= 2);
    drop(servers);
    let begun = Instant::now();
    while running(bench.folder.path()) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How many processes work in this directory.
fn running(cwd: &Path) -> usize {
    let cwd = cwd.canonicalize().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|dir| dir == cwd)).count()
}

#[tokio::test]
async fn servers_are_reached_over_http() {
    let bench = Bench::new();
    let mut server = std::process::Command::new("python3")
        .args(["server.py", "http"])
        .current_dir(bench.folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = server.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    let headers = vec![("X-Token".to_owned(), "secret".to_owned())];
    let spec = ServerSpec::new("web", Transport::Http { url: line.trim().to_owned(), headers });
    let servers = bench.connected(vec![spec]).await;
    let output = bench.call(&servers, "mcp__web__echo", r#"{"text": "over http"}"#).await;
    assert_eq!(output.text(), "over http secret", "{:?}", servers.told());
    drop(servers);
    server.kill().unwrap();
    server.wait().unwrap();
}

/// What is shared by sessions is nobody's alone.
#[test]
fn servers_go_between_threads() {
    fn sends<T: Send + Sync>() {}
    sends::<Arc<Servers>>();
}
