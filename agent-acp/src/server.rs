//! The protocol's methods, each a function; who may come first; what is told behind an answer.
//! Source: <https://agentclientprotocol.com/protocol/v1/overview>.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, AuthMethodTerminal, CancelNotification, CancelRequestNotification,
    CloseSessionRequest, CloseSessionResponse, ConfigOptionUpdate, ContentBlock, CurrentModeUpdate,
    DeleteSessionRequest, DeleteSessionResponse, Error, ErrorCode, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, McpCapabilities, PromptCapabilities, PromptRequest,
    RequestId, SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOptionValue, SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo, SessionListCapabilities,
    SessionNotification, SessionResumeCapabilities, SessionSystemPromptCapabilities,
    SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_core::provider::Effort;
use agent_core::session::Scope;
use agent_core::settings::Compact;
use agent_core::{Prompt, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::connection::{Connection, Incoming, Params, result};
use crate::live::Live;
use crate::made::{House, Made, list, sees};
use crate::opening::{Opened, Opening};
use crate::options::{self, COMPACT, EFFORT, MODE, MODEL, Mode, OWN_EFFORT};
use crate::problem::{internal, invalid_params, invalid_request, method_not_found, unknown_session};
use crate::{content, slash, translate};

/// How many sessions are listed at once.
const PAGE: usize = 50;

/// What serves one client.
pub struct Server {
    /// What sessions begin with.
    pub house: House,
    /// The client.
    pub connection: Arc<Connection>,
    client: OnceLock<Client>,
    // A lock, because requests come and go beside each other; held for a look.
    slots: Mutex<HashMap<String, Slot>>,
}

/// A session that the client knows.
enum Slot {
    /// It is being opened, until that is answered and `over` fires: prompts that come already wait.
    Opening {
        early: Vec<Early>,
        over: CancellationToken,
    },
    Open(Arc<Live>),
}

/// A prompt for a session that is being opened.
struct Early {
    id: RequestId,
    prompt: Vec<ContentBlock>,
    stopped: bool,
}

/// How a session comes that the client names.
enum Way {
    /// It is open in this place, or a turn runs in it.
    Live(Arc<Live>),
    /// It is read from the disk, once it is closed where it was open in another place.
    Anew(Option<Arc<Live>>),
    /// Somebody else asked for it first: it is opened once this fires.
    Behind(CancellationToken),
}

/// An answer, and what is told once it is sent.
struct Reply {
    result: Box<RawValue>,
    behind: Vec<(String, SessionUpdate)>,
    /// A session that is open then, and whose models are asked for.
    opened: Option<Opened>,
}

impl Slot {
    /// Stops what runs, and what waits behind it.
    fn cancel(&mut self) {
        match self {
            Self::Open(live) => live.cancel(),
            Self::Opening { early, .. } => early.iter_mut().for_each(|early| early.stopped = true),
        }
    }

    /// Stops one prompt. Says whether it was there.
    fn cancel_one(&mut self, id: &RequestId) -> bool {
        match self {
            Self::Open(live) => live.cancel_one(id),
            Self::Opening { early, .. } => {
                let found = early.iter_mut().find(|early| early.id == *id);
                found.map(|early| early.stopped = true).is_some()
            }
        }
    }
}

impl Reply {
    fn of(value: &impl Serialize) -> Result<Self, Error> {
        Ok(Self { result: result(value)?, behind: Vec::new(), opened: None })
    }
}

impl Server {
    /// Serves this client.
    pub fn new(house: House, connection: Arc<Connection>) -> Arc<Self> {
        Arc::new(Self { house, connection, client: OnceLock::new(), slots: Mutex::default() })
    }

    /// What the client can do.
    pub fn client(&self) -> Client {
        self.client.get().copied().unwrap_or_default()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a message. Never waits: what takes time goes on beside the connection.
    pub fn take(self: &Arc<Self>, incoming: Incoming) {
        match incoming {
            Incoming::Response { id, answer } => self.connection.answered(&id, answer),
            Incoming::Broken { id, error } => self.respond(id, Err(error)),
            Incoming::Notification { method, params } => self.notified(&method, &params),
            Incoming::Request { id, method, params } => self.requested(id, &method, params),
        }
    }

    fn respond(self: &Arc<Self>, id: RequestId, answer: Result<Reply, Error>) {
        let server = self.clone();
        // A task, because a client that does not read makes it wait, and the connection reads on.
        tokio::spawn(async move {
            let (answer, behind, opened) = match answer {
                Ok(Reply { result, behind, opened }) => (Ok(result), behind, opened),
                Err(error) => (Err(error), Vec::new(), None),
            };
            server.connection.respond(&id, answer).await;
            if let Some(opened) = &opened {
                server.begin(opened);
            }
            for (session, update) in behind {
                server.connection.notify("session/update", &SessionNotification::new(session, update)).await;
            }
            if let Some(Opened { id, live, .. }) = opened {
                server.list_models(&id, &live).await;
            }
        });
    }

    /// Notifications that are not known are passed over.
    fn notified(&self, method: &str, params: &Params) {
        match method {
            "session/cancel" => {
                let session = params.read::<CancelNotification>().map(|cancel| cancel.session_id.0.to_string());
                if let Ok(session) = session
                    && let Some(slot) = self.slots().get_mut(&session)
                {
                    slot.cancel();
                }
            }
            "$/cancel_request" => {
                let Ok(cancel) = params.read::<CancelRequestNotification>() else { return };
                self.slots().values_mut().any(|slot| slot.cancel_one(&cancel.request_id));
            }
            _ => {}
        }
    }

    fn requested(self: &Arc<Self>, id: RequestId, method: &str, params: Params) {
        if method == "initialize" {
            return self.initialize(id, &params);
        }
        if self.client.get().is_none() {
            let error = invalid_request("the first request is `initialize`");
            return self.respond(id, Err(error));
        }
        match method {
            // Before anything is waited for: a cancel may come right behind it.
            "session/prompt" => self.prompt(id, &params),
            "session/load" | "session/resume" => {
                let server = self.clone();
                let opening = server.begin_opening(method, &params);
                tokio::spawn(async move {
                    let answer = match opening {
                        Ok((opening, way)) => server.again(opening, way).await,
                        Err(error) => Err(error),
                    };
                    server.respond(id, answer);
                });
            }
            _ => {
                let (server, method) = (self.clone(), method.to_owned());
                tokio::spawn(async move {
                    let answer = server.call(&method, params).await;
                    server.respond(id, answer);
                });
            }
        }
    }

    async fn call(self: &Arc<Self>, method: &str, params: Params) -> Result<Reply, Error> {
        match method {
            "session/new" => self.opened(Opening::new(&params)?.open(self).await?),
            "session/fork" => self.opened(Opening::fork(&params)?.open(self).await?),
            "session/list" => self.list(params.read()?).await,
            "session/close" => self.close(&params.read::<CloseSessionRequest>()?).await,
            "session/delete" => self.delete(&params.read::<DeleteSessionRequest>()?).await,
            "session/set_mode" => self.set_mode(&params.read::<SetSessionModeRequest>()?),
            "session/set_config_option" => self.set_option(&params.read::<SetSessionConfigOptionRequest>()?).await,
            "authenticate" => {
                Err(invalid_params("this agent has no such way to authenticate; it is set up in a terminal"))
            }
            "_session/steering" => self.steer(params.read()?),
            _ => Err(method_not_found(format!("there is no method {method}"))),
        }
    }

    fn initialize(self: &Arc<Self>, id: RequestId, params: &Params) {
        let request: InitializeRequest = match params.read() {
            Ok(request) => request,
            Err(error) => return self.respond(id, Err(error)),
        };
        let client = *self.client.get_or_init(|| Client::from(&request.client_capabilities));
        let server = self.clone();
        // A task, because the user's settings are read for it.
        tokio::spawn(async move {
            let answer = Self::hello(client, sees(&server.house).await);
            server.respond(id, answer);
        });
    }

    /// The protocol's version 1, whatever was asked for. `sees`: the model takes pictures.
    fn hello(client: Client, sees: bool) -> Result<Reply, Error> {
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new())
            .system_prompt(SessionSystemPromptCapabilities::new().mode(
                SessionSystemPromptModeCapabilities::new().override_(SessionSystemPromptOverrideCapabilities::new()),
            ))
            .fork(SessionForkCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(sees).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        let info = Implementation::new("agent", env!("CARGO_PKG_VERSION")).title("agent".to_owned());
        let auth = client.terminal_auth.then(|| {
            AuthMethod::Terminal(
                AuthMethodTerminal::new("setup", "Set up a model")
                    .description(
                        "Asks for a provider and its key in a terminal, and keeps them for this agent".to_owned(),
                    )
                    .args(vec!["--setup".to_owned()]),
            )
        });
        let response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(info)
            .auth_methods(auth.into_iter().collect::<Vec<_>>());
        let mut response = serde_json::to_value(&response).map_err(|e| invalid_params(e.to_string()))?;
        response["_meta"] = json!({"steering": {"supported": true}});
        Reply::of(&response)
    }

    // ---- Opening

    /// Marks the session as one that is being opened, so that what comes right behind waits for it.
    fn begin_opening(&self, method: &str, params: &Params) -> Result<(Opening, Way), Error> {
        let opening = if method == "session/load" { Opening::load(params)? } else { Opening::resume(params)? };
        let way = self.way(&opening);
        Ok((opening, way))
    }

    fn way(&self, opening: &Opening) -> Way {
        let name = opening.wanted().unwrap_or_default().to_owned();
        let mut slots = self.slots();
        let before = match slots.get(&name) {
            // A turn that runs goes on; in another directory the session begins anew.
            Some(Slot::Open(live)) if live.cwd == opening.cwd() || live.is_busy() => return Way::Live(live.clone()),
            Some(Slot::Open(live)) => Some(live.clone()),
            Some(Slot::Opening { over, .. }) => return Way::Behind(over.clone()),
            None => None,
        };
        slots.insert(name, Slot::Opening { early: Vec::new(), over: CancellationToken::new() });
        Way::Anew(before)
    }

    /// Opens a session that the client named.
    async fn again(self: &Arc<Self>, opening: Opening, mut way: Way) -> Result<Reply, Error> {
        let name = opening.wanted().unwrap_or_default().to_owned();
        loop {
            let before = match way {
                Way::Behind(over) => {
                    over.cancelled().await;
                    way = self.way(&opening);
                    continue;
                }
                Way::Live(live) => {
                    opening.replay_live(self, &live).await?;
                    return self.opened(Opened { id: name, live, is_new: false });
                }
                Way::Anew(before) => before,
            };
            if let Some(before) = before {
                before.close().await;
            }
            let opened = opening.open(self).await.and_then(|opened| self.opened(opened));
            if opened.is_err()
                && let Some(Slot::Opening { early, over }) = self.slots().remove(&name)
            {
                early.into_iter().for_each(|early| self.respond(early.id, Err(unknown_session(&name))));
                over.cancel();
            }
            return opened;
        }
    }

    /// Answers with all that can be chosen in a session.
    fn opened(&self, opened: Opened) -> Result<Reply, Error> {
        let (modes, choices) = {
            let made = opened.live.made();
            (options::modes(&made), options::options(&made, self.client().booleans))
        };
        let mut response = json!({"modes": modes, "configOptions": choices});
        if opened.is_new {
            response["sessionId"] = Value::String(opened.id.clone());
        }
        let commands = SessionUpdate::AvailableCommandsUpdate(slash::available());
        Ok(Reply { behind: vec![(opened.id.clone(), commands)], opened: Some(opened), ..Reply::of(&response)? })
    }

    /// The client knows that a session is open: what came early is taken up.
    fn begin(self: &Arc<Self>, opened: &Opened) {
        let mut slots = self.slots();
        let waits = matches!(slots.get(&opened.id), Some(Slot::Opening { .. }));
        if !waits && !opened.is_new {
            return;
        }
        let before = slots.insert(opened.id.clone(), Slot::Open(opened.live.clone()));
        let Some(Slot::Opening { early, over }) = before else { return };
        over.cancel();
        for Early { id, prompt, stopped } in early {
            if let Err(error) = opened.live.prompt(id.clone(), prompt) {
                self.respond(id, Err(error));
            } else if stopped {
                opened.live.cancel_one(&id);
            }
        }
    }

    /// Tells which models the server has, once it has said so.
    async fn list_models(&self, session: &str, live: &Arc<Live>) {
        let (setup, remote) = {
            let made = live.made();
            (made.setup.clone(), made.remote())
        };
        let Some(remote) = remote else { return };
        let found = list(&setup, &remote).await;
        let update = {
            let mut made = live.made();
            let before = made.models.len();
            for id in found {
                if !made.models.contains(&id) {
                    made.models.push(id);
                }
            }
            (made.models.len() > before).then(|| self.option_update(&made))
        };
        if let Some(update) = update {
            self.connection.notify("session/update", &SessionNotification::new(session.to_owned(), update)).await;
        }
    }

    fn option_update(&self, made: &Made) -> SessionUpdate {
        SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options::options(made, self.client().booleans)))
    }

    // ---- Sessions that are open

    fn open(&self, session: &str) -> Result<Arc<Live>, Error> {
        match self.slots().get(session) {
            Some(Slot::Open(live)) => Ok(live.clone()),
            Some(Slot::Opening { .. }) | None => Err(unknown_session(session)),
        }
    }

    fn lives(&self) -> Vec<Arc<Live>> {
        let open = |slot: &Slot| match slot {
            Slot::Open(live) => Some(live.clone()),
            Slot::Opening { .. } => None,
        };
        self.slots().values().filter_map(open).collect()
    }

    /// Puts a prompt behind those that the session has. Its answer comes when its turn is over.
    fn prompt(self: &Arc<Self>, id: RequestId, params: &Params) {
        let taken = params.read::<PromptRequest>().and_then(|request| {
            let session = request.session_id.0.to_string();
            match self.slots().get_mut(&session) {
                Some(Slot::Open(live)) => live.prompt(id.clone(), request.prompt),
                Some(Slot::Opening { early, .. }) => {
                    early.push(Early { id: id.clone(), prompt: request.prompt, stopped: false });
                    Ok(())
                }
                None => Err(unknown_session(&session)),
            }
        });
        if let Err(error) = taken {
            self.respond(id, Err(error));
        }
    }

    /// Says something to the turn that runs.
    fn steer(&self, request: Steer) -> Result<Reply, Error> {
        let live = self.open(&request.session_id)?;
        if !live.is_busy() {
            return Reply::of(&json!({"outcome": "promptRequired"}));
        }
        let sees = live.made().agent.provider.model().sees;
        let prompt: Prompt = content::prompt(request.prompt, sees)?;
        live.steering.inject(prompt);
        Reply::of(&json!({"outcome": "injected"}))
    }

    fn set_mode(&self, request: &SetSessionModeRequest) -> Result<Reply, Error> {
        let session = request.session_id.0.to_string();
        let live = self.open(&session)?;
        let made = live.made();
        self.choose_mode(&request.mode_id.0, &made)?;
        let update = self.option_update(&made);
        Ok(Reply { behind: vec![(session, update)], ..Reply::of(&SetSessionModeResponse::new())? })
    }

    fn choose_mode(&self, id: &str, made: &Made) -> Result<(), Error> {
        let mode: Mode = id.parse().map_err(|why: String| invalid_params(why))?;
        if !options::offered(made.toolset()).any(|offered| offered == mode) {
            return Err(invalid_params(format!("mode {id} needs toolset full")));
        }
        slash::set_mode(mode, made, &made.place);
        Ok(())
    }

    async fn set_option(&self, request: &SetSessionConfigOptionRequest) -> Result<Reply, Error> {
        let session = request.session_id.0.to_string();
        let live = self.open(&session)?;
        let id = request.config_id.0.as_ref();
        let mut behind = Vec::new();
        match (id, &request.value) {
            (MODE, SessionConfigOptionValue::ValueId { value }) => {
                self.choose_mode(&value.0, &live.made())?;
                let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(value.0.to_string()));
                behind.push((session, update));
            }
            (MODEL, SessionConfigOptionValue::ValueId { value }) => self.choose_model(&live, &value.0).await?,
            (EFFORT, SessionConfigOptionValue::ValueId { value }) if live.made().takes_effort() => {
                live.made().agent.limits.effort = effort(&value.0)?;
            }
            (COMPACT, SessionConfigOptionValue::Boolean { value }) if self.client().booleans => {
                live.made().agent.limits.compact = if *value { Compact::Auto } else { Compact::Off };
            }
            (MODE | MODEL | EFFORT | COMPACT, _) => {
                return Err(invalid_params(format!("that is no value of the option {id}")));
            }
            _ => return Err(invalid_params(format!("there is no option {id}"))),
        }
        let all = options::options(&live.made(), self.client().booleans);
        Ok(Reply { behind, ..Reply::of(&SetSessionConfigOptionResponse::new(all))? })
    }

    /// Goes on with another model from the next prompt on.
    async fn choose_model(&self, live: &Live, id: &str) -> Result<(), Error> {
        let (setup, agent) = {
            let made = live.made();
            if !made.models.iter().any(|known| known == id) {
                return Err(invalid_params(format!("{id} is none of the models of this session")));
            }
            (made.setup.clone(), made.agent.clone())
        };
        let (setup, chosen) =
            Made::with_model(&setup, &agent, id).await.map_err(|error| translate::setup_error(&error))?;
        let platform = self.house.platform;
        live.made().switch(setup, chosen, platform).map_err(|error| translate::setup_error(&error))
    }

    // ---- Sessions on the disk

    async fn list(&self, request: ListSessionsRequest) -> Result<Reply, Error> {
        let behind = request.cursor.as_deref().map(Cursor::read).transpose()?;
        let here = request.cwd.clone().unwrap_or_else(|| self.house.world.cwd.clone());
        let scope = Scope { all_projects: request.cwd.is_none(), sub_agents: false };
        let sessions = self.house.world.at(here).sessions();
        let cwd = request.cwd;
        // On a thread, because many logs are looked through.
        let kept = spawn_blocking(move || sessions.list(scope)).await;
        let kept = kept.map_err(|e| internal(e.to_string()))?;
        let all = kept.into_iter().filter(|kept| kept.turns > 0).filter_map(|kept| {
            let begun = PathBuf::from(kept.cwd.as_deref()?);
            let ours = begun.is_absolute() && cwd.as_ref().is_none_or(|cwd| *cwd == begun);
            ours.then_some((Cursor { used: kept.used.to_string(), id: kept.id.to_string() }, begun, kept))
        });
        let mut rest = all.filter(|(at, ..)| behind.as_ref().is_none_or(|behind| at.comes_behind(behind)));
        let mut next = None;
        let mut infos = Vec::new();
        for (at, begun, kept) in rest.by_ref().take(PAGE) {
            let title = kept.name.unwrap_or(kept.preview);
            let info = SessionInfo::new(kept.id.as_str().to_owned(), begun);
            infos.push(info.title(title).updated_at(kept.used.to_string()));
            next = Some(at);
        }
        let next = next.filter(|_| rest.next().is_some()).map(|at| at.text());
        Reply::of(&ListSessionsResponse::new(infos).next_cursor(next))
    }

    async fn close(&self, request: &CloseSessionRequest) -> Result<Reply, Error> {
        let session = request.session_id.0.to_string();
        let live = self.open(&session)?;
        live.close().await;
        self.slots().remove(&session);
        Reply::of(&CloseSessionResponse::new())
    }

    /// Deletes a session for good. One that is not there is gone already.
    async fn delete(&self, request: &DeleteSessionRequest) -> Result<Reply, Error> {
        let session = request.session_id.0.to_string();
        if let Ok(live) = self.open(&session) {
            live.close().await;
            self.slots().remove(&session);
        }
        let sessions = self.house.world.sessions();
        let Some(directory) = sessions.by_id(&SessionId::named(session.clone())) else {
            return Reply::of(&DeleteSessionResponse::new());
        };
        let deleted = spawn_blocking(move || sessions.delete(&directory)).await;
        let failed = |why: String| {
            let message = format!("deleting session {session}: {why}");
            Error::new(ErrorCode::InternalError.into(), message).data(json!({"errorKind": "failed"}))
        };
        deleted.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))?;
        Reply::of(&DeleteSessionResponse::new())
    }

    /// Stops all that runs, and frees all logs.
    pub async fn end(&self) {
        let lives = self.lives();
        lives.iter().for_each(|live| live.cancel());
        for live in lives {
            live.close().await;
        }
    }
}

