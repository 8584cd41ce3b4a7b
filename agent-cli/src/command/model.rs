//! `agent model fetch|list`: the embedded model's weights.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use agent_core::provider::local;

use crate::model::{Bar, FetchError, Weights, fetch, find, sha256};

/// Fetches the weights with the progress on `screen`, unless they are there. Gives their path.
///
/// # Errors
/// See [`fetch`].
pub async fn fetched(cache: &Path, screen: impl Write + Send, terminal: bool) -> Result<PathBuf, FetchError> {
    let mut bar = Bar::new(screen, terminal);
    fetch(&Weights::PINNED, cache, &mut |progress| bar.show(progress)).await
}

/// `agent model list`: the model, where its weights are, and whether they are the published ones.
///
/// # Errors
/// Those of `out` and of the disk.
pub fn list(named: Option<&Path>, cache: &Path, out: &mut impl Write) -> io::Result<()> {
    let Some(path) = find(named, cache) else {
        return writeln!(out, "local:{}  not fetched  (`agent model fetch`, 1.1 GB)", local::NAME);
    };
    let state = match sha256(&path, |_| {}) {
        Ok(hash) if hash == local::SHA256 => "checked".to_owned(),
        Ok(_) if named.is_some() => "not the published weights".to_owned(),
        Ok(_) => "damaged: remove the file and run `agent model fetch`".to_owned(),
        Err(e) => format!("cannot be read: {e}"),
    };
    writeln!(out, "local:{}  {}  {state}", local::NAME, path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(named: Option<&Path>, cache: &Path) -> String {
        let mut out = Vec::new();
        list(named, cache, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_list_says_what_is_there() {
        let cache = tempfile::tempdir().unwrap();
        assert!(listed(None, cache.path()).contains("not fetched"));
        let file = cache.path().join("models").join(local::file_name());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "x").unwrap();
        assert!(listed(None, cache.path()).contains("damaged"));
        assert!(listed(Some(&file), cache.path()).contains("not the published weights"));
        assert!(listed(Some(Path::new("/nowhere")), cache.path()).contains("cannot be read"));
    }
}
