//! The terminal below the line editor: a key for a question, and modes that are put back.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_tools::Answer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::signals::{Caught, Signals};

/// The terminal's modes at some time.
pub struct Modes(Option<Termios>);

impl Modes {
    /// Those of now.
    pub fn now() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }

    /// Puts them back, and ends what a line editor switched on.
    pub fn restore(&self) {
        self.set(OptionalActions::Now);
        if io::stdout().is_terminal() {
            // Nothing can be done where the terminal is gone, here and below.
            let _ = io::stdout().write_all(b"\x1b[?2004l\n");
            let _ = io::stdout().flush();
        }
    }

    fn set(&self, when: OptionalActions) {
        if let Some(modes) = &self.0 {
            let _ = tcsetattr(io::stdin(), when, modes);
        }
    }
}

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// This.
    Answer(Answer),
    /// Yes, for the session and for good.
    Always,
}

/// A question that is shown: from its making on keys count as answers, without Enter; what was typed before it does not.
/// The terminal gets its own modes back when this is dropped.
pub struct Question(Modes);

impl Question {
    /// Takes the keys over.
    pub fn new() -> Self {
        let before = Modes::now();
        let mut keys = before.0.clone();
        if let Some(keys) = &mut keys {
            keys.local_modes.remove(LocalModes::ICANON);
        }
        Modes(keys).set(OptionalActions::Flush);
        Self(before)
    }

    /// Waits for `a`, `s`, `p` or `r`. Other keys do nothing; a closed terminal is a no.
    ///
    /// # Errors
    /// A signal came instead.
    pub async fn answer(self, signals: &mut Signals) -> Result<Key, Caught> {
        // Shared with the thread that waits for the keys.
        let gone = Arc::new(AtomicBool::new(false));
        let flag = gone.clone();
        let mut reading = tokio::task::spawn_blocking(move || self.read(&flag));
        tokio::select! {
            biased;
            caught = signals.next() => {
                // Whoever reads next must find the modes of before, and nobody at the keys.
                gone.store(true, Ordering::Relaxed);
                let _ = reading.await;
                Err(caught)
            }
            answer = &mut reading => Ok(answer.ok().and_then(Result::ok).flatten().unwrap_or(Key::Answer(Answer::Reject))),
        }
    }

    fn read(&self, gone: &AtomicBool) -> io::Result<Option<Key>> {
        let stdin = io::stdin();
        let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        while !gone.load(Ordering::Relaxed) {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            if poll(&mut waiting, Some(&tenth)).or_else(interrupted)? == 0 {
                continue;
            }
            let mut keys = [0; 4096];
            let n = rustix::io::read(stdin.as_fd(), &mut keys)?;
            if n == 0 {
                return Ok(None);
            }
            if let Some(answer) = answer_of(&keys[..n]) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.0.set(OptionalActions::Now);
    }
}

/// What arrives at once is one key, with or without Enter. An arrow is several bytes that end in a letter, a pasted text
/// has any letters: neither is an answer.
fn answer_of(keys: &[u8]) -> Option<Key> {
    match keys.trim_ascii() {
        b"a" | b"A" => Some(Key::Answer(Answer::Once)),
        b"s" | b"S" => Some(Key::Answer(Answer::Session)),
        b"p" | b"P" => Some(Key::Always),
        b"r" | b"R" => Some(Key::Answer(Answer::Reject)),
        _ => None,
    }
}

fn interrupted(error: rustix::io::Errno) -> io::Result<usize> {
    if error == rustix::io::Errno::INTR { Ok(0) } else { Err(error.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_alone_is_an_answer() {
        for (keys, expect) in [
            ("a", Some(Key::Answer(Answer::Once))),
            ("S", Some(Key::Answer(Answer::Session))),
            ("P\n", Some(Key::Always)),
            ("r\r\n", Some(Key::Answer(Answer::Reject))),
            ("\r", None),
            ("y", None),
            ("\u{1b}[A", None),
            ("\u{1b}", None),
            ("ls -la", None),
            ("ä", None),
        ] {
            assert_eq!(answer_of(keys.as_bytes()), expect, "{keys:?}");
        }
    }
}
