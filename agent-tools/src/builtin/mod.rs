//! The tools themselves: one file a mechanism, written once for both toolsets.

mod alike;
pub mod bash;
mod disk;
pub mod edit;
mod encoding;
mod nearest;
mod process;
pub mod read;
pub mod skill;
mod target;
pub mod write;

pub use disk::Disk;
