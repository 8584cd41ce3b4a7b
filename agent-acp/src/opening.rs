//! How a session is opened for a client: a new one, a copy, an earlier one with or without telling it again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, Error, ForkSessionRequest, LoadSessionRequest, McpServer, NewSessionRequest, ResumeSessionRequest,
    SessionUpdate, SystemPrompt, SystemPromptMode,
};
use agent_core::SessionId;
use agent_core::session::{Sessions, read_all};
use agent_core::settings::{ServerSpec, Transport};
use agent_core::setup::{self, Setup, Wanted, Which};
use agent_tools::builtin::Disk;
use agent_tools::policy::Open;
use agent_tools::{Alone, Jobs, Place, ToolContext};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::connection::Params;
use crate::files::Buffers;
use crate::live::{Live, Told};
use crate::made::{Added, Made, choose};
use crate::problem::{internal, invalid_params, unknown_session};
use crate::replay;
use crate::server::Server;
use crate::show::Show;
use crate::translate::{setup_error, usage};

/// What a client wants opened.
#[derive(Debug)]
pub struct Opening {
    which: Kind,
    cwd: PathBuf,
    further: Vec<PathBuf>,
    added: Added,
    /// The client's own servers of tools.
    servers: Vec<McpServer>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    New,
    Fork(String),
    Load(String),
    Resume(String),
}

/// A session that was opened.
pub struct Opened {
    /// Its id.
    pub id: String,
    /// The session.
    pub live: Arc<Live>,
    /// The client does not know its id yet.
    pub is_new: bool,
}

impl Opening {
    /// `session/new`
    ///
    /// # Errors
    /// The parameters.
    pub fn new(params: &Params) -> Result<Self, Error> {
        let request: NewSessionRequest = params.read_with_servers()?;
        let added = added(request.system_prompt)?;
        Self::checked(Kind::New, request.cwd, request.additional_directories, added, request.mcp_servers)
    }

    /// `session/fork`
    ///
    /// # Errors
    /// The parameters.
    pub fn fork(params: &Params) -> Result<Self, Error> {
        let request: ForkSessionRequest = params.read_with_servers()?;
        let kind = Kind::Fork(request.session_id.0.to_string());
        let added = added(request.system_prompt)?;
        Self::checked(kind, request.cwd, request.additional_directories, added, request.mcp_servers)
    }

    /// `session/load`
    ///
    /// # Errors
    /// The parameters.
    pub fn load(params: &Params) -> Result<Self, Error> {
        let request: LoadSessionRequest = params.read_with_servers()?;
        let kind = Kind::Load(request.session_id.0.to_string());
        let added = added(request.system_prompt)?;
        Self::checked(kind, request.cwd, request.additional_directories, added, request.mcp_servers)
    }

    /// `session/resume`
    ///
    /// # Errors
    /// The parameters.
    pub fn resume(params: &Params) -> Result<Self, Error> {
        let request: ResumeSessionRequest = params.read_with_servers()?;
        let kind = Kind::Resume(request.session_id.0.to_string());
        let added = added(request.system_prompt)?;
        Self::checked(kind, request.cwd, request.additional_directories, added, request.mcp_servers)
    }

    fn checked(
        which: Kind,
        cwd: PathBuf,
        further: Vec<PathBuf>,
        added: Added,
        servers: Vec<McpServer>,
    ) -> Result<Self, Error> {
        if !cwd.is_absolute() || !cwd.is_dir() {
            return Err(invalid_params(format!(
                "cwd must be the absolute path of a directory; {} is none",
                cwd.display()
            )));
        }
        if let Some(relative) = further.iter().find(|dir| !dir.is_absolute()) {
            return Err(invalid_params(format!(
                "additionalDirectories must be absolute; {} is not",
                relative.display()
            )));
        }
        Ok(Self { which, cwd, further, added, servers })
    }

    /// The session that is to be opened under its own id.
    pub fn wanted(&self) -> Option<&str> {
        match &self.which {
            Kind::New | Kind::Fork(_) => None,
            Kind::Load(id) | Kind::Resume(id) => Some(id),
        }
    }

    /// Where it is to work.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Opens it.
    ///
    /// # Errors
    /// There is no such session, another process has it, it cannot be read, or there is no model.
    pub async fn open(self, server: &Arc<Server>) -> Result<Opened, Error> {
        let told = Told::default();
        let tell = told.clone();
        let further = self.further.clone();
        let setup = server.house.setup(self.cwd.clone(), further, Arc::new(move |lines: &[String]| tell.add(lines)));
        let setup = setup.map_err(|error| setup_error(&error))?;
        let wanted = self.found(&setup)?;
        let chosen = choose(&setup).await.map_err(|error| setup_error(&error))?;
        let replays = matches!(self.which, Kind::Load(_));
        let is_new = matches!(self.which, Kind::New | Kind::Fork(_));
        let mut session = session(setup.clone(), wanted).await?;
        session.attended = true;
        session.waits = agent_core::Waits::Children;
        let id = session.id.as_str().to_owned();
        if setup.keeps {
            let failed = |e| internal(format!("keeping the session: {e}"));
            session.keep().map_err(failed)?;
        }
        let made =
            Made::new(setup, chosen, session.place.clone(), self.added, servers(self.servers), server.house.platform);
        let made = made.map_err(|error| setup_error(&error))?;
        let connection = server.connection.clone();
        let gate = made.gate.clone();
        let mut show =
            Show::new(connection.clone(), server.client(), session.place.clone(), &id, gate, server.house.log.clone());
        if server.client().reads_files {
            let buffers = Buffers::new(connection.clone(), server.client(), &id, show.commands());
            session.files = Arc::new(buffers);
        }
        if !is_new {
            tell_again(&session.place, &made.agent.tools, &mut show, replays).await?;
        }
        if replays {
            show.plan_page(&CancellationToken::new()).await;
        }
        if replays && session.usage().requests > 0 {
            let size = made.agent.provider.model().context;
            show.update(SessionUpdate::UsageUpdate(usage(&session.usage(), size))).await;
        }
        let live = Live::new(session, made, show, connection, told);
        Ok(Opened { id, live, is_new })
    }

