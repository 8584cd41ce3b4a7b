//! What discovery needs of the table of providers.

pub(super) use crate::provider::models::{ProviderEntry, providers};

/// Who makes the models that are called like this, where the name says so.
pub(super) fn maker(model: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 8] = [
        ("claude", "anthropic"),
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex", "openai"),
        ("gemini", "gemini"),
        ("deepseek", "deepseek"),
    ];
    if model.contains('/') {
        return Some("openrouter");
    }
    BEGINNINGS.iter().find(|(beginning, _)| model.starts_with(beginning)).map(|(_, maker)| *maker)
}
