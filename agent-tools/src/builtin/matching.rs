//! Searches one file: keeps the lines that are to be shown, and counts the others.

use std::io::{self, Read};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use crate::builtin::disk::Wanted;

/// The longest line, in bytes, that is searched: it is held in memory.
const LONGEST: usize = 32 << 20;
/// The longest line, in characters, that is shown whole.
const WIDEST: usize = 500;
/// How much of a longer one is shown before the match.
const BEFORE: usize = 100;

/// What is looked for.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) matcher: RegexMatcher,
    /// How many lines are shown before and after each match.
    pub(super) context: usize,
    /// How many bytes of a file's lines are kept at most, and one line more.
    pub(super) room: usize,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub(super) lines: Vec<Line>,
    /// How many lines match, shown or not.
    pub(super) count: u64,
    /// Where the first zero byte is, as far as it was searched: it is binary.
    pub(super) binary: Option<u64>,
    /// A line that matches is not shown, since the file is binary.
    pub(super) hidden: bool,
    bytes: usize,
}

impl Matches {
    /// How long its lines are together.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A line to be shown.
#[derive(Debug)]
pub(super) struct Line {
    /// With its number, and a separator above it where lines were left out.
    pub(super) text: String,
    /// It is a match, not context.
    pub(super) matched: bool,
}

/// Searches files, one after the other.
pub(super) struct Searching<'a> {
    look: &'a Look,
    matcher: RegexMatcher,
    showing: Searcher,
    counting: Searcher,
    wanted: &'a Wanted,
}

impl<'a> Searching<'a> {
    /// For files that were come across: binary ones are searched up to the first zero byte.
    pub(super) fn found(look: &'a Look, wanted: &'a Wanted) -> Self {
        Self::new(look, &BinaryDetection::quit(0), wanted)
    }

    /// For a file that was named: of a binary one it is told whether it matches.
    pub(super) fn named(look: &'a Look, wanted: &'a Wanted) -> Self {
        Self::new(look, &BinaryDetection::convert(0), wanted)
    }

    fn new(look: &'a Look, binary: &BinaryDetection, wanted: &'a Wanted) -> Self {
        let mut builder = SearcherBuilder::new();
        builder.binary_detection(binary.clone()).heap_limit(Some(LONGEST));
        let counting = builder.line_number(false).build();
        let showing = builder.line_number(true).before_context(look.context).after_context(look.context).build();
        Self { look, matcher: look.matcher.clone(), showing, counting, wanted }
    }

    /// What a file has, with lines to show or only their number, and how that ended: an error stops it midway.
    pub(super) fn of(&mut self, file: impl Read, shown: bool) -> (Matches, io::Result<()>) {
        let room = if shown { self.look.room } else { 0 };
        let mut sink =
            Collect { matcher: &self.matcher, found: Matches::default(), room, gap: false, wanted: self.wanted };
        let searcher = if shown { &mut self.showing } else { &mut self.counting };
        let ended = searcher.search_reader(&self.matcher, Watched { file, wanted: self.wanted }, &mut sink);
        (sink.found, ended)
    }
}

/// A file that ends with an error once nobody waits for it.
struct Watched<'a, R> {
    file: R,
    wanted: &'a Wanted,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        // Not as `Interrupted`: whoever reads would try again.
        self.wanted.check().map_err(io::Error::other)?;
        self.file.read(piece)
    }
}

/// Takes what the searcher finds.
struct Collect<'a> {
    matcher: &'a RegexMatcher,
    found: Matches,
    room: usize,
    gap: bool,
    wanted: &'a Wanted,
}

impl Collect<'_> {
    fn has_room(&self) -> bool {
        self.found.bytes < self.room
    }

    fn push(&mut self, number: Option<u64>, line: &[u8], matched: bool) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let gap = if std::mem::take(&mut self.gap) { "--\n" } else { "" };
        let (number, mark) = (number.unwrap_or(0), if matched { ':' } else { '-' });
        let text = format!("{gap}{number}{mark}{}", clip(line, || self.start_of_match(line)));
        self.found.bytes += text.len() + 1;
        self.found.lines.push(Line { text, matched });
    }

    fn start_of_match(&self, line: &[u8]) -> usize {
        self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.wanted.check().map_err(io::Error::other)?;
        self.found.count += 1;
        if self.found.binary.is_some() && searcher.binary_detection().convert_byte().is_some() {
            self.found.hidden = true;
            return Ok(false);
        }
        if self.has_room() {
            self.push(found.line_number(), found.bytes(), true);
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.has_room() && self.found.binary.is_none() {
            self.push(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        self.gap = true;
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, offset: u64) -> io::Result<bool> {
        self.found.binary = Some(offset);
        Ok(true)
    }
}

/// A line as text; of a long one the part around the match, which begins at the byte that `start` tells.
fn clip(line: &[u8], start: impl FnOnce() -> usize) -> String {
    let characters = || line.iter().filter(|byte| begins(**byte)).count();
    if line.len() <= WIDEST || line.len() <= 4 * WIDEST && characters() <= WIDEST {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = back(line, start().min(line.len()), BEFORE);
    let to = on(line, from, WIDEST);
    let from = if to == line.len() { back(line, to, WIDEST) } else { from };
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    let shown = String::from_utf8_lossy(&line[from..to]);
    format!("{before}{shown}{after} [cut: the line has {} characters]", characters())
}

/// Whether a byte is the first of a character.
fn begins(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// So many characters before a byte; of what is no text at most four bytes for each.
fn back(line: &[u8], from: usize, characters: usize) -> usize {
    let least = from.saturating_sub(4 * characters);
    (least..from).rev().filter(|at| begins(line[*at])).nth(characters - 1).unwrap_or(least)
}

/// So many characters after a byte; of what is no text at most four bytes for each.
fn on(line: &[u8], from: usize, characters: usize) -> usize {
    let most = line.len().min(from + 4 * characters);
    (from..most).filter(|at| begins(line[*at])).nth(characters).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let check = |line: &str, at: &str, expect: &str| {
            assert_eq!(clip(line.as_bytes(), || line.find(at).unwrap_or(0)), expect, "{at}");
        };
        let (a, b, é) = ("a".repeat(600), "b".repeat(600), "é".repeat(500));
        check("short", "o", "short");
        check(&é, "é", &é);
        check(&a, "a", &format!("{}… [cut: the line has 600 characters]", &a[..500]));
        let middle = format!("{a}x{b}");
        let shown = format!("…{}x{}… [cut: the line has 1201 characters]", &a[..100], &b[..399]);
        check(&middle, "x", &shown);
        check(&format!("{a}x"), "x", &format!("…{}x [cut: the line has 601 characters]", &a[..499]));
        check(&format!("{é}{é}x"), "x", &format!("…{}x [cut: the line has 1001 characters]", &é[..998]));
    }

    proptest! {
        #[test]
        fn a_part_of_anything_is_short_and_holds_the_match(line in prop::collection::vec(any::<u8>(), 0..5000), at in any::<prop::sample::Index>()) {
            let at = if line.is_empty() { 0 } else { at.index(line.len()) };
            let shown = clip(&line, || at);
            prop_assert!(shown.chars().count() <= 4 * WIDEST + 60);
        }
    }
}
