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
}

/// Appends a line: on a line of its own, and without an end of its own.
pub fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}
