//! The acceptance list of the server: the real binary on pipes, against a scripted model.
//!
//! Names and rows that begin with a number prove that check of the acceptance list, or (`#4`) answer that complaint about
//! other agents.

// `cfg(test)` always holds here; it tells clippy that all of this is test code.
#![cfg(test)]

mod buffers;
mod cancel;
mod commands;
mod content;
mod editor;
mod ending;
mod files;
mod frames;
mod handshake;
#[path = "../../../agent-cli/tests/it/model.rs"]
#[allow(dead_code, reason = "shared with the tests of agent-cli")]
mod model;
mod modes;
mod permissions;
mod pressure;
mod servers;
mod sessions;
mod set_up;
mod slash;
#[path = "../../../agent-cli/tests/it/strict.rs"]
#[allow(dead_code, reason = "shared with the tests of agent-cli")]
mod strict;
mod turns;
