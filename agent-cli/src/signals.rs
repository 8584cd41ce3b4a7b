//! SIGINT, SIGTERM and SIGHUP: the first stops the turn, a second SIGINT quits.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CliError, Exit};

/// The signals that end things.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Does this, unless a signal comes first: then it is dropped, and what it started ends with it.
///
/// # Errors
/// Those of the work.
pub async fn first(work: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let mut signals = Signals::catch()?;
    tokio::select! {
        biased;
        _ = signals.next() => Ok(Exit::Interrupted),
        done = work => done,
    }
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
    pub fn catch() -> Result<Self, CliError> {
        let caught = |kind| signal(kind).map_err(|e| CliError::failed(format!("catching signals: {e}")));
        Ok(Self {
            interrupt: caught(SignalKind::interrupt())?,
            terminate: caught(SignalKind::terminate())?,
            hang_up: caught(SignalKind::hangup())?,
        })
    }

    /// Takes back interrupts that came and were not looked at.
    pub async fn forget_interrupts(&mut self) {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => {}
                () = tokio::task::yield_now() => return,
            }
        }
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
