//! The tools themselves: one file a mechanism, written once for both toolsets.

mod alike;
mod background;
pub mod bash;
pub mod companion;
mod direct;
mod disk;
pub mod edit;
mod encoding;
#[cfg(feature = "search")]
mod fence;
#[cfg(feature = "search")]
mod first;
mod git_programs;
#[cfg(feature = "search")]
pub mod glob;
#[cfg(feature = "search")]
pub mod grep;
mod group;
#[cfg(feature = "search")]
mod listing;
#[cfg(feature = "search")]
mod matching;
mod nearest;
pub mod own_files;
pub mod plan;
mod printed;
mod process;
pub mod read;
mod reading;
pub mod sandbox;
pub mod skill;
pub mod subagent;
mod target;
pub mod todo;
mod variables;
#[cfg(feature = "search")]
mod walk;
mod watchdog;
pub mod write;

pub use disk::Disk;
