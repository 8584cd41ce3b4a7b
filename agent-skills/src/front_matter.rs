//! Reads the YAML between the `---` lines at the top of a skill, and forgives what most authors get wrong.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Options;
use serde_saphyr::options::NonFiniteFloatPolicy;

/// A skill's text, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Page<'t> {
    pub(crate) front: FrontMatter,
    pub(crate) body: &'t str,
    pub(crate) fault: Option<Fault>,
}

/// The values of the front matter that this crate knows, each as text. Those of other shapes are `None`.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub(crate) struct FrontMatter {
    pub(crate) name: Text,
    pub(crate) description: Text,
    pub(crate) license: Text,
    pub(crate) compatibility: Text,
    #[serde(rename = "allowed-tools", alias = "allowed_tools")]
    pub(crate) allowed_tools: Text,
}

/// What is wrong with a front matter, in words for the skill's author.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(
        "its front matter is not valid YAML ({0}); it was read as if such values were in quotes. Put quotes around them"
    )]
    Mended(String),
    #[error("its front matter cannot be read ({0})")]
    Broken(String),
    #[error("its front matter has no closing `---` line")]
    Unclosed,
}

/// Takes the text of a skill apart. Without a front matter, all of it is the body.
pub(crate) fn read(text: &str) -> Page<'_> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match split(text) {
        Split::None => Page { body: text, ..Page::default() },
        Split::Closed { yaml, body } => {
            let (front, fault) = parse(yaml);
            Page { front, body, fault }
        }
        Split::Unclosed { rest } => {
            let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
            Page { front: salvage(head), body, fault: Some(Fault::Unclosed) }
        }
    }
}

#[derive(Debug, PartialEq)]
enum Split<'t> {
    None,
    /// `yaml` has all from the start of the file, the opening fence too, so that line numbers are those of the file.
    Closed {
        yaml: &'t str,
        body: &'t str,
    },
    Unclosed {
        rest: &'t str,
    },
}

fn split(text: &str) -> Split<'_> {
    let mut lines = Lines { text, at: 0 };
    let Some(first) = lines.find(|line| !line.text.trim().is_empty()) else { return Split::None };
    if !is_fence(first.text) {
        return Split::None;
    }
    let start = lines.at;
    match lines.find(|line| is_fence(line.text)) {
        Some(fence) => Split::Closed { yaml: &text[..fence.start], body: &text[lines.at..] },
        None => Split::Unclosed { rest: &text[start..] },
    }
}

/// `---`, with blanks behind it at most: an indented one belongs to a block scalar.
fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

struct Line<'t> {
    start: usize,
    text: &'t str,
}

struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        let start = self.at;
        let text = self.text[start..].split_inclusive('\n').next()?;
        self.at += text.len();
        Some(Line { start, text })
    }
}

/// Reads as YAML, else as YAML with the usual mistakes mended, else only what stands plainly on a line.
fn parse(yaml: &str) -> (FrontMatter, Option<Fault>) {
    let why = match strict(yaml) {
        Ok(front) => return (front, None),
        Err(why) => why,
    };
    let mended = mend(yaml);
    if mended != yaml
        && let Ok(front) = strict(&mended)
    {
        return (front, Some(Fault::Mended(why)));
    }
    (salvage(yaml), Some(Fault::Broken(why)))
}

fn strict(yaml: &str) -> Result<FrontMatter, String> {
    let front: Result<Option<FrontMatter>, _> = serde_saphyr::from_str_with_options(yaml, options());
    front.map(Option::unwrap_or_default).map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
}

/// The file is not ours: its aliases and its depth are bounded. `yes` and `0755` stay what was written.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 5_000, max_events: 20_000, max_anchors: 200, max_aliases: 500, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 5_000, max_replay_stack_depth: 16 },
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
    }
}

/// Quotes the values that YAML cannot read and people write all the same: `description: Use when: always`.
fn mend(yaml: &str) -> String {
    let mut lines = yaml.lines().peekable();
    let mut out = Vec::new();
    while let Some(line) = lines.next() {
        let Some((key, value)) = entry(line) else {
            out.push(line.to_owned());
            continue;
        };
        let deeper = |next: &&str| next.trim().is_empty() || indent(next) > indent(line);
        let rest: Vec<&str> = std::iter::from_fn(|| lines.next_if(deeper)).collect();
        match value.chars().next() {
            None => out.extend([line.to_owned(), mend(&rest.join("\n"))]),
            Some('|' | '>') => out.extend(std::iter::once(line).chain(rest).map(str::to_owned)),
            Some(_) => out.push(format!("{key}: {}", quoted(&joined(value, &rest)))),
        }
    }
    out.join("\n")
}

