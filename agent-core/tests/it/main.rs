//! The crate from outside: over real sockets, files and commands.

// `cfg(test)` always holds here; it tells clippy that all of this is test code.
#![cfg(test)]

mod caching;
mod children;
mod compaction;
mod discover;
mod fake_server;
#[cfg(feature = "mcp")]
mod mcp;
mod providers;
mod rewind;
mod settings;
mod steering;
mod turns;
