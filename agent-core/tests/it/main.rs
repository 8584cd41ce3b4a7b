//! Tests over the public interface of the crate.

mod discover;
mod settings;
mod turns;
