//! What a person types while a turn runs: bytes to keys, keys to a line, and what is to be shown of it. Pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands before the line.
pub const MARK: &str = "» ";

/// Begin and end of a pasted text.
const PASTE: (&[u8], &[u8]) = (b"\x1b[200~", b"\x1b[201~");

/// A key, or what was pasted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A text as it was pasted, with `\n` at the ends of its lines.
    Paste(String),
    /// Enter.
    Enter,
    /// Ctrl-O: say it now.
    Now,
    /// Backspace.
    Erase,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U, Esc.
    EraseAll,
    /// Ctrl-Z: the shell wants the terminal.
    Suspend,
    /// Any other.
    Other,
}

/// Makes keys of bytes, however these are split.
#[derive(Debug, Default)]
pub struct Keys(Vec<u8>);

impl Keys {
    /// The keys that are whole now. An Esc alone is one.
    pub fn of(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.0.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, taken)) = first(&self.0) {
            self.0.drain(..taken);
            keys.push(key);
        }
        keys
    }

    /// Whether what was last read may be the begin of a sequence, or Esc alone.
    pub fn may_go_on(bytes: &[u8]) -> bool {
        bytes.ends_with(b"\x1b")
    }
}

/// The first key and how many bytes it has; none where it is not whole.
fn first(bytes: &[u8]) -> Option<(Key, usize)> {
    Some(match bytes.first()? {
        b'\x1b' => return sequence(bytes),
        b'\r' | b'\n' => (Key::Enter, 1),
        0x0f => (Key::Now, 1),
        0x7f | 0x08 => (Key::Erase, 1),
        0x17 => (Key::EraseWord, 1),
        0x15 => (Key::EraseAll, 1),
        0x1a => (Key::Suspend, 1),
        0..=0x1f => (Key::Other, 1),
        _ => return character(bytes),
    })
}

fn character(bytes: &[u8]) -> Option<(Key, usize)> {
    let whole = match bytes[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    match std::str::from_utf8(bytes.get(..whole)?).ok().and_then(|text| text.chars().next()) {
        Some(c) if !c.is_control() => Some((Key::Char(c), whole)),
        Some(_) => Some((Key::Other, whole)),
        None => Some((Key::Other, 1)),
    }
}

/// What begins with Esc: a paste, a key with a sequence of its own, a character with Alt, or Esc alone.
fn sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    if bytes.starts_with(PASTE.0) {
        let text = &bytes[PASTE.0.len()..];
        let end = text.windows(PASTE.1.len()).position(|w| w == PASTE.1)?;
        let pasted = String::from_utf8_lossy(&text[..end]).replace("\r\n", "\n").replace('\r', "\n");
        return Some((Key::Paste(pasted), PASTE.0.len() + end + PASTE.1.len()));
    }
    match bytes.get(1) {
        None => Some((Key::EraseAll, 1)),
        Some(b'[') => {
            let end = bytes.iter().skip(2).position(|b| (0x40..=0x7e).contains(b))?;
            Some((Key::Other, end + 3))
        }
        Some(b'O') => bytes.get(2).map(|_| (Key::Other, 3)),
        Some(b'\x1b') => Some((Key::EraseAll, 1)),
        Some(_) => character(&bytes[1..]).map(|(_, taken)| (Key::Other, taken + 1)),
    }
}

/// What a key did to the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing that shows.
    Nothing,
    /// This is to be printed where the cursor stands.
    Show(String),
    /// The whole line is to be shown again, on a new line of the terminal.
    Again,
    /// The line is empty now.
    Emptied,
    /// The line is whole.
    Entered(String),
    /// The model is to read the line now; where nothing is typed, what was entered before.
    Now(Option<String>),
    /// The program is to make room for the shell.
    Suspend,
}

/// The line.
#[derive(Debug, Default)]
pub struct Typing(String);

impl Typing {
    /// Whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the line away.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }

    /// The line as it is shown, behind its mark.
    pub fn shown(&self) -> String {
        format!("{MARK}{}", shown(&self.0))
    }

