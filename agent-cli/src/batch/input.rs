//! The prompts of a batch: a line each, read as they are wanted, so that a long file takes no memory.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::thread;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::error::CliError;

/// The longest line, in bytes.
const MOST: u64 = 16 << 20;

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What results call it.
    pub id: String,
    /// Its line, the first being 1.
    pub number: u64,
    /// What to do.
    pub prompt: String,
    /// Where, from the working directory of the run.
    pub cwd: Option<PathBuf>,
    /// With which model: `NAME` or `PROVIDER/NAME`.
    pub model: Option<String>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A prompt.
    Job(Job),
    /// None.
    Bad {
        /// What results call it.
        id: String,
        /// Its number.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl Line {
    /// What results call it.
    pub fn id(&self) -> &str {
        match self {
            Self::Job(job) => &job.id,
            Self::Bad { id, .. } => id,
        }
    }
}

#[derive(Deserialize)]
struct Written {
    prompt: String,
    id: Option<Value>,
    cwd: Option<PathBuf>,
    model: Option<String>,
}

/// All lines.
pub struct Input {
    // A channel, because a thread waits for the file or the pipe. One line waits in it.
    lines: mpsc::Receiver<io::Result<Vec<u8>>>,
    number: u64,
    seen: HashSet<String>,
}

impl Input {
    /// Opens a file, or stdin.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, stdin: bool) -> Result<Self, CliError> {
        let failed = |e: io::Error| CliError::usage(format!("reading the prompts {}: {e}", path.display()));
        let reader: Box<dyn Read + Send> =
            if stdin { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
        let (sender, lines) = mpsc::channel(1);
        thread::Builder::new().spawn(move || send(BufReader::new(reader), &sender)).map_err(failed)?;
        Ok(Self { lines, number: 0, seen: HashSet::new() })
    }

    /// The next line that is not empty; none at the end. Nothing is lost where this is dropped.
    pub async fn next(&mut self) -> Option<Result<Line, CliError>> {
        loop {
            let line = match self.lines.recv().await? {
                Ok(line) => line,
                Err(error) => return Some(Err(CliError::failed(format!("reading the prompts: {error}")))),
            };
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Some(Ok(self.line(&line)));
            }
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Line {
        let number = self.number;
        // With a blank in it no number of another line is like it.
        let bad =
            |why: String| Line::Bad { id: format!("line {number}"), number, why: format!("line {number}: {why}") };
        match job(bytes, number) {
            Err(why) => bad(why),
            Ok(job) if !self.seen.insert(job.id.clone()) => bad(format!("another line has the id {} already", job.id)),
            Ok(job) => Line::Job(job),
        }
    }
}

fn job(bytes: &[u8], number: u64) -> Result<Job, String> {
    if bytes.len() as u64 > MOST {
        return Err(format!("it is longer than {} MiB", MOST >> 20));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|e| format!("it is no JSON: {e}"))?;
    let written = match value {
        Value::String(prompt) => Written { prompt, id: None, cwd: None, model: None },
        value => serde_json::from_value(value)
            .map_err(|e| format!("it is neither a text nor an object with a `prompt`: {e}"))?,
    };
    let id = match written.id {
        None | Some(Value::Null) => number.to_string(),
        Some(Value::String(id)) => id,
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => return Err("its id is neither a text nor a number".into()),
    };
    if written.prompt.trim().is_empty() {
        return Err("its prompt is empty".into());
    }
    Ok(Job { id, number, prompt: written.prompt, cwd: written.cwd, model: written.model })
}

/// Sends one line after the other. Of one that is too long only as much is kept as tells that.
fn send(mut reader: impl BufRead, lines: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let line = match next(&mut reader) {
            Ok(None) => return,
            Ok(Some(line)) => Ok(line),
            Err(error) => Err(error),
        };
        let last = line.is_err();
        if lines.blocking_send(line).is_err() || last {
            return;
        }
    }
}

fn next(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.by_ref().take(MOST + 2).read_until(b'\n', &mut line)?;
    if read as u64 > MOST && !line.ends_with(b"\n") {
        reader.skip_until(b'\n')?;
    }
    Ok((read > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Input {
        Input { lines: mpsc::channel(1).1, number: 0, seen: HashSet::new() }
    }

    #[test]
    fn lines_are_prompts_or_told_as_bad() {
        let mut input = input();
        for (line, id, wrong) in [
            (r#""do it""#, "1", ""),
            (r#"{"prompt": "do it", "id": "a", "cwd": "sub", "model": "m", "more": 1}"#, "a", ""),
            (r#"{"prompt": "do it", "id": 7}"#, "7", ""),
            (r#"{"prompt": "do it"}"#, "4", ""),
            ("do it", "line 5", "line 5: it is no JSON"),
            (r#"{"promt": "do it"}"#, "line 6", "line 6: it is neither a text nor"),
            (r#"{"prompt": "do it", "id": "a"}"#, "line 7", "line 7: another line has the id a already"),
            (r#"{"prompt": " "}"#, "line 8", "line 8: its prompt is empty"),
            (r#"{"prompt": "x", "id": []}"#, "line 9", "line 9: its id"),
            ("[1]", "line 10", "line 10: it is neither"),
        ] {
            input.number += 1;
            let read = input.line(line.as_bytes());
            assert_eq!(read.id(), id, "{line}");
            match read {
                Line::Job(job) => assert!(wrong.is_empty() && job.prompt == "do it", "{line}"),
                Line::Bad { why, .. } => assert!(why.starts_with(wrong) && !wrong.is_empty(), "{why}"),
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_does_not_take_the_next_with_it() {
        let long = "x".repeat(usize::try_from(MOST).unwrap() + 100);
        let text = format!("{long}\n\"next\"\n\"last\"");
        let mut reader = BufReader::new(text.as_bytes());
        let line = next(&mut reader).unwrap().unwrap();
        assert!(job(&line, 1).unwrap_err().contains("longer than 16 MiB"));
        assert_eq!(next(&mut reader).unwrap().unwrap(), b"\"next\"\n");
        assert_eq!(next(&mut reader).unwrap().unwrap(), b"\"last\"");
        assert_eq!(next(&mut reader).unwrap(), None);
    }
}
