//! Colours where a terminal wants them, and text made harmless for a terminal.

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    colours: bool,
}

impl Style {
    /// Colours on a terminal, unless `NO_COLOR` is set; never elsewhere.
    pub const fn new(terminal: bool, no_color: bool) -> Self {
        Self { colours: terminal && !no_color }
    }

    /// Dim text.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Bold text.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// A line of a diff: added green, removed red, the rest dim.
    pub fn diff(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.paint("32", line),
            Some(b'-') => self.paint("31", line),
            _ => self.dim(line),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Untrusted text without what could move the cursor or change the terminal: control characters other than newline and
/// tab are dropped, escape sequences with them.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            c if c.is_control() || is_bidi_control(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Marks that reorder what is shown: they can make a command read other than it runs.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Untrusted text that somebody is to judge: what [`plain`] drops, and what takes no room or reorders what is shown,
/// stands there as `\u{202e}`. Newline and tab are kept.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            c if c.is_control() || is_unseen(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Marks of direction, ends of lines that are none, and characters without any width or ink.
fn is_unseen(c: char) -> bool {
    is_bidi_control(c)
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// The beginning of a text, at most so many lines and characters of it, and the rest.
pub fn beginning(text: &str, lines: usize, characters: usize) -> (&str, &str) {
    let text = text.trim_end_matches('\n');
    let by_lines = text.match_indices('\n').nth(lines.saturating_sub(1)).map(|(at, _)| at);
    let by_characters = text.char_indices().nth(characters).map(|(at, _)| at);
    let end = by_lines.into_iter().chain(by_characters).min().unwrap_or(text.len());
    text.split_at(end)
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_csi(chars),
        // A string (title, link): up to BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' || c == '\u{1b}' && chars.next_if_eq(&'\\').is_some() {
                    break;
                }
            }
        }
        Some('(' | ')' | '#' | '%') => {
            chars.next();
        }
        _ => {}
    }
}

/// Parameters and the final letter of a control sequence.
fn skip_csi(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| ('\u{20}'..='\u{7e}').contains(c)) {
        if ('\u{40}'..='\u{7e}').contains(&c) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_judged_hides_nothing() {
        for (text, expect) in [
            ("a\tb\r\nc", "a\tb\nc"),
            ("rm \u{202e}fdp", r"rm \u{202e}fdp"),
            ("\u{1b}[31mred", r"\u{1b}[31mred"),
            ("a\u{200b}b\u{2066}\u{feff}\u{e0041}", r"a\u{200b}b\u{2066}\u{feff}\u{e0041}"),
            ("echo x\rrm y\u{7f}", r"echo x\u{d}rm y\u{7f}"),
            ("ünï ✓ 🛠️", "ünï ✓ 🛠️"),
        ] {
            assert_eq!(visible(text), expect, "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_by_lines_and_by_characters() {
        for (text, lines, characters, expect) in [
            ("a\nb\n", 2, 9, ("a\nb", "")),
            ("a\nb\nc", 2, 9, ("a\nb", "\nc")),
            ("äöü", 2, 2, ("äö", "ü")),
            ("äö", 2, 2, ("äö", "")),
            ("", 1, 1, ("", "")),
        ] {
            assert_eq!(beginning(text, lines, characters), expect, "{text:?}");
        }
    }

    #[test]
    fn nothing_that_moves_a_terminal_is_left() {
        for (text, expect) in [
            ("a\tb\nc", "a\tb\nc"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://h\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}[2J\u{1b}[Hy", "y"),
            ("\u{9b}31mz", "z"),
            ("10%\r20%\r\n", "10%\n20%\n"),
            ("a\u{0}\u{8}b\u{7f}", "ab"),
            ("rm \u{202e}fdp", "rm fdp"),
            ("\u{1b}", ""),
            ("ünï ✓", "ünï ✓"),
        ] {
            assert_eq!(plain(text), expect, "{text:?}");
        }
    }
}
