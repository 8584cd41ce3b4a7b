//! Says what is near a text that was not found: for the answer to a failed edit, never for matching.

use crate::builtin::alike::{difference, looks};
use crate::text::clipped;

/// How much of a file is searched for something near.
const SEARCHED: usize = 4 << 20;
/// How many places are compared line by line.
const PLACES: usize = 100;
/// How many lines of the text are compared at a place.
const COMPARED: usize = 200;
/// How many characters of a line are shown.
const SHOWN: usize = 160;
/// How many pairs of letters of a line, in percent, another must have to be near.
const NEAR: u32 = 60;

/// A sentence about what in `text` is nearest to `wanted`, where something is near. Takes time in proportion to the
/// text's length, and no more for a long one.
pub(super) fn hint(text: &str, wanted: &str) -> Option<String> {
    let end = text.floor_char_boundary(SEARCHED);
    let lines: Vec<&str> = text[..end].split('\n').collect();
    let wanted: Vec<&str> = wanted.split('\n').collect();
    let key = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len()).map(|(i, _)| i)?;
    let places = places(&lines, wanted[key]);
    let best = places.iter().filter_map(|at| at.checked_sub(key)).max_by_key(|start| matching(&lines, &wanted, *start));
    match best {
        Some(start) => Some(at_place(&lines, &wanted, start)),
        None => nearest_line(&lines, wanted[key]),
    }
}

