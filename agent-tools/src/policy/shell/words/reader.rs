//! Reads a word piece by piece.

use super::super::printed::{self, Printed};
use super::{Found, PUT_IN, Piece, Scope, VALUE, Word, check_arithmetic, leading_name, read_text};

pub(super) struct Reader<'a> {
    pub(super) rest: &'a str,
    pub(super) word: Word,
    /// It is a single word: a blank or an operator outside quotes means that it was cut out wrongly.
    pub(super) strict: bool,
    pub(super) scope: &'a Scope<'a>,
    pub(super) found: &'a mut Found,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, prefix: &str) -> bool {
        self.rest.strip_prefix(prefix).map(|rest| self.rest = rest).is_some()
    }

    fn put(&mut self, text: impl Into<String>) {
        self.word.push(Piece::Text(text.into()));
    }

    /// What looks like an assignment is read like one: a tilde behind its `=` is the home directory, and one behind a
    /// colon, too.
    pub(super) fn assigned(&mut self) {
        let name = leading_name(self.rest);
        let behind = &self.rest[name.len()..];
        let length = name.len() + if behind.starts_with("+=") { 2 } else { 1 };
        if name.is_empty() || !behind.trim_start_matches('+').starts_with('=') {
            return;
        }
        if behind.contains(":~") {
            self.found.doubt("a tilde stands within a word");
        }
        if self.rest[length..].starts_with('~') {
            self.put(&self.rest[..length]);
            self.rest = &self.rest[length..];
        }
    }

    pub(super) fn tilde(&mut self) {
        let Some(rest) = self.rest.strip_prefix('~') else { return };
        self.rest = rest;
        if rest.is_empty() || rest.starts_with('/') {
            let home = if self.scope.variables.is_set("HOME") { None } else { self.scope.place.home.as_ref() };
            match home.and_then(|h| h.to_str()) {
                Some(home) => self.put(home),
                None => self.word.push(Piece::Unknown),
            }
        } else {
            self.word.push(Piece::Unknown);
        }
    }

    pub(super) fn unquoted(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\'' => self.single_quotes(),
                '"' => self.double_quotes(),
                '\\' => {
                    if let Some(c) = self.next() {
                        self.put(c);
                    }
                }
                '$' if self.take("'") => self.ansi_quotes(),
                '$' if self.take("\"") => self.double_quotes(),
                '$' => self.dollar(false),
                '`' => self.backticks(),
                direction @ ('<' | '>') if self.take("(") => {
                    let before = self.word.pieces.len();
                    self.substitution(true);
                    self.word.pieces.truncate(before);
                    // A pipe of the shell's own: like its input it costs nothing, and its name is not known.
                    self.put(if direction == '<' { "/dev/stdin" } else { "/dev/stdout" });
                }
                '[' if !self.rest.contains(']') => self.plain(c),
                '*' | '?' | '[' => self.word.push(Piece::Glob(c.into())),
                _ => self.plain(c),
            }
        }
    }

    /// This character and all that mean nothing after it.
    fn plain(&mut self, first: char) {
        let end = self.rest.find(['\'', '"', '\\', '$', '`', '<', '>', '*', '?', '[']).unwrap_or(self.rest.len());
        let mut text = String::from(first);
        text.push_str(&self.rest[..end]);
        self.rest = &self.rest[end..];
        if self.strict && text.contains([' ', '\t', '\n', ';', '|', '&', '(', ')', '<', '>']) {
            self.found.doubt(&format!("`{}` is not understood", self.word.raw));
        }
        self.put(text);
    }

    fn single_quotes(&mut self) {
        let end = self.rest.find('\'').unwrap_or(self.rest.len());
        self.put(&self.rest[..end]);
        self.rest = self.rest.get(end + 1..).unwrap_or("");
    }

    fn double_quotes(&mut self) {
        self.put("");
        while !self.rest.is_empty() && !self.take("\"") {
            self.in_double_quotes(Some('"'));
        }
    }

    /// One step of text in which only `$`, backticks and backslashes mean something.
    pub(super) fn in_double_quotes(&mut self, quote: Option<char>) {
        let stop = |c: char| matches!(c, '$' | '`' | '\\') || Some(c) == quote;
        let end = self.rest.find(stop).unwrap_or(self.rest.len());
        if end > 0 {
            self.put(&self.rest[..end]);
            self.rest = &self.rest[end..];
            return;
        }
        match self.next() {
            Some('$') => self.dollar(true),
            Some('`') => self.backticks(),
            Some('\\') => match self.next() {
                Some(c @ ('$' | '`' | '\\')) => self.put(c),
                Some(c) if Some(c) == quote => self.put(c),
                Some('\n') | None => {}
                Some(c) => self.put(format!("\\{c}")),
            },
            Some(_) | None => {}
        }
    }

    fn ansi_quotes(&mut self) {
        self.put("");
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('n') => self.put("\n"),
                    Some('t') => self.put("\t"),
                    Some(c @ ('\\' | '\'' | '"' | '?')) => self.put(c),
                    Some('x') => self.code(16, 2),
                    Some('u') => self.code(16, 4),
                    Some(_) | None => self.word.push(Piece::Unknown),
                },
                c => self.put(c),
            }
        }
    }

    /// A character by its number.
    fn code(&mut self, base: u32, most: usize) {
        let digits: String = self.rest.chars().take_while(|c| c.is_digit(base)).take(most).collect();
        self.rest = &self.rest[digits.len()..];
        match u32::from_str_radix(&digits, base).ok().filter(|n| (1..128).contains(n)).and_then(char::from_u32) {
            Some(c) => self.put(c),
            None => self.word.push(Piece::Unknown),
        }
    }

    fn dollar(&mut self, quoted: bool) {
        if self.rest.starts_with("((") {
            self.arithmetic();
        } else if self.take("(") {
            self.substitution(quoted);
        } else if self.take("{") {
            self.parameter(quoted);
        } else if self.take("[") {
            self.found.doubt("it computes with the old `$[ ]`");
            self.word.push(Piece::Unknown);
        } else {
            let name = leading_name(self.rest);
            self.rest = &self.rest[name.len()..];
            if name.is_empty() { self.put("$") } else { self.variable(name, quoted) }
        }
    }

    fn variable(&mut self, name: &str, quoted: bool) {
        let known = if self.found.put_in > PUT_IN { None } else { self.scope.get(name) };
        let Some(pieces) = known else {
            self.word.push(Piece::Unknown);
            return;
        };
        let length: usize = pieces.iter().map(Piece::length).sum();
        self.found.put_in += length;
        if self.word.length() + length > VALUE || self.found.put_in > PUT_IN {
            self.word.push(Piece::Unknown);
            return;
        }
        for piece in pieces {
            let splits = |t: &str| t.is_empty() || t.contains([' ', '\t', '\n', '*', '?', '[', '\\']);
            match piece {
                Piece::Text(text) if !quoted && splits(&text) => self.word.push(Piece::Unknown),
                Piece::Below(below) if !quoted && below.whole => self.word.push(Piece::Unknown),
                piece => self.word.push(piece),
            }
        }
    }

    /// `${ … }`: the plain forms; others are unknown, and some compute.
    fn parameter(&mut self, quoted: bool) {
        let Some(end) = closing_brace(self.rest) else {
            self.found.doubt("a `${` does not end");
            self.rest = "";
            return;
        };
        let (inside, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        if inside.contains(['\'', '"']) {
            // A brace in quotes does not end it: what is commands in all the rest is looked for, wherever it ends.
            self.found.doubt("a `${` holds quotes");
            self.word.push(Piece::Unknown);
            read_text(self.rest, self.scope, self.found);
            self.rest = "";
            return;
        }
        self.rest = rest;
        let name = leading_name(inside.strip_prefix('#').unwrap_or(inside));
        if inside.strip_prefix('#').is_some_and(|counted| counted == name) {
            return self.word.push(Piece::Number);
        }
        if inside == name && !name.is_empty() {
            return self.variable(name, quoted);
        }
        self.word.push(Piece::Unknown);
        let operation = &inside[name.len().min(inside.len())..];
        let plain = [":-", "-", ":+", "+", "#", "%", "/", "^", ","].iter().any(|op| operation.starts_with(op));
        let list = operation.strip_prefix("[@]").or(operation.strip_prefix("[*]")).is_some_and(str::is_empty);
        if name.is_empty() || !(plain || list) {
            self.found.doubt(&format!("`${{{inside}}}` computes what it stands for"));
        }
        read_text(operation, self.scope, self.found);
    }

    /// Numbers and operators, and variables that hold numbers; text in variables would be computed, too.
    fn arithmetic(&mut self) {
        let Some(end) = self.rest.find("))") else { return self.lost() };
        let mut text = &self.rest[2..end.max(2)];
        let mut after = &self.rest[end.max(2) + 2..];
        // A substitution within may hold `))` itself: then the whole rest is looked through.
        if text.matches('(').count() != text.matches(')').count() {
            (text, after) = (&self.rest[2..], "");
        }
        self.rest = after;
        let set = self.found.numbers.len();
        check_arithmetic(text, self.scope, self.found);
        if self.found.numbers.len() > set {
            self.found.doubt("it sets variables while it computes");
        }
        self.word.push(Piece::Number);
    }

    fn lost(&mut self) {
        self.found.doubt("an expansion does not end");
        self.rest = "";
        self.word.push(Piece::Unknown);
    }

    /// `$( … )`, the opening taken: ends at the `)` that no quote hides and that balances it.
    fn substitution(&mut self, quoted: bool) {
        let Some(end) = balanced(self.rest) else { return self.lost() };
        let inside = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if hides_its_end(inside) {
            self.found.doubt("where a substitution ends is not certain");
        }
        self.printed(inside, quoted);
        self.found.commands.push(inside.to_owned());
    }

    /// What a command between `$(` and `)` prints, where it is known.
    fn printed(&mut self, inside: &str, quoted: bool) {
        let alone = self.word.pieces.is_empty() && self.rest.is_empty();
        match printed::by_text(inside, self.scope) {
            Some(Printed::Number) => self.word.push(Piece::Number),
            Some(Printed::Name) => self.word.push(Piece::Glob("*".into())),
            // Nothing has this name before: what stands for it is as good.
            Some(Printed::New(start)) => self.put(format!("{start}XXXXXXXXXX")),
            Some(Printed::Text(text)) if quoted || !text.contains([' ', '\t', '\n', '*', '?', '[']) => self.put(text),
            // Several words, each of which is a name: only where the word is nothing else.
            Some(Printed::Names(names)) if !quoted && alone && !names.whole => {
                self.found.lists.push(names.clone());
                self.word.push(Piece::Below(names));
            }
            Some(Printed::Names(_) | Printed::Text(_)) | None => self.word.pieces.push(Piece::Unknown),
        }
    }

    /// What stands in backticks is looked at for what it needs at least: quotes within them are read in two ways.
    fn backticks(&mut self) {
        self.word.push(Piece::Unknown);
        let mut inside = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => {
                    if inside.contains(['\\', '"', '\'', '#', '<', '$', '(', '`']) {
                        self.found.doubt("it holds backticks with quotes or expansions; `$( … )` can be judged");
                    }
                    return self.found.commands.push(inside);
                }
                '\\' => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => inside.push(c),
                    Some(c) => inside.extend(['\\', c]),
                    None => {}
                },
                c => inside.push(c),
            }
        }
        self.lost();
    }
}

