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
