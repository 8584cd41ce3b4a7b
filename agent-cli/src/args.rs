//! The command line: clap over the table of options that both binaries share.

mod sessions;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agent_core::settings::line;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

pub use crate::batch::Batch;
pub use sessions::{ExportFormat, SessionsTask};

/// What a person typed.
#[derive(Debug, Clone, Default)]
pub struct Args {
    /// What to do.
    pub task: Task,
    /// The settings among the options, in their order: name and value.
    pub settings: Vec<(String, String)>,
    /// `--cwd`
    pub cwd: Option<PathBuf>,
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--output`
    pub output: Output,
    /// `--continue`
    pub continue_last: bool,
    /// `--resume`
    pub resume: Option<String>,
    /// `--fork`
    pub fork: bool,
    /// `--no-session`
    pub no_session: bool,
    /// `--skill`: skills that the model has from the start.
    pub skills: Vec<String>,
    /// `--plain`
    pub plain: bool,
    /// `-i`
    pub interactive: bool,
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Task {
    /// Talk at the terminal, or take the prompt from a pipe.
    #[default]
    Talk,
    /// One prompt.
    Prompt(String),
    /// `--prompts FILE`
    Batch(Batch),
    /// `agent tool list`
    ToolList,
    /// `agent tool call NAME --input JSON`
    ToolCall {
        /// The tool.
        name: String,
        /// Its arguments; `-` for stdin.
        input: String,
    },
    /// `agent tool call --batch`
    ToolBatch,
    /// `agent check COMMAND`
    Check(String),
    /// `agent skills`
    Skills,
    /// `agent sessions …`
    Sessions(SessionsTask),
    /// `agent model fetch`
    ModelFetch,
    /// `agent model list`
    ModelList,
    /// `agent config`
    Config,
    /// `agent doctor`
    Doctor,
    /// `agent mcp`
    Mcp,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// One object at the end.
    Json,
    /// One object a line.
    StreamJson,
}

/// Reads a command line.
///
/// # Errors
/// What clap says of it; `--help` and `--version` are among these.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let matches = command().try_get_matches_from(line)?;
    let task = task(&matches)?;
    let deepest = deepest(&matches);
    Ok(Args {
        task,
        settings: line::settings(deepest),
        cwd: deepest.get_one("cwd").cloned(),
        config: deepest.get_one("config").cloned(),
        output: output(deepest),
        continue_last: deepest.get_flag("continue"),
        resume: deepest.get_one("resume").cloned(),
        fork: deepest.get_flag("fork"),
        no_session: deepest.get_flag("no-session"),
        skills: deepest.get_many("skill").into_iter().flatten().cloned().collect(),
        plain: deepest.get_flag("plain"),
        interactive: deepest.get_flag("interactive"),
    })
}

/// The whole command line, for help and for generated tables.
pub fn command() -> Command {
    let call = Command::new("call")
        .about("Runs one tool through the gate, and prints what the model would read")
        .arg(Arg::new("name").value_name("NAME").required_unless_present("batch"))
        .arg(Arg::new("input").long("input").value_name("JSON").default_value("{}").help("Arguments; `-` reads stdin"))
        .arg(flag("batch", "Reads calls from stdin, one JSON object {\"name\", \"input\"} a line"))
        .arg(json());
    let tool = Command::new("tool")
        .about("Lists and calls the tools without a model")
        .subcommand_required(true)
        .subcommand(Command::new("list").about("The tools that a model would be told of").arg(json()))
        .subcommand(call);
    let check = Command::new("check")
        .about("Says what a shell command needs and whether it may run, without running it")
        .arg(Arg::new("command").value_name("COMMAND").required(true))
        .arg(json());
    let model = Command::new("model")
        .about("The embedded model")
        .subcommand_required(true)
        .subcommand(Command::new("fetch").about("Fetches the weights ahead (1.1 GB, once)"))
        .subcommand(Command::new("list").about("Shows what is there"));
    Command::new("agent")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A coding agent: a model, and tools that read, change and run things here")
        .after_help("Exit codes: 0 done · 1 model or network failed · 2 usage or settings · 3 a limit was reached · 4 the last call was not allowed · 130 interrupted")
        .args_conflicts_with_subcommands(false)
        .subcommand_negates_reqs(true)
        .arg(Arg::new("prompt").value_name("PROMPT").num_args(0..).help("What to do; a pipe on stdin is appended"))
        .args(line::options())
        .arg(Arg::new("output").long("output").value_name("FORM").value_parser(["text", "json", "stream-json"]).global(true).help("The form of the output"))
        .arg(flag("continue", "Go on with this project's last session").global(true))
        .arg(Arg::new("resume").long("resume").value_name("SESSION").global(true).help("Go on with a session: its id or name, or the path of its log"))
        .arg(flag("fork", "Go on in a copy of the session (of the last one, if none is named)").global(true))
        .arg(flag("plain", "Terminal mode: one line after the other").global(true))
        .arg(flag("interactive", "Starts at the terminal with PROMPT").short('i').global(true))
        .args(batch_options())
        .subcommand(tool)
        .subcommand(check)
        .subcommand(Command::new("skills").about("The skills, and what is wrong with those that were not loaded").arg(json()))
        .subcommand(sessions::command())
        .subcommand(model)
        .subcommand(Command::new("doctor").about("Tries the model and what is needed here, and says what is wrong").arg(json()))
        .subcommand(Command::new("mcp").about("Serves the tools to a client of the Model Context Protocol, over stdin and stdout"))
        .subcommand(Command::new("config").about("Every setting in force, and where it came from").arg(json()))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    let arg = Arg::new(name).help(help).action(ArgAction::SetTrue);
    if name == "interactive" { arg } else { arg.long(name) }
}

fn json() -> Arg {
    flag("json", "For programs")
}

fn task(matches: &ArgMatches) -> Result<Task, clap::Error> {
    let text = |matches: &ArgMatches, name| matches.get_one::<String>(name).cloned().unwrap_or_default();
    Ok(match matches.subcommand() {
        Some(("tool", tool)) => match tool.subcommand() {
            Some(("call", call)) if call.get_flag("batch") => Task::ToolBatch,
            Some(("call", call)) => Task::ToolCall { name: text(call, "name"), input: text(call, "input") },
            _ => Task::ToolList,
        },
        Some(("check", check)) => Task::Check(text(check, "command")),
        Some(("skills", _)) => Task::Skills,
        Some(("sessions", sessions)) => Task::Sessions(sessions::task(sessions)),
        Some(("model", model)) if model.subcommand_name() == Some("fetch") => Task::ModelFetch,
        Some(("model", _)) => Task::ModelList,
        Some(("config", _)) => Task::Config,
        Some(("doctor", _)) => Task::Doctor,
        Some(("mcp", _)) => Task::Mcp,
        _ if matches.contains_id("prompts") => Task::Batch(batch(matches)),
        _ => match matches.get_many::<String>("prompt") {
            Some(words) => Task::Prompt(words.map(String::as_str).collect::<Vec<_>>().join(" ")),
            None => Task::Talk,
        },
    })
}

fn batch(matches: &ArgMatches) -> Batch {
    let jobs = matches.get_one::<u16>("jobs").map_or(4, |jobs| usize::from(*jobs));
    Batch {
        prompts: matches.get_one::<PathBuf>("prompts").cloned().unwrap_or_default(),
        jobs: NonZeroUsize::new(jobs).unwrap_or(NonZeroUsize::MIN),
        results: matches.get_one::<PathBuf>("results").cloned(),
    }
}

/// The options of a batch.
fn batch_options() -> [Arg; 3] {
    let file = |name: &'static str| Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf));
    [
        file("prompts")
            .conflicts_with_all(["prompt", "continue", "resume", "fork", "interactive"])
            .help("Runs many prompts: FILE has one JSON text or object {\"prompt\", \"id\", \"cwd\", \"model\"} a line; `-` is stdin"),
        Arg::new("jobs")
            .long("jobs")
            .value_name("N")
            .requires("prompts")
            .value_parser(value_parser!(u16).range(1..))
            .help("With --prompts: how many run at once (4)"),
        file("results")
            .requires("prompts")
            .help("With --prompts: where results are kept (FILE.results.jsonl); what has one is not run again"),
    ]
}

/// The matches of the innermost subcommand: global options are found there wherever they stood.
fn deepest(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| deepest(inner))
}

fn output(matches: &ArgMatches) -> Output {
    let json = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false);
    match matches.get_one::<String>("output").map(String::as_str) {
        Some("json") => Output::Json,
        Some("stream-json") => Output::StreamJson,
        _ if json => Output::Json,
        _ => Output::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        parse(std::iter::once("agent").chain(line.split_whitespace()).map(OsString::from)).unwrap()
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn tasks() {
        for (line, expect) in [
            ("", Task::Talk),
            ("fix the bug", Task::Prompt("fix the bug".into())),
            (
                "--prompts f --jobs 2",
                Task::Batch(Batch { prompts: "f".into(), jobs: NonZeroUsize::new(2).unwrap(), results: None }),
            ),
            ("-- -v", Task::Prompt("-v".into())),
            ("tool list --json", Task::ToolList),
            ("tool call bash --input {}", Task::ToolCall { name: "bash".into(), input: "{}".into() }),
            ("tool call --batch --toolset lean", Task::ToolBatch),
            ("check --json -- ls", Task::Check("ls".into())),
            ("skills", Task::Skills),
            ("sessions --json --all", Task::Sessions(SessionsTask::List { all: true })),
            ("sessions rename 1 x", Task::Sessions(SessionsTask::Rename { session: "1".into(), name: "x".into() })),
            ("sessions delete 1 2", Task::Sessions(SessionsTask::Delete(vec!["1".into(), "2".into()]))),
            (
                "sessions export 1 --format json --out f",
                Task::Sessions(SessionsTask::Export {
                    session: "1".into(),
                    format: ExportFormat::Json,
                    out: Some("f".into()),
                    opaque: false,
                }),
            ),
            (
                "sessions clean --older-than 30 --dry-run",
                Task::Sessions(SessionsTask::Clean { days: 30, dry_run: true, all: false }),
            ),
            ("model fetch", Task::ModelFetch),
            ("model list", Task::ModelList),
            ("config --json", Task::Config),
            ("doctor --json", Task::Doctor),
            ("mcp --toolset lean", Task::Mcp),
        ] {
            assert_eq!(args(line).task, expect, "{line}");
        }
    }

    #[test]
    fn options_stand_before_or_after_a_subcommand_and_keep_their_order() {
        for line in [
            "--set maxTurns=3 --toolset lean --set maxTurns=4 skills",
            "skills --set maxTurns=3 --toolset lean --set maxTurns=4",
        ] {
            let settings = args(line).settings;
            let shown: Vec<String> = settings.iter().map(|(k, v)| format!("{k} {v}")).collect();
            assert_eq!(shown, ["set maxTurns=3", "toolset lean", "set maxTurns=4"], "{line}");
        }
        assert_eq!(args("check --json x").output, Output::Json);
    }
}
