//! Reads part of a file.

use std::io::{self, ErrorKind, Read as _};
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::builtin::disk::{Wanted, away};
use crate::builtin::{encoding, target};
use crate::call::Outline;
use crate::context::{Opened, Permit, ToolContext};
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::policy::Rights;
use crate::text::{Cut, Kept};
use crate::tool::{Declaration, Prepared, Tool};

/// How much is read at a time: fits the processor's cache, so that counting is not slower than copying.
const PIECE: usize = 256 << 10;

/// What one toolset calls it.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// What the model is told.
    fn declaration() -> Declaration;

    /// The path, as the model wrote it.
    fn path(&self) -> &str;

    /// The lines, counted from 1; an open end is `u64::MAX`.
    ///
    /// # Errors
    /// Numbers that mean no lines.
    fn lines(&self) -> Result<RangeInclusive<u64>, ToolError>;

    /// The first line, where one was asked for.
    fn line(&self) -> Option<u64>;

    /// Whether each line gets its number in front.
    fn numbered(&self) -> bool {
        false
    }

    /// There is no such file.
    fn missing(path: &str) -> String;

    /// It is a directory.
    fn directory(path: &str) -> String;

    /// It is no text.
    fn binary(path: &str) -> String;

    /// The file ends before the first line asked for; it has so many.
    ///
    /// # Errors
    /// Where that is a failure.
    fn past_end(path: &str, lines: u64) -> Result<String, ToolError>;

    /// How to read on after a cut, at this line.
    fn further(line: u64) -> String;

    /// A cut went through the first line.
    fn alone(line: u64) -> String {
        format!("Line {line} alone is longer than that.")
    }
}

/// The range that `start` and `end` mean, both counted from 1 and shown; 0 leaves that side open.
///
/// # Errors
/// Negative numbers, or an end before the start.
pub fn between(start: i64, end: i64) -> Result<RangeInclusive<u64>, ToolError> {
    let number = |name: &str, value: i64| {
        u64::try_from(value).map_err(|e| {
            ToolError::new(format!("{name} is {value}; lines are counted from 1, and 0 means all")).because(e)
        })
    };
    let (first, last) = (number("start", start)?.max(1), number("end", end)?);
    match last {
        0 => Ok(first..=u64::MAX),
        last if last < first => {
            Err(ToolError::new(format!("start is {start} and end is {end}; end must not be before start")))
        }
        last => Ok(first..=last),
    }
}

/// The range that a first line, counted from 1, and a number of lines mean; a first line of 0 is the first one, and 0
/// lines are all that follow.
///
/// # Errors
/// Negative numbers.
pub fn counted_from(offset: i64, limit: i64) -> Result<RangeInclusive<u64>, ToolError> {
    let number = |name: &str, value: i64, zero: &str| {
        u64::try_from(value).map_err(|e| {
            ToolError::new(format!("{name} is {value}; it is counted from 1, and 0 means {zero}")).because(e)
        })
    };
    let (first, count) = (number("offset", offset, "from the start")?.max(1), number("limit", limit, "to the end")?);
    Ok(first..=if count == 0 { u64::MAX } else { first.saturating_add(count - 1) })
}

/// Reads part of a file, as dialect `D` has it. Holds no more of it than is shown, however large it is.
#[derive(Debug)]
pub struct Read<D> {
    cut: Cut,
    dialect: PhantomData<fn() -> D>,
}

impl<D> Read<D> {
    /// Shows what `cut` leaves.
    pub fn new(cut: Cut) -> Self {
        Self { cut, dialect: PhantomData }
    }
}

/// A file that was found, and what is wanted of it.
pub struct Work<D> {
    input: D,
    lines: RangeInclusive<u64>,
    opened: Opened,
}

#[async_trait]
impl<D: Dialect> Tool for Read<D> {
    type Input = D;
    type Work = Work<D>;

