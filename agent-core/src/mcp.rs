//! Servers of tools: programs and addresses that speak the Model Context Protocol (<https://modelcontextprotocol.io>).
//!
//! They are connected beside everything else: one that is slow or broken is told of and in nobody's way. Their tools are
//! tools like any other, called `mcp__server__tool`; what they do nobody can judge, so a person is asked, unless the
//! server is one of the person's own settings and says that the tool only reads.

mod connect;
mod tool;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_tools::Tools;
use agent_tools::text::Cut;
use rmcp::RoleClient;
use rmcp::model::Tool as Declared;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub use crate::settings::{ServerSpec, Transport};
use tool::McpTool;

/// The longest name of a tool, in characters: what the strictest provider takes.
const LONGEST_NAME: usize = 64;

/// Where servers are started, and how long their calls may take.
#[derive(Debug, Clone)]
pub struct Around {
    /// Where programs work that say nothing else.
    pub cwd: PathBuf,
    /// What programs find in their environment.
    pub env: Vec<(OsString, OsString)>,
    /// How long a call may take.
    pub timeout: Duration,
    /// How much of a result the model reads.
    pub cut: Cut,
    /// Through which proxy addresses are reached.
    pub proxy: Option<String>,
    /// Hosts that are reached without it.
    pub no_proxy: Vec<String>,
    /// A PEM file with further certificates to trust.
    pub ca_cert: Option<PathBuf>,
}

/// The servers of a session. Dropping it ends them.
pub struct Servers {
    servers: Vec<Arc<Server>>,
    changed: watch::Receiver<u64>,
    // Tasks, because servers answer when they like; they end with this.
    _tasks: JoinSet<()>,
    told: Told,
}

/// What a person should know of servers, until it is told.
type Told = Arc<Mutex<Vec<String>>>;

/// One server, and what is known of it.
struct Server {
    spec: ServerSpec,
    around: Around,
    // A lock, because its task changes it and calls look; held for a look.
    state: Mutex<State>,
    /// A call wants it back.
    wanted: Notify,
}

/// What is known of a server.
enum State {
    /// It has not answered yet.
    Connecting,
    /// It is there.
    Ready { peer: Peer<RoleClient>, tools: Vec<Declared> },
    /// It is not there, and why.
    Gone(String),
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its tools, those that are left out aside.
    fn tools(&self) -> Vec<Declared> {
        let named = |tool: &Declared| {
            let only = self.spec.tools.as_ref().is_none_or(|only| only.iter().any(|name| *name == tool.name));
            only && !self.spec.exclude.iter().any(|name| *name == tool.name)
        };
        match &*self.state() {
            State::Ready { tools, .. } => tools.iter().filter(|tool| named(tool)).cloned().collect(),
            State::Connecting | State::Gone(_) => Vec::new(),
        }
    }
}

impl Servers {
    /// Connects servers, beside everything else.
    pub fn connect(specs: Vec<ServerSpec>, around: &Around) -> Self {
        let (tell, changed) = watch::channel(0);
        let (tell, told) = (Arc::new(tell), Told::default());
        let mut tasks = JoinSet::new();
        let servers = specs.into_iter().map(|spec| {
            let server = Arc::new(Server {
                spec,
                around: around.clone(),
                state: Mutex::new(State::Connecting),
                wanted: Notify::new(),
            });
            tasks.spawn(connect::keep(server.clone(), tell.clone(), told.clone()));
            server
        });
        let servers = servers.collect();
        Self { servers, changed, _tasks: tasks, told }
    }

    /// These tools, and those of the servers that are connected by now, sorted by their names.
    pub fn equip(&self, tools: &Tools) -> Tools {
        let mut taken: HashSet<String> = tools.declarations().map(|declared| declared.name.clone()).collect();
        let mut more: Vec<McpTool> = Vec::new();
        for server in &self.servers {
            for declared in server.tools() {
                let name = free(&server.spec.name, &declared.name, &mut taken);
                more.push(McpTool::new(name, declared, server.clone()));
            }
        }
        more.sort_by(|a, b| a.name().cmp(b.name()));
        more.into_iter().fold(tools.clone(), Tools::with)
    }

    /// Waits until each server is connected or has failed, but no longer than this.
    pub async fn settled(&self, most: Duration) {
        let mut changed = self.changed.clone();
        let waiting = |server: &Arc<Server>| matches!(*server.state(), State::Connecting);
        let settled = async { while self.servers.iter().any(waiting) && changed.changed().await.is_ok() {} };
        // What is not there by then joins later.
        let _ = tokio::time::timeout(most, settled).await;
    }

    /// Changes whenever the tools have.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Takes what a person should know.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A name that no other tool has: `mcp__server__tool`, of letters that every provider takes.
fn free(server: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let whole: String = format!("mcp__{server}__{tool}").chars().map(plain).collect();
    let mut name: String = whole.chars().take(LONGEST_NAME).collect();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        let end = format!("_{number}");
        name = whole.chars().take(LONGEST_NAME - end.len()).collect::<String>() + &end;
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_server_and_tool() {
        let mut taken = HashSet::from(["mcp__a__taken".to_owned()]);
        let long = "x".repeat(80);
        for (server, tool, expect) in [
            ("a", "read", "mcp__a__read".to_owned()),
            ("a", "read", "mcp__a__read_2".to_owned()),
            ("a", "taken", "mcp__a__taken_2".to_owned()),
            ("my server", "do.it/é", "mcp__my_server__do_it__".to_owned()),
            ("a", &long, format!("mcp__a__{}", "x".repeat(56))),
            ("a", &long, format!("mcp__a__{}_2", "x".repeat(54))),
        ] {
            assert_eq!(free(server, tool, &mut taken), expect);
        }
    }
}
