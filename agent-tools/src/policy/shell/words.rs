//! Resolves words: quotes taken off, variables that are known put in, and what cannot be known marked as such.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::rc::Rc;

use crate::place::Place;

/// A word after the shell's expansions, as far as they can be foretold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Word {
    /// As it was written.
    pub(super) raw: String,
    pub(super) pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Exactly this.
    Text(String),
    /// Names of files that match this.
    Glob(String),
    /// Nobody knows.
    Unknown,
}

impl Word {
    pub(super) fn text(text: &str) -> Self {
        Self { raw: text.into(), pieces: vec![Piece::Text(text.into())] }
    }

    pub(super) fn unknown(raw: &str) -> Self {
        Self { raw: raw.into(), pieces: vec![Piece::Unknown] }
    }

    /// The text, where it is known to the last character.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text before anything that is not known.
    pub(super) fn start(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            Some(Piece::Glob(_) | Piece::Unknown) | None => "",
        }
    }

    /// Whether a part of it is unknown; names that a pattern stands for are not.
    pub(super) fn is_unknown(&self) -> bool {
        self.pieces.contains(&Piece::Unknown)
    }

    /// The word without its first `bytes` bytes of known text.
    pub(super) fn after(&self, bytes: usize) -> Self {
        let mut rest = self.clone();
        if let Some(Piece::Text(text)) = rest.pieces.first_mut() {
            text.drain(..bytes.min(text.len()));
        }
        if matches!(rest.pieces.first(), Some(Piece::Text(text)) if text.is_empty()) {
            rest.pieces.remove(0);
        }
        rest
    }

    /// The text as a pattern; None where a part is unknown.
    pub(super) fn pattern(&self) -> Option<String> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Glob(text) => Some(text.clone()),
            Piece::Unknown => None,
        };
        self.pieces.iter().map(part).collect()
    }

    /// Bytes of what is known.
    pub(super) fn length(&self) -> usize {
        self.pieces.iter().map(Piece::length).sum()
    }

    fn push(&mut self, piece: Piece) {
        match (self.pieces.last_mut(), piece) {
            (Some(Piece::Text(old)), Piece::Text(new)) | (Some(Piece::Glob(old)), Piece::Glob(new)) => {
                old.push_str(&new);
            }
            (_, piece) => self.pieces.push(piece),
        }
    }
}

impl Piece {
    fn length(&self) -> usize {
        match self {
            Self::Text(text) | Self::Glob(text) => text.len(),
            Self::Unknown => 0,
        }
    }
}

/// Values longer than this are not followed, in bytes.
pub(super) const VALUE: usize = 4 * 1024;
/// All that variables may put into the words of a command, in bytes.
const PUT_IN: usize = 32 * 1024;

/// What variables hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Variables {
    /// Set by the command itself; none: to something unknown.
    /// Shared, because a shell is copied at each command and changes at few.
    set: Rc<HashMap<String, Option<Vec<Piece>>>>,
}

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: Option<Vec<Piece>>) {
        Rc::make_mut(&mut self.set).insert(name.into(), value);
    }

    /// Keeps what both agree on; all else is unknown.
    pub(super) fn merge(&mut self, other: &Self) {
        if Rc::ptr_eq(&self.set, &other.set) {
            return;
        }
        let set = Rc::make_mut(&mut self.set);
        for (name, value) in &mut *set {
            if other.set.get(name) != Some(value) {
                *value = None;
            }
        }
        for name in other.set.keys() {
            set.entry(name.clone()).or_insert(None);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.set.len()
    }

    /// Bytes of all values.
    pub(super) fn size(&self) -> usize {
        self.set.values().flatten().flatten().map(Piece::length).sum()
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    fn get(&self, name: &str, place: &Place) -> Option<Vec<Piece>> {
        if let Some(value) = self.set.get(name) {
            return value.clone();
        }
        let inherited = || place.env.iter().find(|(key, _)| key == OsStr::new(name))?.1.to_str().map(str::to_owned);
        let text = match name {
            "HOME" => place.home.as_ref()?.to_str().map(str::to_owned),
            _ if CHANGES_BY_ITSELF.contains(&name) || name.starts_with("BASH") => None,
            _ => inherited(),
        };
        text.map(|text| vec![Piece::Text(text)])
    }
}

const CHANGES_BY_ITSELF: [&str; 29] = [
    "?",
    "#",
    "$",
    "!",
    "-",
    "@",
    "*",
    "PPID",
    "UID",
    "EUID",
    "OPTIND",
    "OPTERR",
    "HISTCMD",
    "HOSTNAME",
    "COLUMNS",
    "PWD",
    "OLDPWD",
    "RANDOM",
    "SRANDOM",
    "LINENO",
    "SECONDS",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "REPLY",
    "IFS",
    "PATH",
    "OPTARG",
    "SHLVL",
    "_",
];

/// What reading words brings to light besides them.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Commands whose output stands in a word: to be judged, too.
    pub(super) commands: Vec<String>,
    /// Why something cannot be judged.
    pub(super) unsure: Option<String>,
    /// Bytes that variables put in.
    pub(super) put_in: usize,
}

