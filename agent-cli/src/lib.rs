//! The command line of `agent`: headless and terminal mode over agent-core.
//!
//! A library only so that `main.rs` stays small and the workspace's chores can read its table of options.

#![forbid(unsafe_code)]

pub mod args;
mod batch;
mod beside;
mod choose;
mod command;
mod converse;
pub mod error;
mod lines;
#[cfg(feature = "local")]
pub mod model;
mod piped;
pub mod render;
mod run;
mod sessions;
mod setup;
mod signals;
mod terminal;
mod typing;
mod view;
mod weights;

use std::process::ExitCode;

use args::{Args, Output, Task};
use error::{CliError, Exit};
use setup::Setup;

/// The program: reads the command line, does what it says, tells what went wrong.
pub fn main() -> ExitCode {
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => {
            // Where even this cannot be printed nobody is there to read it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Usage as u8 } else { Exit::Done as u8 });
        }
    };
    ExitCode::from(match work(args) {
        Ok(exit) => exit as u8,
        Err(error) => {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n"));
            error.exit as u8
        }
    })
}

fn work(args: Args) -> Result<Exit, CliError> {
    let setup = Setup::new(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::failed(format!("starting: {e}")))?;
    let done = runtime.block_on(perform(&setup));
    // A thread that waits for the terminal must not hold up the end.
    runtime.shutdown_background();
    done
}

async fn perform(setup: &Setup) -> Result<Exit, CliError> {
    let as_json = setup.args.output == Output::Json;
    let done = |result: Result<(), CliError>| result.map(|()| Exit::Done);
    match &setup.args.task {
        Task::Talk | Task::Prompt(_) => return run::run(setup).await,
        Task::Batch(batch) => return batch::run(setup, batch).await,
        Task::ToolList | Task::ToolCall { .. } | Task::ToolBatch | Task::Check(_) => {}
        Task::Skills | Task::Sessions(_) | Task::Config => {}
        Task::Doctor => return signals::first(command::doctor::run(setup, as_json)).await,
        Task::Mcp => {
            view::tell(&setup.warnings);
            return signals::first(command::mcp::run(setup)).await;
        }
        Task::ModelFetch => return done(weights::fetch(setup).await),
        Task::ModelList => return done(weights::list(setup)),
    }
    view::tell(&setup.warnings);
    match &setup.args.task {
        Task::ToolList => done(command::tool::list(setup, as_json)),
        Task::ToolCall { name, input } => signals::first(command::tool::call(setup, name, input, as_json)).await,
        Task::ToolBatch => signals::first(command::tool::batch(setup)).await,
        Task::Check(command) => command::check::run(setup, command, as_json),
        Task::Skills => done(command::skills::run(setup, as_json)),
        Task::Sessions(task) => done(command::sessions::run(setup, task, as_json).await),
        Task::Config => done(command::config::run(setup, as_json)),
        Task::Talk
        | Task::Prompt(_)
        | Task::Batch(_)
        | Task::Doctor
        | Task::Mcp
        | Task::ModelFetch
        | Task::ModelList => Ok(Exit::Done),
    }
}