/// The lines that look like one that is wanted, or hold it.
fn places(lines: &[&str], wanted: &str) -> Vec<usize> {
    let wanted = looks(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let alike =
        lines.iter().enumerate().filter(|(_, line)| line.len() >= wanted.len() / 4 && looks(line).contains(&wanted));
    alike.map(|(at, _)| at).take(PLACES).collect()
}

/// How many wanted lines look like those of the file from a place on.
fn matching(lines: &[&str], wanted: &[&str], start: usize) -> usize {
    (0..wanted.len().min(COMPARED)).zip(&lines[start..]).filter(|(i, line)| fits(line, wanted, *i)).count()
}

/// What keeps the lines at a place from being the wanted ones.
fn at_place(lines: &[&str], wanted: &[&str], start: usize) -> String {
    let end = (start + wanted.len()).min(lines.len());
    let there = lines[start..end].join("\n");
    let whole = end - start == wanted.len();
    if let Some(reason) = difference(&there, &wanted.join("\n")).filter(|_| whole) {
        let have =
            if wanted.len() == 1 { format!("Line {end} has") } else { format!("Lines {}-{end} have", start + 1) };
        return format!("{have} it but for {reason}: {}.", quoted(&there));
    }
    let misfit = (0..wanted.len()).zip(&lines[start..end]).find(|(i, line)| !fits(line, wanted, *i));
    match misfit {
        Some((i, found)) => {
            let (line, found, wanted) = (start + i + 1, quoted(found), quoted(wanted[i]));
            format!("Line {} fits, but line {line} of the file is {found}, not {wanted}.", fitting(start, i))
        }
        None if whole => format!("Lines {}-{end} look like it: {}.", start + 1, quoted(&there)),
        None => format!("It fits from line {} on, but the file ends at line {}.", start + 1, lines.len()),
    }
}

/// Whether a line of the file looks like the wanted one of this number: the first may begin, and the last end, within it.
fn fits(line: &str, wanted: &[&str], number: usize) -> bool {
    let (line, part) = (looks(line), looks(wanted[number]));
    match (number == 0, number + 1 == wanted.len()) {
        (true, true) => line.contains(&part),
        (true, false) => line.ends_with(&part),
        (false, true) => line.starts_with(&part),
        (false, false) => line == part,
    }
}

/// A line that fits, beside one that does not: the one above, or the one below where there is none above.
fn fitting(start: usize, misfit: usize) -> usize {
    if misfit > 0 { start + misfit } else { start + misfit + 2 }
}

/// With escapes, so that tabs, carriage returns and invisible characters can be told apart.
fn quoted(text: &str) -> String {
    format!("{:?}", clipped(text, SHOWN))
}

fn nearest_line(lines: &[&str], wanted: &str) -> Option<String> {
    let pairs = Pairs::of(wanted);
    let near = |line: &&str| pairs.shared(&Pairs::of(line));
    let (at, line) = lines.iter().enumerate().max_by_key(|(at, line)| (near(line), std::cmp::Reverse(*at)))?;
    (near(line) >= NEAR).then(|| format!("The nearest is line {}: {}.", at + 1, quoted(line)))
}

/// Which pairs of letters a line has, blanks left out, as a set of a fixed size.
#[derive(Debug, Clone, Copy)]
struct Pairs([u64; 8]);

impl Pairs {
    fn of(line: &str) -> Self {
        let mut set = [0_u64; 8];
        let mut last = 0_u32;
        for byte in line.bytes().filter(|b| !b.is_ascii_whitespace()).take(2000) {
            let byte = u32::from(byte.to_ascii_lowercase());
            let place = (last.wrapping_mul(31) ^ byte.wrapping_mul(0x9e37_79b1)) >> 7 & 511;
            set[(place / 64) as usize] |= 1 << (place % 64);
            last = byte;
        }
        Self(set)
    }

    /// How many of all pairs both have, in percent; a line that holds the other counts for more than one that is like it.
    fn shared(&self, other: &Self) -> u32 {
        let count =
            |f: fn(u64, u64) -> u64| self.0.iter().zip(&other.0).map(|(a, b)| f(*a, *b).count_ones()).sum::<u32>();
        let (both, ours, theirs) = (count(|a, b| a & b), count(|a, _| a), count(|_, b| b));
        let within = 100 * both / ours.max(1);
        let alike = 200 * both / (ours + theirs).max(1);
        (within + 3 * alike) / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_says_what_differs() {
        for (text, wanted, expect) in [
            ("a\n\tfoo(bar)\nb\n", "    foo(bar)", "Line 2 has it but for white space: \"\\tfoo(bar)\"."),
            ("a\r\nb\r\nc\n", "a\nb", "Lines 1-2 have it but for line endings"),
            ("x = 'e\u{301}te\u{301}'\n", "x = 'été'", "but for the form of accented letters"),
            ("a\u{a0}b\n", "a b", "but for white space"),
            ("say \u{201c}hi\u{201d}\n", "say \"hi\"", "but for characters that look alike"),
            ("Two\n", "two", "but for upper and lower case"),
            (
                "fn main() {\n    let x = 1;\n    go_on_and_on(x);\n}\n",
                "fn main() {\n    let x = 2;\n    go_on_and_on(x);",
                "Line 1 fits, but line 2 of the file is \"    let x = 1;\", not \"    let x = 2;\".",
            ),
            ("first line\nxbx\nthird\n", "first line\nb\nthird", "line 2 of the file is \"xbx\", not \"b\"."),
            ("a\nb\n", "a\r\nb", "Lines 1-2 have it but for line endings"),
            ("a long last line\n", "a long last line\nb\nc", "Line 1 fits, but line 2 of the file is \"\", not \"b\"."),
            ("let count = 1;\nlet other = 2;\n", "let cuont = 1;", "The nearest is line 1: \"let count = 1;\"."),
        ] {
            let found = hint(text, wanted).unwrap_or_default();
            assert!(found.contains(expect), "{wanted:?}\n  {found}\n  {expect}");
        }
    }

    #[test]
    fn nothing_near_is_said_to_be_near() {
        for (text, wanted) in [("alpha\nbeta\n", "zzzz"), ("", "x"), ("one\ntwo\n", "\n"), ("abc", "   ")] {
            assert_eq!(hint(text, wanted), None, "{wanted:?}");
        }
    }

    #[test]
    fn a_long_text_of_equal_lines_takes_no_longer_than_its_length() {
        let text = "same line\n".repeat(200_000);
        let wanted = format!("{}other", "same line\n".repeat(2000));
        assert!(hint(&text, &wanted).is_some());
    }
}
