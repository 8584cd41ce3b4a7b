//! Writes a whole file.