/// `  key: value` as its two parts, the key with its indentation. A key is a bare word.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let word = key.trim_start();
    let bare = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    (bare && word != "---" && (value.is_empty() || value.starts_with([' ', '\t']))).then(|| (key, value.trim()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn joined(value: &str, rest: &[&str]) -> String {
    std::iter::once(value)
        .chain(rest.iter().map(|line| line.trim()))
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(value: &str) -> String {
    if reads_as_yaml(value) {
        return value.to_owned();
    }
    let plain = value.split_once(" #").map_or(value, |(plain, _comment)| plain.trim_end());
    format!("'{}'", plain.replace('\'', "''"))
}

/// An alias is left as it is: what it stands for is elsewhere.
fn reads_as_yaml(value: &str) -> bool {
    let alias = value.starts_with('*') && !value.contains(char::is_whitespace);
    alias || strict(&format!("description: {value}")).is_ok()
}

/// The description where it stands plainly on one line of a front matter that cannot be read as a whole.
fn salvage(yaml: &str) -> FrontMatter {
    let value = yaml.lines().filter(|line| indent(line) == 0).filter_map(entry).find(|(key, _)| *key == "description");
    let plain = value
        .map(|(_, value)| value.trim_matches(['"', '\'']))
        .filter(|value| !value.starts_with(['|', '>', '&', '*']));
    FrontMatter { description: Text(plain.map(str::to_owned)), ..FrontMatter::default() }
}

/// Any YAML value as text: a list becomes `a, b`, a mapping and null nothing.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Text(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, v: &str) -> Result<Text, E> {
        text(v)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Text, E> {
        text(&v)
    }

    fn visit_i64<E>(self, v: i64) -> Result<Text, E> {
        text(&v)
    }

    fn visit_i128<E>(self, v: i128) -> Result<Text, E> {
        text(&v)
    }

    fn visit_u64<E>(self, v: u64) -> Result<Text, E> {
        text(&v)
    }

    fn visit_u128<E>(self, v: u128) -> Result<Text, E> {
        text(&v)
    }

    fn visit_f64<E>(self, v: f64) -> Result<Text, E> {
        text(&v)
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_none<E>(self) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        Text::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Text, A::Error> {
        let mut parts = Vec::new();
        while let Some(Text(part)) = seq.next_element()? {
            parts.extend(part);
        }
        text(&parts.join(", "))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it ends the methods of a visitor, which answer with a Result")]
fn text<E>(value: &(impl ToString + ?Sized)) -> Result<Text, E> {
    Ok(Text(Some(value.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(yaml: &str) -> (Option<String>, &'static str) {
        let (front, fault) = parse(yaml);
        let fault = match fault {
            None => "",
            Some(Fault::Mended(_)) => "mended",
            Some(Fault::Broken(_)) => "broken",
            Some(Fault::Unclosed) => "unclosed",
        };
        (front.description.0, fault)
    }

    #[test]
    fn descriptions_are_read_in_every_spelling() {
        for (yaml, expect, fault) in [
            ("description: Plain", Some("Plain"), ""),
            ("description: \"in \\\"double\\\" quotes\"", Some("in \"double\" quotes"), ""),
            ("description: 'it''s: quoted'", Some("it's: quoted"), ""),
            ("description: >-\n  one\n  two", Some("one two"), ""),
            ("description: >\n  one\n\n  two\n", Some("one\ntwo\n"), ""),
            ("description: |\n  one\n  two: 2\n", Some("one\ntwo: 2\n"), ""),
            ("description: one\n  two", Some("one two"), ""),
            ("# c\n\ndescription: x # c\nname: y\n", Some("x"), ""),
            ("description: x\r\nname: y\r\n", Some("x"), ""),
            ("description: [a, 1, [b]]", Some("a, 1, b"), ""),
            ("description: 42", Some("42"), ""),
            ("description: 007", Some("007"), ""),
            ("description: yes", Some("yes"), ""),
            ("description: true", Some("true"), ""),
            ("description: .nan", Some(".nan"), ""),
            ("description: 123456789012345678901234567890", Some("123456789012345680000000000000"), ""),
            ("description: null", None, ""),
            ("description:", None, ""),
            ("description: {a: {b: 1}}", None, ""),
            ("", None, ""),
            ("# only a comment", None, ""),
            ("name: x", None, ""),
            ("description: Ask: then do: it", Some("Ask: then do: it"), "mended"),
            ("description: Ask: it's # a comment", Some("Ask: it's"), "mended"),
            ("description: Ask:\n  and: go\nname: x", Some("Ask: and: go"), "mended"),
            ("description: @team first", Some("@team first"), "mended"),
            ("description: `x` is run", Some("`x` is run"), "mended"),
            ("description: %d is a number", Some("%d is a number"), "mended"),
            ("description: \"Quoted\" and more", Some("\"Quoted\" and more"), "mended"),
            ("description: [draft] does: things", Some("[draft] does: things"), "mended"),
            ("description: *bold* words", Some("*bold* words"), "mended"),
            ("metadata:\n  note: a: b\ndescription: x", Some("x"), "mended"),
            ("text: |\n  keep: it: so\ndescription: a: b", Some("a: b"), "mended"),
            ("description: x\ndescription: y", Some("x"), "broken"),
            ("- a\n- b", None, "broken"),
            ("just words", None, "broken"),
            ("description: 'fine'\n}: [", Some("fine"), "broken"),
            ("description: >-\n  a\nx: *nowhere\ny: [", None, "broken"),
        ] {
            assert_eq!(description(yaml), (expect.map(str::to_owned), fault), "{yaml:?}");
        }
    }

    #[test]
    fn the_fence_is_found_with_blanks_and_not_inside_a_block() {
        for (text, yaml, body) in [
            ("---\na: 1\n---\nB\n", "---\na: 1\n", "B\n"),
            ("---  \na: 1\n---\t\nB", "---  \na: 1\n", "B"),
            ("---\r\na: 1\r\n---\r\nB", "---\r\na: 1\r\n", "B"),
            ("\n\n---\na: 1\n---", "\n\n---\na: 1\n", ""),
            ("---\na: |\n  ---\n---\nB", "---\na: |\n  ---\n", "B"),
            ("---\n---\n", "---\n", ""),
        ] {
            assert_eq!(split(text), Split::Closed { yaml, body }, "{text:?}");
        }
        for text in ["", "\n", "# Title\n---\na: 1\n---\n", "----\n---", " ---\na\n---"] {
            assert_eq!(split(text), Split::None, "{text:?}");
        }
        assert_eq!(split("---\na: 1\n"), Split::Unclosed { rest: "a: 1\n" });
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        let page = read("\u{feff}---\ndescription: x\n---\nB");
        assert_eq!((page.front.description.0.as_deref(), page.body), (Some("x"), "B"));
        assert_eq!(read("\u{feff}B").body, "B");
    }

    #[test]
    fn an_unclosed_front_matter_gives_what_it_plainly_says() {
        let page = read("---\nname: a\ndescription: Does it: well\n\n# Title\n");
        assert_eq!((page.front.description.0.as_deref(), page.body), (Some("Does it: well"), "# Title\n"));
        assert!(matches!(page.fault, Some(Fault::Unclosed)));
    }

    #[test]
    fn a_fault_names_the_line_of_the_file() {
        let page = read("---\nname: a\ndescription: a: b\n---\n");
        assert!(page.fault.as_ref().is_some_and(|fault| fault.to_string().contains("line 3")), "{:?}", page.fault);
    }

    #[test]
    fn hostile_yaml_is_bounded() {
        let level = |name: char, of: &str| format!("{name}: &{name} [{}]\n", [of; 9].join(","));
        let mut bomb = level('a', "l");
        for pair in "abcdefghi".as_bytes().windows(2) {
            bomb += &level(char::from(pair[1]), &format!("*{}", char::from(pair[0])));
        }
        let used = format!("{bomb}description: *i\n");
        let nested = format!("description: x\na: {}", "[".repeat(30_000));
        let wide = format!("description: x\na: [{}]", "1,".repeat(30_000));
        let colons = format!("description: x\na: {}", "b: ".repeat(20_000));
        let keys: String = (0..9_000).map(|n| format!("k{n}: a: b\n")).collect();
        let start = std::time::Instant::now();
        for yaml in [&bomb, &used, &nested, &wide, &colons, &keys] {
            let (front, _) = parse(yaml);
            assert!(front.description.0.is_none_or(|text| text.len() < 64 * 1024));
        }
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
        assert_eq!(description(&format!("description: x\n{bomb}")).0.as_deref(), Some("x"));
    }
}
