//! The commands of an interactive session, for all frontends: the table, how a line is read, and what needs no frontend.

use std::fmt;

use agent_skills::Catalogue;
use agent_tools::text::{clipped, counted};
use agent_tools::{Jobs, Tools};

use crate::agent::Agent;
use crate::context::shares;
use crate::event::UsageReport;
use crate::history::Undo;
use crate::session::{Back, RewindError, Session, TurnStart};
use crate::settings::{Compact, nearest_of};

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Tells the commands.
    Help,
    /// Goes on in a new session.
    New,
    /// Goes on with an earlier session.
    Resume,
    /// Goes on in a copy of this session.
    Fork,
    /// Summarises the conversation.
    Compact,
    /// Shows or changes the model.
    Model,
    /// Shows or changes what may run without a question.
    Mode,
    /// Tells what fills the context.
    Context,
    /// Tells what the session has cost.
    Cost,
    /// Goes back to before a turn.
    Rewind,
    /// Lists the skills.
    Skills,
    /// Lists the tools.
    Tools,
    /// Lists the background commands.
    Tasks,
    /// Writes the conversation into a file.
    Export,
    /// Leaves.
    Quit,
}

/// What the table says of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandSpec {
    /// Which.
    pub command: Command,
    /// Its name, without the slash.
    pub name: &'static str,
    /// Another name.
    pub alias: Option<&'static str>,
    /// What may stand behind it, as help writes it; empty where nothing may.
    pub argument: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

/// The table, in the order of help.
pub const COMMANDS: &[CommandSpec] = &[
    spec(Command::Help, "help", "", "These commands"),
    spec(Command::New, "new", "", "Go on in a new session"),
    spec(Command::Resume, "resume", "[ID|NAME]", "Go on with an earlier session; the last one if none is named"),
    spec(Command::Fork, "fork", "", "Go on in a copy of this session"),
    spec(Command::Compact, "compact", "", "Replace the older part of the conversation by a summary"),
    spec(Command::Model, "model", "[NAME|PROVIDER/NAME]", "Show the model, or go on with another one"),
    spec(Command::Mode, "mode", "[ask|auto|allow|DIGITS]", "Show or change what may run without a question"),
    spec(Command::Context, "context", "", "How full the context is, and with what"),
    spec(Command::Cost, "cost", "", "What the session has cost so far"),
    spec(Command::Rewind, "rewind", REWIND, "List the turns, show what going back changes, or go back to before one"),
    spec(Command::Skills, "skills", "", "The skills"),
    spec(Command::Tools, "tools", "", "The tools that the model has"),
    spec(Command::Tasks, "tasks", "", "The background commands"),
    spec(Command::Export, "export", "[FILE]", "Write the conversation into a new file: FILE.md, or FILE.json"),
    CommandSpec { alias: Some("exit"), ..spec(Command::Quit, "quit", "", "Leave") },
];

const REWIND: &str = "[TURN [both|conversation|files] [force]]";

const fn spec(command: Command, name: &'static str, argument: &'static str, help: &'static str) -> CommandSpec {
    CommandSpec { command, name, alias: None, argument, help }
}

impl CommandSpec {
    /// The command as one types it: `/resume [ID|NAME]`.
    pub fn usage(&self) -> String {
        format!("/{} {}", self.name, self.argument).trim_end().to_owned()
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }
}

/// A line that looks like a command and is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCommand {
    /// No command has this name.
    Unknown {
        /// The name.
        name: String,
        /// The command that may have been meant.
        near: Option<&'static str>,
    },
    /// Something stands behind a command that takes nothing.
    TakesNothing(&'static str),
}

impl fmt::Display for NoCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, near } => {
                write!(f, "there is no command /{name}")?;
                near.map_or(Ok(()), |near| write!(f, "; did you mean /{near}?"))?;
                f.write_str("; /help lists all, and a line that begins with a blank is a prompt whatever follows")
            }
            Self::TakesNothing(name) => {
                write!(f, "/{name} takes nothing behind it; a line that begins with a blank is a prompt")
            }
        }
    }
}

