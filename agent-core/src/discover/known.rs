//! What discovery needs of the table of providers.

use crate::provider::models;
pub(super) use crate::provider::models::{ProviderEntry, providers};

/// Whose key is meant by a model's name, where the name says so.
pub(super) fn maker(model: &str) -> Option<&'static str> {
    if model.contains('/') { Some("openrouter") } else { models::maker(model) }
}
