//! `agent sessions`: lists, names, deletes and exports the sessions that are kept.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agent_core::commands;
use agent_core::session::{self, Back, Exported, Kept, LoadError, RewindError, Scope, Session, Sessions};
use agent_core::setup::{in_use, named};
use agent_tools::masked;
use agent_tools::text::counted;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{print, print_json};
use crate::args::{ExportFormat, SessionsTask};
use crate::error::CliError;
use crate::render::plain;
use crate::sessions;
use crate::setup::Setup;
use crate::view::tell;

/// Does what is asked with sessions.
///
/// # Errors
/// A session that is not there or in use, the disk, output that cannot be written.
pub async fn run(setup: &Setup, task: &SessionsTask, as_json: bool) -> Result<(), CliError> {
    let all_sessions = setup.sessions();
    match task {
        SessionsTask::List { all } => list(&all_sessions, *all, as_json),
        SessionsTask::Rename { session, name } => rename(&all_sessions, session, name),
        SessionsTask::Delete(meant) => delete(&all_sessions, meant),
        SessionsTask::Export { session, format, out, opaque } => {
            let text = export(&named(session, &all_sessions)?, *format, *opaque)?;
            out.as_ref().map_or_else(|| print(&text), |file| write(&setup.world.cwd.join(file), &text))
        }
        SessionsTask::Rewind { session, turn, back, dry_run, force } => {
            let mut setup = setup.clone();
            setup.args.resume = Some(session.clone());
            let mut session = sessions::open(&setup, sessions::earlier(&setup)?, None)?;
            rewind(&mut session, *turn, *back, (!dry_run).then_some(Force(*force))).await
        }
        SessionsTask::Clean { days, dry_run, all } => clean(&all_sessions, *days, *dry_run, *all),
    }
}

fn scope(all_projects: bool) -> Scope {
    Scope { all_projects, ..Scope::default() }
}

fn list(sessions: &Sessions, all: bool, as_json: bool) -> Result<(), CliError> {
    let kept = sessions.list(scope(all));
    if as_json {
        return print_json(&json!({"sessions": kept.iter().map(entry).collect::<Vec<_>>()}));
    }
    if kept.is_empty() && !all {
        return print("No sessions of this project. agent sessions --all lists those of all projects.\n");
    }
    if kept.is_empty() {
        return print("No sessions.\n");
    }
    print(&kept.iter().map(|kept| line(kept, all) + "\n").collect::<String>())
}

fn entry(kept: &Kept) -> Value {
    json!({
        "id": kept.id.as_str(),
        "name": kept.name,
        "when": kept.used.to_string(),
        "turns": kept.turns,
        "preview": masked(&kept.preview),
        "total_input_tokens": kept.total_input_tokens,
        "total_output_tokens": kept.total_output_tokens,
        "agent_request_count": kept.agent_request_count,
        "size": kept.size,
        "cwd": kept.cwd,
        "path": Sessions::log(&kept.directory).to_string_lossy(),
    })
}

/// A session in one line. `place`: with the directory that it was begun in.
fn line(kept: &Kept, place: bool) -> String {
    let name = kept.name.as_ref().map(|name| format!("[{name}] ")).unwrap_or_default();
    let cwd = kept.cwd.as_ref().filter(|_| place).map(|cwd| format!("  ({cwd})")).unwrap_or_default();
    let turns = counted(usize::try_from(kept.turns).unwrap_or(usize::MAX), "turn");
    let words = plain(&masked(&format!("{name}{}{cwd}", kept.preview)));
    format!("{}  {}  {turns:>9}  {words}", kept.id, kept.used.strftime("%Y-%m-%d %H:%M UTC")).trim_end().to_owned()
}

fn rename(sessions: &Sessions, meant: &str, name: &str) -> Result<(), CliError> {
    let directory = named(meant, sessions)?;
    Sessions::rename(&directory, name, Timestamp::now()).map_err(|error| failed("renaming", &directory, &error))
}

