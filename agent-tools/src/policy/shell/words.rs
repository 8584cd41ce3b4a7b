//! Resolves words: quotes taken off, variables that are known put in, and what cannot be known marked as such.

mod reader;
mod variables;

use self::reader::Reader;
pub(super) use self::variables::Variables;
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
