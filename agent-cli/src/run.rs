//! One-shot and line mode: prompts in, events to a renderer, answers to questions.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::Arc;

use agent_core::session::{Journal, JsonLines, Nowhere, Sessions, Store, load};
use agent_core::{Agent, Clock, Ending, Event, Prompt, Session, SessionId, Stamped, TurnError, start};
use agent_tools::Answer;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::args::{Output, Task};
use crate::choose;
use crate::error::{CliError, Exit};
use crate::lines::{Entered, Lines};
use crate::render::{Screen, Style, Summary};
use crate::setup::Setup;
use crate::signals::{Caught, Signals};
use crate::terminal;

/// The real clock.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

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
    let first = first_prompt(setup, talk)?;
    let mut signals = Signals::new().map_err(|e| CliError::failed(format!("catching signals: {e}")))?;
    let chosen = choose::choose(setup, talk.attended).await?;
    tell(&setup.warnings);
    tell(std::slice::from_ref(&chosen.line));
    let mut session = open_session(setup, talk)?;
    let agent = choose::agent(setup, chosen, talk.interactive, talk.attended, &session.place);
    let mut view = View::new(setup);
    let exit = match first {
        Some(prompt) => view.turn(&agent, &mut session, Prompt::text(prompt), &mut signals).await,
        None => Exit::Done,
    };
    let exit =
        if talk.interactive { converse(setup, &agent, &mut session, &mut view, &mut signals).await? } else { exit };
    session.jobs.end_all();
    view.close(&session)?;
    Ok(exit)
}

/// The prompt of the command line and of a pipe; none where prompts are typed.
fn first_prompt(setup: &Setup, talk: Talk) -> Result<Option<String>, CliError> {
    let typed = match &setup.args.task {
        Task::Prompt(prompt) => Some(prompt.clone()).filter(|p| !p.trim().is_empty()),
        _ => None,
    };
    let piped = if io::stdin().is_terminal() { None } else { Some(piped()?).filter(|p| !p.trim().is_empty()) };
    let prompt = match (typed, piped) {
        (Some(typed), Some(piped)) => Some(format!("{typed}\n\n{piped}")),
        (typed, piped) => typed.or(piped),
    };
    if prompt.is_none() && !talk.interactive {
        return Err(CliError::usage("there is no prompt").hint("agent \"what to do\", or start agent at a terminal"));
    }
    Ok(prompt)
}

fn piped() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes).map_err(|e| CliError::failed(format!("reading the prompt from stdin: {e}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn tell(lines: &[String]) {
    let style = Style::new(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()));
    for line in lines {
        // A closed stderr is no reason not to work.
        let _ = writeln!(io::stderr(), "{}", style.dim(&crate::render::plain(line)));
    }
}

fn open_session(setup: &Setup, talk: Talk) -> Result<Session, CliError> {
    let sessions = setup.sessions();
    let clock: Arc<dyn Clock> = Arc::new(RealClock);
    let cwd = setup.world.cwd.to_string_lossy().into_owned();
    let source = match (&setup.args.resume, setup.args.continue_last || setup.args.fork) {
        (Some(name), _) => Some(sessions.find(name).ok_or_else(|| {
            CliError::usage(format!("there is no session {name}")).hint("name a session's id, or the path of its log")
        })?),
        (None, true) => sessions.latest(),
        (None, false) => None,
    };
    let mut session = match source {
        Some(directory) => resume(setup, &sessions, &directory, &clock, cwd)?,
        None => {
            let id = SessionId::new(clock.now());
            let place = setup.place(Some(sessions.directory(&id)));
            let log: Box<dyn Store> = match setup.args.no_session {
                true => Box::new(Nowhere),
                false => Box::new(JsonLines::new(Sessions::log(&sessions.directory(&id)))),
            };
            Session::new(place, Journal::new(id, log, clock, cwd))
        }
    };
    session.attended = talk.attended;
    Ok(session)
}

fn resume(
    setup: &Setup,
    sessions: &Sessions,
    directory: &std::path::Path,
    clock: &Arc<dyn Clock>,
    cwd: String,
) -> Result<Session, CliError> {
    let path = Sessions::log(directory);
    let log =
        std::fs::read(&path).map_err(|e| CliError::usage(format!("reading the session {}: {e}", path.display())))?;
    let loaded = load(&log);
    tell(&loaded.repairs);
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (id, directory) = if setup.args.fork {
        let id = SessionId::new(clock.now());
        let copy = sessions.directory(&id);
        (id, copy)
    } else {
        (SessionId::named(name), directory.to_owned())
    };
    let mut store: Box<dyn Store> =
        if setup.args.no_session { Box::new(Nowhere) } else { Box::new(JsonLines::new(Sessions::log(&directory))) };
    if setup.args.fork {
        let kept = String::from_utf8_lossy(&log);
        store.append(&kept).map_err(|e| CliError::failed(format!("copying the session: {e}")))?;
    }
    let journal = Journal::new(id, store, clock.clone(), cwd).after(loaded.seq);
    Ok(Session::resumed(setup.place(Some(directory)), journal, loaded))
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
        let (back, entered) = lines.next().await?;
        lines = back;
        match entered {
            Entered::Line(line) if matches!(line.trim(), "/quit" | "/exit") => return Ok(Exit::Done),
            Entered::Line(line) if line.trim().is_empty() => leaving = false,
            Entered::Line(line) => {
                leaving = false;
                if view.turn(agent, session, Prompt::text(line), signals).await == Exit::Interrupted && view.quitting()
                {
                    return Ok(Exit::Interrupted);
                }
            }
            Entered::Interrupted { typed: false } if leaving => return Ok(Exit::Interrupted),
            Entered::Interrupted { typed } => {
                leaving = !typed;
                if leaving {
                    tell(&["Ctrl-C again or Ctrl-D quits".into()]);
                }
            }
            Entered::End => return Ok(Exit::Done),
        }
    }
}

