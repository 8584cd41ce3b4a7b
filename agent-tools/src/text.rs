//! Cutting text: the one place where output is made shorter.

use std::borrow::Cow;

/// How long a text may be, and what is kept of a longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The first so many characters (Unicode scalar values).
    HeadChars(usize),
}

impl Cut {
    /// The text, cut where it is too long, and whether it was.
    pub fn apply<'t>(&self, text: &'t str) -> (Cow<'t, str>, bool) {
        match self {
            Self::HeadChars(limit) => match text.char_indices().nth(*limit) {
                Some((end, _)) => (Cow::Borrowed(&text[..end]), true),
                None => (Cow::Borrowed(text), false),
            },
        }
    }

    /// The line that tells of a cut.
    pub fn marker(&self) -> String {
        match self {
            Self::HeadChars(limit) => format!("[output truncated to {limit} characters]"),
        }
    }

    /// The text, cut, with the marker on a line of its own where it was.
    pub fn told(&self, text: String) -> String {
        let (kept, cut) = self.apply(&text);
        if !cut {
            return text;
        }
        let mut kept = kept.into_owned();
        append_line(&mut kept, &self.marker());
        kept
    }

    /// How many bytes of a text settle what is left of it: one character more than is kept, of four bytes each.
    pub fn enough(&self) -> usize {
        match self {
            Self::HeadChars(limit) => limit.saturating_add(1).saturating_mul(4),
        }
    }

    /// Collects bytes that arrive piece by piece, no more of them than the cut can leave.
    pub fn keep(self) -> Kept {
        Kept { cut: self, bytes: Vec::new() }
    }
}

/// What is kept of bytes that arrive piece by piece. Its memory is bounded by the cut, whatever is pushed.
#[derive(Debug)]
pub struct Kept {
    cut: Cut,
    bytes: Vec<u8>,
}

impl Kept {
    /// Adds bytes. They may end within a character.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.room().min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
    }

    /// Whether further bytes would change nothing.
    pub fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// The text as far as the cut leaves it, bytes that are no UTF-8 replaced, and whether there was more.
    pub fn finish(self) -> (String, bool) {
        let text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        };
        let (kept, cut) = self.cut.apply(&text);
        (kept.into_owned(), cut)
    }

    fn room(&self) -> usize {
        self.cut.enough().saturating_sub(self.bytes.len())
    }
}

/// Appends a line: on a line of its own, and without an end of its own.
pub fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// How many lines a text has; a last one without an end counts.
pub fn line_count(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// A number of things in words: `1 line`, `2 lines`.
pub fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The start of a line for a message: at most `most` characters, with an ellipsis where there was more.
pub fn clipped(line: &str, most: usize) -> String {
    let (kept, cut) = Cut::HeadChars(most).apply(line);
    if cut { format!("{kept}…") } else { kept.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_characters_and_never_splits_one() {
        for (limit, text, expect) in [
            (3, "abc", "abc"),
            (3, "abcd", "abc\n[output truncated to 3 characters]"),
            (2, "éééé", "éé\n[output truncated to 2 characters]"),
            (2, "a\nb", "a\n[output truncated to 2 characters]"),
            (0, "a", "[output truncated to 0 characters]"),
            (0, "", ""),
        ] {
            assert_eq!(Cut::HeadChars(limit).told(text.into()), expect, "{limit} {text:?}");
        }
    }

    #[test]
    fn pieces_keep_what_the_whole_would_whatever_the_pieces() {
        for text in ["abcdef", "ééééééé", "a😀b😀c", "", "■■"] {
            for limit in 0..8 {
                for step in 1..5 {
                    let mut kept = Cut::HeadChars(limit).keep();
                    text.as_bytes().chunks(step).for_each(|piece| kept.push(piece));
                    let (whole, cut) = Cut::HeadChars(limit).apply(text);
                    assert_eq!(kept.finish(), (whole.into_owned(), cut), "{text:?} {limit} {step}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_bad_bytes_are_replaced() {
        let mut kept = Cut::HeadChars(2).keep();
        (0..1000).for_each(|_| kept.push(b"\xff\xff\xff\xff"));
        assert!(kept.is_full() && kept.bytes.len() <= 12);
        assert_eq!(kept.finish(), ("\u{fffd}\u{fffd}".into(), true));
    }
}
