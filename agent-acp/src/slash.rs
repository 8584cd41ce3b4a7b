//! The commands that a person types after a slash: those of the one table that make sense in a client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput,
};
use agent_core::Session;
use agent_core::commands::{self, COMMANDS, Command, CommandSpec, Rewind};
use agent_core::session::{Exported, RewindError, Sessions, json, markdown, read_all};
use agent_core::setup;
use agent_tools::Place;
use agent_tools::builtin::own_files;
use agent_tools::policy::Mode as Digits;

use crate::made::Made;
use crate::options::Mode;

/// Whether a client is offered this command: what opens other sessions is the client's own affair.
pub fn is_offered(command: Command) -> bool {
    match command {
        Command::New | Command::Resume | Command::Fork | Command::Quit => false,
        Command::Help
        | Command::Compact
        | Command::Model
        | Command::Mode
        | Command::Context
        | Command::Cost
        | Command::Rewind
        | Command::Skills
        | Command::Tools
        | Command::Tasks
        | Command::Export => true,
    }
}

/// The commands, for the client's menu.
pub fn available() -> AvailableCommandsUpdate {
    let offered = COMMANDS.iter().filter(|spec| is_offered(spec.command));
    let command = |spec: &CommandSpec| {
        let input = UnstructuredCommandInput::new(spec.argument);
        let input = (!spec.argument.is_empty()).then_some(AvailableCommandInput::Unstructured(input));
        AvailableCommand::new(spec.name, spec.help).input(input)
    };
    AvailableCommandsUpdate::new(offered.map(command).collect())
}

/// What the model is told where a person wants a plan first.
pub fn plan_first(place: &Place) -> Option<String> {
    let draft = own_files::path(own_files::DRAFT, place)?;
    Some(format!(
        "\n\n[The person wants a plan first: look around, write the plan to {}, and call PlanConfirm, which shows it to them. Nothing else can be changed before they agree.]",
        draft.display()
    ))
}

/// The mode of a session, changed. Where a plan comes first that is so until it is agreed to.
pub fn set_mode(mode: Mode, made: &Made, place: &Place) {
    use agent_tools::policy::Permissions;
    made.gate.set(|rules| {
        rules.plan_first = if mode == Mode::Plan { place.store.clone() } else { None };
        match mode {
            Mode::Ask => rules.permissions = Permissions::Ask,
            Mode::Auto => rules.permissions = Permissions::Auto,
            Mode::Allow => rules.permissions = Permissions::Allow,
            // What a person allowed before is no answer to a plan.
            Mode::Plan if rules.permissions == Permissions::Allow => rules.permissions = Permissions::Ask,
            Mode::Plan => {}
        }
    });
}

/// A command in a session.
pub struct Slash<'s> {
    /// The session.
    pub session: &'s mut Session,
    /// What it works with.
    pub made: Arc<Mutex<Made>>,
}

impl Slash<'_> {
    /// Does what a command says, and tells what was done, a line each.
    pub async fn run(&mut self, command: Command, rest: &str) -> Vec<String> {
        match command {
            Command::Help => commands::help(),
            Command::Model => self.model(rest),
            Command::Mode => self.mode(rest).unwrap_or_else(|why| vec![why]),
            Command::Context => {
                let agent = self.made().agent();
                commands::context(&agent, self.session)
            }
            Command::Cost => commands::cost(&self.session.usage()),
            Command::Rewind => self.rewind(rest).await.unwrap_or_else(|why| why),
            Command::Skills => commands::skills(&self.made().skills),
            Command::Tools => commands::tools(&self.made().agent().tools),
            Command::Tasks => commands::tasks(&self.session.jobs),
            Command::Export => vec![self.export(rest).unwrap_or_else(|why| why)],
            Command::New | Command::Resume | Command::Fork | Command::Compact | Command::Quit => Vec::new(),
        }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn model(&self, rest: &str) -> Vec<String> {
        if !rest.is_empty() {
            return vec!["the model is chosen in the client's own menu of models".into()];
        }
        let made = self.made();
        setup::models(&made.setup, made.agent.provider.model(), false)
    }

    /// Shows or changes what may run without a question.
    fn mode(&self, words: &str) -> Result<Vec<String>, String> {
        let made = self.made();
        for word in words.split_whitespace() {
            match (word.parse::<Mode>(), word.parse::<Digits>()) {
                (Ok(mode), _) => set_mode(mode, &made, &self.session.place),
                (_, Ok(ceiling)) => made.gate.set(|rules| rules.ceiling = ceiling),
                (Err(_), Err(_)) => return Err(format!("{word} is no mode: ask, auto, plan, allow, or four digits")),
            }
        }
        Ok(vec![format!("mode {}, bashMode {}", Mode::of(&made.gate).id(), made.gate.rules().ceiling)])
    }

    async fn rewind(&mut self, rest: &str) -> Result<Vec<String>, Vec<String>> {
        let told = |error: &RewindError, session: &Session| {
            let mut lines = vec![error.to_string()];
            lines.extend(commands::rewind_refused(error, session));
            lines
        };
        match commands::rewind(rest).map_err(|why| vec![why])? {
            Rewind::List => Ok(commands::turns(self.session)),
            Rewind::Preview(turn) => {
                commands::rewind_preview(self.session, turn).map_err(|error| told(&error, self.session))
            }
            Rewind::Go { turn, back, forced } => {
                let rewound = commands::rewound(self.session, turn, back, forced).await;
                rewound.map_err(|error| told(&error, self.session))
            }
        }
    }

    /// Writes the session into a new file of its directory.
    fn export(&self, file: &str) -> Result<String, String> {
        let store = self.session.place.store.as_deref().filter(|_| !self.session.messages().is_empty());
        let store = store.ok_or("there is nothing to export: this session is not kept, or has not begun")?;
        let file = if file.is_empty() { format!("{}.md", self.session.id.as_str()) } else { file.to_owned() };
        let failed = |e: std::io::Error| format!("exporting the session to {file}: {e}");
        let log = std::fs::File::open(Sessions::log(store)).map_err(failed)?;
        let loaded = read_all(log).map_err(|e| format!("reading the session: {e}"))?;
        let exported = Exported::new(&self.session.id, &loaded);
        let text = if file.ends_with(".json") { format!("{:#}\n", json(exported)) } else { markdown(exported) };
        let path = self.session.place.absolute(&file);
        let mut new = std::fs::File::create_new(&path).map_err(failed)?;
        std::io::Write::write_all(&mut new, text.as_bytes()).map_err(failed)?;
        Ok(format!("written to {}", path.display()))
    }
}