/// Where events go.
enum View {
    Text { screen: Screen<io::Stdout, io::Stderr>, quit: bool },
    Json { summary: Summary, quit: bool },
    Lines { quit: bool },
}

impl View {
    fn new(setup: &Setup) -> Self {
        match setup.args.output {
            Output::Json => Self::Json { summary: Summary::default(), quit: false },
            Output::StreamJson => Self::Lines { quit: false },
            Output::Text => {
                let live = io::stdout().is_terminal();
                let style = Style::new(live && io::stderr().is_terminal(), setup.world.lookup("NO_COLOR").is_some());
                let screen = Screen::new(io::stdout(), io::stderr(), style, live, setup.settings.preview_lines);
                Self::Text { screen, quit: false }
            }
        }
    }

    fn quit(&mut self) -> &mut bool {
        match self {
            Self::Text { quit, .. } | Self::Json { quit, .. } | Self::Lines { quit } => quit,
        }
    }

    fn quitting(&mut self) -> bool {
        *self.quit()
    }

    /// Runs one turn to its end. The first interrupt stops it, the second leaves at once.
    async fn turn(&mut self, agent: &Agent, session: &mut Session, prompt: Prompt, signals: &mut Signals) -> Exit {
        let stop = CancellationToken::new();
        let mut running = start(agent.clone(), session, prompt, stop.clone());
        let mut exit = Exit::Failed;
        loop {
            tokio::select! {
                biased;
                caught = signals.next() => {
                    if stop.is_cancelled() {
                        *self.quit() = true;
                        return Exit::Interrupted;
                    }
                    *self.quit() |= caught == Caught::Terminate;
                    stop.cancel();
                }
                stamped = running.next() => {
                    let Some(stamped) = stamped else { return exit };
                    if let Event::Ended(ended) = &stamped.event {
                        exit = exit_of(ended);
                    }
                    if self.show(&stamped).is_err() {
                        stop.cancel();
                    }
                    if let Event::Ask(ask) = stamped.event {
                        match answer(signals).await {
                            Some(answer) => ask.answer(answer),
                            None => stop.cancel(),
                        }
                        let _ = writeln!(io::stderr());
                    }
                }
            }
        }
    }

    fn show(&mut self, stamped: &Stamped) -> io::Result<()> {
        match self {
            Self::Text { screen, .. } => screen.event(&stamped.event),
            Self::Json { summary, .. } => {
                summary.event(&stamped.event);
                Ok(())
            }
            Self::Lines { .. } => {
                let mut out = io::stdout().lock();
                out.write_all(stamped.lines.as_bytes()).and_then(|()| out.flush())
            }
        }
    }

    fn close(&self, session: &Session) -> Result<(), CliError> {
        match self {
            Self::Json { summary, .. } => crate::command::print_json(&summary.to_json(session)),
            Self::Text { .. } | Self::Lines { .. } => Ok(()),
        }
    }
}

/// A person's answer; none where a signal came instead.
async fn answer(signals: &mut Signals) -> Option<Answer> {
    tokio::select! {
        biased;
        _ = signals.next() => None,
        answer = terminal::answer() => Some(answer),
    }
}

fn exit_of(ended: &Result<Ending, TurnError>) -> Exit {
    match ended {
        Ok(Ending::Done) => Exit::Done,
        Ok(Ending::Blocked(_)) => Exit::Blocked,
        Ok(Ending::Cancelled) => Exit::Interrupted,
        Ok(Ending::Limit(_)) => Exit::Limit,
        Ok(Ending::Truncated | Ending::Refused) | Err(_) => Exit::Failed,
    }
}
