//! Toolset `lean`: the first seed's five tools. A table, no logic.

use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use agent_skills::{Catalogue, Skill};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{bash, edit, read, skill, write};
use crate::error::ToolError;
use crate::text::{Cut, counted};
use crate::tool::Declaration;
use crate::tools::Tools;
use crate::toolset::Parts;

pub(super) fn tools(parts: &Parts) -> Tools {
    let cut = Cut::HeadChars(parts.max_output);
    let mut tools = Tools::default();
    if parts.shell {
        tools = tools.with(bash::Bash::<BashCommand>::new(cut, parts.timeout).login(parts.login_shell));
    }
    if !parts.skills.is_empty() {
        tools = tools.with(skill::Skill::<ReadSkill>::new(parts.skills.clone(), cut));
    }
    if parts.files {
        tools = tools
            .with(read::Read::<ReadFile>::new(cut))
            .with(write::Write::<WriteFile>::new(cut))
            .with(edit::Edit::<EditFile>::new(cut));
    }
    tools
}

// bash

/// The arguments of `bash`.
#[derive(Deserialize, JsonSchema)]
struct BashCommand {
    /// The command, as one would type it.
    command: String,
}

impl bash::Dialect for BashCommand {
    fn declaration() -> Declaration {
        Declaration::of::<Self>("bash", include_str!("lean/bash.md").trim_end())
    }

    fn command(&self) -> &str {
        &self.command
    }

    fn ended(status: ExitStatus) -> Option<String> {
        let dumped = if status.core_dumped() { " (core dumped)" } else { "" };
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("[exit code: exit status {code}]")),
            (None, Some(signal)) => Some(format!("[exit code: signal: {}{dumped}]", signal_name(signal))),
            (None, None) => Some("[exit code: unknown]".into()),
        }
    }

    fn timed_out(limit: Duration) -> String {
        format!("[error: {}s timeout exceeded]", limit.as_secs_f64())
    }

    fn cancelled() -> String {
        "[error: cancelled by the user]".into()
    }

    fn not_run(reason: &str) -> String {
        format!("[error: {reason}]")
    }
}

/// What a signal is called in the seed's language.
fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        4 => "illegal instruction",
        5 => "trace/breakpoint trap",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        10 => "user defined signal 1",
        11 => "segmentation fault",
        12 => "user defined signal 2",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        other => return format!("signal {other}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::bash::Dialect;

    #[test]
    fn endings_read_as_in_the_seed() {
        for (wait_status, expect) in [
            (0, None),
            (1 << 8, Some("[exit code: exit status 1]")),
            (127 << 8, Some("[exit code: exit status 127]")),
            (137 << 8, Some("[exit code: exit status 137]")),
            (9, Some("[exit code: signal: killed]")),
            (15, Some("[exit code: signal: terminated]")),
            (11 | 0x80, Some("[exit code: signal: segmentation fault (core dumped)]")),
            (10, Some("[exit code: signal: user defined signal 1]")),
            (35, Some("[exit code: signal: signal 35]")),
        ] {
            assert_eq!(BashCommand::ended(ExitStatus::from_raw(wait_status)).as_deref(), expect);
        }
    }

    #[test]
    fn the_limit_is_told_in_seconds() {
        for (millis, expect) in [(30_000, "30"), (2_000, "2"), (500, "0.5")] {
            let text = BashCommand::timed_out(Duration::from_millis(millis));
            assert_eq!(text, format!("[error: {expect}s timeout exceeded]"));
        }
    }
}

// read_skill

#[derive(Deserialize, JsonSchema)]
struct ReadSkill {
    /// The skill's name, as listed.
    name: String,
}

