//! Reads what a command prints: keeps as much as the model is to read, lets the rest go by.

use std::future::{Future, pending};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::printed::Printed;
use crate::call::Call;
use crate::host::Host;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// How much a command may print ahead of us, where the system lets it.
#[cfg(target_os = "linux")]
const AHEAD: usize = 1024 * 1024;
/// How long those who outlive the shell may still add to its output.
const GRACE: Duration = Duration::from_millis(200);
/// How often the screen is told, at most.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// How much the screen is told.
const TAIL: usize = 2048;

/// The output of a command that runs.
pub(super) struct Reading<'a> {
    pipe: Receiver,
    open: bool,
    chunk: Vec<u8>,
    printed: &'a Printed,
    tail: Tail,
    call: &'a Call,
    host: &'a dyn Host,
}

impl<'a> Reading<'a> {
    /// Reads from this pipe, keeps what is to be shown, and tells the host of it.
    pub(super) fn new(pipe: PipeReader, printed: &'a Printed, call: &'a Call, host: &'a dyn Host) -> io::Result<Self> {
        // A pipe of the usual size does as well, more slowly.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, AHEAD);
        let pipe = Receiver::from_owned_fd(OwnedFd::from(pipe))?;
        Ok(Self { pipe, open: true, chunk: vec![0; CHUNK], printed, tail: Tail::default(), call, host })
    }

    /// Reads until this is done.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.step() => {}
            }
        }
    }

    /// Reads what is left after the shell's end: to the end of the output, but no longer than a moment, for others may
    /// hold it open for ever. What the shell itself printed is in the pipe already and is read in any case.
    pub(super) async fn rest(&mut self) {
        let to_the_end = async {
            while self.open {
                self.step().await;
            }
        };
        // Not at the end in time: somebody holds it open.
        let _ = timeout(GRACE, to_the_end).await;
    }

    /// Reads once, or tells the host once.
    async fn step(&mut self) {
        tokio::select! {
            biased;
            read = self.pipe.read(&mut self.chunk), if self.open => match read {
                Ok(count) if count > 0 => {
                    self.printed.push(&self.chunk[..count]);
                    self.tail.take(&self.chunk[..count]);
                    if self.tail.is_due() {
                        self.tail.tell(self.call, self.host);
                    }
                }
                Ok(_) | Err(_) => self.open = false,
            },
            () = self.tail.due() => self.tail.tell(self.call, self.host),
        }
    }

    /// The pipe, if somebody still holds its other end.
    pub(super) fn finish(self) -> Option<Receiver> {
        self.open.then_some(self.pipe)
    }
}

/// Reads to the end and keeps nothing.
pub(super) async fn drain(mut pipe: Receiver) {
    let mut chunk = vec![0; CHUNK / 4];
    while pipe.read(&mut chunk).await.is_ok_and(|count| count > 0) {}
}

/// The last of what was printed, for screens.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    told: Option<Instant>,
    fresh: bool,
}

impl Tail {
    fn take(&mut self, chunk: &[u8]) {
        let news = &chunk[chunk.len().saturating_sub(TAIL)..];
        let surplus = (self.bytes.len() + news.len()).saturating_sub(TAIL);
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(news);
        self.fresh = true;
    }

    fn is_due(&self) -> bool {
        self.fresh && self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY)
    }

    /// Becomes ready when there is something to tell and it is time to.
    async fn due(&self) {
        match self.told {
            _ if !self.fresh => pending().await,
            None => {}
            Some(told) => sleep_until(told + TELL_EVERY).await,
        }
    }

    fn tell(&mut self, call: &Call, host: &dyn Host) {
        // The front may begin within a character.
        let start = self.bytes.iter().take(3).take_while(|b| **b & 0xC0 == 0x80).count();
        host.progress(call, &String::from_utf8_lossy(&self.bytes[start..]));
        self.told = Some(Instant::now());
        self.fresh = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tail_is_the_last_of_it(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..6)) {
            let mut tail = Tail::default();
            pieces.iter().for_each(|piece| tail.take(piece));
            let whole = pieces.concat();
            prop_assert_eq!(&tail.bytes[..], &whole[whole.len().saturating_sub(TAIL)..]);
        }
    }
}
