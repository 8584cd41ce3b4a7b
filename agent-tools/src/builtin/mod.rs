//! The tools themselves: one file a mechanism, written once for both toolsets.

mod alike;
pub mod bash;
mod disk;
pub mod edit;
mod encoding;
mod git_programs;
mod group;
mod nearest;
mod process;
pub mod read;
mod reading;
pub mod skill;
mod target;
mod variables;
pub mod write;

pub use disk::Disk;
