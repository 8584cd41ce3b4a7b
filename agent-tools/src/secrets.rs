//! Masks keys in what a model reads: those of known kinds by their shape, the agent's own by their text.

use std::borrow::Cow;

/// A kind of key: how it begins, what it is made of, how much of that at least.
struct Kind {
    name: &'static str,
    prefix: &'static str,
    also: &'static str,
    at_least: usize,
}

const fn kind(name: &'static str, prefix: &'static str, also: &'static str, at_least: usize) -> Kind {
    Kind { name, prefix, also, at_least }
}

/// Prefixes that vendors document for their keys. Letters and digits follow, and what `also` has. Longer ones first.
const KINDS: &[Kind] = &[
    kind("Anthropic", "sk-ant-", "-_", 20),
    kind("OpenRouter", "sk-or-", "-_", 20),
    kind("OpenAI", "sk-proj-", "-_", 20),
    kind("OpenAI", "sk-svcacct-", "-_", 20),
    kind("OpenAI", "sk-", "", 32),
    kind("Google", "AIza", "-_", 35),
    kind("GitHub", "github_pat_", "_", 30),
    kind("GitHub", "ghp_", "", 30),
    kind("GitHub", "gho_", "", 30),
    kind("GitHub", "ghu_", "", 30),
    kind("GitHub", "ghs_", "", 30),
    kind("GitHub", "ghr_", "", 30),
    kind("GitLab", "glpat-", "-_", 20),
    kind("AWS", "AKIA", "", 16),
    kind("AWS", "ASIA", "", 16),
    kind("Slack", "xoxb-", "-", 20),
    kind("Slack", "xoxp-", "-", 20),
    kind("Slack", "xapp-", "-", 20),
    kind("Stripe", "sk_live_", "", 20),
    kind("Stripe", "rk_live_", "", 20),
    kind("Hugging Face", "hf_", "", 30),
    kind("npm", "npm_", "", 36),
    kind("PyPI", "pypi-", "-_", 50),
    kind("Groq", "gsk_", "", 40),
    kind("xAI", "xai-", "-_", 40),
];

const PRIVATE: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY-----");

/// The text with keys of known kinds masked.
pub fn masked(text: &str) -> Cow<'_, str> {
    mask(text, &[]).map_or(Cow::Borrowed(text), |(masked, _)| Cow::Owned(masked))
}

/// The text with its keys masked, and how many there were; none where there is nothing to mask. `own`: the agent's own
/// keys.
pub(crate) fn mask(text: &str, own: &[String]) -> Option<(String, usize)> {
    let mut masked = String::new();
    let (mut count, mut kept, mut at) = (0, 0, 0);
    while at < text.len() {
        let Some((len, name)) = key_at(text, at, own) else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        masked.push_str(&text[kept..at]);
        masked.push_str(&format!("[masked: {name}]"));
        count += 1;
        at += len;
        kept = at;
    }
    masked.push_str(&text[kept..]);
    (count > 0).then_some((masked, count))
}

/// The length and name of the key that begins here.
fn key_at(text: &str, at: usize, own: &[String]) -> Option<(usize, String)> {
    let rest = &text[at..];
    if let Some(key) = own.iter().find(|key| rest.starts_with(key.as_str())) {
        return Some((key.len(), "a key of this agent".into()));
    }
    if rest.starts_with(PRIVATE.0) {
        return private_key(rest).map(|len| (len, "a private key".into()));
    }
    let inside_word = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    if inside_word {
        return None;
    }
    let kind = KINDS.iter().find(|kind| rest.starts_with(kind.prefix))?;
    let body = rest[kind.prefix.len()..].bytes();
    let len = body.take_while(|b| b.is_ascii_alphanumeric() || kind.also.as_bytes().contains(b)).count();
    (len >= kind.at_least).then(|| (kind.prefix.len() + len, format!("a key of {}", kind.name)))
}

/// From `BEGIN` to the end of `END`; to the end of the text where that was cut off.
fn private_key(rest: &str) -> Option<usize> {
    let head = rest.lines().next()?;
    if !head.trim_end().ends_with(PRIVATE.1) {
        return None;
    }
    let end = rest.find("-----END ").and_then(|i| rest[i..].find(PRIVATE.1).map(|j| i + j + PRIVATE.1.len()));
    Some(end.unwrap_or(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_and_other_text_is_left() {
        let own = ["own-key-0001".to_owned()];
        let long = "a1B2".repeat(10);
        for (text, expect) in [
            (format!("k={long}"), None),
            (format!("OPENAI_API_KEY=sk-{long}\n"), Some("OPENAI_API_KEY=[masked: a key of OpenAI]\n".to_owned())),
            (format!("\"sk-ant-api03-{long}\""), Some("\"[masked: a key of Anthropic]\"".into())),
            (format!("ghp_{long} ghp_{long}"), Some("[masked: a key of GitHub] [masked: a key of GitHub]".into())),
            (format!("task-{long}, risk_{long}"), None),
            (format!("https://h/sk-{long}"), Some("https://h/[masked: a key of OpenAI]".into())),
            ("AKIAIOSFODNN7EXAMPLE".into(), Some("[masked: a key of AWS]".into())),
            ("sk-short, npm_install, hf_hub, AKIA".into(), None),
            ("é own-key-0001é".into(), Some("é [masked: a key of this agent]é".into())),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb".into(),
                Some("a\n[masked: a private key]\nb".into()),
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII".into(), Some("[masked: a private key]".into())),
            ("-----BEGIN CERTIFICATE-----\nMII".into(), None),
        ] {
            assert_eq!(mask(&text, &own).map(|(masked, _)| masked), expect, "{text}");
        }
    }
}
