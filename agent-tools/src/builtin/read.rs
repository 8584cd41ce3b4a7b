//! Reads part of a file.
