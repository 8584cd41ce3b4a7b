//! What the forms of interface read and write alike.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use agent_tools::Part;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::super::{Model, Request, Usage};
use crate::message::{Block, CallResult, Message};

/// A name or id with the letters that servers allow; a model may have made up others, another server may have.
pub(in super::super) fn plain(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match name {
        "" => Cow::Borrowed("unnamed"),
        _ if name.chars().all(allowed) => Cow::Borrowed(name),
        _ => Cow::Owned(name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()),
    }
}

/// The arguments of an old call, verbatim where they are a JSON object: servers refuse others.
pub(in super::super) fn object(arguments: &str) -> &str {
    let good = arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    if good { arguments } else { "{}" }
}

/// Whether data that is no JSON is a damaged event. What does not even begin as an object does is noise, and skipped;
/// a damaged event would have been part of the answer.
pub(in super::super) fn is_damaged(data: &str) -> bool {
    let inner = data.trim_start().strip_prefix('{').map(str::trim_start);
    inner.is_some_and(|rest| rest.is_empty() || rest.starts_with(['"', '}']))
}

/// Reads an event. Halves of surrogate pairs, which some servers send, are replaced first: JSON has no such text.
///
/// # Errors
/// The data is no JSON of this form.
pub(in super::super) fn read<T: DeserializeOwned>(data: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(data).or_else(|e| match without_half_pairs(data) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(e),
    })
}

/// The data with each escaped half of a surrogate pair replaced; none where there was none.
fn without_half_pairs(data: &str) -> Option<String> {
    let unit = |at: usize| data.get(at..at + 6)?.strip_prefix("\\u").and_then(|h| u16::from_str_radix(h, 16).ok());
    let (mut mended, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = data[at..].find('\\') {
        let escape = at + found;
        at = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(escape + 6), Some(0xDC00..=0xDFFF)) => escape + 12,
            Some(0xD800..=0xDFFF) => {
                mended.push_str(&data[kept..escape]);
                mended.push('\u{fffd}');
                kept = escape + 6;
                kept
            }
            Some(_) => escape + 6,
            // Another escape: a letter, or a backslash that must not be taken for the beginning of one.
            None => escape + 1 + data[escape + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    (kept > 0).then(|| mended + &data[kept..])
}

/// Whether a field for an error has one in it.
pub(in super::super) fn is_something(error: &Value) -> bool {
    !matches!(error, Value::Null | Value::Bool(false)) && error.as_str() != Some("")
}

/// A number of tokens; nothing where it is missing or no number.
pub(in super::super) fn tokens(usage: &Value, name: &str) -> Option<u64> {
    let value = usage.get(name)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, written as a float")]
    value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
}

/// The usage of the OpenAI forms: what was sent counts what came from or went to the cache.
pub(in super::super) fn counted(usage: &Value, sent: &str, received: &str) -> Option<Usage> {
    let all = tokens(usage, sent)?;
    let detail = |name: &str| usage.get(format!("{sent}_details")).and_then(|details| tokens(details, name));
    let cached = detail("cached_tokens")
        .or_else(|| tokens(usage, "prompt_cache_hit_tokens"))
        .or_else(|| tokens(usage, "cached_tokens"))
        .unwrap_or(0);
    let written = detail("cache_write_tokens").unwrap_or(0);
    Some(Usage {
        input_tokens: all.saturating_sub(cached).saturating_sub(written),
        output_tokens: tokens(usage, received).unwrap_or(0),
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written,
    })
}

/// How many tokens the answer may have: as many as are wanted, if the model can.
pub(in super::super) fn limit(model: &Model, request: &Request<'_>) -> Option<u64> {
    match (request.max_tokens, model.max_output) {
        (Some(wanted), Some(most)) => Some(wanted.min(most)),
        (wanted, most) => wanted.or(most),
    }
}

/// A part of a message as a model takes it.
pub(in super::super) enum Shown<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A picture.
    Picture(Picture<'a>),
}

impl<'a> Shown<'a> {
    /// A model that does not see is told in words that there was a picture: its server would refuse the whole request.
    pub(in super::super) fn of(part: &'a Part, sees: bool) -> Option<Self> {
        match part {
            Part::Text { text } => Some(Self::Text(text.into())),
            Part::Image { media_type, data } if sees => Some(Self::Picture(Picture { media_type, data })),
            Part::Image { media_type, .. } => {
                Some(Self::Text(format!("[picture {media_type}, not shown: this model does not see pictures]").into()))
            }
            // A kind of part that no form has words for.
            _ => None,
        }
    }
}

/// A picture; written as a data URL.
#[derive(Clone, Copy)]
pub(in super::super) struct Picture<'a> {
    /// What kind of file it is.
    pub(in super::super) media_type: &'a str,
    /// Its bytes in base64.
    pub(in super::super) data: &'a str,
}

impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.media_type, self.data)
    }
}