impl Found {
    fn doubt(&mut self, why: &str) {
        self.unsure.get_or_insert_with(|| why.to_owned());
    }
}

/// Reads the words that a raw word stands for: one, or more where braces list several.
pub(super) fn read(raw: &str, variables: &Variables, place: &Place, found: &mut Found) -> Vec<Word> {
    match braces(raw) {
        Braces::None => vec![read_one(raw, variables, place, found)],
        Braces::Listed(words) => {
            let words = words.iter().map(|w| Word { raw: raw.into(), ..read_one(w, variables, place, found) });
            words.filter(|w| !w.pieces.is_empty()).collect()
        }
        Braces::Unclear => {
            read_one(raw, variables, place, found);
            vec![Word::unknown(raw)]
        }
    }
}

/// Reads a word that is not split and whose braces mean nothing: the value of an assignment, the target of a redirect.
pub(super) fn read_one(raw: &str, variables: &Variables, place: &Place, found: &mut Found) -> Word {
    read_unsplit(raw, true, variables, place, found)
}

/// Reads several words as one, for the commands in them: the values of an array, an operand of `[[ ]]`.
pub(super) fn read_loose(raw: &str, variables: &Variables, place: &Place, found: &mut Found) -> Word {
    read_unsplit(raw, false, variables, place, found)
}

fn read_unsplit(raw: &str, strict: bool, variables: &Variables, place: &Place, found: &mut Found) -> Word {
    let word = Word { raw: raw.into(), pieces: Vec::new() };
    let mut reader = Reader { rest: raw, word, strict, variables, place, found };
    reader.tilde();
    reader.unquoted();
    reader.word
}

/// Reads text that expands but holds no quotes: the body of a heredoc, arithmetic.
pub(super) fn read_text(text: &str, variables: &Variables, place: &Place, found: &mut Found) -> Word {
    let word = Word { raw: text.into(), pieces: Vec::new() };
    let mut reader = Reader { rest: text, word, strict: false, variables, place, found };
    while !reader.rest.is_empty() {
        reader.in_double_quotes(None);
    }
    reader.word
}

enum Braces {
    None,
    Listed(Vec<String>),
    Unclear,
}

/// `a{b,c}d` stands for two words. What is nested or quoted within is left unclear.
fn braces(raw: &str) -> Braces {
    if !raw.contains('{') {
        return Braces::None;
    }
    let Some(open) = open_brace(raw) else { return Braces::None };
    let inside = &raw[open + 1..];
    let Some(close) = inside.find('}') else { return Braces::None };
    let (list, tail) = (&inside[..close], &inside[close + 1..]);
    let plain = |t: &str| !t.contains(['\'', '"', '\\', '$', '`', '{', '(']);
    if !list.contains(',') && !list.contains("..") {
        // `{}` and `{word}` are themselves; a later pair may not be.
        return if open_brace(tail).is_some() && !plain(tail) { Braces::Unclear } else { Braces::None };
    }
    if !plain(list) || !plain(tail) || !list.contains(',') || !plain(&raw[..open]) {
        return Braces::Unclear;
    }
    Braces::Listed(list.split(',').map(|item| format!("{}{item}{tail}", &raw[..open])).collect())
}

