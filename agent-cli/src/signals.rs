//! SIGINT, SIGTERM and SIGHUP: the first stops the turn, a second SIGINT quits.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end things.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// What was caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caught {
    /// Ctrl-C: stop what runs.
    Interrupt,
    /// Go away.
    Terminate,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// The system does not let us.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hang_up.recv() => Caught::Terminate,
        }
    }
}