    /// Does what a key says, on a terminal of so many columns.
    pub fn key(&mut self, key: Key, columns: usize) -> Step {
        match key {
            Key::Char(c) => self.add(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.add(&text),
            Key::Enter if self.0.trim().is_empty() => self.cut(0, columns),
            Key::Enter => Step::Entered(self.take()),
            Key::Now => Step::Now(Some(self.take()).filter(|line| !line.trim().is_empty())),
            Key::Erase => self.cut(self.0.char_indices().next_back().map_or(0, |(at, _)| at), columns),
            Key::EraseWord => {
                let words = self.0.trim_end();
                let keep = words.rfind(char::is_whitespace).map_or(0, |at| at + whitespace_at(words, at));
                self.cut(keep, columns)
            }
            Key::EraseAll => self.cut(0, columns),
            Key::Suspend => Step::Suspend,
            Key::Other => Step::Nothing,
        }
    }

    fn add(&mut self, text: &str) -> Step {
        self.0.push_str(text);
        let shown = shown(text);
        if shown.is_empty() { Step::Nothing } else { Step::Show(shown) }
    }

    /// Keeps so many bytes.
    fn cut(&mut self, keep: usize, columns: usize) -> Step {
        if self.0.is_empty() {
            return Step::Nothing;
        }
        let before = self.shown();
        self.0.truncate(keep);
        if self.0.is_empty() {
            return Step::Emptied;
        }
        let (from, to) = (Place::after(&before, columns), Place::after(&self.shown(), columns));
        // The cursor does not go back to the row above.
        if from.row != to.row || from.column == columns {
            return Step::Again;
        }
        let back = "\u{8}".repeat(from.column - to.column);
        Step::Show(format!("{back}{}{back}", " ".repeat(from.column - to.column)))
    }
}

fn whitespace_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Where the cursor stands.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    row: usize,
    /// As many as there are columns where the next character begins a row.
    column: usize,
}

impl Place {
    /// After this text, which begins in the first column.
    fn after(text: &str, columns: usize) -> Self {
        let start = Self { row: 0, column: 0 };
        text.chars().map(|c| c.width().unwrap_or(0)).fold(start, |Self { row, column }, width| {
            if column + width > columns {
                Self { row: row + 1, column: width }
            } else {
                Self { row, column: column + width }
            }
        })
    }
}

/// A text in one line, without what has no place in it.
fn shown(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| match c {
            '\n' => '⏎',
            '\t' => ' ',
            c => c,
        })
        .collect();
    crate::render::plain(&one_line)
}

