//! Trees in, catalogues out: each folder of `tests/data` has directories `1`, `2`, .. and the catalogue in `expect.txt`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod catalogues;
mod disk;