/// Reads a line: none where it is a prompt, else the command and what stands behind it. A path (`/etc/hosts`) is no
/// command, and nor is what begins with a blank.
pub fn parse(line: &str) -> Option<Result<(Command, &str), NoCommand>> {
    let line = line.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase()) {
        return None;
    }
    let rest = rest.trim();
    Some(match COMMANDS.iter().find(|spec| spec.is_called(name)) {
        Some(spec) if spec.argument.is_empty() && !rest.is_empty() => Err(NoCommand::TakesNothing(spec.name)),
        Some(spec) => Ok((spec.command, rest)),
        None => Err(NoCommand::Unknown {
            name: name.to_owned(),
            near: nearest_of(name, COMMANDS.iter().map(|spec| spec.name)),
        }),
    })
}

/// `/help`: a line each.
pub fn help() -> Vec<String> {
    let width = COMMANDS.iter().map(|spec| spec.usage().len()).max().unwrap_or_default();
    COMMANDS.iter().map(|spec| format!("{:width$}  {}", spec.usage(), spec.help)).collect()
}

/// `/cost`: what the session has spent.
pub fn cost(report: &UsageReport) -> Vec<String> {
    let total = report.total;
    let sent = total.input_tokens + total.cache_read_input_tokens + total.cache_creation_input_tokens;
    let cached = (total.cache_read_input_tokens * 100).checked_div(sent).unwrap_or_default();
    vec![
        counted(usize::try_from(report.requests).unwrap_or(usize::MAX), "request"),
        format!(
            "{} tokens sent, {cached} % of them from the cache ({} written to it)",
            grouped(sent),
            grouped(total.cache_creation_input_tokens)
        ),
        format!("{} tokens received", grouped(total.output_tokens)),
        format!("cost: {}", money(report.cost)),
    ]
}

/// What the session has spent so far, in one line for the end of a turn; none where no server has told anything.
pub fn spent(report: &UsageReport) -> Option<String> {
    let total = report.total;
    let sent = total.input_tokens + total.cache_read_input_tokens + total.cache_creation_input_tokens;
    let cached = (total.cache_read_input_tokens * 100).checked_div(sent)?;
    let (sent, received) = (grouped(sent), grouped(total.output_tokens));
    let cost = report.cost.map_or_else(|| "cost not known".to_owned(), |cost| money(Some(cost)));
    Some(format!(
        "{} tokens of context · {sent} sent, {cached} % cached · {received} received · {cost}",
        grouped(report.context)
    ))
}

/// What so much is in US dollars; what is not known is said to be so.
pub fn money(cost: Option<f64>) -> String {
    match cost {
        None => "not known: the model's prices, or what a request used, are not known".into(),
        Some(cost) if cost > 0.0 && cost < 0.01 => format!("${cost:.4}"),
        Some(cost) => format!("${cost:.2}"),
    }
}

/// `/context`: how full it is, and with what.
pub fn context(agent: &Agent, session: &Session) -> Vec<String> {
    let shares = shares(agent, session);
    let all = agent.provider.model().context;
    let used = session.used(shares.iter().take_while(|share| share.fixed).map(|share| share.tokens).sum());
    let percent = (used * 100).checked_div(all).unwrap_or_default();
    let mut lines = vec![format!("about {} of {} tokens ({percent} %)", grouped(used), grouped(all))];
    lines.extend(shares.iter().map(|share| format!("{:>11}  {}", grouped(share.tokens), share.what)));
    let compact = match agent.limits.compact {
        Compact::Auto => "it is compacted when that pays, at 90 % at the latest".to_owned(),
        Compact::Off => "it is compacted only by /compact, by plans, and when the server takes no more".to_owned(),
        Compact::At(percent) => format!("it is compacted at {percent} %"),
    };
    lines.push(compact);
    lines
}

/// What `/rewind` is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewind {
    /// List the turns.
    List,
    /// Tell what going back to before this turn changes.
    Preview(usize),
    /// Go back.
    Go {
        /// To before this turn, the first being 1.
        turn: usize,
        /// What goes back.
        back: Back,
        /// Also over what somebody else has changed since.
        forced: bool,
    },
}

/// Reads what stands behind `/rewind`.
///
/// # Errors
/// It is none of its forms; in words for a person.
pub fn rewind(rest: &str) -> Result<Rewind, String> {
    let mut words = rest.split_whitespace();
    let Some(turn) = words.next() else { return Ok(Rewind::List) };
    let wrong = || format!("that is none of: /rewind {REWIND}");
    let turn = turn.parse().map_err(|_| wrong())?;
    let back = match words.next() {
        None => return Ok(Rewind::Preview(turn)),
        Some("both") => Back::Both,
        Some("conversation") => Back::Conversation,
        Some("files") => Back::Files,
        Some(_) => return Err(wrong()),
    };
    match (words.next(), words.next()) {
        (None, _) => Ok(Rewind::Go { turn, back, forced: false }),
        (Some("force"), None) => Ok(Rewind::Go { turn, back, forced: true }),
        (Some(_), _) => Err(wrong()),
    }
}