    fn declaration(&self) -> Declaration {
        D::declaration()
    }

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        target::reads(input.path(), input.line(), &cx.place)
    }

    async fn prepare(&self, input: D, cx: &ToolContext) -> Result<Prepared<Work<D>>, ToolError> {
        let path = target::real(input.path(), Rights::READ, cx)?;
        let lines = input.lines()?;
        match cx.files.open(&path).await {
            Ok(opened) => Ok(Prepared::new(Work { input, lines, opened })),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(target::missing(D::missing(input.path()), e)),
            Err(e) if e.kind() == ErrorKind::IsADirectory => Err(ToolError::new(D::directory(input.path())).because(e)),
            Err(e) => Err(target::cannot("read", input.path(), e)),
        }
    }

    async fn run(&self, work: Work<D>, _permit: &Permit<'_>, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Work { input, lines, opened } = work;
        let wanted = Lines { first: *lines.start(), last: *lines.end(), numbered: input.numbered(), cut: self.cut };
        let found = away(move |waiting| wanted.of(opened, waiting)).await.and_then(|found| found);
        told::<D>(input.path(), *lines.start(), found).map(ToolOutput::ok)
    }
}

/// The answer to the model.
fn told<D: Dialect>(path: &str, first: u64, found: io::Result<Found>) -> Result<String, ToolError> {
    match found {
        Ok(Found::Kept(kept)) => Ok(kept.told_with(|head| {
            // It was cut within this line.
            let line = first + head.matches('\n').count() as u64;
            if line == first { D::alone(line) } else { D::further(line) }
        })),
        Ok(Found::Ended { lines }) => D::past_end(path, lines),
        Ok(Found::Binary) => Err(ToolError::new(D::binary(path))),
        Err(e) => Err(target::cannot("read", path, e)),
    }
}

/// What is wanted of a file.
#[derive(Debug, Clone, Copy)]
struct Lines {
    first: u64,
    last: u64,
    numbered: bool,
    cut: Cut,
}

/// What was found in it.
#[derive(Debug)]
enum Found {
    /// What was asked for, as far as the cut can show it.
    Kept(Kept),
    /// It ends before the first line.
    Ended { lines: u64 },
    /// It is no text.
    Binary,
}

impl Lines {
    /// All that comes is wanted, as it is.
    fn is_open(&self) -> bool {
        self.last == u64::MAX && !self.numbered
    }

    fn of(self, opened: Opened, wanted: &Wanted) -> io::Result<Found> {
        let mut reader = opened.reader;
        let mut start = Vec::with_capacity(encoding::SNIFF);
        reader.by_ref().take(encoding::SNIFF as u64).read_to_end(&mut start)?;
        if encoding::Encoding::of(&start).is_binary(&start) {
            return Ok(Found::Binary);
        }
        let mut text = encoding::unmarked(start, reader);
        let mut scan = Scan { wanted: self, kept: self.cut.keep(), line: 1, open: false, ended: false };
        let mut piece = vec![0; PIECE];
        loop {
            wanted.check()?;
            let count = match text.read(&mut piece) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                count => count?,
            };
            if count == 0 {
                return Ok(scan.finish(true));
            }
            if !scan.feed(&piece[..count]) {
                return Ok(scan.finish(false));
            }
        }
    }
}

/// Goes through a text piece by piece and keeps the wanted lines. Only `\n` ends a line.
struct Scan {
    wanted: Lines,
    kept: Kept,
    /// The line that the next byte belongs to.
    line: u64,
    /// Some of that line was seen.
    open: bool,
    /// The last wanted line is kept, all but its end: that is shown only where the file ends with it.
    ended: bool,
}

impl Scan {
    /// Takes the next piece. Tells whether more is wanted.
    fn feed(&mut self, piece: &[u8]) -> bool {
        let mut rest = if self.line < self.wanted.first { self.skip(piece) } else { piece };
        while !rest.is_empty() {
            if self.ended || self.kept.is_full() {
                return false;
            }
            rest = if self.wanted.is_open() { self.keep_all(rest) } else { self.keep_line(rest) };
        }
        true
    }

