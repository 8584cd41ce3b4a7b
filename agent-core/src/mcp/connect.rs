//! How a server is reached, kept, and reached again where it was lost.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use agent_tools::builtin::companion::{Companion, Program, Streams};
use agent_tools::text::clipped;
use reqwest::Url;
use rmcp::model::{ClientConfig, Implementation};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, serve_client};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::{Server, State, Told};
use crate::provider::http::client;
use crate::settings::Transport;

/// How long a server may take to be there.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of what a program complains of is told, in characters.
const COMPLAINT: usize = 400;

/// What a server is told about us, and tells us.
struct Handler {
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new("agent", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// A connection, with the program behind it where there is one.
struct Connected {
    running: RunningService<RoleClient, Handler>,
    changed: Arc<Notify>,
    program: Option<Companion>,
}

/// Connects a server and keeps what is known of it, for ever.
pub(super) async fn keep(server: Arc<Server>, changed: Arc<watch::Sender<u64>>, told: Told) {
    loop {
        let why = match timeout(PATIENCE, connect(&server)).await {
            Ok(Ok(connected)) => work(&server, connected, &changed).await,
            Ok(Err(why)) => why,
            Err(_) => format!("it did not answer within {} s", PATIENCE.as_secs()),
        };
        let line = format!("the MCP server {} is not there: {why}", server.spec.name);
        told.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        *server.state() = State::Gone(why);
        changed.send_modify(|version| *version += 1);
        server.wanted.notified().await;
        *server.state() = State::Connecting;
    }
}

/// Lists the tools, and again when they have changed, until the connection is over. Says why it is.
async fn work(server: &Server, connected: Connected, version: &watch::Sender<u64>) -> String {
    let Connected { running, changed, mut program } = connected;
    let peer = running.peer().clone();
    let waiting = running.waiting();
    tokio::pin!(waiting);
    loop {
        let listed = tokio::select! {
            biased;
            _ = &mut waiting => break,
            listed = timeout(PATIENCE, peer.list_all_tools()) => listed,
        };
        let tools = match listed {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return format!("its tools could not be listed: {error}"),
            Err(_) => return "it did not list its tools in time".into(),
        };
        *server.state() = State::Ready { peer: peer.clone(), tools };
        version.send_modify(|version| *version += 1);
        tokio::select! {
            biased;
            _ = &mut waiting => break,
            () = changed.notified() => {}
        }
    }
    match &mut program {
        Some(program) => {
            let ended = timeout(Duration::from_millis(200), program.ended()).await;
            format!("it ended ({})", ended.unwrap_or_else(|_| "it closed its output".into()))
        }
        None => "the connection was closed".into(),
    }
}

async fn connect(server: &Server) -> Result<Connected, String> {
    match &server.spec.transport {
        Transport::Stdio { command, args, env, cwd } => {
            let around = &server.around;
            let mut whole = around.env.clone();
            whole.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
            let program = Program {
                command: command.into(),
                args: args.iter().map(Into::into).collect(),
                env: whole,
                cwd: cwd.as_ref().map_or_else(|| around.cwd.clone(), |cwd| around.cwd.join(cwd)),
            };
            started(&program).await
        }
        Transport::Http { url, headers } => reached(server, url, headers).await,
    }
}

async fn started(program: &Program) -> Result<Connected, String> {
    let name = program.command.to_string_lossy().into_owned();
    let (mut companion, streams) =
        Companion::start(program).map_err(|e| format!("`{name}` could not be started: {e}"))?;
    let Streams { stdin, stdout, mut stderr } = streams;
    let changed = Arc::new(Notify::new());
    let served = serve_client(Handler { changed: changed.clone() }, (stdout, stdin)).await;
    match served {
        Ok(running) => {
            // A task, because a program that nobody listens to would wait for ever; it ends with its pipe.
            tokio::spawn(async move { drained(&mut stderr).await });
            Ok(Connected { running, changed, program: Some(companion) })
        }
        Err(error) => {
            let ended = timeout(Duration::from_millis(200), companion.ended()).await;
            let how = ended.map_or_else(|_| error.to_string(), |how| format!("it ended ({how}) before it answered"));
            Err(format!("`{name}`: {how}{}", complaint(&mut stderr).await))
        }
    }
}

async fn drained(stderr: &mut (impl AsyncRead + Unpin)) {
    let mut chunk = [0; 4096];
    while stderr.read(&mut chunk).await.is_ok_and(|count| count > 0) {}
}

/// The last words of a program that did not come up.
async fn complaint(stderr: &mut (impl AsyncRead + Unpin)) -> String {
    let mut said = Vec::new();
    let mut stderr = stderr.take(1 << 16);
    let read = stderr.read_to_end(&mut said);
    // One that is still there says no more.
    let _ = timeout(Duration::from_millis(200), read).await;
    let said = String::from_utf8_lossy(&said);
    let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    match last.last() {
        Some(line) => format!(": {}", clipped(line.trim(), COMPLAINT)),
        None => String::new(),
    }
}

async fn reached(server: &Server, url: &str, headers: &[(String, String)]) -> Result<Connected, String> {
    let around = &server.around;
    let address = Url::parse(url).map_err(|e| format!("{url} is no address: {e}"))?;
    let builder = client::builder(&address, around.proxy.as_deref(), &around.no_proxy, around.ca_cert.as_deref())?;
    let http = builder.build().map_err(|e| format!("reaching {url}: {e}"))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let parsed = name.parse().ok().zip(value.parse().ok());
        let (name, value) = parsed.ok_or_else(|| format!("the header `{name}` cannot be sent"))?;
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = custom;
    let changed = Arc::new(Notify::new());
    let transport = StreamableHttpClientTransport::with_client(http, config);
    let running = serve_client(Handler { changed: changed.clone() }, transport).await;
    let running = running.map_err(|e| format!("{url}: {e}"))?;
    Ok(Connected { running, changed, program: None })
}
