//! What is known of providers and models without asking them: the table `models.json`.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Model;

const TABLE: &str = include_str!("models.json");

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // A test reads the table: that it is valid is known when the crate is built.
    serde_json::from_str(TABLE).unwrap_or_default()
});

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    made: &'static str,
    providers: Vec<ProviderEntry>,
    models: Vec<Family>,
}

/// A provider that a key stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProviderEntry {
    /// Its name in settings.
    pub name: &'static str,
    /// Which form of interface it speaks.
    pub form: Form,
    /// The variable that its key is looked for in.
    pub key_var: &'static str,
    /// The variable that may hold another base URL.
    pub base_url_var: Option<&'static str>,
    /// Its base URL.
    pub base_url: &'static str,
    /// The model that is taken where none is named.
    pub model: &'static str,
    /// It counts the limit of an answer as if all of it came, against credit or rate.
    #[serde(default)]
    pub counts_limit: bool,
}

/// A form of interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// OpenAI's Chat Completions.
    OpenaiChat,
    /// Anthropic's Messages.
    Anthropic,
}

/// Models whose names begin alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    prefix: &'static str,
    context: u64,
    output: Option<u64>,
}

/// When the table was made: year and month.
pub fn made() -> &'static str {
    KNOWN.made
}

/// The providers, in the order in which their keys are looked for.
pub fn providers() -> &'static [ProviderEntry] {
    &KNOWN.providers
}

/// The provider of this name in settings.
pub fn provider(name: &str) -> Option<&'static ProviderEntry> {
    KNOWN.providers.iter().find(|p| p.name == name)
}

/// A model with what is known of its limits; else 200,000 tokens, and the server decides how long an answer may be.
/// So it does where it counts a limit as if it were used.
pub fn model(provider_name: &str, name: &str) -> Model {
    let mut model = Model::new(provider_name, name);
    if let Some(family) = family(name) {
        model.context = family.context;
        let counted = provider(provider_name).is_some_and(|p| p.counts_limit);
        model.max_output = family.output.filter(|_| !counted);
    }
    model
}

/// The family with the longest prefix. Makers before the name (`openai/gpt-oss`) and how versions are written
/// (`4.5`, `4-5`) do not matter.
fn family(name: &str) -> Option<&'static Family> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('.', "-");
    let name = plain(name.rsplit('/').next().unwrap_or(name));
    KNOWN.models.iter().filter(|f| name.starts_with(&plain(f.prefix))).max_by_key(|f| f.prefix.len())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_table_is_whole() {
        let known: Known = serde_json::from_str(TABLE).unwrap();
        assert_eq!(known.made, "2026-11");
        for provider in &known.providers {
            assert!(provider.key_var.ends_with("_API_KEY"), "{provider:?}");
            assert!(provider.base_url.starts_with("https://") && !provider.base_url.ends_with('/'), "{provider:?}");
            assert!(family(provider.model).is_some(), "{provider:?}");
        }
        for family in &known.models {
            assert!(family.context >= 32_768 && family.output.is_none_or(|o| o < family.context), "{}", family.prefix);
        }
        let names: HashSet<_> = known.providers.iter().map(|p| p.name).collect();
        let prefixes: HashSet<_> = known.models.iter().map(|f| f.prefix).collect();
        assert_eq!((names.len(), prefixes.len()), (known.providers.len(), known.models.len()));
    }

    #[test]
    fn keys_are_looked_for_in_order() {
        let first: Vec<_> = providers().iter().map(|p| p.key_var).take(5).collect();
        let order = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"];
        assert_eq!(first, order);
        let anthropic = provider("anthropic").unwrap();
        assert_eq!((anthropic.form, anthropic.base_url_var), (Form::Anthropic, Some("ANTHROPIC_BASE_URL")));
        assert_eq!(provider("openai").unwrap().form, Form::OpenaiChat);
        assert_eq!(provider("nobody"), None);
    }

    #[test]
    fn limits_are_found_by_the_beginning_of_the_name() {
        for (name, context, output) in [
            ("claude-sonnet-5-5", 1_000_000, Some(128_000)),
            ("claude-sonnet-4-5-20250929", 200_000, Some(64_000)),
            ("anthropic/claude-sonnet-4.6", 1_000_000, Some(64_000)),
            ("gpt-5.1-codex", 400_000, Some(128_000)),
            ("accounts/fireworks/models/gpt-oss-120b", 131_072, Some(32_768)),
            ("Qwen/Qwen3-Coder-480B", 262_144, None),
            ("grok-4.5", 500_000, None),
            ("mock-model", 200_000, None),
            ("", 200_000, None),
        ] {
            let model = model("p", name);
            assert_eq!((model.context, model.max_output), (context, output), "{name}");
            assert_eq!((model.provider.as_str(), model.name.as_str()), ("p", name));
        }
        let counted = model("openrouter", "anthropic/claude-sonnet-5.5");
        assert_eq!((counted.context, counted.max_output), (1_000_000, None));
    }

    #[test]
    fn reading_the_table_is_cheap() {
        let read = || {
            let begin = Instant::now();
            assert!(serde_json::from_str::<Known>(TABLE).is_ok());
            begin.elapsed()
        };
        // Some 20 µs when optimised; this build is not, and the machine may be busy.
        let best = (0..20).map(|_| read()).min().unwrap();
        assert!(best < Duration::from_millis(5), "{best:?}");
    }
}
