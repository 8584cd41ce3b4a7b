//! The server as an editor meets it: the real binary over pipes, with a model that says what a test wants.

#![cfg(test)]

mod buffers;
mod calls;
mod cancel;
mod editor;
mod ends;
mod frames;
#[path = "../../../agent-cli/tests/it/model.rs"]
#[allow(dead_code, reason = "shared with the tests of agent-cli")]
mod model;
mod modes;
mod prompts;
mod sessions;
#[path = "../../../agent-cli/tests/it/strict.rs"]
#[allow(dead_code, reason = "shared with the tests of agent-cli")]
mod strict;
mod wire;
