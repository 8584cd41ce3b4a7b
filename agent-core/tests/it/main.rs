//! Tests over the public interface of the crate.

mod settings;
