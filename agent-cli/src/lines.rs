//! The prompt of terminal mode: a line editor with a history, on a thread of its own.

use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::error::CliError;

/// What a person did at the prompt.
pub enum Entered {
    /// Entered this. Several lines where they were pasted.
    Line(String),
    /// Ctrl-C.
    Interrupted {
        /// There was something in the line; it is gone now.
        typed: bool,
    },
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The line editor.
pub struct Lines {
    editor: Editor<Typed, FileHistory>,
    history: PathBuf,
}

/// Notes whether the line holds anything: Ctrl-C clears a line first.
#[derive(Default)]
struct Typed(std::sync::atomic::AtomicBool);

impl rustyline::Helper for Typed {}
impl rustyline::completion::Completer for Typed {
    type Candidate = String;
}
impl rustyline::hint::Hinter for Typed {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _ctx: &rustyline::Context<'_>) -> Option<String> {
        self.0.store(!line.is_empty(), std::sync::atomic::Ordering::Relaxed);
        None
    }
}
impl rustyline::highlight::Highlighter for Typed {}
impl rustyline::validate::Validator for Typed {}

impl Lines {
    /// An editor whose history lies in this directory.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn new(data: &Path) -> Result<Self, CliError> {
        let config = Config::builder().auto_add_history(true).bracketed_paste(true).build();
        let mut editor =
            Editor::with_config(config).map_err(|e| CliError::failed(format!("opening the terminal: {e}")))?;
        editor.set_helper(Some(Typed::default()));
        let history = data.join("history");
        // There is none yet where this is the first time.
        let _ = editor.load_history(&history);
        Ok(Self { editor, history })
    }

    /// Waits for the next line, on a thread, since the editor blocks.
    ///
    /// # Errors
    /// The terminal broke.
    pub async fn next(mut self) -> Result<(Self, Entered), CliError> {
        let read = tokio::task::spawn_blocking(move || {
            let entered = self.read();
            (self, entered)
        });
        let (lines, entered) = read.await.map_err(|e| CliError::failed(format!("reading the terminal: {e}")))?;
        Ok((lines, entered?))
    }

    fn read(&mut self) -> Result<Entered, CliError> {
        match self.editor.readline("> ") {
            Ok(line) => {
                self.save();
                Ok(Entered::Line(line))
            }
            Err(ReadlineError::Interrupted) => {
                let typed = self.editor.helper().is_some_and(|t| t.0.swap(false, std::sync::atomic::Ordering::Relaxed));
                Ok(Entered::Interrupted { typed })
            }
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(CliError::failed(format!("reading the terminal: {error}"))),
        }
    }

    fn save(&mut self) {
        if let Some(parent) = self.history.parent() {
            // A history that cannot be kept is no reason to stop.
            let _ = std::fs::create_dir_all(parent);
        }
        let _ = self.editor.append_history(&self.history);
    }
}