impl Serialize for Picture<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The pictures of results, where they cannot stand in those.
pub(in super::super) fn pictures(results: &[CallResult], sees: bool) -> impl Iterator<Item = Picture<'_>> {
    let shown = results.iter().flat_map(|result| &result.parts).filter_map(move |part| Shown::of(part, sees));
    shown.filter_map(|shown| match shown {
        Shown::Picture(picture) => Some(picture),
        Shown::Text(_) => None,
    })
}

/// What stands before pictures that follow their results.
pub(in super::super) const PICTURES: &str = "The pictures of the results above:";

/// The words of parts, without a copy where there is only one.
pub(in super::super) fn texts<'a>(parts: &'a [Part], sees: bool, between: &str) -> Cow<'a, str> {
    let texts = parts.iter().filter_map(|part| match (part, Shown::of(part, sees)?) {
        (_, Shown::Picture(_)) => None,
        (Part::Text { .. }, Shown::Text(text)) => Some((text, Some(between))),
        // What stands for a picture has a line of its own.
        (_, Shown::Text(text)) => Some((text, None)),
    });
    joined(texts).unwrap_or_default()
}

/// The words of an answer.
pub(in super::super) fn words(blocks: &[Block]) -> Option<Cow<'_, str>> {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some((Cow::Borrowed(text.as_str()), Some("\n"))),
        Block::Call { .. } | Block::Opaque { .. } => None,
    });
    joined(texts)
}

/// Texts joined, each with what stands before it, or else on a line of its own; empty ones are left out.
fn joined<'a, 'b>(texts: impl Iterator<Item = (Cow<'a, str>, Option<&'b str>)>) -> Option<Cow<'a, str>> {
    let mut texts = texts.filter(|(text, _)| !text.is_empty());
    let (mut all, _) = texts.next()?;
    for (text, between) in texts {
        let all = all.to_mut();
        all.push_str(between.unwrap_or(if all.ends_with('\n') { "" } else { "\n" }));
        all.push_str(&text);
    }
    Some(all)
}

/// Gives calls ids that the conversation does not have yet.
#[derive(Debug, Default)]
pub(in super::super) struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    pub(in super::super) fn of(request: &Request<'_>) -> Self {
        Self { taken: request.messages.iter().flat_map(Message::calls).map(|c| c.id.clone()).collect() }
    }

    /// The id itself, or another where it is empty or taken.
    pub(in super::super) fn unique(&mut self, id: String) -> String {
        let mut candidate = id;
        let mut n = self.taken.len();
        while candidate.is_empty() || self.taken.contains(&candidate) {
            candidate = format!("call_{n}");
            n += 1;
        }
        self.taken.insert(candidate.clone());
        candidate
    }
}