    /// Counts lines up to the first wanted one, and gives what follows.
    fn skip<'b>(&mut self, piece: &'b [u8]) -> &'b [u8] {
        let missing = self.wanted.first - self.line;
        let ends = memchr::memchr_iter(b'\n', piece).count() as u64;
        if ends < missing {
            self.line += ends;
            self.open = if ends > 0 { piece.last() != Some(&b'\n') } else { self.open || !piece.is_empty() };
            return &[];
        }
        self.line += missing;
        self.open = false;
        let nth = usize::try_from(missing - 1).unwrap_or(usize::MAX);
        memchr::memchr_iter(b'\n', piece).nth(nth).map_or(&[], |at| &piece[at + 1..])
    }

    /// Keeps all of it.
    fn keep_all<'b>(&mut self, piece: &'b [u8]) -> &'b [u8] {
        self.kept.push(piece);
        self.line += memchr::memchr_iter(b'\n', piece).count() as u64;
        self.open = piece.last() != Some(&b'\n');
        &[]
    }

    /// Keeps what there is of one line, and gives what follows.
    fn keep_line<'b>(&mut self, piece: &'b [u8]) -> &'b [u8] {
        if self.wanted.numbered && !self.open {
            self.kept.push(format!("{:>6}\t", self.line).as_bytes());
        }
        let Some(end) = memchr::memchr(b'\n', piece) else {
            self.open = true;
            self.kept.push(piece);
            return &[];
        };
        self.open = false;
        self.ended = self.line == self.wanted.last;
        self.kept.push(if self.ended { &piece[..end] } else { &piece[..=end] });
        self.line = self.line.saturating_add(1);
        &piece[end + 1..]
    }

    fn finish(mut self, at_end: bool) -> Found {
        let lines = self.line - 1 + u64::from(self.open);
        // An empty file has a first line to ask for, and it is empty.
        if at_end && self.wanted.first > lines.max(1) {
            return Found::Ended { lines };
        }
        if at_end && self.ended {
            self.kept.push(b"\n");
        }
        Found::Kept(self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads from a reader that gives so many bytes at a time: the text as it is told, or how many lines there are.
    fn read(text: &[u8], first: u64, last: u64, numbered: bool, cut: Cut, step: usize) -> Result<String, u64> {
        match scan(text, Lines { first, last, numbered, cut }, step) {
            Found::Kept(kept) => Ok(kept.told_with(|head| format!("+{}", head.matches('\n').count()))),
            Found::Ended { lines } => Err(lines),
            Found::Binary => unreachable!("a scan does not judge what it reads"),
        }
    }

    fn scan(text: &[u8], wanted: Lines, step: usize) -> Found {
        let mut scan = Scan { wanted, kept: wanted.cut.keep(), line: 1, open: false, ended: false };
        for piece in text.chunks(step) {
            if !scan.feed(piece) {
                return scan.finish(false);
            }
        }
        scan.finish(true)
    }

    /// The rules of ranges over a text that is all there.
    fn model(text: &str, first: u64, last: u64, numbered: bool) -> Result<String, u64> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let count = lines.len() as u64;
        if first > count.max(1) {
            return Err(count);
        }
        let mut out = String::new();
        for (number, line) in (1..).zip(&lines).filter(|(n, _)| (first..=last).contains(n)) {
            if numbered {
                out.push_str(&format!("{number:>6}\t"));
            }
            out.push_str(line);
        }
        if last < count {
            out.pop();
        }
        Ok(out)
    }

    proptest! {
        #[test]
        fn any_range_in_any_pieces_is_what_the_rules_say(
            text in "[ab\\n\\r]{0,24}",
            first in 1_u64..9,
            more in 0_u64..6,
            open in any::<bool>(),
            numbered in any::<bool>(),
            step in 1_usize..8,
        ) {
            let last = if open { u64::MAX } else { first + more };
            let found = read(text.as_bytes(), first, last, numbered, Cut::HeadChars(1000), step);
            prop_assert_eq!(found, model(&text, first, last, numbered));
        }

        #[test]
        fn a_cut_is_that_of_the_whole(
            text in "[aé\\n]{0,60}", limit in 0_usize..40, both in any::<bool>(), step in 1_usize..8,
        ) {
            let cut = if both { Cut::HeadTailBytes(limit) } else { Cut::HeadChars(limit) };
            let expect = cut.told_with(text.clone(), |head| format!("+{}", head.matches('\n').count()));
            prop_assert_eq!(read(text.as_bytes(), 1, u64::MAX, false, cut, step), Ok(expect));
        }
    }

    #[test]
    fn ranges_that_mean_no_lines_are_named() {
        for (start, end, expect) in [
            (0, 0, Ok(1..=u64::MAX)),
            (2, 0, Ok(2..=u64::MAX)),
            (0, 3, Ok(1..=3)),
            (2, 2, Ok(2..=2)),
            (3, 1, Err("start is 3 and end is 1; end must not be before start")),
            (-5, 0, Err("start is -5; lines are counted from 1, and 0 means all")),
            (1, -1, Err("end is -1; lines are counted from 1, and 0 means all")),
        ] {
            let found = between(start, end).map_err(|e| e.to_string());
            assert_eq!(found, expect.map_err(str::to_owned), "{start} {end}");
        }
    }
}
