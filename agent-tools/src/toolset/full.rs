//! Toolset `full`: the second seed's eleven tools. A table, no logic.

use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use agent_skills::{Catalogue, Skill as Found};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{bash, edit, plan, read, skill, subagent, todo, write};
#[cfg(feature = "search")]
use crate::builtin::{glob::Glob, grep::Grep};
use crate::error::ToolError;
use crate::text::Cut;
use crate::tool::Declaration;
use crate::tools::Tools;
use crate::toolset::Parts;

/// The most bytes that `Write` and `Edit` take at once.
const MOST: usize = 1 << 20;

pub(super) fn tools(parts: &Parts) -> Tools {
    let cut = Cut::HeadTailBytes(parts.max_output);
    let tools = Tools::wording(|failure| format!("Error: {failure}"))
        .with(read::Read::<Read>::new(cut))
        .with(write::Write::<Write>::new(cut))
        .with(edit::Edit::<Edit>::new(cut))
        .with(bash::Bash::<Bash>::new(cut, parts.timeout).login(parts.login_shell));
    #[cfg(feature = "search")]
    let tools = tools.with(Glob::new(cut)).with(Grep::new(cut));
    tools
        .with(todo::TodoWrite::new(cut))
        .with(plan::PlanConfirm)
        .with(plan::PlanClear)
        .with(skill::Skill::<Skill>::new(parts.skills.clone(), cut))
        .with(subagent::SubAgent)
}

// Read

/// The arguments of `Read`.
#[derive(Deserialize, JsonSchema)]
struct Read {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// First line, counted from 1.
    #[serde(default = "one")]
    offset: i64,
    /// How many lines; 0 = to the end.
    #[serde(default)]
    limit: i64,
}

const fn one() -> i64 {
    1
}

