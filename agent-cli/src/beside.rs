//! What a person types beside a running turn: shown below its output, queued, or said to the model at once.
//!
//! Nothing that was printed is ever printed over: while a line is being typed the output waits, and comes behind it.

use std::collections::VecDeque;
use std::io;

use agent_core::{Prompt, Steering};
use rustix::process::{Signal, kill_current_process_group};

use crate::render::{Outputs, Style};
use crate::terminal::{Keyboard, columns};
use crate::typing::{Keys, Step, Typing, beginning};

/// The lines of a conversation that wait, and the one that is being typed.
pub struct Beside {
    outputs: Outputs,
    style: Style,
    /// While a turn runs.
    keyboard: Option<Keyboard>,
    keys: Keys,
    typing: Typing,
    queue: VecDeque<String>,
}

impl Beside {
    /// Nothing is typed yet.
    pub fn new(outputs: Outputs, style: Style) -> Self {
        Self {
            outputs,
            style,
            keyboard: None,
            keys: Keys::default(),
            typing: Typing::default(),
            queue: VecDeque::new(),
        }
    }

    /// A turn begins, or goes on: the keys are ours, and what was being typed stands below its output.
    pub fn begin(&mut self) {
        self.keyboard = Keyboard::take();
        self.back();
    }

    /// The turn is over, or something else needs the keys: what was typed up to now counts, and the output is all there.
    pub fn end(&mut self, steering: &Steering) {
        self.catch_up(steering);
        self.keyboard = None;
        self.aside();
    }

    /// Waits for keys.
    pub async fn read(&mut self) -> Vec<u8> {
        match &mut self.keyboard {
            Some(keyboard) => keyboard.read().await,
            None => std::future::pending().await,
        }
    }

    /// Does what keys say.
    pub fn take(&mut self, bytes: &[u8], steering: &Steering) {
        if bytes.is_empty() {
            // The terminal is gone: there is nothing to wait for.
            self.keyboard = None;
        }
        for key in self.keys.of(bytes) {
            let fresh = self.typing.is_empty();
            let step = self.typing.key(key, columns());
            // A terminal that is gone is noticed by its signal, here and below.
            let _ = self.step(step, fresh, steering);
        }
    }

    /// Reads what was typed before now.
    pub fn catch_up(&mut self, steering: &Steering) {
        if let Some(bytes) = self.keyboard.as_mut().map(Keyboard::now).filter(|bytes| !bytes.is_empty()) {
            self.take(&bytes, steering);
        }
    }

    fn step(&mut self, step: Step, fresh: bool, steering: &Steering) -> io::Result<()> {
        match step {
            Step::Nothing => Ok(()),
            Step::Show(_) if fresh => self.show(),
            Step::Show(text) => self.outputs.print(&text),
            Step::Again => {
                self.outputs.close_line()?;
                self.show()
            }
            Step::Emptied => self.leave(None),
            Step::Suspend => {
                self.suspend();
                Ok(())
            }
            Step::Entered(line) => {
                let told = self.leave(Some(("queued: ", &line)));
                self.queue.push_back(line);
                told
            }
            Step::Now(line) => match line.or_else(|| self.queue.pop_front()) {
                None if fresh => Ok(()),
                None => self.leave(None),
                Some(line) => {
                    let told = self.leave(Some(("for the next request: ", &line)));
                    steering.inject(Prompt::text(line));
                    told
                }
            },
        }
    }

    /// Gives the terminal back as it was, and stops until the shell lets us go on.
    fn suspend(&mut self) {
        self.keyboard = None;
        self.aside();
        // The whole group, as the terminal does it. Where no shell is there to go on with nothing happens.
        let _ = kill_current_process_group(Signal::TSTP);
        self.begin();
    }

    /// Shows the line, and holds the output back.
    fn show(&self) -> io::Result<()> {
        self.outputs.close_line()?;
        self.outputs.print(&self.typing.shown())?;
        self.outputs.hold();
        Ok(())
    }

    /// Leaves the line, tells what became of it, and goes back to the output.
    fn leave(&self, told: Option<(&str, &str)>) -> io::Result<()> {
        self.outputs.close_line()?;
        if let Some((what, line)) = told {
            let text = format!("{what}{}", beginning(line, columns().saturating_sub(what.len())));
            self.outputs.print(&format!("{}\n", self.style.dim(&text)))?;
        }
        self.outputs.release()
    }

    /// Drops the line that is being typed. Says whether there was any.
    pub fn clear(&mut self) -> bool {
        let typed = !self.typing.take().is_empty();
        if typed {
            let _ = self.outputs.print("^C").and_then(|()| self.leave(None));
        }
        typed
    }

    /// Puts the line aside, so that it hides nothing.
    fn aside(&self) {
        if !self.typing.is_empty() {
            let _ = self.leave(None);
        }
    }

    /// Shows the line again.
    fn back(&self) {
        if !self.typing.is_empty() {
            let _ = self.show();
        }
    }

    /// Prints what waits where it is too much, and shows the line again.
    pub fn make_room(&self) {
        if self.outputs.is_full() {
            self.aside();
            self.back();
        }
    }

    /// The next line that waits.
    pub fn next(&mut self) -> Option<String> {
        self.queue.pop_front()
    }

    /// Takes what was being typed.
    pub fn draft(&mut self) -> String {
        self.typing.take()
    }

    /// Takes all that was typed and not said: the lines that wait, and what was being typed.
    pub fn all(&mut self) -> String {
        let mut lines: Vec<String> = self.queue.drain(..).collect();
        lines.extend(Some(self.typing.take()).filter(|line| !line.is_empty()));
        lines.join("\n")
    }
}
