//! How servers and models differ within one form of interface: the table `quirks.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::models::{Form, longest};
use super::{Effort, Model};

const TABLE: &str = include_str!("quirks.json");

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    // A test reads the table: that it is valid is known when the crate is built.
    serde_json::from_str(TABLE).unwrap_or_default()
});

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct Known {
    servers: Vec<Habits>,
    /// By how their names begin.
    models: BTreeMap<&'static str, Habits>,
}

/// What one line of the table says; nothing is as most have it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Habits {
    /// Of a server: its name, or the end of it.
    #[serde(borrow)]
    hosts: Vec<&'static str>,
    effort: Option<Way>,
    levels: Option<Vec<Level>>,
    thinking: Option<Thinking>,
    new_limit: bool,
    stream_options: Option<bool>,
    reasoning_back: Option<Back>,
    system: Option<&'static str>,
    alternate: bool,
    pictures_in_results: Option<bool>,
}

/// How Chat Completions are told how hard to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Way {
    /// Not at all.
    None,
    /// `reasoning_effort`
    ReasoningEffort,
    /// `reasoning_effort`, and thinking is switched on.
    Deepseek,
    /// `reasoning: {effort}`
    Reasoning,
}

/// How Messages are told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Thinking {
    /// As much as it takes, with an effort.
    Adaptive,
    /// It is switched on, with an effort.
    Enabled,
    /// So many tokens.
    Budget,
}

/// When reasoning is sent back with the calls that it led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Back {
    /// While its answer is under way: it is ignored or refused afterwards.
    UnderWay,
    /// As long as the conversation lasts.
    Always,
    /// It is refused.
    Never,
}

/// Efforts as servers name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl From<Effort> for Level {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Low => Self::Low,
            Effort::Medium => Self::Medium,
            Effort::High => Self::High,
            Effort::Xhigh => Self::Xhigh,
            Effort::Max => Self::Max,
        }
    }
}

/// How a model at a server wants to be asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quirks {
    /// How it is told how hard to think, in Chat Completions.
    pub(super) effort: Way,
    /// How it is told to think, in Messages.
    pub(super) thinking: Thinking,
    /// The limit is called `max_completion_tokens`: OpenAI's newer models refuse `max_tokens`, most other servers know
    /// nothing else.
    pub(super) new_limit: bool,
    /// `stream_options` are taken.
    pub(super) stream_options: bool,
    /// When reasoning is wanted back.
    pub(super) reasoning_back: Back,
    /// The role of the system prompt.
    pub(super) system: &'static str,
    /// A message of the user must follow an answer, never another message of the user or a result.
    pub(super) alternate: bool,
    /// Results may have pictures, where the form has them at all.
    pub(super) pictures_in_results: bool,
    /// None: it is not known which efforts there are.
    levels: Option<&'static [Level]>,
}