/// The beginning of a line, at most so wide.
pub fn beginning(line: &str, columns: usize) -> String {
    let line = shown(line);
    if line.width() <= columns {
        return line;
    }
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width < columns
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn bytes_are_keys() {
        for (bytes, expect) in [
            ("ab", chars("ab")),
            ("ä漢🙂", chars("ä漢🙂")),
            ("\r\n\u{f}\u{7f}\u{8}\u{17}\u{15}", {
                use Key::*;
                vec![Enter, Enter, Now, Erase, Erase, EraseWord, EraseAll]
            }),
            ("\u{1b}[A\u{1b}OBx\u{1b}[1;5Cy", vec![Key::Other, Key::Other, Key::Char('x'), Key::Other, Key::Char('y')]),
            ("\u{1b}b\u{1b}ä", vec![Key::Other, Key::Other]),
            ("\u{1b}", vec![Key::EraseAll]),
            ("\t\u{3}\u{1a}", vec![Key::Other, Key::Other, Key::Suspend]),
            (
                "\u{1b}[200~a\rb\r\nc\u{1b}[31m\u{1b}[201~d",
                vec![Key::Paste("a\nb\nc\u{1b}[31m".into()), Key::Char('d')],
            ),
            ("\u{1b}[200~not whole", vec![]),
        ] {
            assert_eq!(Keys::default().of(bytes.as_bytes()), expect, "{bytes:?}");
        }
        let broken = [Key::Other, Key::Other, Key::Char('a'), Key::Char('b')];
        assert_eq!(Keys::default().of(b"\xff\xe4ab"), broken);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_keys(text in "[a-zä漢🙂\r]{0,12}", at in 0_usize..40) {
            let all = format!("{text}\u{1b}[200~{text}\u{1b}[201~{text}");
            let (one, two) = all.as_bytes().split_at(at.min(all.len()));
            prop_assume!(!Keys::may_go_on(one));
            let mut keys = Keys::default();
            let mut split = keys.of(one);
            split.extend(keys.of(two));
            prop_assert_eq!(split, Keys::default().of(all.as_bytes()));
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64), columns in 1_usize..20) {
            let mut typing = Typing::default();
            for key in Keys::default().of(&bytes) {
                if let Step::Show(text) = typing.key(key, columns) {
                    let harmless = !text.contains('\u{1b}');
                    prop_assert!(harmless);
                }
            }
        }
    }

    /// What is on a terminal row after this was printed, with wide characters as two cells.
    fn row(printed: &str) -> String {
        let (mut cells, mut at) = (Vec::<String>::new(), 0);
        for c in printed.chars() {
            if c == '\u{8}' {
                at -= 1;
                continue;
            }
            let width = c.width().unwrap();
            cells.resize(cells.len().max(at + width), " ".into());
            cells[at] = c.to_string();
            if width == 2 {
                cells[at + 1] = String::new();
            }
            at += width;
        }
        cells.concat().trim_end().to_owned()
    }

    #[test]
    fn what_is_erased_is_gone_from_the_terminal() {
        for (keys, line, on_screen) in [
            ("ab\u{7f}c", "ac", "» ac"),
            ("a漢字\u{7f}b", "a漢b", "» a漢b"),
            ("fix the bug\u{17}test", "fix the test", "» fix the test"),
            ("fix the  \u{17}\u{17}all", "all", "» all"),
            ("🙂🙂\u{7f}x", "🙂x", "» 🙂x"),
            ("\u{1b}[200~a\nb\u{1b}[201~\u{7f}c", "a\nc", "» a⏎c"),
        ] {
            let mut typing = Typing::default();
            let mut printed = MARK.to_owned();
            for key in Keys::default().of(keys.as_bytes()) {
                match typing.key(key, 80) {
                    Step::Show(text) => printed.push_str(&text),
                    Step::Emptied => printed = MARK.to_owned(),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((typing.0.as_str(), row(&printed).as_str()), (line, on_screen), "{keys:?}");
        }
    }

    #[test]
    fn a_row_above_is_not_gone_back_to() {
        let mut typing = Typing::default();
        let mut steps = Vec::new();
        // Five columns: the mark and three letters; the fourth is in the second row.
        for key in Keys::default().of(b"abcd\x7f\x7f\x7f") {
            steps.push(typing.key(key, 5));
        }
        let show = |text: &str| Step::Show(text.into());
        let shown = ["a", "b", "c", "d"].map(show);
        assert_eq!(steps[..4], shown);
        assert_eq!(steps[4..], [Step::Again, Step::Again, show("\u{8} \u{8}")]);
    }

    #[test]
    fn lines_are_entered_said_now_or_dropped() {
        for (keys, expect) in [
            ("go\r", Step::Entered("go".into())),
            ("go\u{f}", Step::Now(Some("go".into()))),
            ("\u{f}", Step::Now(None)),
            ("  \r", Step::Emptied),
            ("\r", Step::Nothing),
            ("a\u{7f}", Step::Emptied),
            ("abc\u{15}", Step::Emptied),
            ("abc\u{1b}", Step::Emptied),
            ("\u{7f}", Step::Nothing),
        ] {
            let mut typing = Typing::default();
            let last = Keys::default().of(keys.as_bytes()).into_iter().map(|key| typing.key(key, 80)).last();
            assert_eq!(last, Some(expect), "{keys:?}");
            assert!(typing.is_empty());
        }
    }

    #[test]
    fn a_beginning_fits() {
        for (line, columns, expect) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("漢字漢", 5, "漢字…"), ("a\nb", 9, "a⏎b")]
        {
            assert_eq!(beginning(line, columns), expect);
        }
    }
}
