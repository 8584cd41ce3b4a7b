//! The command line of `agent`: headless and terminal mode over agent-core.
//!
//! A library only so that `main.rs` stays small and the workspace's chores can read its table of options.

#![forbid(unsafe_code)]

pub mod error;
pub mod render;
mod signals;
mod terminal;
