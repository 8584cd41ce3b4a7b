//! A turn as it is shown: events to the form of output that was asked for, questions to a person.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use agent_core::settings::rules;
use agent_core::{Agent, Ending, Event, Prompt, Session, Stamped, TurnError, start};
use agent_tools::{Answer, GrantKey};
use tokio_util::sync::CancellationToken;

use crate::args::Output;
use crate::error::{CliError, Exit};
use crate::render::{Screen, Style, Summary, plain};
use crate::setup::Setup;
use crate::signals::{Caught, Signals};
use crate::terminal::{Key, Question};

/// Tells a person something, dim, on stderr.
pub fn tell(lines: &[String]) {
    for line in lines {
        // A closed stderr is no reason not to work.
        let _ = writeln!(io::stderr(), "{}", style().dim(&plain(line)));
    }
}

/// Colours need both outputs on a terminal: what goes to a file is read there.
fn style() -> Style {
    let terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
    Style::new(terminal, std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()))
}

/// Where events go.
enum Form {
    Text(Screen<io::Stdout, io::Stderr>),
    Json(Summary),
    Lines,
}

/// What shows turns.
pub struct View {
    form: Form,
    /// Where rules are saved.
    rules: PathBuf,
    quit: bool,
    lost: Option<io::Error>,
}

impl View {
    /// A view in the form that was asked for.
    pub fn new(setup: &Setup) -> Self {
        let form = match setup.args.output {
            Output::Json => Form::Json(Summary::default()),
            Output::StreamJson => Form::Lines,
            Output::Text => {
                let live = io::stdout().is_terminal();
                let screen = Screen::new(io::stdout(), io::stderr(), style(), live, setup.settings.preview_lines);
                Form::Text(screen.within(&setup.world.cwd))
            }
        };
        Self { form, rules: setup.rules_file(), quit: false, lost: None }
    }

    /// Whether a turn ended because the program is to end.
    pub fn quitting(&self) -> bool {
        self.quit
    }

    /// Runs one turn to its end. The first interrupt stops it, the second leaves at once.
    pub async fn turn(&mut self, agent: &Agent, session: &mut Session, prompt: Prompt, signals: &mut Signals) -> Exit {
        let stop = CancellationToken::new();
        let mut running = start(agent.clone(), session, prompt, stop.clone());
        let mut exit = Exit::Failed;
        loop {
            tokio::select! {
                biased;
                caught = signals.next() => {
                    if stop.is_cancelled() {
                        self.quit = true;
                        return Exit::Interrupted;
                    }
                    self.quit |= caught == Caught::Terminate;
                    stop.cancel();
                }
                stamped = running.next() => {
                    let Some(stamped) = stamped else { return exit };
                    if let Event::Ended(ended) = &stamped.event {
                        exit = exit_of(ended);
                    }
                    self.event(stamped, signals, &stop).await;
                }
            }
        }
    }

    /// Shows an event, and answers it where it is a question. Where nobody reads any more the turn is stopped.
    async fn event(&mut self, stamped: Stamped, signals: &mut Signals, stop: &CancellationToken) {
        // Before it is shown: what is typed from now on is an answer, what was typed earlier is none.
        let question = matches!(stamped.event, Event::Ask(_)).then(Question::new);
        if let Err(error) = self.show(&stamped) {
            stop.cancel();
            // A reader that went away wants no more; nor does a person whose terminal is gone.
            if error.kind() != io::ErrorKind::BrokenPipe && !self.quit {
                self.lost.get_or_insert(error);
            }
        }
        let (Event::Ask(ask), Some(question)) = (stamped.event, question) else { return };
        match question.answer(signals).await {
            Ok(Key::Answer(answer)) => ask.answer(answer),
            Ok(Key::Always) => {
                self.save(&ask.outline.needs.grants);
                ask.answer(Answer::Session);
            }
            Err(caught) => {
                self.quit |= caught == Caught::Terminate;
                stop.cancel();
            }
        }
        let _ = writeln!(io::stderr());
    }

    /// Saves what was allowed for good; where that fails it holds for the session.
    fn save(&self, grants: &[GrantKey]) {
        if grants.is_empty() {
            return;
        }
        let subjects: Vec<&str> = grants.iter().map(|grant| grant.subject.as_str()).collect();
        match rules::add(&self.rules, grants) {
            Ok(()) => tell(&[format!("saved in {}: {}", self.rules.display(), subjects.join(", "))]),
            Err(problem) => tell(&[problem]),
        }
    }

    fn show(&mut self, stamped: &Stamped) -> io::Result<()> {
        match &mut self.form {
            Form::Text(screen) => screen.event(&stamped.event),
            Form::Json(summary) => {
                summary.event(&stamped.event);
                Ok(())
            }
            Form::Lines => {
                let mut out = io::stdout().lock();
                out.write_all(stamped.lines.as_bytes()).and_then(|()| out.flush())
            }
        }
    }

    /// Prints what comes at the end.
    ///
    /// # Errors
    /// Output that cannot be written, now or before.
    pub fn close(&self, session: &Session) -> Result<(), CliError> {
        if let Some(error) = &self.lost {
            return Err(
                CliError::failed(format!("writing the answer: {error}")).hint("check where stdout goes, and ask again")
            );
        }
        match &self.form {
            Form::Json(summary) => crate::command::print_json(&summary.to_json(session)),
            Form::Text(_) | Form::Lines => Ok(()),
        }
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
