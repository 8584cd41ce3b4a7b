//! One prompt, or a conversation: where prompts come from, and what there must be before the first turn.

use std::io::{self, IsTerminal};
use std::time::Duration;

use agent_core::setup::{Chosen, Earlier};
use agent_core::{Agent, Prompt, Session, Waits, pictures};
use tempfile::TempDir;

use crate::args::{Output, Task};
use crate::choose;
use crate::converse::Conversation;
use crate::error::{CliError, Exit};
use crate::piped;
use crate::sessions;
use crate::setup::Setup;
use crate::signals::Signals;
use crate::view::{View, Work, tell};

/// How long the first prompt waits for servers of tools.
const PATIENCE: Duration = Duration::from_secs(10);

/// How this run talks to people.
#[derive(Debug, Clone, Copy)]
pub struct Talk {
    /// Prompts are typed one after the other.
    pub interactive: bool,
    /// Questions can be answered.
    pub attended: bool,
}

impl Talk {
    fn of(setup: &Setup) -> Self {
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let interactive = terminal && (setup.args.task == Task::Talk || setup.args.interactive);
        Self { interactive, attended: terminal && setup.args.output == Output::Text }
    }
}

/// Runs a prompt, or prompts as they are typed.
///
/// # Errors
/// No model, no prompt, a session that cannot be found or saved.
pub async fn run(setup: &Setup) -> Result<Exit, CliError> {
    let talk = Talk::of(setup);
    let Some((ready, signals)) = ready(setup, talk).await? else { return Ok(Exit::Interrupted) };
    let Ready { first, earlier, chosen } = ready;
    tell(&setup.warnings);
    tell(std::slice::from_ref(&chosen.line));
    let open = Open::new(setup, earlier, talk)?;
    let gate = choose::gate(setup, &chosen, talk.interactive, talk.attended);
    let mut equipped = choose::agent(setup, chosen, gate, &open.session.place)?;
    let servers = setup.servers(Vec::new());
    let view = View::new(setup, talk.interactive);
    if talk.interactive {
        return Conversation::new(setup, talk, equipped, servers, open, view, signals)?.run(first).await;
    }
    servers.settled(PATIENCE).await;
    tell(&servers.told());
    equipped.agent.tools = servers.equip(&equipped.agent.tools);
    let typed = if let Task::Prompt(typed) = &setup.args.task { typed } else { "" };
    let prompt = with_pictures(setup, &equipped.agent, first.unwrap_or_default(), typed);
    once(equipped.agent, open, view, signals, prompt).await
}

/// A prompt with the pictures that a person names in it.
pub fn with_pictures(setup: &Setup, agent: &Agent, text: String, typed: &str) -> Prompt {
    let (prompt, told) = pictures::prompt(text, typed, &setup.world.cwd, agent.provider.model().sees);
    tell(&told);
    prompt
}

/// One prompt, and the end.
async fn once(
    agent: Agent,
    mut open: Open,
    mut view: View,
    mut signals: Signals,
    prompt: Prompt,
) -> Result<Exit, CliError> {
    let exit = view.turn(&agent, &mut open.session, Work::Prompt(prompt), &mut signals).await;
    open.session.jobs.end_all();
    view.close(&open.session)?;
    Ok(exit)
}

/// A session that is worked in.
pub struct Open {
    /// The session.
    pub session: Session,
    /// Where its files lie if it leaves nothing. Dropped last, when nothing writes there any more.
    _scratch: Option<TempDir>,
}

impl Open {
    /// Goes on with an earlier session, or opens a new one.
    ///
    /// # Errors
    /// Its copy or its files cannot be written.
    pub fn new(setup: &Setup, earlier: Option<Earlier>, talk: Talk) -> Result<Self, CliError> {
        let scratch = setup.args.no_session.then(|| setup.temporary_store()).transpose()?;
        let mut session = sessions::open(setup, earlier, scratch.as_ref().map(TempDir::path))?;
        session.attended = talk.attended;
        session.waits = if talk.interactive { Waits::Children } else { Waits::All };
        Ok(Self { session, _scratch: scratch })
    }
}

/// What there must be before the first turn.
struct Ready {
    first: Option<String>,
    earlier: Option<Earlier>,
    chosen: Chosen,
}

/// Makes ready for the first turn; none where a signal ends the program.
async fn ready(setup: &Setup, talk: Talk) -> Result<Option<(Ready, Signals)>, CliError> {
    let mut signals = Signals::catch()?;
    tokio::select! {
        biased;
        _ = signals.next() => Ok(None),
        ready = make_ready(setup, talk) => Ok(Some((ready?, signals))),
    }
}

async fn make_ready(setup: &Setup, talk: Talk) -> Result<Ready, CliError> {
    let first = first_prompt(setup, talk).await?;
    let earlier = sessions::earlier(setup)?;
    let chosen = choose::choose(setup, talk.attended).await?;
    Ok(Ready { first, earlier, chosen })
}

/// The prompt of the command line and of a pipe; none where prompts are typed.
async fn first_prompt(setup: &Setup, talk: Talk) -> Result<Option<String>, CliError> {
    let typed = match &setup.args.task {
        Task::Prompt(prompt) => Some(prompt.clone()).filter(|p| !p.trim().is_empty()),
        _ => None,
    };
    let piped = if io::stdin().is_terminal() { None } else { Some(piped::prompt().await?) };
    let piped = piped.filter(|p| !p.trim().is_empty());
    let prompt = match (typed, piped) {
        (Some(typed), Some(piped)) => Some(format!("{typed}\n\n{piped}")),
        (typed, piped) => typed.or(piped),
    };
    if prompt.is_none() && !talk.interactive {
        return Err(CliError::usage("there is no prompt").hint("agent \"what to do\", or start agent at a terminal"));
    }
    Ok(prompt)
}
