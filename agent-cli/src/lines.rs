//! The prompt of terminal mode: a line editor with a history, on a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, ExternalPrinter};

use crate::error::CliError;

/// What a person did at the prompt.
pub enum Entered {
    /// Entered this. Several lines where they were pasted.
    Line(String),
    /// Ctrl-C.
    Interrupted {
        /// What was in the line.
        typed: String,
    },
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// The line editor.
pub struct Lines {
    editor: Editor<Typed, FileHistory>,
    history: PathBuf,
    draft: Draft,
    /// What makes the editor listen to signals while it waits for keys; none where it cannot.
    listens: Option<Box<dyn ExternalPrinter + Send>>,
}

/// The line as far as it is typed, for those who are not on the editor's thread: Ctrl-C clears a line first, and a prompt
/// that is put away comes back with it.
#[derive(Clone, Default)]
pub struct Draft(
    // A lock, because the editor is on a thread of its own; held for a copy only.
    Arc<Mutex<Option<String>>>,
);

impl Draft {
    fn set(&self, line: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), line)
    }

    /// Puts the prompt away if it is there: the editor takes this signal for Ctrl-C while it waits for keys.
    pub fn put_away(&self) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            let _ = kill_process(getpid(), Signal::INT);
        }
    }
}

/// Notes what the line holds.
struct Typed(Draft);

impl rustyline::Helper for Typed {}
impl rustyline::completion::Completer for Typed {
    type Candidate = String;
}
impl rustyline::hint::Hinter for Typed {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _ctx: &rustyline::Context<'_>) -> Option<String> {
        self.0.set(Some(line.to_owned()));
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
        let draft = Draft::default();
        editor.set_helper(Some(Typed(draft.clone())));
        let history = data.join("history");
        // There is none yet where this is the first time.
        let _ = editor.load_history(&history);
        let listens = editor.create_external_printer().ok().map(|it| Box::new(it) as Box<dyn ExternalPrinter + Send>);
        Ok(Self { editor, history, draft, listens })
    }

    /// The line that is being typed, if the prompt can be put away.
    pub fn draft(&self) -> Option<Draft> {
        self.listens.is_some().then(|| self.draft.clone())
    }

    /// Waits for the next line, on a thread, since the editor blocks. It begins with what is typed already.
    ///
    /// # Errors
    /// The terminal broke.
    pub async fn next(mut self, typed: String) -> Result<(Self, Entered), CliError> {
        let read = tokio::task::spawn_blocking(move || {
            let entered = self.read(&typed);
            (self, entered)
        });
        let (lines, entered) = read.await.map_err(|e| CliError::failed(format!("reading the terminal: {e}")))?;
        Ok((lines, entered?))
    }

    fn read(&mut self, typed: &str) -> Result<Entered, CliError> {
        let read = self.editor.readline_with_initial("> ", (typed, ""));
        let draft = self.draft.set(None).unwrap_or_default();
        match read {
            Ok(line) => {
                self.save();
                Ok(Entered::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Entered::Interrupted { typed: draft }),
            Err(ReadlineError::Eof) => Ok(Entered::End),
            Err(error) => Err(CliError::failed(format!("reading the terminal: {error}"))),
        }
    }

    /// Takes a line that was entered elsewhere into the history.
    pub fn remember(&mut self, line: &str) {
        // A history that cannot be kept is no reason to stop, here and below.
        let _ = self.editor.add_history_entry(line);
        self.save();
    }

    fn save(&mut self) {
        if let Some(parent) = self.history.parent() {
            let _ = std::fs::create_dir_all(parent);
        }
        let _ = self.editor.append_history(&self.history);
    }
}
