//! What a session and its sub-agents have cost together, so that one limit holds for all of them.

use std::sync::{Arc, Mutex, PoisonError};

/// A sum in US dollars that a session shares with its sub-agents; none once something is not known.
#[derive(Debug, Clone)]
pub(crate) struct Budget(
    // A lock, because sub-agents spend beside their parent; held for an addition.
    Arc<Mutex<Option<f64>>>,
);

impl Budget {
    /// So much is spent already.
    pub(crate) fn spent(cost: Option<f64>) -> Self {
        Self(Arc::new(Mutex::new(cost)))
    }

    /// Adds a cost. What is not known makes the sum unknown.
    pub(crate) fn add(&self, cost: Option<f64>) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum = sum.zip(cost).map(|(sum, cost)| sum + cost);
    }

    /// Whether so much or more is spent. What is not known may be more.
    pub(crate) fn reaches(&self, most: f64) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none_or(|cost| cost >= most)
    }
}
