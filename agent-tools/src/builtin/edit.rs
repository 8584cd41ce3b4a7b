//! Changes part of a file.
