//! Runs a shell command.
