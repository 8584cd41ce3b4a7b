//! The tools from outside: what is declared, and what calls do.

// `cfg(test)` always holds here; it tells clippy that all of this is test code.
#![cfg(test)]

mod bash;
mod calls;
mod declared;
mod files;
mod gate;
mod links;
mod page;
mod policy;
mod recorder;
mod repositories;
mod sandbox;
mod search;
mod watchdog;

use std::fs;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Compares a text with a golden file. With `INSTA_UPDATE=always` the file is written instead.
fn golden(path: &Path, found: &str) {
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        return fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs (INSTA_UPDATE=always rewrites it)", path.display());
}
