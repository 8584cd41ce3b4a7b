//! One file a subcommand.

pub mod check;
pub mod config;
pub mod doctor;
pub mod mcp;
#[cfg(feature = "local")]
pub mod model;
pub mod sessions;
pub mod skills;
pub mod tool;

use std::io::{self, Write};

use serde_json::Value;

use crate::error::CliError;

/// Prints to stdout. A reader that went away is no error worth telling: we end.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("writing to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON, with a newline.
pub(crate) fn print_json(value: &Value) -> Result<(), CliError> {
    print(&format!("{value}\n"))
}
