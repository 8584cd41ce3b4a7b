//! What discovery needs of the table of providers.

/// A provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// The variable that usually holds its key; none where it needs none.
    pub(super) key_variable: Option<&'static str>,
    pub(super) base_url: &'static str,
    pub(super) default_model: Option<&'static str>,
}

/// Whose keys are looked for first.
pub(super) const ORDER: [&str; 5] = ["anthropic", "openai", "gemini", "openrouter", "deepseek"];

/// All providers, in the order in which their keys are looked for.
pub(super) fn all() -> Vec<Known> {
    let mut all = table();
    all.sort_by_key(|entry| ORDER.iter().position(|name| *name == entry.name).unwrap_or(ORDER.len()));
    all
}

fn table() -> Vec<Known> {
    let known =
        |name, key, base_url, model| Known { name, key_variable: Some(key), base_url, default_model: Some(model) };
    vec![
        known("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com", "claude-sonnet-4-5"),
        known("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5.1"),
        known("gemini", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro"),
        known("openrouter", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5"),
        known("deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"),
    ]
}

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
