//! Cutting text: the one place where output is made shorter.

/// How long a text may be, and what is kept of a longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The first so many characters (Unicode scalar values), and a line below that tells of it.
    HeadChars(usize),
    /// The beginning and the last lines, with a line between them that tells of it: so many bytes in all.
    HeadTailBytes(usize),
}

/// How many lines of the end are kept, where the end is.
const LAST_LINES: usize = 5;
/// Room for what the line that tells of a cut may say besides.
const REMARK: usize = 64;

impl Cut {
    /// The text, cut and told of where it is too long.
    pub fn told(&self, text: String) -> String {
        self.told_with(text, |_| String::new())
    }

    /// The same, with a remark in the line that tells of the cut; it is made from what is kept before that line.
    pub fn told_with(&self, text: String, remark: impl FnOnce(&str) -> String) -> String {
        match self {
            Self::HeadChars(limit) => match text.char_indices().nth(*limit) {
                Some((end, _)) => head_told(&text[..end], *limit, remark),
                None => text,
            },
            Self::HeadTailBytes(limit) if text.len() > *limit => {
                both_told(&text, &text, text.len() as u64, *limit, remark)
            }
            Self::HeadTailBytes(_) => text,
        }
    }

    /// Collects bytes that arrive piece by piece, no more of them than the cut can leave.
    pub fn keep(self) -> Kept {
        Kept { cut: self, head: Vec::new(), tail: Vec::new(), total: 0 }
    }

    /// Whether a text is shown whole.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::HeadChars(limit) => text.char_indices().nth(*limit).is_none(),
            Self::HeadTailBytes(limit) => text.len() <= *limit,
        }
    }

    /// So many bytes of a text show whether it fits.
    pub fn enough(&self) -> usize {
        self.head_room().saturating_add(1)
    }

    /// How many bytes of a text's beginning may be shown: one character more than is kept, of four bytes each.
    fn head_room(&self) -> usize {
        match self {
            Self::HeadChars(limit) => limit.saturating_add(1).saturating_mul(char::MAX_LEN_UTF8),
            Self::HeadTailBytes(limit) => *limit,
        }
    }

    /// How many bytes of a text's end may be shown.
    fn tail_room(&self) -> usize {
        match self {
            Self::HeadChars(_) => 0,
            Self::HeadTailBytes(limit) => limit / 4,
        }
    }
}

fn head_told(head: &str, limit: usize, remark: impl FnOnce(&str) -> String) -> String {
    let mut text = head.to_owned();
    append_line(&mut text, &format!("[output truncated to {limit} characters]"));
    let remark = remark(head);
    if !remark.is_empty() {
        text.push(' ');
        text.push_str(&remark);
    }
    text
}

/// The beginning of `start`, a line that tells of the cut, and the last lines of `end`. All of it had `total` bytes.
fn both_told(start: &str, end: &str, total: u64, limit: usize, remark: impl FnOnce(&str) -> String) -> String {
    let marker = |remark: &str| {
        let remark = if remark.is_empty() { String::new() } else { format!("; {remark}") };
        format!("\n\n[... truncated: showing first/last portions of {total} bytes{remark} ...]\n\n")
    };
    let room = limit.saturating_sub(marker("").len() + REMARK);
    let tail = last_lines(end, (limit / 4).min(room));
    let head = start_of(start, room - tail.len());
    let marker = marker(&remark(head));
    // The remark may be longer than the room for it.
    let room = limit.saturating_sub(marker.len());
    let tail = last_lines(tail, room);
    format!("{}{marker}{tail}", start_of(head, room - tail.len()))
}

/// The last lines of a text, no more than fit into so many bytes.
fn last_lines(text: &str, room: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[text.ceil_char_boundary(start.max(text.len().saturating_sub(room)))..]
}

fn start_of(text: &str, room: usize) -> &str {
    &text[..text.floor_char_boundary(room)]
}

/// What is kept of bytes that arrive piece by piece. Its memory is bounded by the cut, whatever is pushed.
#[derive(Debug, Clone)]
pub struct Kept {
    cut: Cut,
    head: Vec<u8>,
    /// The last bytes of those that did not fit into the head; up to twice as many as can be shown.
    tail: Vec<u8>,
    total: u64,
}

