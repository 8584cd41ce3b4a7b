//! The tools themselves: one file a mechanism, written once for both toolsets.

mod alike;
mod background;
pub mod bash;
mod disk;
pub mod edit;
mod encoding;
mod git_programs;
mod group;
mod nearest;
pub mod own_files;
pub mod plan;
mod printed;
mod process;
pub mod read;
mod reading;
pub mod skill;
pub mod subagent;
mod target;
pub mod todo;
mod variables;
pub mod write;

pub use disk::Disk;
