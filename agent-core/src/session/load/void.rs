//! Which lines of a log a rewind has made void.

use std::io::{self, BufRead};
use std::ops::Range;

use memchr::memmem;
use serde::Deserialize;

use super::lines::{LIMIT, Lines};
use super::mend::{BEGINNING, trimmed};

#[derive(Deserialize)]
struct Rewind {
    r#type: String,
    to_seq: u64,
    seq: u64,
}

/// The numbers of void lines, as ranges in order that do not touch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Void(Vec<Range<u64>>);

impl Void {
    /// Looks for rewinds in a whole log: they stand behind what they make void.
    ///
    /// # Errors
    /// Those of the source.
    pub(super) fn of(log: impl BufRead) -> io::Result<Self> {
        let (mut lines, mut ranges) = (Lines::new(log, LIMIT), Vec::new());
        while let Some(line) = lines.next()? {
            ranges.extend(rewind(line.bytes));
        }
        Ok(Self::joined(ranges))
    }

    fn joined(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// Whether the line of this number is void.
    pub(super) fn has(&self, seq: u64) -> bool {
        let before = self.0.partition_point(|range| range.start <= seq);
        before.checked_sub(1).is_some_and(|at| self.0[at].contains(&seq))
    }
}

/// What a line makes void, where it is a rewind.
fn rewind(line: &[u8]) -> Option<Range<u64>> {
    let line = trimmed(line);
    let may_be = match line.strip_prefix(BEGINNING) {
        Some(rest) => rest.starts_with(b"rewind\""),
        None => memmem::find(line, b"\"rewind\"").is_some(),
    };
    let rewind: Rewind = may_be.then(|| serde_json::from_slice(line).ok()).flatten()?;
    (rewind.r#type == "rewind").then_some(rewind.to_seq..rewind.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewinds_are_found_wherever_their_type_stands() {
        for (line, expect) in [
            (r#"{"type":"rewind","turn":1,"to_seq":3,"seq":9}"#, Some(3..9)),
            (r#"{"seq":9,"to_seq":3,"type":"rewind"}"#, Some(3..9)),
            (r#"{"type":"text","content":"\"rewind\"","to_seq":3,"seq":9}"#, None),
            (r#"{"type":"rewind","to_seq":3}"#, None),
            (r#"{"type":"rewind","to_seq":"#, None),
        ] {
            assert_eq!(rewind(line.as_bytes()), expect, "{line}");
        }
    }

    #[test]
    fn ranges_are_joined() {
        let void = Void::joined(vec![7..9, 2..4, 20..30, 3..5, 8..8]);
        assert_eq!(void.0, [2..5, 7..9, 20..30]);
        for (seq, expect) in [(1, false), (2, true), (4, true), (5, false), (7, true), (9, false), (29, true)] {
            assert_eq!(void.has(seq), expect, "{seq}");
        }
    }
}