/// Where a parenthesis that is open before this text closes: quotes and backslashes hide what they hold.
fn balanced(text: &str) -> Option<usize> {
    // Within double quotes only a substitution opens something.
    let mut open: Vec<char> = Vec::new();
    let (mut chars, mut before) = (text.char_indices(), ' ');
    while let Some((at, c)) = chars.next() {
        let quoted = open.last() == Some(&'"');
        match c {
            '\\' => {
                chars.next();
            }
            '\'' if !quoted => {
                chars.by_ref().find(|(_, c)| *c == '\'')?;
            }
            '"' if quoted => {
                open.pop();
            }
            '"' => open.push('"'),
            '(' if !quoted || before == '$' => open.push('('),
            ')' if !quoted && open.is_empty() => return Some(at),
            ')' if !quoted => {
                open.pop();
            }
            _ => {}
        }
        before = if c == '\\' { ' ' } else { c };
    }
    None
}

/// A case has a `)` without its `(`; a comment, a heredoc, backticks, `${` and `$'` read quotes in ways of their own.
fn hides_its_end(inside: &str) -> bool {
    ["case", "esac", "#", "<<", "`", "${", "$'", "$\""].iter().any(|odd| inside.contains(odd))
}

fn closing_brace(text: &str) -> Option<usize> {
    let (mut depth, mut escaped) = (0usize, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' if depth == 0 => return Some(i),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}
