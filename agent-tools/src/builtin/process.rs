//! How a command is started, read and ended.
