//! A conversation at the terminal: prompts and commands as they are typed, until the person leaves.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use agent_core::commands::{self, Command, Rewind, parse};
use agent_core::mcp::Servers;
use agent_core::session::{RewindError, Scope};
use agent_core::setup::{Equipped, named, with_model};
use agent_core::{Agent, Session};
use agent_tools::Part;
use agent_tools::policy::{Mode, Permissions};
use tokio::time::{sleep, timeout};

use crate::args::ExportFormat;
use crate::beside::Beside;
use crate::choose;
use crate::command::sessions::{export, write};
use crate::error::{CliError, Exit};
use crate::lines::{Draft, Entered, Lines};
use crate::render::plain;
use crate::run::{Open, Talk, with_pictures};
use crate::sessions;
use crate::setup::Setup;
use crate::signals::{Caught, Signals};
use crate::terminal::Modes;
use crate::view::{View, Work, tell};

/// How long a prompt may take to be put away.
const PATIENCE: Duration = Duration::from_secs(1);

/// A conversation, and all that its commands change.
pub struct Conversation {
    setup: Setup,
    talk: Talk,
    equipped: Equipped,
    /// Servers of tools, which join when they are there.
    servers: Servers,
    open: Open,
    view: View,
    signals: Signals,
    /// None only while it waits for a line.
    lines: Option<Lines>,
    /// What the next prompt begins with.
    draft: String,
    /// The next Ctrl-C leaves.
    leaving: bool,
}

/// Whether a conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Stay,
    Leave(Exit),
}