/// What going back to before a turn would do, a line each. How it is done, whoever asks adds.
///
/// # Errors
/// There is no such turn; the disk.
pub fn rewind_preview(session: &Session, turn: usize) -> Result<Vec<String>, RewindError> {
    let undos = session.files_before(turn)?;
    let prompt = turn.checked_sub(1).and_then(|at| session.turns().get(at));
    let prompt = prompt.and_then(|turn| turn.preview.lines().next()).unwrap_or_default();
    Ok(told_of_files(format!("to before turn {turn}: {}", clipped(prompt, 80)), &undos))
}

/// Goes back to before a turn, and tells what was done, a line each.
///
/// # Errors
/// See [`Session::rewind`].
pub async fn rewound(session: &mut Session, turn: usize, back: Back, forced: bool) -> Result<Vec<String>, RewindError> {
    let undos = session.rewind(turn, back, forced).await?;
    Ok(match back {
        Back::Both => told_of_files(format!("conversation and files are those of before turn {turn}"), &undos),
        Back::Files => told_of_files(format!("the files are those of before turn {turn}"), &undos),
        Back::Conversation => vec![format!("the conversation is that of before turn {turn}")],
    })
}

fn told_of_files(first: String, undos: &[Undo]) -> Vec<String> {
    let none = undos.is_empty().then(|| "  no tool has changed files since; what commands changed stays".to_owned());
    std::iter::once(first).chain(undos.iter().map(|undo| format!("  {undo}"))).chain(none).collect()
}

/// What else a person should see of a refusal: the files, or the turns that there are.
pub fn rewind_refused(error: &RewindError, session: &Session) -> Vec<String> {
    match error {
        RewindError::Changed { undos } => undos.iter().map(ToString::to_string).collect(),
        RewindError::NoTurn { .. } => turns(session),
        RewindError::NotKept | RewindError::Failed(_) => Vec::new(),
    }
}

/// `/rewind` without a turn: the turns, a line each.
pub fn turns(session: &Session) -> Vec<String> {
    let line = |(at, turn): (usize, &TurnStart)| {
        let first = turn.preview.lines().next().unwrap_or_default();
        format!("{:>4}  {}", at + 1, clipped(first, 80))
    };
    let lines: Vec<String> = session.turns().iter().enumerate().map(line).collect();
    if lines.is_empty() { vec!["there is nothing to go back to".into()] } else { lines }
}

/// `/tools`: name and first sentence, a line each.
pub fn tools(tools: &Tools) -> Vec<String> {
    let all: Vec<_> = tools.declarations().collect();
    let width = all.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    all.iter().map(|tool| format!("{:width$}  {}", tool.name, first_sentence(&tool.description))).collect()
}

/// `/skills`: name and description, a line each, and what is wrong with some.
pub fn skills(skills: &Catalogue) -> Vec<String> {
    let mut lines: Vec<String> = skills.iter().map(|skill| format!("{} — {}", skill.name, skill.description)).collect();
    if lines.is_empty() {
        lines.push("there are no skills".into());
    }
    lines.extend(skills.diagnostics().iter().map(|d| format!("! {}: {}", d.path.display(), d.message)));
    lines
}

/// `/tasks`: the background commands, a line each.
pub fn tasks(jobs: &Jobs) -> Vec<String> {
    let tasks = jobs.tasks();
    if tasks.is_empty() {
        return vec!["there are no background commands".into()];
    }
    tasks.iter().map(|task| task.line()).collect()
}