impl read::Dialect for Read {
    fn declaration() -> Declaration {
        Declaration::of::<Self>("Read", include_str!("full/read.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn lines(&self) -> Result<RangeInclusive<u64>, ToolError> {
        read::counted_from(self.offset, self.limit)
    }

    fn line(&self) -> Option<u64> {
        u64::try_from(self.offset).ok().filter(|line| *line > 1)
    }

    fn missing(path: &str) -> String {
        format!("file not found: {path}. Look for it with Glob, or create it with Write")
    }

    fn directory(path: &str) -> String {
        format!("{path} is a directory, not a file. List what is in it with Glob, or with Bash: ls -la")
    }

    fn binary(path: &str) -> String {
        format!("{path} is a binary file, not text. Look at it with Bash: file, xxd or strings")
    }

    fn past_end(path: &str, lines: u64) -> Result<String, ToolError> {
        Ok(format!("[{path} has only {lines} lines]"))
    }

    fn further(line: u64) -> String {
        format!("continue with offset={line}")
    }

    fn alone(line: u64) -> String {
        format!("line {line} alone is longer than that")
    }
}

// Write

/// The arguments of `Write`.
#[derive(Deserialize, JsonSchema)]
struct Write {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// All that the file is to hold.
    content: String,
}

impl write::Dialect for Write {
    const MOST: usize = MOST;
    const TELLS_DIFF: bool = false;

    fn declaration() -> Declaration {
        Declaration::of::<Self>("Write", include_str!("full/write.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn content(&self) -> &str {
        &self.content
    }

    fn created(path: &str, written: &write::Written<'_>) -> String {
        format!("OK: wrote {} bytes to {path}", written.bytes)
    }

    fn replaced(path: &str, written: &write::Written<'_>) -> String {
        Self::created(path, written)
    }

    fn identical(path: &str, content: &str) -> String {
        format!("OK: wrote {} bytes to {path} (it had this content already)", content.len())
    }

    fn too_long(bytes: usize) -> String {
        format!(
            "the content has {bytes} bytes; Write takes at most {MOST}. Write the first part, then add the rest with Edit or Bash"
        )
    }
}

// Edit

/// The arguments of `Edit`.
#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// The text to be replaced, exactly as in the file.
    old_string: String,
    /// The text to put there; empty to delete.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl edit::Dialect for Edit {
    const MOST_NEW: usize = MOST;
    const TELLS_DIFF: bool = false;

    fn declaration() -> Declaration {
        Declaration::of::<Self>("Edit", include_str!("full/edit.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn edits(&self) -> Vec<(&str, &str)> {
        vec![(&self.old_string, &self.new_string)]
    }

    fn everywhere(&self) -> bool {
        self.replace_all
    }

    fn missing(path: &str) -> String {
        format!("file not found: {path}. Look for it with Glob, or create it with Write")
    }

    fn label(_edit: usize) -> String {
        "old_string".into()
    }

    fn empty(_edit: usize) -> String {
        "empty old_string; give the text that is to be replaced".into()
    }

    fn not_found(path: &str, _edit: usize) -> String {
        format!(
            "old_string not found in {path}. Hint: use Grep to locate the target lines, then Read the relevant portion (with offset/limit) to copy the exact text before retrying Edit."
        )
    }

    fn ambiguous_hint() -> &'static str {
        "Add neighbouring text so that it occurs once, or set replace_all."
    }

    fn refused(_path: &str, problems: &[String]) -> String {
        problems.join("\n")
    }

    fn applied(path: &str, applied: &edit::Applied<'_>) -> String {
        format!("Success: Edit({path}) [+{} -{} lines]", applied.diff.added, applied.diff.removed)
    }

    fn dry(path: &str, applied: &edit::Applied<'_>) -> String {
        Self::applied(path, applied)
    }

    fn unchanged(path: &str) -> String {
        format!("Success: Edit({path}) [+0 -0 lines]; old_string and new_string are the same")
    }
}

// Bash

/// The arguments of `Bash`.
#[derive(Deserialize, JsonSchema)]
struct Bash {
    /// The command, as one would type it. Not needed with `action`.
    #[serde(default)]
    command: String,
    /// Seconds that it may run; 0 = as long as it likes.
    timeout: Option<u64>,
    /// Answer at once; its result comes as a message when it has ended.
    #[serde(default)]
    background: bool,
    /// What to do with background commands instead of running one.
    action: Option<Action>,
    /// The background command's id, for `output` and `stop`.
    #[serde(default)]
    task: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Output,
    Stop,
}

impl bash::Dialect for Bash {
    const KEEPS_WHOLE: bool = true;

    fn declaration() -> Declaration {
        Declaration::of::<Self>("Bash", include_str!("full/bash.md").trim_end())
    }

    fn command(&self) -> &str {
        &self.command
    }

    fn wish(&self, usual: Duration) -> Result<bash::Wish<'_>, ToolError> {
        let limit = match self.timeout {
            None => usual,
            Some(0) => Duration::MAX,
            Some(seconds) => Duration::from_secs(seconds),
        };
        let task = || match self.task.trim() {
            "" => Err(ToolError::new("action needs `task`, the id of a background command; list shows them")),
            task => Ok(task),
        };
        Ok(match self.action {
            None => bash::Wish::Run { limit, background: self.background },
            Some(Action::List) => bash::Wish::List,
            Some(Action::Output) => bash::Wish::Output(task()?),
            Some(Action::Stop) => bash::Wish::Stop(task()?),
        })
    }

    fn ended(status: ExitStatus) -> Option<String> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("[exit code: {code}]")),
            (None, Some(signal)) => Some(format!("[killed by signal {}]", signal_name(signal))),
            (None, None) => Some("[exit code: unknown]".into()),
        }
    }

    fn timed_out(limit: Duration) -> String {
        format!("[... command timed out after {} seconds ...]", limit.as_secs_f64())
    }

    fn cancelled() -> String {
        "[... command cancelled by the user ...]".into()
    }

    fn stopped(text: String) -> String {
        format!("Error: {text}")
    }

    fn not_run(reason: &str) -> String {
        reason.to_owned()
    }
}

/// A signal's name, as `kill -l` has it.
fn signal_name(number: i32) -> String {
    use rustix::process::Signal;
    let named = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    let name = named.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| number.to_string())
}

// Skill

/// The arguments of `Skill`.
#[derive(Deserialize, JsonSchema)]
struct Skill {
    /// The skill's name, as listed.
    name: String,
}

impl skill::Dialect for Skill {
    fn declaration(_skills: &Catalogue) -> Declaration {
        Declaration::of::<Self>("Skill", include_str!("full/skill.md").trim_end())
    }

    fn name(&self) -> &str {
        self.name.trim()
    }

    fn loaded(skill: &Found, text: String) -> String {
        format!("Skill: {}\nBase directory: {}\n\n{}", skill.name, skill.base.display(), skill::placed(skill, &text))
    }

    fn unknown(name: &str, known: &str) -> String {
        match (name, known) {
            ("", _) => "no skill name provided".into(),
            (_, "") => format!("skill not found: {name}. There are no skills here"),
            _ => format!("skill not found: {name}. There are: {known}"),
        }
    }
}