impl Quirks {
    /// Those of a model at this address.
    pub(super) fn of(model: &Model, url: &str) -> Self {
        let url = Url::parse(url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let server = KNOWN.servers.iter().find(|known| known.hosts.iter().any(|end| is_at(host, end)));
        let of_model = longest(KNOWN.models.iter().map(|(prefix, habits)| (*prefix, habits)), &model.name);
        let of_model = of_model.map(|(_, habits)| habits);
        Self {
            effort: server.and_then(|s| s.effort).unwrap_or(Way::ReasoningEffort),
            thinking: of_model.and_then(|m| m.thinking).unwrap_or(Thinking::Adaptive),
            new_limit: server.is_some_and(|s| s.new_limit),
            stream_options: server.and_then(|s| s.stream_options).unwrap_or(true),
            reasoning_back: server.and_then(|s| s.reasoning_back).unwrap_or(Back::UnderWay),
            system: server.and_then(|s| s.system).unwrap_or("system"),
            alternate: server.is_some_and(|s| s.alternate),
            pictures_in_results: server.and_then(|s| s.pictures_in_results).unwrap_or(true),
            levels: server.and_then(|s| s.levels.as_deref()).or_else(|| of_model?.levels.as_deref()),
        }
    }

    /// The effort that is nearest to the wanted one; nothing where the model has none, or where none is known.
    pub(super) fn level(&self, wanted: Option<Effort>) -> Option<Level> {
        let wanted = Level::from(wanted?);
        let levels = self.levels?.iter().copied();
        // Of two that are as near, the one nearer to what models do by themselves.
        levels.min_by_key(|level| (distance(*level, wanted), distance(*level, Level::High)))
    }

    /// Whether it is known that the model does not reason.
    pub(super) fn never_reasons(&self) -> bool {
        self.levels.is_some_and(<[Level]>::is_empty)
    }

    /// Whether it can be told how hard to think.
    fn takes_effort(&self, form: Form) -> bool {
        let way = match form {
            Form::OpenaiChat => self.effort != Way::None,
            Form::Responses | Form::Anthropic => true,
        };
        way && self.levels.is_some_and(|levels| !levels.is_empty())
    }
}

/// Whether this model at this address can be told how hard to think.
pub(crate) fn takes_effort(model: &Model, base_url: &str, form: Form) -> bool {
    Quirks::of(model, base_url).takes_effort(form)
}

fn is_at(host: &str, end: &str) -> bool {
    host.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

fn distance(a: Level, b: Level) -> u8 {
    (a as u8).abs_diff(b as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quirks(name: &str, url: &str) -> Quirks {
        Quirks::of(&Model::new("p", name), url)
    }

    #[test]
    fn the_table_is_whole() {
        let known: Known = serde_json::from_str(TABLE).unwrap();
        assert!(known.servers.iter().all(|server| !server.hosts.is_empty()));
        for (prefix, habits) in &known.models {
            let levels = habits.levels.as_deref().unwrap();
            assert!(habits.hosts.is_empty() && levels.is_sorted_by(|a, b| a < b), "{prefix}");
        }
        let lines = TABLE.lines().filter(|line| line.starts_with("    \"")).count();
        assert_eq!(lines, known.models.len(), "something is named twice");
    }

    #[test]
    fn efforts_become_the_nearest_that_there_is() {
        use Level::{High, Low, Max, Medium, Xhigh};
        const OPENAI: &str = "https://api.openai.com/v1/chat/completions";
        let all = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];
        for (name, url, expect) in [
            ("gpt-5.5", OPENAI, [Some(Low), Some(Medium), Some(High), Some(Xhigh), Some(Xhigh)]),
            ("gpt-5.1", OPENAI, [Some(Low), Some(Medium), Some(High), Some(High), Some(High)]),
            ("gpt-6-sol", OPENAI, [Some(Low), Some(Medium), Some(High), Some(Xhigh), Some(Max)]),
            ("gpt-5-pro", OPENAI, [Some(High); 5]),
            ("gpt-4.1", OPENAI, [None; 5]),
            ("deepseek-v4-pro", "https://api.deepseek.com", [Some(Low), Some(High), Some(High), Some(High), Some(Max)]),
            ("claude-sonnet-4-6", "https://x.y", [Some(Low), Some(Medium), Some(High), Some(High), Some(Max)]),
            ("claude-sonnet-5-5", "https://x.y", [Some(Low), Some(Medium), Some(High), Some(Xhigh), Some(Max)]),
            (
                "anthropic/claude-3-haiku",
                "https://openrouter.ai",
                [Some(Low), Some(Medium), Some(High), Some(Xhigh), Some(Xhigh)],
            ),
            ("qwen3", "http://localhost:8080", [None; 5]),
            (
                "openai/gpt-oss-20b",
                "http://localhost:8080",
                [Some(Low), Some(Medium), Some(High), Some(High), Some(High)],
            ),
        ] {
            assert_eq!(all.map(|effort| quirks(name, url).level(Some(effort))), expect, "{name} {url}");
            assert_eq!(quirks(name, url).level(None), None);
        }
    }

    #[test]
    fn servers_are_known_by_their_names() {
        for (url, new_limit, system, stream_options, back) in [
            ("https://api.openai.com/v1", true, "developer", true, Back::UnderWay),
            ("https://me.openai.azure.com/openai/v1", true, "developer", true, Back::UnderWay),
            ("https://api.openai.com.evil.example/v1", false, "system", true, Back::UnderWay),
            ("https://notapi.openai.com/v1", false, "system", true, Back::UnderWay),
            ("https://api.deepseek.com/v1", false, "system", true, Back::Always),
            ("https://api.mistral.ai/v1", false, "system", false, Back::Never),
            ("http://127.0.0.1:8080", false, "system", true, Back::UnderWay),
            ("nonsense", false, "system", true, Back::UnderWay),
        ] {
            let quirks = quirks("m", url);
            let known = (quirks.new_limit, quirks.system, quirks.stream_options, quirks.reasoning_back);
            assert_eq!(known, (new_limit, system, stream_options, back), "{url}");
        }
    }

    #[test]
    fn who_cannot_be_told_how_hard_to_think_is_known() {
        for (name, url, form, takes) in [
            ("gpt-5.5", "https://api.openai.com/v1", Form::OpenaiChat, true),
            ("gpt-4o", "https://api.openai.com/v1", Form::Responses, false),
            ("mistral-large-4", "https://api.mistral.ai/v1", Form::OpenaiChat, false),
            ("gpt-oss-20b", "https://api.mistral.ai/v1", Form::OpenaiChat, false),
            ("llama", "http://localhost", Form::OpenaiChat, false),
            ("claude-3-opus", "https://api.anthropic.com", Form::Anthropic, false),
            ("claude-opus-4-20250514", "https://api.anthropic.com", Form::Anthropic, true),
        ] {
            assert_eq!(takes_effort(&Model::new("p", name), url, form), takes, "{name} {url}");
        }
    }
}