impl skill::Dialect for ReadSkill {
    fn declaration(skills: &Catalogue) -> Declaration {
        Declaration::of::<Self>("read_skill", skill::with_catalogue(include_str!("lean/read_skill.md"), skills))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn loaded(_skill: &Skill, text: String) -> String {
        text
    }

    fn unknown(name: &str, known: &str) -> String {
        format!("No skill named \"{name}\". Available skills: {known}")
    }
}

// read_file

#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// File path, relative to the working directory.
    path: String,
    /// First line, counted from 1; 0 = from the start.
    #[serde(default)]
    start: i64,
    /// Last line, included; 0 = to the end.
    #[serde(default)]
    end: i64,
    /// Put its number and a tab in front of each line.
    #[serde(default)]
    numbered: bool,
}

impl read::Dialect for ReadFile {
    fn declaration() -> Declaration {
        Declaration::of::<Self>("read_file", include_str!("lean/read_file.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn lines(&self) -> Result<RangeInclusive<u64>, ToolError> {
        read::between(self.start, self.end)
    }

    fn line(&self) -> Option<u64> {
        u64::try_from(self.start).ok().filter(|line| *line > 0)
    }

    fn numbered(&self) -> bool {
        self.numbered
    }

    fn missing(path: &str) -> String {
        missing(path)
    }

    fn directory(path: &str) -> String {
        format!("{path} is a directory. List it with bash: ls -la")
    }

    fn binary(path: &str) -> String {
        format!("{path} is a binary file, not text. Look at it with bash: file, xxd or strings")
    }

    fn past_end(path: &str, lines: u64) -> Result<String, ToolError> {
        Err(ToolError::new(format!("{path} has only {lines} lines")))
    }

    fn further(line: u64) -> String {
        format!("Continue with start={line}.")
    }
}

fn missing(path: &str) -> String {
    format!("{path} does not exist. Create it with write_file")
}

// write_file

#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// File path, relative to the working directory.
    path: String,
    /// All that the file is to hold.
    content: String,
}

impl write::Dialect for WriteFile {
    const TELLS_DIFF: bool = true;

    fn declaration() -> Declaration {
        Declaration::of::<Self>("write_file", include_str!("lean/write_file.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn content(&self) -> &str {
        &self.content
    }

    fn created(path: &str, written: &write::Written<'_>) -> String {
        format!("Created {path} ({})", counted(written.lines, "line"))
    }

    fn replaced(path: &str, written: &write::Written<'_>) -> String {
        format!("Wrote {path}: +{} -{} lines", written.diff.added, written.diff.removed)
    }

    fn identical(path: &str, _content: &str) -> String {
        format!("{path} already has this content; nothing written")
    }
}

// edit_file

#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// File path, relative to the working directory.
    path: String,
    /// The edits, in any order.
    #[schemars(length(min = 1))]
    edits: Vec<Replacement>,
    /// Check and show the diff, write nothing.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Replacement {
    /// The text to be replaced, exactly as in the file.
    old: String,
    /// The text to put there.
    new: String,
}

impl edit::Dialect for EditFile {
    const TELLS_DIFF: bool = true;

    fn declaration() -> Declaration {
        Declaration::of::<Self>("edit_file", include_str!("lean/edit_file.md").trim_end())
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn edits(&self) -> Vec<(&str, &str)> {
        self.edits.iter().map(|edit| (edit.old.as_str(), edit.new.as_str())).collect()
    }

    fn dry_run(&self) -> bool {
        self.dry_run
    }

    fn missing(path: &str) -> String {
        missing(path)
    }

    fn label(edit: usize) -> String {
        format!("edits[{edit}]")
    }

    fn not_found(_path: &str, edit: usize) -> String {
        format!("edits[{edit}]: the old text was not found in the file.")
    }

    fn refused(path: &str, problems: &[String]) -> String {
        format!("{path} was not changed.\n{}", problems.join("\n"))
    }

    fn applied(path: &str, applied: &edit::Applied<'_>) -> String {
        format!("{path}: {} applied, {applied}", counted(applied.edits, "edit"))
    }

    fn dry(path: &str, applied: &edit::Applied<'_>) -> String {
        format!("{path}: dry run, nothing written: {} would be applied, {applied}", counted(applied.edits, "edit"))
    }

    fn unchanged(path: &str) -> String {
        format!("{path}: the edits change nothing; nothing written")
    }
}
