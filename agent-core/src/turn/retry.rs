//! After a failed request: the same again after a pause, the next model, or the end.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::sleep;

use super::{Turn, TurnError};
use crate::event::Notice;
use crate::provider::{ErrorKind, ProviderError};

/// The failures of one request.
#[derive(Default)]
pub(super) struct Tries {
    failures: u32,
}

impl Tries {
    /// Waits where the request is to be made again; false where the turn was cancelled meanwhile.
    ///
    /// # Errors
    /// It is of no use, and there is no other model.
    pub(super) async fn again(&mut self, turn: &mut Turn<'_>, error: ProviderError) -> Result<bool, TurnError> {
        self.failures += 1;
        let Some(delay) = pause(&error, self.failures) else {
            self.failures = 0;
            return turn.fall_back(error).await.map(|()| true);
        };
        let retry = Notice::Retry { attempt: self.failures, delay, reason: error.to_string() };
        turn.notice(retry).await?;
        let stop = turn.stop.clone();
        tokio::select! {
            () = stop.cancelled() => Ok(false),
            () = sleep(delay) => Ok(true),
        }
    }
}

/// The longest that a server may make us wait.
const LONGEST: Duration = Duration::from_secs(120);

/// How long to wait before trying again; none where that is of no use. `attempt` counts the failures so far.
fn pause(error: &ProviderError, attempt: u32) -> Option<Duration> {
    let tries = match error.kind {
        ErrorKind::RateLimited | ErrorKind::Server => 6,
        ErrorKind::Cut | ErrorKind::Idle | ErrorKind::Network => 4,
        ErrorKind::Auth | ErrorKind::NotFound | ErrorKind::TooLong | ErrorKind::Invalid => return None,
    };
    if attempt >= tries {
        return None;
    }
    match error.retry_after {
        Some(wanted) if wanted > LONGEST => None,
        Some(wanted) => Some(wanted + jitter(Duration::from_millis(250))),
        None => {
            let doubled = Duration::from_millis(250) * 2u32.pow(attempt.min(6));
            Some(doubled + jitter(doubled / 2))
        }
    }
}

/// A random part of this: so that many agents do not come back at the same instant.
fn jitter(most: Duration) -> Duration {
    let random = RandomState::new().hash_one(0u8) % 1024;
    most * u32::try_from(random).unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_honour_the_server_and_end() {
        let error = |kind, after| {
            let mut error = ProviderError::new(kind, "x");
            error.retry_after = after;
            error
        };
        let seconds = Duration::from_secs;
        for (error, attempt, least, most) in [
            (error(ErrorKind::Server, None), 1, 500, 750),
            (error(ErrorKind::Server, None), 3, 2000, 3000),
            (error(ErrorKind::RateLimited, Some(seconds(2))), 1, 2000, 2250),
        ] {
            let pause = pause(&error, attempt).unwrap().as_millis();
            assert!((least..=most).contains(&pause), "{error:?} {attempt} {pause}");
        }
        assert_eq!(pause(&error(ErrorKind::Auth, None), 1), None);
        assert_eq!(pause(&error(ErrorKind::Server, None), 6), None);
        assert_eq!(pause(&error(ErrorKind::RateLimited, Some(seconds(3600))), 1), None);
    }
}
