//! `agent sessions …`: the sessions that are kept.

use std::path::PathBuf;

use agent_core::session::Back;
use clap::{Arg, ArgMatches, Command, value_parser};

use super::{flag, json};

/// What to do with sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsTask {
    /// `agent sessions`
    List {
        /// `--all`: of all projects.
        all: bool,
    },
    /// `agent sessions rename SESSION NAME`
    Rename {
        /// Which.
        session: String,
        /// Its new name.
        name: String,
    },
    /// `agent sessions delete SESSION…`
    Delete(Vec<String>),
    /// `agent sessions export SESSION`
    Export {
        /// Which.
        session: String,
        /// `--format`
        format: ExportFormat,
        /// `--out`: the file; none for stdout.
        out: Option<PathBuf>,
        /// `--opaque`: with what only the model's provider understands.
        opaque: bool,
    },
    /// `agent sessions rewind SESSION TURN`
    Rewind {
        /// Which.
        session: String,
        /// Back to before this turn, the first being 1.
        turn: usize,
        /// `--files`, `--conversation`: what goes back; both without them.
        back: Back,
        /// `--dry-run`: only says what it would do.
        dry_run: bool,
        /// `--force`: also what was changed by somebody else since.
        force: bool,
    },
    /// `agent sessions clean --older-than DAYS`
    Clean {
        /// What was used since is kept.
        days: u32,
        /// `--dry-run`: only says what it would do.
        dry_run: bool,
        /// `--all`: of all projects.
        all: bool,
    },
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// A page for people.
    Markdown,
    /// One object for programs.
    Json,
}

pub(super) fn command() -> Command {
    let session =
        || Arg::new("session").value_name("SESSION").required(true).help("Its id or name, or the path of its log");
    let all = || flag("all", "Those of all projects");
    let rename = Command::new("rename")
        .about("Gives a session a name")
        .arg(session())
        .arg(Arg::new("name").value_name("NAME").required(true));
    let delete =
        Command::new("delete").about("Deletes sessions, with those of their sub-agents").arg(session().num_args(1..));
    let export = Command::new("export")
        .about("Writes a session for others to read; keys of known kinds are masked")
        .arg(session())
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORM")
                .value_parser(["markdown", "json"])
                .default_value("markdown")
                .help("For people, or for programs"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("A new file instead of stdout"),
        )
        .arg(flag("opaque", "With the reasoning that only the model's provider can read (json)"));
    let rewind = Command::new("rewind")
        .about("Goes back to before a turn: the conversation, and the files that tools changed")
        .arg(session())
        .arg(
            Arg::new("turn")
                .value_name("TURN")
                .value_parser(value_parser!(usize))
                .required(true)
                .help("Which prompt, the first being 1"),
        )
        .arg(flag("files", "Only the files").conflicts_with("conversation"))
        .arg(flag("conversation", "Only the conversation"))
        .arg(flag("dry-run", "Only say what would be done"))
        .arg(flag("force", "Also files that somebody else changed since; what they hold is kept in the session"));
    let clean = Command::new("clean")
        .about("Deletes sessions that were not used for long")
        .arg(
            Arg::new("days")
                .long("older-than")
                .value_name("DAYS")
                .value_parser(value_parser!(u32))
                .required(true)
                .help("Not used for so many days"),
        )
        .arg(flag("dry-run", "Only say which"))
        .arg(all());
    Command::new("sessions")
        .about("The sessions of this project, the one used last first")
        .arg(json())
        .arg(all())
        .subcommands([rename, delete, export, rewind, clean])
}

pub(super) fn task(matches: &ArgMatches) -> SessionsTask {
    let text = |matches: &ArgMatches, name| matches.get_one::<String>(name).cloned().unwrap_or_default();
    match matches.subcommand() {
        Some(("rename", rename)) => {
            SessionsTask::Rename { session: text(rename, "session"), name: text(rename, "name") }
        }
        Some(("delete", delete)) => {
            SessionsTask::Delete(delete.get_many("session").into_iter().flatten().cloned().collect())
        }
        Some(("export", export)) => SessionsTask::Export {
            session: text(export, "session"),
            format: if text(export, "format") == "json" { ExportFormat::Json } else { ExportFormat::Markdown },
            out: export.get_one("out").cloned(),
            opaque: export.get_flag("opaque"),
        },
        Some(("rewind", rewind)) => SessionsTask::Rewind {
            session: text(rewind, "session"),
            turn: rewind.get_one("turn").copied().unwrap_or_default(),
            back: match (rewind.get_flag("files"), rewind.get_flag("conversation")) {
                (true, _) => Back::Files,
                (_, true) => Back::Conversation,
                (false, false) => Back::Both,
            },
            dry_run: rewind.get_flag("dry-run"),
            force: rewind.get_flag("force"),
        },
        Some(("clean", clean)) => SessionsTask::Clean {
            days: clean.get_one("days").copied().unwrap_or(u32::MAX),
            dry_run: clean.get_flag("dry-run"),
            all: clean.get_flag("all"),
        },
        _ => SessionsTask::List { all: matches.get_flag("all") },
    }
}
