//! Server-sent events: bytes in any pieces -> events. Pure.

use std::borrow::Cow;
use std::fmt;

/// How many bytes an event may have, its unfinished line included.
pub const LIMIT: usize = 16 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// An event. Its text is valid while the sink looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The name of the field `event`; empty where there was none.
    pub name: &'a str,
    /// The data lines, joined by line ends. What was not UTF-8 is replaced.
    pub data: &'a str,
}

/// An event was larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event of the stream is larger than {} bytes", self.limit)
    }
}

impl std::error::Error for TooLarge {}

/// Reads a stream of events, whatever pieces it comes in. Takes time linear in the bytes; its buffers are used again.
///
/// Lines end in LF, CRLF or CR; the blank after the colon is optional; comments, ids and retry times are skipped.
#[derive(Debug)]
pub struct Parser {
    // The line that has not ended yet.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    // A data line was seen, an empty one perhaps.
    filled: bool,
    // The last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    first_line: bool,
    // No event was dispatched yet.
    fresh: bool,
    limit: usize,
}

impl Default for Parser {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl Parser {
    /// A parser that refuses events of more than this many bytes.
    pub fn with_limit(limit: usize) -> Self {
        let (line, data, name) = (Vec::new(), Vec::new(), Vec::new());
        Self { line, data, name, filled: false, after_cr: false, first_line: true, fresh: true, limit }
    }

    /// Reads on, and hands each event that is complete to the sink.
    ///
    /// # Errors
    /// An event is too large. The parser is of no use then.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            self.ended_line(&rest[..end], sink)?;
            let crlf = rest[end..].starts_with(b"\r\n");
            self.after_cr = rest[end..] == *b"\r";
            rest = &rest[end + 1 + usize::from(crlf)..];
        }
        self.line.extend_from_slice(rest);
        self.check()
    }

    /// The stream has ended: what is left is an event too, even without the empty line that ends one.
    ///
    /// # Errors
    /// The event is too large.
    pub fn finish(&mut self, sink: &mut impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        self.ended_line(b"", sink)?;
        self.dispatch(sink);
        Ok(())
    }

    /// Whether there was no event so far.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    fn ended_line(&mut self, tail: &[u8], sink: &mut impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        if self.line.is_empty() {
            self.whole_line(tail, sink);
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(tail);
            self.whole_line(&line, sink);
            line.clear();
            self.line = line;
        }
        self.check()
    }

    fn whole_line(&mut self, line: &[u8], sink: &mut impl FnMut(Event<'_>)) {
        let line = if std::mem::take(&mut self.first_line) { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        if line.is_empty() {
            self.dispatch(sink);
            return;
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.filled, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Comments have an empty name; ids and retry times are for streams that can be taken up again.
            _ => {}
        }
    }

    fn dispatch(&mut self, sink: &mut impl FnMut(Event<'_>)) {
        if self.filled {
            // Decoded whole: a piece of the stream may end within a character.
            let (name, data) = (text(&self.name), text(&self.data));
            sink(Event { name: &name, data: &data });
            self.fresh = false;
        }
        self.filled = false;
        self.data.clear();
        self.name.clear();
    }

    fn check(&self) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + self.name.len() > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        Ok(())
    }
}

/// The text of these bytes. Whole text, the usual case, is checked in far less time than damage is replaced.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let (mut parser, mut seen) = (Parser::default(), Vec::new());
        let mut sink = |e: Event<'_>| seen.push((e.name.to_owned(), e.data.to_owned()));
        for piece in pieces {
            parser.push(piece, &mut sink).unwrap();
        }
        parser.finish(&mut sink).unwrap();
        seen
    }

    #[test]
    fn streams_are_read_as_the_format_has_it() {
        for (stream, expect) in [
            ("data: a\n\n", "|a"),
            ("data:a\n\ndata:  b\n\n", "|a/| b"),
            ("data: a\r\n\r\ndata: b\r\n\r\n", "|a/|b"),
            ("data: a\r\rdata: b\r\r", "|a/|b"),
            ("data: a\rdata: b\n\r\n", "|a\nb"),
            ("\u{feff}data: a\n\n", "|a"),
            ("data: \u{feff}a\n\n", "|\u{feff}a"),
            (": comment\n\n\n\ndata: a\n: another\ndata: b\n\n", "|a\nb"),
            ("event: x\ndata: a\n\ndata: b\n\n", "x|a/|b"),
            ("event: x\n\ndata: b\n\n", "|b"),
            ("id: 1\nretry: 5\ndata: a\nunknown: z\n\n", "|a"),
            ("data\n\n", "|"),
            ("data\ndata\n\n", "|\n"),
            ("data: a:b: c\n\n", "|a:b: c"),
            ("data: last", "|last"),
            ("data: a\n\ndata: last\n", "|a/|last"),
            ("DATA: a\n\n datax: b\n\n", ""),
            ("", ""),
        ] {
            let got: Vec<_> = events([stream.as_bytes()]).iter().map(|(n, d)| format!("{n}|{d}")).collect();
            assert_eq!(got.join("/"), expect, "{stream:?}");
        }
    }

    #[test]
    fn what_is_not_utf8_is_replaced_and_only_that() {
        let stream = b"data: ok \xff\xfe\xe6\x97\xa5!\n\n";
        for size in 1..stream.len() {
            assert_eq!(events(stream.chunks(size)), [(String::new(), "ok \u{fffd}\u{fffd}日!".to_owned())]);
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = Parser::with_limit(1000);
        let mut pushes = 0;
        while parser.push(&[b'x'; 100], &mut |_| {}).is_ok() {
            pushes += 1;
        }
        assert_eq!(pushes, 10);

        let mut parser = Parser::with_limit(1000);
        let lines = "data: 0123456789\n".repeat(101);
        assert_eq!(parser.push(lines.as_bytes(), &mut |_| {}), Err(TooLarge { limit: 1000 }));
    }

    #[test]
    fn a_large_event_in_small_pieces_takes_linear_time() {
        let mut stream = b"data: ".to_vec();
        stream.resize(8 << 20, b'x');
        stream.extend_from_slice(b"\n\n");
        let begin = Instant::now();
        let seen = events(stream.chunks(1449));
        assert_eq!((seen.len(), seen[0].1.len()), (1, (8 << 20) - 6));
        // Quadratic work would be 24 GB of copying.
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let field = prop_oneof![
            "data: ?[a-z:é日🙂 ]{0,8}",
            "event: [a-z]{0,3}",
            ": [a-z]{0,3}",
            "[a-z]{0,5}",
            Just(String::new())
        ];
        let bytes = prop_oneof![
            8 => field.prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 0..6),
        ];
        let end = prop_oneof![Just(&b"\n"[..]), Just(&b"\r\n"[..]), Just(&b"\r"[..])];
        (bytes, end).prop_map(|(bytes, end)| [&bytes, end].concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in proptest::collection::vec(line(), 0..20),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let stream = lines.concat();
            let mut at: Vec<usize> = cuts.iter().map(|c| c.index(stream.len() + 1)).collect();
            at.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for to in at.into_iter().chain([stream.len()]) {
                pieces.push(&stream[from..to]);
                from = to;
            }
            let whole = events([stream.as_slice()]);
            prop_assert_eq!(&whole, &events(pieces));
            prop_assert_eq!(&whole, &events(stream.chunks(1)));
        }
    }
}
