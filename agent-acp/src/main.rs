//! The binary `agent-acp`. The server for editors comes in a later version; this one says so instead of hanging.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let told = writeln!(
        std::io::stderr(),
        "error: this version has no ACP server yet\n  hint: use the command line: agent --help"
    );
    ExitCode::from(if told.is_ok() { 2 } else { 1 })
}