/// A text up to the first dot that ends a sentence.
pub fn first_sentence(text: &str) -> &str {
    let end = [". ", ".\n"].iter().filter_map(|end| text.find(end)).min();
    end.map_or(text.trim_end(), |end| &text[..=end])
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use agent_tools::toolset::{self, Parts, Toolset};

    use super::*;
    use crate::provider::Usage;

    #[test]
    fn lines_are_commands_or_prompts() {
        for (line, expect) in [
            ("/help", Some(Ok((Command::Help, "")))),
            ("/exit ", Some(Ok((Command::Quit, "")))),
            ("/model  openai/gpt-5 ", Some(Ok((Command::Model, "openai/gpt-5")))),
            ("/resume\tmy work", Some(Ok((Command::Resume, "my work")))),
            ("/new and more", Some(Err(NoCommand::TakesNothing("new")))),
            ("/hlep", Some(Err(NoCommand::Unknown { name: "hlep".into(), near: Some("help") }))),
            ("/tmp", Some(Err(NoCommand::Unknown { name: "tmp".into(), near: None }))),
            (" /help", None),
            ("/etc/hosts is what?", None),
            ("/", None),
            ("/ help", None),
            ("/Users", None),
            ("// a comment", None),
            ("fix /help", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expect, "{line:?}");
        }
    }

    #[test]
    fn the_table_has_each_command_once() {
        let names: Vec<_> = COMMANDS.iter().flat_map(|spec| [Some(spec.name), spec.alias]).flatten().collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let commands: HashSet<_> = COMMANDS.iter().map(|spec| spec.command).collect();
        assert_eq!(commands.len(), COMMANDS.len());
        for spec in COMMANDS {
            assert_eq!(parse(&format!("/{}", spec.name)), Some(Ok((spec.command, ""))));
        }
    }

    #[test]
    fn help_stands_in_columns() {
        let help = help();
        let column = help[0].find("These").unwrap();
        assert!(
            help.iter().all(|line| line[..column].ends_with("  ") && !line[column..].starts_with(' ')),
            "{help:#?}"
        );
        assert!(help[2].starts_with("/resume [ID|NAME]  "));
    }

    #[test]
    fn rewind_says_what_how_far_and_how() {
        let go = |turn, back, forced| Ok(Rewind::Go { turn, back, forced });
        for (rest, expect) in [
            ("", Ok(Rewind::List)),
            ("3", Ok(Rewind::Preview(3))),
            ("3 both", go(3, Back::Both, false)),
            ("3 conversation", go(3, Back::Conversation, false)),
            ("12  files force", go(12, Back::Files, true)),
        ] {
            assert_eq!(rewind(rest), expect, "{rest}");
        }
        for wrong in ["x", "-1", "3 all", "3 force", "3 both now", "3 both force now"] {
            assert!(rewind(wrong).unwrap_err().starts_with("that is none of: /rewind [TURN "), "{wrong}");
        }
    }

    #[test]
    fn cost_is_told_in_tokens() {
        let mut report = UsageReport { requests: 1, ..UsageReport::default() };
        assert_eq!(cost(&report)[1], "0 tokens sent, 0 % of them from the cache (0 written to it)");
        report.total = Usage {
            input_tokens: 1_000,
            output_tokens: 1_234_567,
            cache_read_input_tokens: 8_000,
            cache_creation_input_tokens: 1_000,
        };
        assert_eq!(
            cost(&report),
            [
                "1 request",
                "10,000 tokens sent, 80 % of them from the cache (1,000 written to it)",
                "1,234,567 tokens received",
                "cost: $0.00"
            ]
        );
        let line = "0 tokens of context · 10,000 sent, 80 % cached · 1,234,567 received · $0.00";
        assert_eq!(spent(&report).as_deref(), Some(line));
        assert_eq!(spent(&UsageReport::default()), None);
        for (cost, expect) in
            [(None, "not known"), (Some(0.0), "$0.00"), (Some(0.00123), "$0.0012"), (Some(1.239), "$1.24")]
        {
            assert!(money(cost).starts_with(expect), "{cost:?}");
        }
    }

    #[test]
    fn tools_and_skills_are_lines() {
        let lines = tools(&toolset::tools(Toolset::Lean, &Parts::of(Toolset::Lean)));
        assert!(lines.iter().any(|line| line.starts_with("bash ")), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains('\n')));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(skills(&Catalogue::discover(&[folder.path()])), ["there are no skills"]);
        std::fs::write(folder.path().join("review.md"), "---\ndescription: How we review\n---\nx\n").unwrap();
        assert_eq!(skills(&Catalogue::discover(&[folder.path()])), ["review — How we review"]);
        assert_eq!(tasks(&Jobs::default()), ["there are no background commands"]);
    }

    #[test]
    fn sentences_end_at_a_dot_and_a_blank() {
        for (text, first) in [
            ("One. Two.", "One."),
            ("Reads `a.b` whole.\nMore.", "Reads `a.b` whole."),
            ("Only one.", "Only one."),
            ("None", "None"),
        ] {
            assert_eq!(first_sentence(text), first);
        }
    }
}
