//! The results of a batch: a line each, on stdout and in a file that says what is left to do.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use crate::command::print;
use crate::error::CliError;

/// What an earlier run has of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Earlier {
    /// It was begun, and cut off.
    Begun {
        /// In this session.
        session: String,
    },
    /// It has a result.
    Finished {
        /// All went well.
        ok: bool,
    },
}

#[derive(Deserialize)]
struct Kept {
    id: String,
    status: String,
    session: Option<String>,
}

/// All results.
pub struct Results {
    // A lock, because prompts that run at the same time write here; held for a line.
    file: Mutex<Option<File>>,
    earlier: HashMap<String, Earlier>,
}

impl Results {
    /// Opens the file and reads what there is. Only one run at a time has it.
    ///
    /// # Errors
    /// It cannot be opened, or another run has it.
    pub fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else { return Ok(Self { file: Mutex::new(None), earlier: HashMap::new() }) };
        let failed = |e: io::Error| CliError::usage(format!("opening the results {}: {e}", path.display()));
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(CliError::usage(format!("another run writes its results to {}", path.display()))
                    .hint("give each run prompts or --results of its own"));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let earlier = read(&file).map_err(failed)?;
        Ok(Self { file: Mutex::new(Some(file)), earlier })
    }

    /// What an earlier run has of this prompt.
    pub fn earlier(&self, id: &str) -> Option<Earlier> {
        self.earlier.get(id).cloned()
    }

    /// Keeps a line, and prints it where it is a result.
    ///
    /// # Errors
    /// The file or stdout cannot be written.
    pub fn add(&self, line: &Value) -> Result<(), CliError> {
        let begun = line["status"] == "started";
        let line = format!("{line}\n");
        if let Some(file) = &mut *self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            let kept = file.write_all(line.as_bytes()).and_then(|()| if begun { Ok(()) } else { file.sync_data() });
            kept.map_err(|e| CliError::failed(format!("writing the results: {e}")))?;
        }
        if begun { Ok(()) } else { print(&line) }
    }
}

/// Reads the lines of earlier runs. One that was torn is ended, and counts for nothing.
fn read(file: &File) -> io::Result<HashMap<String, Earlier>> {
    let (mut reader, mut earlier, mut line) = (BufReader::new(file), HashMap::new(), Vec::new());
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(earlier);
        }
        if let Ok(kept) = serde_json::from_slice::<Kept>(&line) {
            take(&mut earlier, kept);
        }
        if !line.ends_with(b"\n") {
            let mut end: &File = file;
            end.write_all(b"\n")?;
            return Ok(earlier);
        }
    }
}

fn take(earlier: &mut HashMap<String, Earlier>, kept: Kept) {
    let Kept { id, status, session } = kept;
    match (status.as_str(), session) {
        ("started" | "cancelled", Some(session)) => {
            earlier.insert(id, Earlier::Begun { session });
        }
        ("started" | "cancelled", None) => {}
        (status, _) => {
            earlier.insert(id, Earlier::Finished { ok: status == "ok" });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_says_what_is_left_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let lines = [
            r#"{"id":"a","session":"1","status":"started"}"#,
            r#"{"id":"a","session":"1","status":"ok"}"#,
            r#"{"id":"b","session":"2","status":"started"}"#,
            r#"{"id":"c","session":"3","status":"started"}"#,
            r#"{"id":"c","session":"3","status":"cancelled"}"#,
            r#"{"id":"d","session":"4","status":"limit"}"#,
            "not a line",
            r#"{"id":"e","session":"5","status":"o"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let results = Results::open(Some(&path)).unwrap();
        let begun = |session: &str| Some(Earlier::Begun { session: session.into() });
        for (id, expect) in [
            ("a", Some(Earlier::Finished { ok: true })),
            ("b", begun("2")),
            ("c", begun("3")),
            ("d", Some(Earlier::Finished { ok: false })),
            ("e", None),
        ] {
            assert_eq!(results.earlier(id), expect, "{id}");
        }
        assert!(Results::open(Some(&path)).is_err(), "one run at a time");
        results.add(&json!({"id": "f", "session": "6", "status": "started"})).unwrap();
        drop(results);
        assert_eq!(Results::open(Some(&path)).unwrap().earlier("f"), begun("6"));
    }
}
