//! The turn.

use crate::provider::ProviderError;

/// Why a turn failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// The model or the network.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The session's log could not be written.
    #[error("the session could not be saved: {0}")]
    Store(String),
}
