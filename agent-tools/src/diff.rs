//! Diffs: the one place where they are made.
