//! Reading from the terminal: a key for a question.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_tools::Answer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Waits for `a`, `s` or `r` on the terminal. Other keys do nothing; a closed terminal is a no. Dropping the future stops
/// the reading, so that the next prompt gets its keys.
pub async fn answer() -> Answer {
    let gone = Gone(Arc::default());
    let flag = gone.0.clone();
    let answer = tokio::task::spawn_blocking(move || read(&flag)).await;
    answer.ok().and_then(Result::ok).flatten().unwrap_or(Answer::Reject)
}

struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn read(gone: &AtomicBool) -> io::Result<Option<Answer>> {
    let stdin = io::stdin();
    let _keys = Keys::new()?;
    let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while !gone.load(Ordering::Relaxed) {
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut waiting, Some(&tenth)).or_else(interrupted)? == 0 {
            continue;
        }
        let mut key = [0];
        if rustix::io::read(stdin.as_fd(), &mut key)? == 0 {
            return Ok(None);
        }
        match key[0].to_ascii_lowercase() {
            b'a' => return Ok(Some(Answer::Once)),
            b's' => return Ok(Some(Answer::Session)),
            b'r' => return Ok(Some(Answer::Reject)),
            _ => {}
        }
    }
    Ok(None)
}

fn interrupted(error: rustix::io::Errno) -> io::Result<usize> {
    if error == rustix::io::Errno::INTR { Ok(0) } else { Err(error.into()) }
}

/// Keys without Enter; the terminal gets its own mode back when this is dropped.
struct Keys(Termios);

impl Keys {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON);
        tcsetattr(io::stdin(), OptionalActions::Now, &keys)?;
        Ok(Self(before))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Nothing can be done where the terminal is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
