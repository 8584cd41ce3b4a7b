//! What a shell command needs.
