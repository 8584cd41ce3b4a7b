//! What discovery needs of the table of providers.

/// A provider.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProviderEntry {
    pub(super) name: &'static str,
    /// The variable that its key is looked for in.
    pub(super) key_var: &'static str,
    /// The variable that may hold another base URL.
    pub(super) base_url_var: Option<&'static str>,
    pub(super) base_url: &'static str,
    /// The model that is taken where none is named.
    pub(super) model: &'static str,
}

/// The providers, in the order in which their keys are looked for.
pub(super) fn providers() -> &'static [ProviderEntry] {
    PROVIDERS
}

const PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        name: "anthropic",
        key_var: "ANTHROPIC_API_KEY",
        base_url_var: Some("ANTHROPIC_BASE_URL"),
        base_url: "https://api.anthropic.com",
        model: "claude-sonnet-5-5",
    },
    ProviderEntry {
        name: "openai",
        key_var: "OPENAI_API_KEY",
        base_url_var: Some("OPENAI_BASE_URL"),
        base_url: "https://api.openai.com/v1",
        model: "gpt-5.5",
    },
    ProviderEntry {
        name: "gemini",
        key_var: "GEMINI_API_KEY",
        base_url_var: None,
        base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
        model: "gemini-3.6-flash",
    },
    ProviderEntry {
        name: "openrouter",
        key_var: "OPENROUTER_API_KEY",
        base_url_var: None,
        base_url: "https://openrouter.ai/api/v1",
        model: "anthropic/claude-sonnet-5.5",
    },
    ProviderEntry {
        name: "deepseek",
        key_var: "DEEPSEEK_API_KEY",
        base_url_var: None,
        base_url: "https://api.deepseek.com/v1",
        model: "deepseek-v4-flash",
    },
];

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