    /// The session on the disk that is meant: by exactly its id.
    fn found(&self, setup: &Setup) -> Result<Wanted, Error> {
        let (id, fork) = match &self.which {
            Kind::New => return Ok(Wanted::default()),
            Kind::Fork(id) => (id, true),
            Kind::Load(id) | Kind::Resume(id) => (id, false),
        };
        let directory = setup.sessions().by_id(&SessionId::named(id.clone())).ok_or_else(|| unknown_session(id))?;
        Ok(Wanted { which: Which::Named(directory.to_string_lossy().into_owned()), fork })
    }

    /// Tells a session again that is open already.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub async fn replay_live(&self, server: &Arc<Server>, live: &Live) -> Result<(), Error> {
        let Kind::Load(id) = &self.which else { return Ok(()) };
        let (place, gate, tools) = {
            let made = live.made();
            (made.place.clone(), made.gate.clone(), made.agent.tools.clone())
        };
        let log = server.house.log.clone();
        let mut show = Show::new(server.connection.clone(), server.client(), place.clone(), id, gate, log);
        tell_again(&place, &tools, &mut show, true).await
    }
}

/// Reads the session on a thread: a long log takes a while, and others go on.
async fn session(setup: Setup, wanted: Wanted) -> Result<agent_core::Session, Error> {
    let opened = spawn_blocking(move || {
        let earlier = setup::earlier(&setup, &wanted)?;
        setup::open(&setup, &wanted, earlier, None)
    });
    let opened = opened.await.map_err(|e| internal(e.to_string()))?;
    opened.map_err(|error| setup_error(&error))
}

/// Goes through all that was said, so that names stay the same; and tells it, where that is wanted.
async fn tell_again(place: &Arc<Place>, tools: &agent_tools::Tools, show: &mut Show, tells: bool) -> Result<(), Error> {
    let Some(store) = place.store.clone() else { return Ok(()) };
    let failed = |why: String| internal(format!("reading the session: {why}"));
    let read = spawn_blocking(move || {
        let log = std::fs::File::open(Sessions::log(&store)).map_err(|e| e.to_string())?;
        read_all(log).map_err(|e| e.to_string())
    });
    let loaded = read.await.map_err(|e| failed(e.to_string()))?.map_err(failed)?;
    let cx = ToolContext {
        place: place.clone(),
        files: Arc::new(Disk),
        policy: Arc::new(Open),
        host: Arc::new(Alone),
        jobs: Arc::<Jobs>::default(),
        permitted: None,
    };
    for message in &loaded.messages {
        for update in replay::message(message, show.names(), tools, &cx) {
            if tells {
                show.update(update).await;
            }
        }
    }
    Ok(())
}

/// The client's servers of tools. One that is reached in another way is passed over.
fn servers(servers: Vec<McpServer>) -> Vec<ServerSpec> {
    let spec = |server| {
        Some(match server {
            McpServer::Stdio(stdio) => {
                let env = stdio.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
                let command = stdio.command.to_string_lossy().into_owned();
                ServerSpec::new(stdio.name, Transport::Stdio { command, args: stdio.args, env, cwd: None })
            }
            McpServer::Http(http) => {
                let headers = http.headers.into_iter().map(|header| (header.name, header.value)).collect();
                ServerSpec::new(http.name, Transport::Http { url: http.url, headers })
            }
            _ => return None,
        })
    };
    servers.into_iter().filter_map(spec).collect()
}

/// What the client adds to the system prompt.
fn added(prompt: Option<SystemPrompt>) -> Result<Added, Error> {
    let Some(SystemPrompt { mode, content, .. }) = prompt else { return Ok(Added::default()) };
    let mut text = String::new();
    for block in content {
        match block {
            ContentBlock::Text(words) => text.push_str(&words.text),
            _ => return Err(invalid_params("a system prompt is text")),
        }
    }
    match mode {
        SystemPromptMode::Append => Ok(Added { instead: None, behind: text }),
        SystemPromptMode::Override => Ok(Added { instead: Some(text), behind: String::new() }),
        _ => Err(invalid_params("a system prompt is appended or takes the place of ours: append, override")),
    }
}
