//! What the client said that it can do. All that is optional goes by this.

use agent_client_protocol_schema::v1::ClientCapabilities;
use serde_json::Value;

/// What the client can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Client {
    /// It shows notices.
    pub notices: bool,
    /// It shows compactions.
    pub compactions: bool,
    /// It knows options that are on or off.
    pub booleans: bool,
    /// It shows plans as pages.
    pub plans: bool,
    /// It shows sub-agents.
    pub sub_agents: bool,
    /// It shows what a command prints in a terminal of its own: `_meta.terminal_output`.
    pub terminal_output: bool,
    /// It can run a program of ours in a terminal.
    pub terminal_auth: bool,
    /// It knows what its unsaved buffers hold.
    pub reads_files: bool,
    /// It changes its buffers.
    pub writes_files: bool,
}

impl From<&ClientCapabilities> for Client {
    fn from(said: &ClientCapabilities) -> Self {
        let session = said.session.as_ref();
        let extension = |name: &str| said.meta.as_ref().and_then(|meta| meta.get(name)) == Some(&Value::Bool(true));
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compactions: session.is_some_and(|session| session.compaction.is_some()),
            booleans: session
                .and_then(|session| session.config_options.as_ref())
                .is_some_and(|options| options.boolean.is_some()),
            plans: said.plan.is_some(),
            sub_agents: said.subagents.is_some(),
            terminal_output: extension("terminal_output"),
            terminal_auth: said.auth.terminal || extension("terminal-auth"),
            reads_files: said.fs.read_text_file,
            writes_files: said.fs.write_text_file,
        }
    }
}
