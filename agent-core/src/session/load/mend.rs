//! Mends a line that is no record as it stands: what a crash, an editor or a copy leaves behind. Pure.

use std::borrow::Cow;

use memchr::memmem;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// How each record of ours begins.
pub(super) const BEGINNING: &[u8] = b"{\"type\":\"";

/// At most so many records are looked for in one line.
const MOST: usize = 1000;

/// The line without what may stand around a record: blanks, NULs, a byte order mark.
pub(in crate::session) fn trimmed(line: &[u8]) -> &[u8] {
    let around = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let line = line.strip_prefix(BOM).unwrap_or(line);
    let begin = line.iter().position(|b| !around(b)).unwrap_or(line.len());
    let end = line.iter().rposition(|b| !around(b)).map_or(begin, |last| last + 1);
    &line[begin..end]
}

/// What may be the records of a line that is none: NULs are gone, what was no UTF-8 is U+FFFD, raw control characters are
/// escaped, and what was glued together, a torn record and the one after it, is apart.
pub(super) fn pieces(line: &[u8]) -> Vec<Vec<u8>> {
    let clean: Cow<'_, [u8]> =
        if line.contains(&0) { line.iter().copied().filter(|b| *b != 0).collect() } else { line.into() };
    let text = String::from_utf8_lossy(&clean);
    let starts = std::iter::once(0).chain(glued(text.as_bytes())).collect::<Vec<_>>();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| escaped(&text.as_bytes()[*start..end])).collect()
}

/// Where a record begins that is glued to what stands before it; an object within a record stands behind `[`, `,` or `:`.
fn glued(text: &[u8]) -> impl Iterator<Item = usize> {
    let starts = memmem::find_iter(text, BEGINNING).take(MOST);
    starts.filter(|at| at.checked_sub(1).is_some_and(|before| !matches!(text[before], b'[' | b',' | b':' | b' ')))
}

/// Escapes control characters within strings.
fn escaped(record: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(record.len());
    let (mut inside, mut after_backslash) = (false, false);
    for byte in record {
        if *byte < b' ' && inside {
            escaped.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            escaped.push(*byte);
        }
        inside ^= *byte == b'"' && !after_backslash;
        after_backslash = *byte == b'\\' && inside && !after_backslash;
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_record_is_no_damage() {
        for (line, expect) in [
            (&b"{}\r"[..], &b"{}"[..]),
            (b"\xef\xbb\xbf{}", b"{}"),
            (b"\0\0 {}\0\0\0", b"{}"),
            (b"\0\0\0", b""),
            (b"", b""),
            (b" \r", b""),
        ] {
            assert_eq!(trimmed(line), expect, "{line:?}");
        }
    }

    #[test]
    fn lines_are_mended() {
        for (line, expect) in [
            (&b"{\"a\":\"x\0y\"}"[..], &["{\"a\":\"xy\"}"][..]),
            (b"{\"a\":\"\xff\"}", &["{\"a\":\"\u{fffd}\"}"]),
            (b"{\"a\":\"x\ry\\\"\t\"}", &["{\"a\":\"x\\u000dy\\\"\\u0009\"}"]),
            (b"{\"a\":\"\\\\\"}\r", &["{\"a\":\"\\\\\"}\r"]),
            (b"{\"type\":\"a\"}\r{\"type\":\"b\"}", &["{\"type\":\"a\"}\r", "{\"type\":\"b\"}"]),
            (b"{\"type\":\"te{\"type\":\"b\"}", &["{\"type\":\"te", "{\"type\":\"b\"}"]),
            (b"{\"c\":[{\"type\":\"x\"},{\"type\":\"y\"}]", &["{\"c\":[{\"type\":\"x\"},{\"type\":\"y\"}]"]),
        ] {
            let pieces: Vec<String> = pieces(line).into_iter().map(|p| String::from_utf8(p).unwrap()).collect();
            assert_eq!(pieces, expect, "{line:?}");
        }
    }
}
