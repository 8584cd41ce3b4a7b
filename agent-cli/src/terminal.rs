//! The terminal below the line editor: keys beside a turn, a key for a question, and modes that are put back.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use agent_tools::Answer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::signals::{Caught, Signals};
use crate::typing::Keys;

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

/// The keys while a turn runs: they come one by one and are not echoed; Ctrl-C stays a signal. The terminal gets
/// its own modes back when this is dropped, and nobody is at the keys any more.
pub struct Keyboard {
    before: Modes,
    // A lock, because a thread waits for keys while this side may read what has come: held by whoever reads.
    reading: Arc<Mutex<()>>,
    // A channel, because the thread waits where nothing else can. Unbounded, but it holds what a person typed.
    typed: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Closed, it ends the thread.
    stop: Option<io::PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// How long the rest of a sequence may take to come.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl Keyboard {
    /// Takes the keys over; none where that is not possible.
    pub fn take() -> Option<Self> {
        let before = Modes::now();
        let mut keys = before.0.clone()?;
        // Without IEXTEN some systems keep Ctrl-O and Ctrl-V to themselves; NOFLSH keeps what was typed before Ctrl-C.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        keys.local_modes.insert(LocalModes::NOFLSH);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Signals that would leave the terminal as it is now: Ctrl-Z is a key, Ctrl-\ is nothing.
        keys.special_codes[SpecialCodeIndex::VQUIT] = 0;
        keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
        let ((stopped, stop), (sender, typed)) = (io::pipe().ok()?, mpsc::unbounded_channel());
        let reading = Arc::<Mutex<()>>::default();
        let lock = reading.clone();
        let thread = thread::Builder::new().spawn(move || watch(&stopped, &lock, &sender)).ok()?;
        Modes(Some(keys)).set(OptionalActions::Now);
        bracketed_paste(true);
        Some(Self { before, reading, typed, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for keys. Gives nothing where there will be no more.
    pub async fn read(&mut self) -> Vec<u8> {
        self.typed.recv().await.unwrap_or_default()
    }

    /// All that was typed up to now.
    pub fn now(&mut self) -> Vec<u8> {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::new();
        while let Ok(typed) = self.typed.try_recv() {
            bytes.extend(typed);
        }
        bytes.extend(within(&NONE).unwrap_or_default());
        bytes
    }
}

/// Sends what is typed until it is told to stop, or there is no more.
fn watch(stopped: &io::PipeReader, reading: &Mutex<()>, typed: &mpsc::UnboundedSender<Vec<u8>>) {
    let stdin = io::stdin();
    loop {
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        let polled = poll(&mut waiting, None).or_else(interrupted);
        if polled.is_err() || !waiting[1].revents().is_empty() {
            return;
        }
        let _reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut bytes) = within(&NONE) else { continue };
        if Keys::may_go_on(&bytes) {
            bytes.extend(within(&REST).unwrap_or_default());
        }
        let last = bytes.is_empty();
        if typed.send(bytes).is_err() || last {
            return;
        }
    }
}

/// What is typed within this time; nothing where there will be no more.
fn within(time: &Timespec) -> Option<Vec<u8>> {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut waiting, Some(time)).ok()? == 0 {
        return None;
    }
    let mut keys = [0; 4096];
    let n = rustix::io::read(stdin.as_fd(), &mut keys).unwrap_or_default();
    Some(keys[..n].to_vec())
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        bracketed_paste(false);
        self.before.set(OptionalActions::Now);
    }
}

fn bracketed_paste(on: bool) {
    if io::stdout().is_terminal() {
        let code: &[u8] = if on { b"\x1b[?2004h" } else { b"\x1b[?2004l" };
        let _ = io::stdout().write_all(code);
        let _ = io::stdout().flush();
    }
}

/// How many columns the terminal has.
pub fn columns() -> usize {
    let size = tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns > 0).unwrap_or(80)
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
