//! The tools themselves: one file a mechanism, written once for both toolsets.

pub mod bash;
mod disk;
pub mod edit;
mod process;
pub mod read;
pub mod skill;
pub mod write;

pub use disk::Disk;