/// The first brace outside quotes that could open a list.
fn open_brace(raw: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, ' ');
    for (i, c) in raw.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') if before != '\\' => quote = Some(c),
            (Some(q), c) if q == c && before != '\\' => quote = None,
            (None, '{') if before != '$' && before != '\\' => return Some(i),
            _ => {}
        }
        before = if before == '\\' && c == '\\' { ' ' } else { c };
    }
    None
}

struct Reader<'a> {
    rest: &'a str,
    word: Word,
    /// It is a single word: a blank or an operator outside quotes means that it was cut out wrongly.
    strict: bool,
    variables: &'a Variables,
    place: &'a Place,
    found: &'a mut Found,
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

    fn tilde(&mut self) {
        let Some(rest) = self.rest.strip_prefix('~') else { return };
        self.rest = rest;
        if rest.is_empty() || rest.starts_with('/') {
            let home = if self.variables.is_set("HOME") { None } else { self.place.home.as_ref() };
            match home.and_then(|h| h.to_str()) {
                Some(home) => self.put(home),
                None => self.word.push(Piece::Unknown),
            }
        } else {
            self.word.push(Piece::Unknown);
        }
    }

    fn unquoted(&mut self) {
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
                '<' | '>' if self.take("(") => {
                    self.substitution();
                    self.word.pieces.pop();
                    // A pipe of the shell's own: like its input it costs nothing, and its name is not known.
                    self.put("/dev/stdin");
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
    fn in_double_quotes(&mut self, quote: Option<char>) {
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
            self.substitution();
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
        let known = if self.found.put_in > PUT_IN { None } else { self.variables.get(name, self.place) };
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
            read_text(self.rest, self.variables, self.place, self.found);
            self.rest = "";
            return;
        }
        self.rest = rest;
        let name = leading_name(inside.strip_prefix('#').unwrap_or(inside));
        if inside.strip_prefix('#').is_some_and(|counted| counted == name) {
            return self.word.push(Piece::Unknown);
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
        read_text(operation, self.variables, self.place, self.found);
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
        check_arithmetic(text, self.variables, self.place, self.found);
        self.word.push(Piece::Unknown);
    }

    fn lost(&mut self) {
        self.found.doubt("an expansion does not end");
        self.rest = "";
        self.word.push(Piece::Unknown);
    }

    /// `$( … )`, the opening taken: ends at the `)` that no quote hides and that balances it.
    fn substitution(&mut self) {
        self.word.pieces.push(Piece::Unknown);
        let Some(end) = balanced(self.rest) else { return self.lost() };
        let inside = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if hides_its_end(inside) {
            self.found.doubt("where a substitution ends is not certain");
        }
        self.found.commands.push(inside.to_owned());
    }

    /// What stands in backticks is looked at for what it needs at least: quotes within them are read in two ways.
    fn backticks(&mut self) {
        self.found.doubt("it holds backticks; `$( … )` can be judged");
        self.word.push(Piece::Unknown);
        let mut inside = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => return self.found.commands.push(inside),
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

/// Looks through arithmetic: a name may stand for a number only.
pub(super) fn check_arithmetic(text: &str, variables: &Variables, place: &Place, found: &mut Found) {
    let word = read_text(text, variables, place, found);
    let compares = ["==", "!=", "<=", ">="].iter().fold(text.to_owned(), |text, op| text.replace(op, " "));
    if compares.contains('=') || text.contains("++") || text.contains("--") {
        found.doubt("it sets variables while it computes");
    }
    let numeric = |c: char| c.is_ascii_digit() || c.is_ascii_whitespace() || "+-*/%<>=!&|^~?:,()_".contains(c);
    let mut rest = word.literal().unwrap_or("[");
    while let Some(c) = rest.chars().next() {
        let name = leading_name(rest);
        let letters = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit() || "#?$!@*-".contains(c));
        let holds_number = || match variables.get(name, place).as_deref() {
            Some([Piece::Text(value)]) => value.chars().all(numeric),
            _ => false,
        };
        if letters && holds_number() {
            rest = &rest[name.len()..];
        } else if numeric(c) {
            rest = &rest[c.len_utf8()..];
        } else {
            found.doubt("it computes with values that are not known");
            return;
        }
    }
}

/// The name of a variable at the start: letters, or one digit or special character.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => &text[..1],
        _ => &text[..end],
    }
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
