//! One-shot and line mode: where prompts come from, one turn after the other.

use std::io::{self, IsTerminal};

use agent_core::settings::rules;
use agent_core::{Agent, Prompt, Session, Waits};
use tempfile::TempDir;

use crate::args::{Output, Task};
use crate::choose::{self, Chosen};
use crate::error::{CliError, Exit};
use crate::lines::{Entered, Lines};
use crate::piped;
use crate::sessions::{self, Earlier};
use crate::setup::Setup;
use crate::signals::{Caught, Signals};
use crate::terminal::Modes;
use crate::view::{View, tell};

/// How this run talks to people.
#[derive(Debug, Clone, Copy)]
struct Talk {
    /// Prompts are typed one after the other.
    interactive: bool,
    /// Questions can be answered.
    attended: bool,
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
    let Some((ready, mut signals)) = ready(setup, talk).await? else { return Ok(Exit::Interrupted) };
    let Ready { first, earlier, chosen } = ready;
    tell(&setup.warnings);
    tell(std::slice::from_ref(&chosen.line));
    // Dropped last, when nothing writes there any more.
    let scratch = setup.args.no_session.then(|| setup.temporary_store()).transpose()?;
    let mut session = sessions::open(setup, earlier, scratch.as_ref().map(TempDir::path))?;
    session.attended = talk.attended;
    session.waits = if talk.interactive { Waits::Children } else { Waits::All };
    saved_rules(setup, &mut session);
    let agent = choose::agent(setup, chosen, talk.interactive, talk.attended, &session.place)?;
    let mut view = View::new(setup);
    let mut exit = match first {
        Some(prompt) => view.turn(&agent, &mut session, Prompt::text(prompt), &mut signals).await,
        None => Exit::Done,
    };
    if talk.interactive && !view.quitting() {
        exit = converse(setup, &agent, &mut session, &mut view, &mut signals).await?;
    }
    session.jobs.end_all();
    view.close(&session)?;
    Ok(exit)
}

/// What the person has allowed for good.
fn saved_rules(setup: &Setup, session: &mut Session) {
    match rules::load(&setup.rules_file()) {
        Ok(rules) => session.grant(&rules),
        Err(problem) => tell(&[problem]),
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

/// Takes prompts at the terminal until they end.
async fn converse(
    setup: &Setup,
    agent: &Agent,
    session: &mut Session,
    view: &mut View,
    signals: &mut Signals,
) -> Result<Exit, CliError> {
    let mut lines = Lines::new(&setup.world.data)?;
    let mut leaving = false;
    loop {
        let Some((back, entered)) = entered(lines, signals, &mut leaving).await? else {
            return Ok(Exit::Interrupted);
        };
        lines = back;
        match entered {
            Entered::Line(line) if matches!(line.trim(), "/quit" | "/exit") => return Ok(Exit::Done),
            Entered::Line(line) if line.trim().is_empty() => leaving = false,
            Entered::Line(line) if line.trim() == "/tasks" => tell(&tasks(session)),
            Entered::Line(line) if is_command(&line) => {
                tell(&[format!(
                    "there is no command {}; what begins with a word is a prompt, /tasks lists background commands, /quit leaves",
                    line.trim()
                )]);
            }
            Entered::Line(line) => {
                leaving = false;
                view.turn(agent, session, Prompt::text(line), signals).await;
                if view.quitting() {
                    return Ok(Exit::Interrupted);
                }
            }
            Entered::Interrupted { typed: false } if leaving => return Ok(Exit::Interrupted),
            Entered::Interrupted { typed } => leaving = !typed && leave_next_time(),
            Entered::End => return Ok(Exit::Done),
        }
    }
}

/// The background commands, a line each.
fn tasks(session: &Session) -> Vec<String> {
    let tasks = session.jobs.tasks();
    if tasks.is_empty() {
        return vec!["there are no background commands".into()];
    }
    tasks.iter().map(|task| task.line()).collect()
}

/// One word behind a slash: meant for us, not for the model. A path has more slashes.
fn is_command(line: &str) -> bool {
    line.trim().strip_prefix('/').is_some_and(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Waits for a line; none where a signal ends the program. An interrupt from outside counts as Ctrl-C.
async fn entered(
    lines: Lines,
    signals: &mut Signals,
    leaving: &mut bool,
) -> Result<Option<(Lines, Entered)>, CliError> {
    let before = Modes::now();
    let next = lines.next();
    tokio::pin!(next);
    loop {
        let caught = tokio::select! {
            biased;
            entered = &mut next => return entered.map(Some),
            caught = signals.next() => caught,
        };
        if *leaving || caught == Caught::Terminate {
            // The editor still waits for keys, on its thread: it cannot clean up.
            before.restore();
            return Ok(None);
        }
        *leaving = leave_next_time();
    }
}

fn leave_next_time() -> bool {
    tell(&["Ctrl-C again or Ctrl-D quits".into()]);
    true
}