impl Conversation {
    /// A conversation in this session.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn new(
        setup: &Setup,
        talk: Talk,
        equipped: Equipped,
        servers: Servers,
        open: Open,
        view: View,
        signals: Signals,
    ) -> Result<Self, CliError> {
        let lines = Some(Lines::new(&setup.world.dirs.data)?);
        Ok(Self {
            setup: setup.clone(),
            talk,
            equipped,
            servers,
            open,
            view,
            signals,
            lines,
            draft: String::new(),
            leaving: false,
        })
    }

    /// Takes prompts until they end.
    ///
    /// # Errors
    /// The terminal broke, or the output.
    pub async fn run(mut self, first: Option<String>) -> Result<Exit, CliError> {
        let mut flow = match first {
            Some(prompt) => self.say(prompt).await,
            None => Flow::Stay,
        };
        let exit = loop {
            match flow {
                Flow::Leave(exit) => break exit,
                Flow::Stay => flow = self.next().await?,
            }
        };
        self.open.session.jobs.end_all();
        self.view.close(&self.open.session)?;
        Ok(exit)
    }

    /// Waits for a line, or for news, and does what it says.
    async fn next(&mut self) -> Result<Flow, CliError> {
        if let Some(line) = self.view.beside().and_then(Beside::next) {
            return Ok(self.queued(line).await);
        }
        Ok(match self.entered().await? {
            Next::Gone => Flow::Leave(Exit::Interrupted),
            Next::News => self.turn(Work::News).await,
            Next::Entered(Entered::End) => Flow::Leave(Exit::Done),
            Next::Entered(Entered::Interrupted { typed }) if self.leaving && typed.is_empty() => {
                Flow::Leave(Exit::Interrupted)
            }
            Next::Entered(Entered::Interrupted { typed }) => {
                self.leaving = typed.is_empty() && leave_next_time();
                Flow::Stay
            }
            Next::Entered(Entered::Line(line)) => {
                self.leaving = false;
                self.line(line).await
            }
        })
    }

    /// Does what a line says that was entered while a turn ran.
    async fn queued(&mut self, line: String) -> Flow {
        if let Some(lines) = &mut self.lines {
            lines.remember(&line);
        }
        let _ = writeln!(io::stderr(), "> {}", plain(&line));
        self.line(line).await
    }

    /// Does what a line says: a command, or a prompt.
    async fn line(&mut self, line: String) -> Flow {
        if line.trim().is_empty() {
            return Flow::Stay;
        }
        match parse(&line) {
            None => return self.say(line).await,
            Some(Ok((Command::Quit, _))) => return Flow::Leave(Exit::Done),
            Some(Ok((Command::Compact, _))) => return self.turn(Work::Compact).await,
            Some(Ok((command, rest))) => match self.command(command, rest).await {
                Ok(lines) => tell(&lines),
                Err(error) => tell(&[error.to_string()]),
            },
            Some(Err(wrong)) => tell(&[wrong.to_string()]),
        }
        Flow::Stay
    }

    /// Runs a turn on a line.
    async fn say(&mut self, line: String) -> Flow {
        let typed = line.clone();
        let prompt = with_pictures(&self.setup, &self.equipped.agent, line, &typed);
        self.turn(Work::Prompt(prompt)).await
    }

    /// Runs a turn. Where it did not end well, what was to be said next comes back to the prompt.
    async fn turn(&mut self, work: Work) -> Flow {
        tell(&self.servers.told());
        let agent = self.agent();
        let Self { open, view, signals, .. } = self;
        let exit = view.turn(&agent, &mut open.session, work, signals).await;
        if view.quitting() {
            return Flow::Leave(Exit::Interrupted);
        }
        if matches!(exit, Exit::Interrupted | Exit::Failed) {
            let unsaid = open.session.take_back();
            let unsaid = unsaid.iter().map(|prompt| prompt.parts.iter().map(Part::as_text).collect());
            let typed = view.beside().map(Beside::all);
            let before = std::mem::take(&mut self.draft);
            let all: Vec<String> =
                std::iter::once(before).chain(unsaid).chain(typed).filter(|text: &String| !text.is_empty()).collect();
            self.draft = all.join("\n");
        }
        Flow::Stay
    }

    /// Does what a command says. Gives what is to be told.
    async fn command(&mut self, command: Command, rest: &str) -> Result<Vec<String>, CliError> {
        Ok(match command {
            Command::Help => commands::help(),
            Command::New => self.switch(&self.elsewhere(None, false))?,
            Command::Resume => self.resume(rest)?,
            Command::Fork => self.fork()?,
            Command::Model if rest.is_empty() => choose::models(&self.setup, self.agent().provider.model()),
            Command::Model => self.model(rest).await?,
            Command::Mode => self.mode(rest)?,
            Command::Cost => commands::cost(&self.session().usage()),
            Command::Skills => commands::skills(&self.equipped.skills),
            Command::Tools => commands::tools(&self.agent().tools),
            Command::Tasks => commands::tasks(&self.session().jobs),
            Command::Context => commands::context(&self.agent(), self.session()),
            Command::Rewind => self.rewind(rest).await?,
            Command::Export => self.export(rest)?,
            Command::Compact | Command::Quit => Vec::new(),
        })
    }

    fn session(&self) -> &Session {
        &self.open.session
    }

    /// The agent, with the tools of the servers that are there by now.
    fn agent(&self) -> Agent {
        let agent = &self.equipped.agent;
        Agent { tools: self.servers.equip(&agent.tools), ..agent.clone() }
    }

    /// The setup of another session: the one that is named, else a new one.
    fn elsewhere(&self, resume: Option<String>, fork: bool) -> Setup {
        let mut setup = self.setup.clone();
        setup.args.resume = resume;
        setup.args.fork = fork;
        setup.args.continue_last = false;
        setup
    }

    /// Goes on in another session. The one of before ends with all that it started.
    fn switch(&mut self, setup: &Setup) -> Result<Vec<String>, CliError> {
        let earlier = sessions::earlier(setup)?;
        let open = Open::new(setup, earlier, self.talk)?;
        let before = std::mem::replace(&mut self.open, open);
        let stopped = before.session.jobs.running();
        before.session.jobs.end_all();
        let session = self.session();
        let mut told = vec![format!("session {}: {} messages so far", session.id.as_str(), session.messages().len())];
        if stopped > 0 {
            told.push(format!("{stopped} background command(s) of the session before were stopped"));
        }
        Ok(told)
    }

    fn resume(&mut self, name: &str) -> Result<Vec<String>, CliError> {
        let name = if name.is_empty() { self.last_but_this()? } else { name.to_owned() };
        if named(&name, &self.setup.sessions())?.file_name() == Some(self.session().id.as_str().as_ref()) {
            return Ok(vec!["that is this session".into()]);
        }
        self.switch(&self.elsewhere(Some(name), false))
    }

    /// The session that was used last, this one aside.
    fn last_but_this(&self) -> Result<String, CliError> {
        let kept = self.setup.sessions().list(Scope::default());
        let other = kept.into_iter().find(|kept| kept.id != self.session().id);
        other.map(|kept| kept.id.as_str().to_owned()).ok_or_else(|| {
            CliError::usage("there is no session before this one").hint("/resume and a session's id or name")
        })
    }

    /// Writes the session into a new file, as a page or as JSON.
    fn export(&self, file: &str) -> Result<Vec<String>, CliError> {
        let kept = self.session().place.store.as_deref().filter(|_| !self.setup.args.no_session);
        let Some(directory) = kept.filter(|_| !self.session().messages().is_empty()) else {
            return Err(CliError::usage("there is nothing to export: this session is not kept, or has not begun"));
        };
        let file = if file.is_empty() { format!("{}.md", self.session().id.as_str()) } else { file.to_owned() };
        let json = Path::new(&file).extension().is_some_and(|extension| extension == "json");
        let text = export(directory, if json { ExportFormat::Json } else { ExportFormat::Markdown }, false)?;
        write(&self.setup.world.cwd.join(&file), &text)?;
        Ok(vec![format!("written to {file}")])
    }

    fn fork(&mut self) -> Result<Vec<String>, CliError> {
        if self.setup.args.no_session {
            return Err(CliError::usage("a session of --no-session leaves nothing that could be copied"));
        }
        if self.session().messages().is_empty() {
            return Err(CliError::usage("there is nothing to copy yet"));
        }
        let log = self.session().place.store.as_ref().map(|store| store.to_string_lossy().into_owned());
        self.switch(&self.elsewhere(log, true))
    }

    /// Goes on with another model. It is used from the next request on.
    async fn model(&mut self, name: &str) -> Result<Vec<String>, CliError> {
        let mut setup = self.setup.clone();
        setup.settings = with_model(&setup.settings, self.agent().provider.model(), name);
        let chosen = tokio::select! {
            biased;
            _ = self.signals.next() => return Err(CliError::failed("interrupted; the model is the one of before")),
            chosen = choose::choose(&setup, self.talk.attended) => chosen?,
        };
        let line = chosen.line.clone();
        self.equipped = choose::agent(&setup, chosen, self.equipped.gate.clone(), &self.open.session.place)?;
        self.setup = setup;
        Ok(vec![line])
    }

    /// Lists the turns, tells what going back changes, or goes back.
    async fn rewind(&mut self, rest: &str) -> Result<Vec<String>, CliError> {
        let session = &mut self.open.session;
        let (turn, back, forced) = match commands::rewind(rest).map_err(CliError::usage)? {
            Rewind::List => return Ok(commands::turns(session)),
            Rewind::Preview(turn) => {
                let mut lines = commands::rewind_preview(session, turn).map_err(CliError::failed)?;
                lines.push(format!("/rewind {turn} both, or conversation, or files, does it"));
                return Ok(lines);
            }
            Rewind::Go { turn, back, forced } => (turn, back, forced),
        };
        let rewound = commands::rewound(session, turn, back, forced).await;
        rewound.map_err(|error| {
            let changed = matches!(error, RewindError::Changed { .. });
            let how = changed.then(|| "the same with `force` behind it does it; what they hold is kept".to_owned());
            let hints = commands::rewind_refused(&error, session).into_iter().chain(how).collect();
            CliError { hints, ..CliError::failed(error) }
        })
    }

    /// Shows or changes what may run without a question.
    fn mode(&mut self, words: &str) -> Result<Vec<String>, CliError> {
        let mut rules = self.equipped.gate.rules();
        for word in words.split_whitespace() {
            match (word.parse::<Permissions>(), word.parse::<Mode>()) {
                (Ok(permissions), _) => rules.permissions = permissions,
                (_, Ok(mode)) => rules.ceiling = mode,
                (Err(_), Err(malformed)) => {
                    return Err(CliError::usage(malformed).hint("/mode ask, /mode auto or /mode allow, or four digits"));
                }
            }
        }
        let (permissions, ceiling) = (rules.permissions, rules.ceiling);
        self.equipped.gate.set(|now| (now.permissions, now.ceiling) = (permissions, ceiling));
        Ok(vec![format!("permissions {permissions}, bashMode {ceiling}")])
    }

    /// Waits for a line. An interrupt from outside counts as Ctrl-C.
    async fn entered(&mut self) -> Result<Next, CliError> {
        let Some(lines) = self.lines.take() else { return Ok(Next::Gone) };
        let typed = self.view.beside().map(Beside::draft).unwrap_or_default();
        let typed = [std::mem::take(&mut self.draft), typed].concat();
        let (before, draft) = (Modes::now(), lines.draft());
        let next = lines.next(typed);
        tokio::pin!(next);
        loop {
            let caught = tokio::select! {
                biased;
                entered = &mut next => {
                    let (lines, entered) = entered?;
                    self.lines = Some(lines);
                    return Ok(Next::Entered(entered));
                }
                caught = self.signals.next() => caught,
                () = self.open.session.news(), if draft.is_some() => break,
            };
            if self.leaving || caught == Caught::Terminate {
                // An editor that still waits for keys, on its thread, cannot clean up.
                let _ = timeout(PATIENCE, put_away(next, draft)).await;
                before.restore();
                return Ok(Next::Gone);
            }
            self.leaving = leave_next_time();
        }
        let (lines, entered) = put_away(next, draft).await?;
        self.lines = Some(lines);
        self.signals.forget_interrupts().await;
        // A line that was entered at that very moment comes with the news.
        Ok(match entered {
            Entered::Interrupted { typed } => {
                self.draft = typed;
                Next::News
            }
            Entered::Line(_) | Entered::End => Next::Entered(entered),
        })
    }
}

/// Waits until the prompt is put away, or has ended by itself.
async fn put_away<T>(prompt: impl Future<Output = T>, draft: Option<Draft>) -> T {
    tokio::pin!(prompt);
    let Some(draft) = draft else { return prompt.await };
    loop {
        draft.put_away();
        tokio::select! {
            biased;
            ended = &mut prompt => return ended,
            () = sleep(Duration::from_millis(20)) => {}
        }
    }
}

/// What a prompt ended with.
enum Next {
    Entered(Entered),
    /// Something came in that the model is to be told.
    News,
    /// A signal ends the program.
    Gone,
}

fn leave_next_time() -> bool {
    tell(&["Ctrl-C again or Ctrl-D quits".into()]);
    true
}
