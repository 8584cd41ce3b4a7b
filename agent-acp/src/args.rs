//! The command line: the options that both binaries share.

use std::ffi::OsString;
use std::path::PathBuf;

use agent_core::settings::line;
use clap::{Arg, ArgAction, Command};

/// What a person typed, or an editor's settings say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    /// The settings among the options, in their order: name and value.
    pub settings: Vec<(String, String)>,
    /// `--cwd`: where `session/list` looks first; sessions say where they work.
    pub cwd: Option<PathBuf>,
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--no-session`
    pub no_session: bool,
    /// `--skill`
    pub skills: Vec<String>,
    /// `--setup`: asks for a model at a terminal, and ends.
    pub setup: bool,
}

/// Reads a command line.
///
/// # Errors
/// What clap says of it; `--help` and `--version` are among these.
pub fn parse(line: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let matches = command().try_get_matches_from(line)?;
    Ok(Args {
        settings: line::settings(&matches),
        cwd: matches.get_one("cwd").cloned(),
        config: matches.get_one("config").cloned(),
        no_session: matches.get_flag("no-session"),
        skills: matches.get_many("skill").into_iter().flatten().cloned().collect(),
        setup: matches.get_flag("setup"),
    })
}

/// The whole command line, for help.
pub fn command() -> Command {
    let setup = Arg::new("setup").long("setup").action(ArgAction::SetTrue);
    Command::new("agent-acp")
        .version(env!("CARGO_PKG_VERSION"))
        .about("The agent for editors: an Agent Client Protocol server on stdin and stdout")
        .args(line::options())
        .arg(setup.help("Asks for a model and its key at a terminal, keeps them, and ends"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_that_of_both_binaries() {
        command().debug_assert();
        let words = ["agent-acp", "--toolset", "lean", "--provider", "openai", "--no-session"];
        let args = parse(words.map(OsString::from)).unwrap();
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(args.settings, [setting("toolset", "lean"), setting("provider", "openai")]);
        assert!(args.no_session && !args.setup);
        assert!(parse(["agent-acp", "prompt"].map(OsString::from)).is_err());
    }
}
