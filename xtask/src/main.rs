//! Chores of this workspace: checks that the compiler cannot make, and tasks to judge the embedded model by.

mod eval;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "Usage: cargo xtask CHORE

  tidy   Check imports between crates, words that belong to one place, licences, test modules
  eval   Let the embedded model do twelve small tasks [--agent PATH] [--only N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((chore, options)) = arguments.split_first()
        && chore == "eval"
    {
        return evaluated(eval::run(options));
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => report(tidy::run(&root())),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The workspace's directory: the one that holds this crate.
fn root() -> std::path::PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

fn evaluated(outcome: Result<bool, Box<dyn std::error::Error>>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("eval: {e}");
            ExitCode::from(2)
        }
    }
}

fn report(outcome: Result<Vec<tidy::Finding>, String>) -> ExitCode {
    match outcome {
        Ok(findings) if findings.is_empty() => {
            println!("tidy: nothing to find fault with");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            findings.iter().for_each(|finding| eprintln!("{finding}"));
            eprintln!("tidy: {} to mend", findings.len());
            ExitCode::FAILURE
        }
        Err(e) => {
            eprintln!("tidy: {e}");
            ExitCode::FAILURE
        }
    }
}
