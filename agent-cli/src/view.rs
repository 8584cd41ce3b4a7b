//! A turn as it is shown: events to the form of output that was asked for, questions to a person.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use agent_core::settings::rules;
use agent_core::{
    Agent, Ending, Event, Prompt, Session, Stamped, Steering, TurnError, start, start_compacting, start_on_news,
};
use agent_tools::{Answer, GrantKey};
use tokio_util::sync::CancellationToken;

use crate::args::Output;
use crate::beside::Beside;
use crate::error::{CliError, Exit};
use crate::render::{Output as Stdio, Outputs, Screen, Stream, Style, Summary, plain};
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
    Text(Screen<Stdio, Stdio>),
    Json(Summary),
    Lines,
}

/// What shows turns.
pub struct View {
    form: Form,
    /// Where a person can type while a turn runs.
    beside: Option<Beside>,
    /// Where rules are saved.
    rules: PathBuf,
    quit: bool,
    lost: Option<io::Error>,
}

impl View {
    /// A view in the form that was asked for. `interactive`: a person can type while a turn runs.
    pub fn new(setup: &Setup, interactive: bool) -> Self {
        let outputs = Outputs::default();
        let form = match setup.args.output {
            Output::Json => Form::Json(Summary::default()),
            Output::StreamJson => Form::Lines,
            Output::Text => {
                let (out, err) = (outputs.stream(Stream::Out), outputs.stream(Stream::Err));
                let screen = Screen::new(out, err, style(), io::stdout().is_terminal(), setup.settings.preview_lines);
                Form::Text(screen.within(&setup.world.cwd))
            }
        };
        // A terminal that goes on line by line shows and keeps what is typed by itself.
        let by_lines = matches!(setup.world.lookup("TERM").as_deref(), Some("dumb" | "cons25" | "emacs"));
        let beside = interactive && !by_lines && setup.args.output == Output::Text;
        let beside = beside.then(|| Beside::new(outputs, style()));
        Self { form, beside, rules: setup.rules_file(), quit: false, lost: None }
    }

    /// What was typed while turns ran.
    pub fn beside(&mut self) -> Option<&mut Beside> {
        self.beside.as_mut()
    }

    /// Whether a turn ended because the program is to end.
    pub fn quitting(&self) -> bool {
        self.quit
    }

    /// Runs one turn to its end. The first interrupt stops it, the second leaves at once.
    pub async fn turn(&mut self, agent: &Agent, session: &mut Session, work: Work, signals: &mut Signals) -> Exit {
        let (stop, steering) = (CancellationToken::new(), session.steering());
        let mut running = match work {
            Work::Prompt(prompt) => start(agent.clone(), session, prompt, stop.clone()),
            Work::News => start_on_news(agent.clone(), session, stop.clone()),
            Work::Compact => start_compacting(agent.clone(), session, stop.clone()),
        };
        self.beside.iter_mut().for_each(Beside::begin);
        let mut exit = Exit::Failed;
        while let Some(happened) = tokio::select! {
            biased;
            caught = signals.next() => Some(Happened::Caught(caught)),
            stamped = running.next() => stamped.map(Happened::Event),
            bytes = typed(self.beside.as_mut()) => Some(Happened::Typed(bytes)),
        } {
            match happened {
                Happened::Caught(caught) => {
                    if self.interrupted(caught, &stop, &steering) {
                        exit = Exit::Interrupted;
                        break;
                    }
                }
                Happened::Typed(bytes) => self.beside.iter_mut().for_each(|beside| beside.take(&bytes, &steering)),
                Happened::Event(stamped) => {
                    if let Event::Ended(ended) = &stamped.event {
                        exit = exit_of(ended);
                    }
                    self.event(stamped, signals, &stop, &steering).await;
                }
            }
        }
        self.beside.iter_mut().for_each(|beside| beside.end(&steering));
        exit
    }

    /// Clears what is typed, else stops the turn. Says whether the program is to leave at once.
    fn interrupted(&mut self, caught: Caught, stop: &CancellationToken, steering: &Steering) -> bool {
        if let (Caught::Interrupt, Some(beside)) = (caught, &mut self.beside) {
            // What was typed before Ctrl-C may not have been read yet.
            beside.catch_up(steering);
            if beside.clear() {
                return false;
            }
        }
        let again = stop.is_cancelled();
        self.quit |= again || caught == Caught::Terminate;
        stop.cancel();
        again
    }

    /// Shows an event, and answers it where it is a question. Where nobody reads any more the turn is stopped.
    async fn event(&mut self, stamped: Stamped, signals: &mut Signals, stop: &CancellationToken, steering: &Steering) {
        // Before it is shown: what is typed from now on is an answer, what was typed earlier is none.
        let question = matches!(stamped.event, Event::Ask(_)).then(|| {
            self.beside.iter_mut().for_each(|beside| beside.end(steering));
            Question::new()
        });
        if let Err(error) = self.show(&stamped) {
            stop.cancel();
            // A reader that went away wants no more; nor does a person whose terminal is gone.
            if error.kind() != io::ErrorKind::BrokenPipe && !self.quit {
                self.lost.get_or_insert(error);
            }
        }
        let (Event::Ask(ask), Some(question)) = (stamped.event, question) else {
            self.beside.iter().for_each(Beside::make_room);
            return;
        };
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
        self.beside.iter_mut().for_each(Beside::begin);
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

/// What a turn is for.
pub enum Work {
    /// A prompt.
    Prompt(Prompt),
    /// What came in since the last turn.
    News,
    /// A summary of the conversation.
    Compact,
}

/// What a turn is waited for with.
enum Happened {
    Caught(Caught),
    Event(Stamped),
    Typed(Vec<u8>),
}

async fn typed(beside: Option<&mut Beside>) -> Vec<u8> {
    match beside {
        Some(beside) => beside.read().await,
        None => std::future::pending().await,
    }
}

/// The exit code of a turn that ended so.
pub fn exit_of(ended: &Result<Ending, TurnError>) -> Exit {
    match ended {
        Ok(Ending::Done) => Exit::Done,
        Ok(Ending::Blocked(_)) => Exit::Blocked,
        Ok(Ending::Cancelled) => Exit::Interrupted,
        Ok(Ending::Limit(_)) => Exit::Limit,
        Ok(Ending::Truncated | Ending::Refused) | Err(_) => Exit::Failed,
    }
}
