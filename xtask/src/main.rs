//! Chores of this workspace: checks that the compiler cannot make, tables that the code knows best, and tasks to judge
//! the embedded model by.

mod eval;
mod reference;
mod soak;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "Usage: cargo xtask CHORE

  tidy       Check imports between crates, words that belong to one place, licences, test modules
  reference  Write the tables of README.md and of the page about permissions: tools, settings, programs, …
  soak       Run a test for longer: commands, crash, fuzz (10,000 commands, 300 kills, 600 s) [--count N] [--seed N]
  eval       Let the embedded model do twelve small tasks [--agent PATH] [--only N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((chore, options)) = arguments.split_first()
        && chore == "eval"
    {
        return evaluated(eval::run(options));
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => report(tidy::run(&root())),
        ["reference"] => written(reference::run(&root())),
        ["soak", ref options @ ..] => soaked(soak::run(options)),
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

fn soaked(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("soak: {e}");
            ExitCode::from(2)
        }
    }
}

fn written(outcome: Result<bool, Box<dyn std::error::Error>>) -> ExitCode {
    match outcome {
        Ok(changed) => {
            println!("reference: the tables {}", if changed { "were brought up to date" } else { "are up to date" });
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("reference: {e}");
            ExitCode::FAILURE
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
