//! Diffs: the one place where they are made.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// How long a diff may be refined; after that it is still right, but may be longer than need be.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// What differs between two texts, line by line. Only `\n` ends a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diff {
    /// The changed lines with three lines around them: sign, number, a blank, the line. Removed lines carry their old
    /// number, added and unchanged ones their new one; `...` stands for lines left out between. Empty where nothing
    /// differs; no end of line at its end.
    pub text: String,
    /// How many lines were added.
    pub added: usize,
    /// How many lines were removed.
    pub removed: usize,
    /// The first line that differs, counted from 1 in the new text; where only the end was removed, the last line left.
    /// None where nothing differs.
    pub first_changed: Option<u64>,
}

impl Diff {
    /// Compares two texts. Fast where little differs, however long they are.
    pub fn between(old: &str, new: &str) -> Self {
        if old == new {
            return Self::default();
        }
        let (above, start) = shared_start(old, new);
        let cut = shared_end(&old.as_bytes()[start..], &new.as_bytes()[start..]);
        let lines = |text: &'_ str| -> Vec<Range<usize>> { line_ranges(text, start, text.len() - cut) };
        let (old_lines, new_lines) = (lines(old), lines(new));
        let middle = Middle {
            above,
            old: old_lines.into_iter().map(|r| &old[r]).collect(),
            new: new_lines.into_iter().map(|r| &new[r]).collect(),
        };
        middle.diff()
    }
}

/// The lines between what both texts begin and end with, and how many lines are above them.
struct Middle<'t> {
    above: usize,
    old: Vec<&'t str>,
    new: Vec<&'t str>,
}

impl Middle<'_> {
    fn diff(&self) -> Diff {
        let deadline = Instant::now().checked_add(TIMEOUT);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &self.old, &self.new, deadline);
        let changes: Vec<&DiffOp> = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })).collect();
        let added = changes.iter().map(|op| op.new_range().len()).sum();
        let removed = changes.iter().map(|op| op.old_range().len()).sum();
        let first_changed = changes.first().map(|op| self.line_of(op));
        Diff { text: self.text(ops), added, removed, first_changed }
    }

    fn line_of(&self, first: &DiffOp) -> u64 {
        let line = first.new_range().start + 1;
        let at_end = first.new_range().start >= self.new.len();
        (self.above + if at_end { self.new.len() } else { line }).max(1) as u64
    }

    fn text(&self, ops: Vec<DiffOp>) -> String {
        let groups = group_diff_ops(ops, CONTEXT);
        let last = groups.last().and_then(|group| group.last());
        let highest = last.map_or(0, |op| self.above + op.old_range().end.max(op.new_range().end));
        let width = highest.to_string().len();
        let mut shown = Shown { width, text: String::new() };
        for (i, group) in groups.iter().enumerate() {
            if i > 0 {
                shown.gap();
            }
            group.iter().for_each(|op| self.show(op, &mut shown));
        }
        shown.text.pop();
        shown.text
    }

    fn show(&self, op: &DiffOp, shown: &mut Shown) {
        let unchanged = matches!(op, DiffOp::Equal { .. });
        if !unchanged {
            op.old_range().for_each(|i| shown.line('-', self.above + i + 1, self.old[i]));
        }
        let sign = if unchanged { ' ' } else { '+' };
        op.new_range().for_each(|i| shown.line(sign, self.above + i + 1, self.new[i]));
    }
}

/// The text of a diff while it grows.
struct Shown {
    width: usize,
    text: String,
}

impl Shown {
    fn line(&mut self, sign: char, number: usize, line: &str) {
        let width = self.width;
        let (body, ended) = line.strip_suffix('\n').map_or((line, false), |body| (body, true));
        self.text.push_str(&format!("{sign}{number:>width$} {body}\n"));
        if !ended && sign != ' ' {
            self.text.push_str("\\ No newline at end of file\n");
        }
    }

    fn gap(&mut self) {
        self.text.push_str(&format!(" {:width$} ...\n", "", width = self.width));
    }
}

/// Where the first line begins that is to be compared, and how many lines are above it: all that both texts begin with
/// but the lines that are shown around a change.
fn shared_start(old: &str, new: &str) -> (usize, usize) {
    let shared = common_start(old.as_bytes(), new.as_bytes());
    let starts = memchr::memrchr_iter(b'\n', &old.as_bytes()[..shared]);
    let start = starts.map(|at| at + 1).nth(CONTEXT).unwrap_or(0);
    (memchr::memchr_iter(b'\n', &old.as_bytes()[..start]).count(), start)
}