fn effort(id: &str) -> Result<Option<Effort>, Error> {
    if id == OWN_EFFORT {
        return Ok(None);
    }
    let found = Effort::ALL.into_iter().find(|effort| effort.name() == id);
    found.map(Some).ok_or_else(|| invalid_params(format!("there is no effort {id}")))
}

/// `_session/steering`: words for the turn that runs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Steer {
    session_id: String,
    prompt: Vec<ContentBlock>,
}

/// Where a page of sessions ended: those of before are not told again, whatever was used meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cursor {
    used: String,
    id: String,
}

impl Cursor {
    fn text(&self) -> String {
        format!("{} {}", self.used, self.id)
    }

    fn read(text: &str) -> Result<Self, Error> {
        let parts = text.split_once(' ').filter(|(used, _)| used.parse::<jiff::Timestamp>().is_ok());
        let (used, id) = parts.ok_or_else(|| invalid_params("this cursor is none of ours"))?;
        Ok(Self { used: used.to_owned(), id: id.to_owned() })
    }

    /// The list goes from what was used last to what was used first.
    fn comes_behind(&self, other: &Self) -> bool {
        let time = |cursor: &Self| cursor.used.parse::<jiff::Timestamp>().ok();
        (time(self), &other.id) < (time(other), &self.id)
    }
}