impl Kept {
    /// Adds bytes. They may end within a character.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let fits = (self.cut.head_room() - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..fits]);
        self.push_tail(&bytes[fits..]);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let room = self.cut.tail_room();
        let news = &bytes[bytes.len().saturating_sub(room)..];
        if self.tail.len() + news.len() > 2 * room {
            self.tail.drain(..(self.tail.len() + news.len() - room).min(self.tail.len()));
        }
        self.tail.extend_from_slice(news);
    }

    /// Whether further bytes would change nothing.
    pub fn is_full(&self) -> bool {
        match self.cut {
            Cut::HeadChars(_) => self.head.len() == self.cut.head_room(),
            Cut::HeadTailBytes(_) => false,
        }
    }

    /// Whether all that was pushed is still here.
    pub fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.total
    }

    /// The bytes of the beginning; all of them where [`Self::is_whole`].
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the text will be cut.
    pub fn is_cut(&self) -> bool {
        match self.cut {
            Cut::HeadChars(limit) => String::from_utf8_lossy(&self.head).chars().nth(limit).is_some(),
            Cut::HeadTailBytes(limit) => !self.is_whole() || String::from_utf8_lossy(&self.head).len() > limit,
        }
    }

    /// The text as [`Cut::told_with`] has it, bytes that are no UTF-8 replaced.
    pub fn told_with(self, remark: impl FnOnce(&str) -> String) -> String {
        let limit = match self.cut {
            Cut::HeadTailBytes(limit) if !self.is_whole() => limit,
            Cut::HeadTailBytes(_) | Cut::HeadChars(_) => return self.cut.told_with(readable(self.head), remark),
        };
        let shown = self.tail.len().min(self.cut.tail_room());
        let missing = self.cut.tail_room() - shown;
        let before = &self.head[self.head.len().saturating_sub(missing)..];
        let end = [before, &self.tail[self.tail.len() - shown..]].concat();
        // The front may begin within a character.
        let front = end.iter().take(3).take_while(|b| **b & 0xC0 == 0x80).count();
        let end = String::from_utf8_lossy(&end[front..]);
        both_told(&readable(self.head), &end, self.total, limit, remark)
    }
}

/// As text; what is no UTF-8 becomes U+FFFD.
fn readable(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
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
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn the_beginning_and_the_last_lines_are_kept() {
        let numbers: String = (1..=200).map(|n| format!("{n}\n")).collect();
        let cut = Cut::HeadTailBytes(180);
        let told = cut.told_with(numbers, |head| format!("{} lines before", head.matches('\n').count()));
        assert_eq!(
            told,
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n1\n\n[... truncated: showing first/last portions of 692 bytes; 13 lines before ...]\n\n196\n197\n198\n199\n200\n"
        );
        assert_eq!(cut.told("x".repeat(180)), "x".repeat(180));
    }

    #[test]
    fn a_long_last_line_gets_a_quarter_at_most() {
        let text = format!("start\n{}", "y".repeat(10_000));
        let told = Cut::HeadTailBytes(1000).told(text);
        assert!(told.len() <= 1000 && told.starts_with("start\ny"), "{told}");
        let (_, tail) = told.split_once("10006 bytes ...]\n\n").unwrap();
        assert_eq!(tail, "y".repeat(250));
    }

    proptest! {
        #[test]
        fn pieces_are_told_as_the_whole_whatever_the_pieces(
            text in "[a-zé日🛠\n]{0,120}", limit in 0_usize..60, step in 1_usize..40, both in any::<bool>(),
        ) {
            let cut = if both { Cut::HeadTailBytes(4 * limit) } else { Cut::HeadChars(limit) };
            let mut kept = cut.keep();
            text.as_bytes().chunks(step).for_each(|piece| kept.push(piece));
            prop_assert!(kept.head.len() + kept.tail.len() <= 6 * limit + 4);
            let was_cut = kept.is_cut();
            let told = kept.told_with(|_| String::new());
            prop_assert_eq!(was_cut, told != text);
            prop_assert_eq!(told, cut.told(text));
        }

        #[test]
        fn whatever_comes_the_whole_stays_within_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8), limit in 200_usize..500,
        ) {
            let mut kept = Cut::HeadTailBytes(limit).keep();
            pieces.iter().for_each(|piece| kept.push(piece));
            prop_assert!(kept.told_with(|_| "x".repeat(90)).len() <= limit);
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_bad_bytes_are_replaced() {
        let mut kept = Cut::HeadChars(2).keep();
        (0..1000).for_each(|_| kept.push(b"\xff\xff\xff\xff"));
        assert!(kept.is_full() && kept.head.len() <= 12);
        assert_eq!(kept.told_with(|_| String::new()), "\u{fffd}\u{fffd}\n[output truncated to 2 characters]");
    }
}