/// How many bytes at the end need no comparing.
fn shared_end(old: &[u8], new: &[u8]) -> usize {
    let shared = common_end(old, new);
    let tail = &old[old.len() - shared..];
    memchr::memchr_iter(b'\n', tail).map(|at| shared - at - 1).nth(CONTEXT).unwrap_or(0)
}

const BLOCK: usize = 4096;

fn common_start(a: &[u8], b: &[u8]) -> usize {
    let whole = a.chunks_exact(BLOCK).zip(b.chunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
}

fn common_end(a: &[u8], b: &[u8]) -> usize {
    let whole = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
    let (a, b) = (&a[..a.len() - whole], &b[..b.len() - whole]);
    whole + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

fn line_ranges(text: &str, start: usize, end: usize) -> Vec<Range<usize>> {
    let mut at = start;
    let lines = text.as_bytes()[start..end].split_inclusive(|b| *b == b'\n');
    lines
        .map(|line| {
            let range = at..at + line.len();
            at = range.end;
            range
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn diffs_are_told_line_by_line() {
        let long = |change: &str| {
            (1..=20).map(|i| if i == 10 { format!("{change}\n") } else { format!("{i}\n") }).collect::<String>()
        };
        for (old, new, text, counts) in [
            ("a\n", "a\n", "", (0, 0, None)),
            ("", "", "", (0, 0, None)),
            ("", "a\nb\n", "+1 a\n+2 b", (2, 0, Some(1))),
            ("a\n", "", "-1 a", (0, 1, Some(1))),
            ("a\nb\nc\n", "a\nB\nc\n", " 1 a\n-2 b\n+2 B\n 3 c", (1, 1, Some(2))),
            ("a\nb\nc\n", "a\nb\n", " 1 a\n 2 b\n-3 c", (0, 1, Some(2))),
            ("a\nb\n", "b\n", "-1 a\n 1 b", (0, 1, Some(1))),
            ("a", "a\n", "-1 a\n\\ No newline at end of file\n+1 a", (1, 1, Some(1))),
            ("a\r\n", "a\n", "-1 a\r\n+1 a", (1, 1, Some(1))),
            (&long("x"), &long("y"), "  7 7\n  8 8\n  9 9\n-10 x\n+10 y\n 11 11\n 12 12\n 13 13", (1, 1, Some(10))),
        ] {
            let diff = Diff::between(old, new);
            assert_eq!(diff.text, text, "{old:?} {new:?}");
            assert_eq!((diff.added, diff.removed, diff.first_changed), counts, "{old:?} {new:?}");
        }
    }

    /// Applies the lines of a diff that leaves nothing out.
    fn applied(diff: &Diff) -> (Vec<String>, Vec<String>) {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for line in diff.text.lines() {
            let body = line.split_at(1).1.trim_start().split_once(' ').map_or("", |(_, body)| body).to_owned();
            match &line[..1] {
                "-" => old.push(body),
                "+" => new.push(body),
                _ => {
                    old.push(body.clone());
                    new.push(body);
                }
            }
        }
        (old, new)
    }

    proptest! {
        #[test]
        fn a_diff_tells_both_texts(
            old in prop::collection::vec("[ab]", 0..5),
            new in prop::collection::vec("[ab]", 0..5),
        ) {
            prop_assume!(old != new);
            let whole = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let diff = Diff::between(&whole(&old), &whole(&new));
            // Up to three lines around a change are shown, so of texts this short only the far ends may be left out.
            let (shown_old, shown_new) = applied(&diff);
            prop_assert!(whole(&old).contains(&whole(&shown_old)) && whole(&new).contains(&whole(&shown_new)));
            prop_assert_eq!(old.len() - shown_old.len(), new.len() - shown_new.len());
            prop_assert_eq!(old.len() + diff.added, new.len() + diff.removed);
        }

        #[test]
        fn what_is_skipped_changes_no_number(above in 0_usize..3000, below in 0_usize..3000) {
            let text = |middle: &str| format!("{}{middle}\n{}", "same é\n".repeat(above), "same é\n".repeat(below));
            let diff = Diff::between(&text("old"), &text("new"));
            prop_assert_eq!((diff.added, diff.removed, diff.first_changed), (1, 1, Some(above as u64 + 1)));
            prop_assert_eq!(diff.text.lines().count(), 2 + above.min(3) + below.min(3));
        }
    }

    #[test]
    fn one_line_of_a_long_text_and_a_text_that_has_nothing_in_common_take_bounded_time() {
        let long = "a line of text\n".repeat(70_000);
        let start = Instant::now();
        assert_eq!(Diff::between(&long, &long.replacen("text", "TEXT", 1)).added, 1);
        let other: String = (0..70_000).map(|i| format!("{}\n", i % 977)).collect();
        assert!(Diff::between(&long, &other).added > 0);
        // Half a second is the limit of the second; the rest is room for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    }
}
