//! What is known of providers and models without asking them: the table `models.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Model, Prices};

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
    /// By how their names begin.
    models: BTreeMap<&'static str, Facts>,
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
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
}

/// What the table, or a person, knows of the models whose names begin alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Facts {
    /// How many tokens a request and its answer may have together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// How many tokens an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// They take pictures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sees: Option<bool>,
    /// What their tokens cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Prices>,
}

/// Prices as they are written down: what is not said of the cache is as for what is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PriceList {
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl TryFrom<PriceList> for Prices {
    type Error = &'static str;

    fn try_from(list: PriceList) -> Result<Self, Self::Error> {
        let PriceList { input, output, cache_read, cache_write } = list;
        let [cache_read, cache_write] = [cache_read, cache_write].map(|price| price.unwrap_or(input));
        let fine = [input, output, cache_read, cache_write].iter().all(|price| price.is_finite() && *price >= 0.0);
        if fine { Ok(Self { input, output, cache_read, cache_write }) } else { Err("a price is never negative") }
    }
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

/// The name of a model as people write it: `MODEL`, or `PROVIDER/MODEL` where the first part is a provider's name.
pub fn split(name: &str) -> (Option<&str>, &str) {
    let known = |name: &str| name == "local" || provider(name).is_some();
    match name.split_once('/').filter(|(provider, _)| known(provider)) {
        Some((provider, model)) => (Some(provider), model),
        None => (None, name),
    }
}

/// Who makes the models that are called like this, where the name says so.
pub fn maker(name: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 12] = [
        ("claude", "anthropic"),
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex", "openai"),
        ("gemini", "gemini"),
        ("deepseek", "deepseek"),
        ("grok", "xai"),
        ("devstral", "mistral"),
        ("codestral", "mistral"),
        ("mistral", "mistral"),
    ];
    BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, maker)| *maker)
}

/// A model with what the table knows of it; else 200,000 tokens, the server decides how long an answer may be, it sees
/// no pictures and its prices are not known. The server also decides where it counts a limit as if it were used.
pub fn model(provider_name: &str, name: &str) -> Model {
    let mut model = Model::new(provider_name, name);
    let known = KNOWN.models.iter().map(|(prefix, facts)| (*prefix, facts));
    if let Some((prefix, facts)) = longest(known, name) {
        let counted = provider(provider_name).is_some_and(|p| p.counts_limit);
        model.learn(facts);
        model.max_output = facts.output.filter(|_| !counted);
        model.prices = facts.cost.filter(|_| at_list_price(provider_name, name, prefix));
    }
    model
}

/// Whether the table knows how long a conversation this model takes.
pub fn is_known(name: &str) -> bool {
    longest(KNOWN.models.iter().map(|(prefix, facts)| (*prefix, facts)), name).is_some()
}

impl Model {
    /// Takes over what is said of it.
    pub fn learn(&mut self, facts: &Facts) {
        self.context = facts.context.unwrap_or(self.context);
        self.max_output = facts.output.or(self.max_output);
        self.sees = facts.sees.unwrap_or(self.sees);
        self.prices = facts.cost.or(self.prices);
    }
}

/// What is said of the model of this name: by the longest beginning. Makers before the name (`openai/gpt-oss`) and how
/// versions are written (`4.5`, `4-5`) do not matter.
pub fn longest<'a, T>(known: impl Iterator<Item = (&'a str, &'a T)>, name: &str) -> Option<(&'a str, &'a T)> {
    let name = plain(name);
    known.filter(|(prefix, _)| name.starts_with(&plain(prefix))).max_by_key(|(prefix, _)| prefix.len())
}

fn plain(name: &str) -> String {
    last(name).to_ascii_lowercase().replace('.', "-")
}

/// The name without the makers before it.
fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether the list price of the family is that of this model here. Others that run a maker's model have prices of
/// their own, but for the reseller that passes them on; and a name that goes on is another model's, but for a date.
fn at_list_price(provider: &str, name: &str, prefix: &str) -> bool {
    const PASSED_ON: [&str; 4] = ["anthropic", "openai", "gemini", "xai"];
    let of_its_maker = match (provider, maker(last(name))) {
        (_, None) => false,
        ("responses", Some(maker)) => maker == "openai",
        ("openrouter", Some(maker)) => PASSED_ON.contains(&maker),
        (provider, Some(maker)) => maker == provider,
    };
    let name = plain(name);
    of_its_maker && name.strip_prefix(&plain(prefix)).is_some_and(is_edition)
}

