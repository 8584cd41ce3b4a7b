//! Reads what a command prints: keeps as much as the model is to read, lets the rest go by.

use std::future::{Future, pending};
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use crate::call::Call;
use crate::host::Host;
use crate::text::Cut;

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
    kept: Kept,
    tail: Tail,
    call: &'a Call,
    host: &'a dyn Host,
}

impl<'a> Reading<'a> {
    /// Reads from this pipe what `cut` needs, and tells the host of it.
    pub(super) fn new(pipe: PipeReader, cut: Cut, call: &'a Call, host: &'a dyn Host) -> io::Result<Self> {
        // A pipe of the usual size does as well, more slowly.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, AHEAD);
        let pipe = Receiver::from_owned_fd(OwnedFd::from(pipe))?;
        let (chunk, kept, tail) = (vec![0; CHUNK], Kept::for_cut(cut), Tail::default());
        Ok(Self { pipe, open: true, chunk, kept, tail, call, host })
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
                    self.kept.take(&self.chunk[..count]);
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

    /// The text that was kept, and the pipe if somebody still holds its other end.
    pub(super) fn finish(self) -> (String, Option<Receiver>) {
        (self.kept.text(), self.open.then_some(self.pipe))
    }
}

/// Reads to the end and keeps nothing.
pub(super) async fn drain(mut pipe: Receiver) {
    let mut chunk = vec![0; CHUNK / 4];
    while pipe.read(&mut chunk).await.is_ok_and(|count| count > 0) {}
}

/// What is kept of an output: what a cut needs, however much comes.
struct Kept {
    bytes: Vec<u8>,
    room: usize,
}

impl Kept {
    /// Room for all that this cut lets through and a character more, which shows that there was more.
    fn for_cut(cut: Cut) -> Self {
        let room = match cut {
            Cut::HeadChars(limit) => limit.saturating_add(1).saturating_mul(char::MAX_LEN_UTF8),
        };
        Self { bytes: Vec::new(), room }
    }

    fn take(&mut self, chunk: &[u8]) {
        let fits = chunk.len().min(self.room - self.bytes.len());
        self.bytes.extend_from_slice(&chunk[..fits]);
    }

    /// As text; what is no UTF-8 becomes U+FFFD. A character that the room's end split lies beyond the cut.
    fn text(self) -> String {
        String::from_utf8(self.bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }
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
        /// Whatever comes, in whatever pieces, the cut text is that of the whole output.
        #[test]
        fn what_is_kept_cuts_like_the_whole(pieces in prop::collection::vec(piece(), 0..12), limit in 0usize..40) {
            let cut = Cut::HeadChars(limit);
            let mut kept = Kept::for_cut(cut);
            pieces.iter().for_each(|piece| kept.take(piece));
            prop_assert!(kept.bytes.len() <= 4 * (limit + 1));
            let whole = String::from_utf8_lossy(&pieces.concat()).into_owned();
            prop_assert_eq!(cut.told(kept.text()), cut.told(whole));
        }

        #[test]
        fn the_tail_is_the_last_of_it(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..6)) {
            let mut tail = Tail::default();
            pieces.iter().for_each(|piece| tail.take(piece));
            let whole = pieces.concat();
            prop_assert_eq!(&tail.bytes[..], &whole[whole.len().saturating_sub(TAIL)..]);
        }
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-zé日🛠\n]{0,12}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..8),
            Just(vec![0xE6, 0x97]),
        ]
    }
}
