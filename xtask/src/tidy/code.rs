//! Rust text without its comments and its tests, line for line.

/// `text` with comments and what is under `#[cfg(test)]` as blanks. Strings stay, line ends too.
pub(crate) fn without_comments_and_tests(text: &str) -> String {
    let bare = blanked(text, &spans(text));
    blanked(&without_comments(text), &tests(&bare))
}

/// `text` with comments as blanks. Strings stay, line ends too.
pub(crate) fn without_comments(text: &str) -> String {
    let comments: Vec<Span> = spans(text).into_iter().filter(|span| span.kind == Kind::Comment).collect();
    blanked(text, &comments)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Comment,
    /// A string or a character.
    Literal,
    Test,
}

/// Bytes `start..end`.
#[derive(Debug, Clone, Copy)]
struct Span {
    kind: Kind,
    start: usize,
    end: usize,
}

fn blanked(text: &str, spans: &[Span]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in spans.iter().flat_map(|span| span.start..span.end) {
        if bytes[byte] != b'\n' {
            bytes[byte] = b' ';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Comments and literals, in order.
fn spans(text: &str) -> Vec<Span> {
    let (mut spans, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = match span_at(text, at) {
            Some((kind, length)) => {
                spans.push(Span { kind, start: at, end: at + length });
                at + length
            }
            None => at + text[at..].chars().next().map_or(1, char::len_utf8),
        };
        at = end;
    }
    spans
}

fn span_at(text: &str, at: usize) -> Option<(Kind, usize)> {
    let rest = &text[at..];
    let in_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return Some((Kind::Comment, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((Kind::Comment, block_comment(rest)));
    }
    if rest.starts_with('r') && !in_word {
        return raw_string(&rest[1..]).map(|length| (Kind::Literal, length + 1));
    }
    match rest.as_bytes()[0] {
        b'"' => Some((Kind::Literal, string(rest))),
        b'\'' => character(rest).map(|length| (Kind::Literal, length)),
        _ => None,
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest.bytes().enumerate().skip(1).find(|(_, byte)| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |(at, _)| at + 1)
}

/// What follows the `r` of a raw string: `#`s, then quotes, up to the quote with as many `#`s.
fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let inner = rest[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(inner.find(&close).map_or(rest.len(), |end| hashes + 1 + end + close.len()))
}

/// A character; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first != '\\' {
        return chars.next().filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    chars.next();
    chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1)
}

/// The items under `#[cfg(test)]`, in text whose comments and literals are blanks.
fn tests(bare: &str) -> Vec<Span> {
    if bare.contains("#![cfg(test)]") {
        return vec![Span { kind: Kind::Test, start: 0, end: bare.len() }];
    }
    let starts = ["#[cfg(test)]", "#[cfg(all(test"].into_iter().flat_map(|mark| bare.match_indices(mark));
    starts.map(|(start, _)| Span { kind: Kind::Test, start, end: start + item(&bare[start..]) }).collect()
}

/// How long an item is: up to its `;`, or to the brace that closes its first one.
fn item(bare: &str) -> usize {
    let mut depth = 0i32;
    for (at, byte) in bare.bytes().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth -= 1,
            _ => {}
        }
        if depth < 0 || depth == 0 && matches!(byte, b'}' | b';' | b',') {
            return at + 1;
        }
    }
    bare.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_become_blanks_and_strings_stay() {
        for (text, gone, kept) in [
            ("a // GONE\nKEPT", "GONE", "KEPT"),
            ("/// GONE\nfn KEPT() {}", "GONE", "KEPT"),
            ("/* GONE /* x */ GONE */ KEPT", "GONE", "KEPT"),
            ("let a = \"// KEPT\"; // GONE", "GONE", "KEPT"),
            ("let a = r#\"\" // KEPT\"#; // GONE", "GONE", "KEPT"),
            ("let a = br\"// KEPT\"; // GONE", "GONE", "KEPT"),
            ("let a = \"\\\" // KEPT\"; // GONE", "GONE", "KEPT"),
            ("let a = '\"'; // GONE\nKEPT", "GONE", "KEPT"),
            ("let a = '\\''; // GONE\nKEPT", "GONE", "KEPT"),
            ("fn f<'a>(x: &'a str) { KEPT } // GONE", "GONE", "KEPT"),
            ("#[cfg(test)]\nmod tests { let a = \"}\"; fn f() { GONE } }\nfn g() { KEPT }", "GONE", "KEPT"),
            ("#[cfg(test)]\nmod tests { '}'; /* } */ GONE }\nKEPT", "GONE", "KEPT"),
            ("#[cfg(test)]\nuse GONE;\nKEPT", "GONE", "KEPT"),
            ("#[cfg(test)]\nfn f(a: [u8; 2]) { GONE }\nKEPT", "GONE", "KEPT"),
            ("struct S {\n#[cfg(test)]\nGONE: u8,\nKEPT: u8 }", "GONE", "KEPT"),
            ("#[cfg(all(test, unix))]\nmod t { GONE }\nKEPT", "GONE", "KEPT"),
            ("#[cfg(not(test))]\nmod t { KEPT } // GONE", "GONE", "KEPT"),
            ("let a = \"#[cfg(test)] mod x {\"; KEPT // GONE", "GONE", "KEPT"),
            ("é // GONE é\nKEPT", "GONE", "KEPT"),
        ] {
            let code = without_comments_and_tests(text);
            assert!(!code.contains(gone) && code.contains(kept), "{text:?} -> {code:?}");
            assert_eq!(code.lines().count(), text.lines().count(), "{text:?}");
        }
        assert_eq!(without_comments_and_tests("#![cfg(test)]\nfn f() {}").trim(), "");
        for broken in ["\"open", "/* open", "r#\"open", "'", "'\\", "#[cfg(test)]", "r#", "r"] {
            assert_eq!(without_comments_and_tests(broken).len(), broken.len());
        }
    }
}