/// Nothing, a date, or a word for the newest.
fn is_edition(rest: &str) -> bool {
    let mut words = rest.strip_prefix('-').unwrap_or(rest).split('-');
    let first = words.next().unwrap_or_default();
    let date = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    rest.is_empty()
        || rest.starts_with('-')
            && (["latest", "preview", "exp"].contains(&first) || first.len() >= 4 && date(first))
            && words.all(date)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    use super::super::Usage;
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let known: Known = serde_json::from_str(TABLE).unwrap();
        assert_eq!(known.made, "2026-11");
        for provider in &known.providers {
            assert!(provider.key_var.ends_with("_API_KEY"), "{provider:?}");
            assert!(provider.base_url.starts_with("https://") && !provider.base_url.ends_with('/'), "{provider:?}");
            let known = known.models.iter().map(|(prefix, facts)| (*prefix, facts));
            assert!(longest(known, provider.model).is_some(), "{provider:?}");
        }
        for (prefix, facts) in &known.models {
            let context = facts.context.unwrap_or_default();
            assert!(context >= 32_768 && facts.output.is_none_or(|o| o < context), "{prefix}");
            let sound = |p: Prices| p.cache_read <= p.input && p.input <= p.cache_write && p.input < p.output;
            assert!(facts.cost.is_none_or(|cost| sound(cost) && maker(prefix).is_some()), "{prefix}");
        }
        let names: HashSet<_> = known.providers.iter().map(|p| p.name).collect();
        let lines = TABLE.lines().filter(|line| line.contains("\"context\"")).count();
        assert_eq!((names.len(), lines), (known.providers.len(), known.models.len()), "something is named twice");
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
    fn prices_are_those_of_the_maker_or_not_known() {
        for (provider, name, input) in [
            ("anthropic", "claude-sonnet-5-5", Some(2.0)),
            ("anthropic", "claude-opus-4-1-20250805", Some(15.0)),
            ("anthropic", "claude-opus-4-9", None),
            ("anthropic", "claude-haiku-4-5", Some(1.0)),
            ("openai", "gpt-5.5", Some(5.0)),
            ("responses", "gpt-5.5-2026-04-23", Some(5.0)),
            ("openai", "gpt-5.5-mini", None),
            ("openai", "gpt-5.7", None),
            ("openai", "gpt-5-mini", Some(0.25)),
            ("openai", "claude-sonnet-5-5", None),
            ("openrouter", "anthropic/claude-sonnet-5.5", Some(2.0)),
            ("openrouter", "anthropic/claude-sonnet-5.5:free", None),
            ("openrouter", "deepseek/deepseek-v4-flash", None),
            ("deepseek", "deepseek-v4-flash", Some(0.3)),
            ("together", "deepseek-v4-flash", None),
            ("xai", "grok-4-0709", Some(3.0)),
            ("xai", "grok-4.20", None),
            ("gemini", "gemini-3.1-pro-preview", Some(2.0)),
            ("groq", "openai/gpt-oss-120b", None),
            ("mistral", "codestral-latest", Some(0.3)),
        ] {
            assert_eq!(model(provider, name).prices.map(|p| p.input), input, "{provider} {name}");
        }
    }

    #[test]
    fn costs_are_added_up() {
        let usage = |input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens| Usage {
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
        };
        let prices = Prices { cache_read: 0.5, cache_write: 6.25, ..Prices::new(5.0, 25.0) };
        for (prices, usage, dollars) in [
            (prices, usage(0, 0, 0, 0), 0.0),
            (prices, usage(1_000_000, 1_000_000, 1_000_000, 1_000_000), 36.75),
            (prices, usage(1200, 300, 40_000, 0), 0.0335),
            (Prices::new(1.0, 2.0), usage(0, 0, 1_000_000, 1_000_000), 2.0),
            (Prices::FREE, usage(9, 9, 9, 9), 0.0),
        ] {
            assert!((prices.cost(&usage) - dollars).abs() < 1e-9, "{usage:?}: {}", prices.cost(&usage));
        }
    }

    #[test]
    fn what_a_model_sees_is_no_guess() {
        for (name, sees) in
            [("claude-sonnet-5-5", true), ("gpt-5.5", true), ("deepseek-v4-pro", false), ("nobody-knows", false)]
        {
            assert_eq!(model("p", name).sees, sees, "{name}");
        }
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