fn delete(sessions: &Sessions, meant: &[String]) -> Result<(), CliError> {
    // All are found before one is gone.
    let mut directories = meant.iter().map(|meant| named(meant, sessions)).collect::<Result<Vec<_>, _>>()?;
    directories.sort();
    directories.dedup();
    for directory in directories {
        let gone = sessions.delete(&directory).map_err(|error| failed("deleting", &directory, &error))?;
        tell_gone(&gone)?;
    }
    Ok(())
}

fn tell_gone(directories: &[PathBuf]) -> Result<(), CliError> {
    print(&directories.iter().map(|gone| format!("deleted {}\n", id(gone))).collect::<String>())
}

fn id(directory: &Path) -> String {
    directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(doing: &str, directory: &Path, error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::ResourceBusy => {
            let busy = CliError::from(in_use(directory));
            CliError { hints: vec!["end that process first".into()], ..busy }
        }
        io::ErrorKind::InvalidInput => CliError::usage(error),
        _ => CliError::failed(format!("{doing} the session {}: {error}", id(directory))),
    }
}

/// Goes back to before a turn; `go`: it is done, and not only shown.
async fn rewind(session: &mut Session, turn: usize, back: Back, go: Option<Force>) -> Result<(), CliError> {
    let done = match go {
        None => commands::rewind_preview(session, turn),
        Some(Force(forced)) => commands::rewound(session, turn, back, forced).await,
    };
    let lines = done.map_err(|error| {
        let wrong = CliError::usage(&error);
        let changed = matches!(error, RewindError::Changed { .. });
        let how = changed.then(|| "--force puts them back all the same; what they hold is kept".to_owned());
        CliError { hints: commands::rewind_refused(&error, session).into_iter().chain(how).collect(), ..wrong }
    })?;
    print(&lines.iter().map(|line| plain(line) + "\n").collect::<String>())
}

/// Whether also what somebody else changed is put back.
struct Force(bool);

/// The text of an export.
///
/// # Errors
/// The log cannot be read.
pub fn export(directory: &Path, format: ExportFormat, opaque: bool) -> Result<String, CliError> {
    let path = Sessions::log(directory);
    let loaded = File::open(&path).map_err(LoadError::from).and_then(session::read_all);
    let reading = |error| CliError::usage(format!("reading the session {}: {error}", path.display()));
    let loaded = loaded.map_err(reading)?;
    tell(&loaded.repairs);
    let id = session::SessionId::named(id(directory));
    let mut exported = Exported::new(&id, &loaded);
    exported.opaque = opaque;
    Ok(match format {
        ExportFormat::Markdown => session::markdown(exported),
        ExportFormat::Json => format!("{:#}\n", session::json(exported)),
    })
}

/// Writes a new file: what is there already stays.
///
/// # Errors
/// It is there already, or the disk.
pub fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CliError::usage(format!("{} is there already", path.display()))
            .hint("name a new file with --out, or leave --out away and redirect stdout"),
        _ => CliError::failed(format!("writing {}: {error}", path.display())),
    })
}

fn clean(sessions: &Sessions, days: u32, dry_run: bool, all: bool) -> Result<(), CliError> {
    let age = SignedDuration::from_hours(24 * i64::from(days));
    // Further back than time goes there is no session.
    let Ok(before) = Timestamp::now().checked_sub(age) else { return Ok(()) };
    for kept in sessions.unused_since(before, scope(all)) {
        if dry_run {
            print(&format!("would delete {}\n", line(&kept, all)))?;
            continue;
        }
        match sessions.delete(&kept.directory) {
            Ok(gone) => tell_gone(&gone)?,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                tell(&[format!("session {} is in use and stays", kept.id)]);
            }
            Err(error) => return Err(failed("deleting", &kept.directory, &error)),
        }
    }
    Ok(())
}