/// Text as servers write it: a string, null, a number, or a list of parts with text in them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Text(pub(in super::super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Text, E> {
        Ok(Text(text))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_i64<E>(self, n: i64) -> Result<Text, E> {
        Ok(Text(n.to_string()))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Text, E> {
        Ok(Text(n.to_string()))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Text, E> {
        Ok(Text(n.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut all = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            all.push_str(&part);
        }
        Ok(Text(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Text, A::Error> {
        let mut text = Text::default();
        while let Some(name) = fields.next_key::<String>()? {
            if name == "text" {
                text = fields.next_value()?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_read_in_all_their_forms() {
        for (json, expect) in [
            (r#""a\nb""#, "a\nb"),
            ("null", ""),
            ("true", ""),
            ("7", "7"),
            ("[]", ""),
            (r#"[{"type":"thinking","thinking":[{"type":"text","text":"no"}]},{"type":"text","text":"yes"}]"#, "yes"),
            (r#"{"text":"x"}"#, "x"),
        ] {
            assert_eq!(serde_json::from_str::<Text>(json).unwrap().0, expect, "{json}");
        }
    }

    #[test]
    fn noise_is_told_from_damage() {
        for (data, damaged) in [
            ("keep-alive", false),
            ("{not json at all", false),
            ("[1, 2", false),
            ("<html>", false),
            (r#"{"choices":[{"del"#, true),
            (r#" { "a"#, true),
            ("{", true),
            ("{}}", true),
        ] {
            assert_eq!(is_damaged(data), damaged, "{data}");
        }
    }

    #[test]
    fn half_pairs_are_replaced_and_nothing_else() {
        for (data, expect) in [
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00""#, "\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud83d \ud83d\n""#, "\\ud83d \u{fffd}\n"),
            (r#""\u00e9é\ud83d""#, "éé\u{fffd}"),
            (r#""whole \ud83d\ude00""#, "whole 😀"),
        ] {
            assert_eq!(read::<String>(data).unwrap(), expect, "{data}");
        }
        for data in [r#""\ud83d"#, r#""\"#, r#""\é"#, r#""\u"#, r#""\ud8é"#] {
            assert!(read::<String>(data).is_err(), "{data}");
        }
    }

    #[test]
    fn names_and_arguments_are_made_fit_for_any_server() {
        assert_eq!(plain("functions.bash:0"), "functions_bash_0");
        assert_eq!((plain("a-B_1"), plain("")), (Cow::Borrowed("a-B_1"), Cow::Borrowed("unnamed")));
        for (given, expect) in
            [(r#" {"a": 1}"#, r#" {"a": 1}"#), ("", "{}"), ("{\"a\"", "{}"), ("[1]", "{}"), ("null", "{}")]
        {
            assert_eq!(object(given), expect);
        }
    }

    #[test]
    fn pictures_are_told_in_words_to_who_does_not_see() {
        let picture = || Part::Image { media_type: "image/png".into(), data: "AA".into() };
        const NOTE: &str = "[picture image/png, not shown: this model does not see pictures]";
        for (parts, sees, expect) in [
            (vec![Part::text("a"), Part::text("b"), picture()], true, "ab".to_owned()),
            (vec![Part::text("a"), Part::text("b"), picture()], false, format!("ab\n{NOTE}")),
            (vec![Part::text("a\n"), picture(), picture()], false, format!("a\n{NOTE}\n{NOTE}")),
            (vec![picture()], false, NOTE.to_owned()),
            (vec![], false, String::new()),
        ] {
            assert_eq!(texts(&parts, sees, ""), expect);
        }
    }

    #[test]
    fn usage_is_counted_once() {
        for (usage, expect) in [
            (json!({"input_tokens": 9}), Some((9, 0, 0, 0))),
            (json!({"input_tokens": 9, "output_tokens": 2, "cached_tokens": 4}), Some((5, 2, 4, 0))),
            (
                json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}),
                Some((2, 0, 4, 3)),
            ),
            (json!({"input_tokens": 1, "input_tokens_details": {"cached_tokens": 4}}), Some((0, 0, 4, 0))),
            (json!({"prompt_tokens": 9}), None),
            (json!(null), None),
        ] {
            let usage = counted(&usage, "input_tokens", "output_tokens");
            let numbers = usage
                .map(|u| (u.input_tokens, u.output_tokens, u.cache_read_input_tokens, u.cache_creation_input_tokens));
            assert_eq!(numbers, expect);
        }
    }

    #[test]
    fn ids_are_unique_in_the_conversation() {
        let mut ids = Ids { taken: HashSet::from(["a".into(), "call_2".into()]) };
        let made: Vec<_> = ["b", "a", "", "", "b"].map(|id| ids.unique(id.into())).into();
        assert_eq!(made, ["b", "call_3", "call_4", "call_5", "call_6"]);
    }
}
