//! The binary `agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    agent_cli::main()
}
