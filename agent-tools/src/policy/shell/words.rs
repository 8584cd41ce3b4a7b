//! Resolves words: quotes taken off, variables that are known put in, and what cannot be known marked as such.

mod reader;
mod variables;

use self::reader::Reader;
pub(super) use self::variables::Variables;
use super::plan::Dirs;
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
    /// A directory, or a path below it without `..`.
    Below(Below),
    /// Digits, perhaps with a sign: of use where it is computed with, and unknown elsewhere.
    Number,
    /// The number of a process that the command itself started.
    Job,
    /// Nobody knows.
    Unknown,
}

/// Which paths a list of names holds, as `find` and its kin print them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Below {
    /// As it was written; nothing for names that start where the command works.
    pub(super) dir: String,
    /// A pattern that the last part of each matches.
    pub(super) name: Option<String>,
    /// Each name stands for itself, whatever characters it has: no shell and no reader of lines takes it apart.
    pub(super) whole: bool,
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
            Some(Piece::Below(below)) => &below.dir,
            Some(Piece::Glob(_) | Piece::Number | Piece::Job | Piece::Unknown) | None => "",
        }
    }

    /// Whether a part of it is unknown; names that a pattern stands for are not.
    pub(super) fn is_unknown(&self) -> bool {
        self.pieces.iter().any(|p| matches!(p, Piece::Unknown | Piece::Number | Piece::Job | Piece::Below(_)))
    }

    /// Whether it may become several words, or none: something that nobody knows stands outside of quotes.
    pub(super) fn splits(&self) -> bool {
        self.pieces.contains(&Piece::Unknown) && expands_unquoted(&self.raw)
    }

    /// The same word, known text that meets put together.
    pub(super) fn joined(self) -> Self {
        let mut word = Self { raw: self.raw, pieces: Vec::new() };
        self.pieces.into_iter().for_each(|piece| word.push(piece));
        word
    }

    /// Paths below a directory, with the text before and behind them; none where the word is anything else.
    pub(super) fn below(&self) -> Option<(&str, &Below, &str)> {
        match self.pieces.as_slice() {
            [Piece::Below(below)] => Some(("", below, "")),
            [Piece::Text(before), Piece::Below(below)] => Some((before, below, "")),
            [Piece::Below(below), Piece::Text(behind)] => Some(("", below, behind)),
            [Piece::Text(before), Piece::Below(below), Piece::Text(behind)] => Some((before, below, behind)),
            _ => None,
        }
    }

    /// The same word with `mark` replaced by a path below a directory; where it stands more than once: unknown.
    pub(super) fn with_found(&self, mark: &str, found: &Below) -> Self {
        let Some(text) = self.pattern().filter(|text| text.contains(mark)) else { return self.clone() };
        let parts: Vec<&str> = text.split(mark).collect();
        let [before, behind] = parts[..] else { return Self::unknown(&self.raw) };
        if self.literal().is_none() {
            return Self::unknown(&self.raw);
        }
        let mut pieces = vec![Piece::Text(before.into()), Piece::Below(found.clone()), Piece::Text(behind.into())];
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Self { raw: self.raw.clone(), pieces }
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
            Piece::Below(_) | Piece::Number | Piece::Job | Piece::Unknown => None,
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
            Self::Below(_) | Self::Number | Self::Job | Self::Unknown => 0,
        }
    }
}

/// Values longer than this are not followed, in bytes.
pub(super) const VALUE: usize = 4 * 1024;
/// All that variables may put into the words of a command, in bytes.
const PUT_IN: usize = 32 * 1024;

/// What words are read by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) variables: &'a Variables,
    pub(super) place: &'a Place,
    /// The directories that may be current.
    pub(super) dirs: &'a Dirs,
    /// What substitutions print is not asked for: each would be asked for again by the one around it.
    pub(super) plain: bool,
}

impl Scope<'_> {
    /// What a variable holds; none: nobody knows.
    fn get(&self, name: &str) -> Option<Vec<Piece>> {
        const NUMBERS: &str = "? # $ PPID UID EUID RANDOM SRANDOM SECONDS LINENO EPOCHSECONDS";
        if self.variables.is_set(name) {
            return self.variables.get(name, self.place);
        }
        match name {
            "PWD" => self.dirs.only()?.to_str().map(|dir| vec![Piece::Text(dir.into())]),
            "!" => Some(vec![Piece::Job]),
            _ if NUMBERS.split(' ').any(|number| number == name) => Some(vec![Piece::Number]),
            _ => self.variables.get(name, self.place),
        }
    }
}

/// What reading words brings to light besides them.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Commands whose output stands in a word: to be judged, too.
    pub(super) commands: Vec<String>,
    /// Lists of names that a shell takes apart: none may hold what would make two of one.
    pub(super) lists: Vec<Below>,
    /// Variables that arithmetic sets to numbers.
    pub(super) numbers: Vec<String>,
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
pub(super) fn read(raw: &str, scope: &Scope<'_>, found: &mut Found) -> Vec<Word> {
    if let Some(given) = scope.variables.given().filter(|_| matches!(raw, "\"$@\"" | "\"${@}\"")) {
        return given.to_vec();
    }
    match braces(raw) {
        Braces::None => vec![read_one(raw, scope, found)],
        Braces::Listed(words) => {
            let words = words.iter().map(|w| Word { raw: raw.into(), ..read_one(w, scope, found) });
            words.filter(|w| !w.pieces.is_empty()).collect()
        }
        Braces::Unclear => {
            read_one(raw, scope, found);
            vec![Word::unknown(raw)]
        }
    }
}

/// Reads a word that is not split and whose braces mean nothing: the value of an assignment, the target of a redirect.
pub(super) fn read_one(raw: &str, scope: &Scope<'_>, found: &mut Found) -> Word {
    read_unsplit(raw, true, scope, found)
}

/// Reads several words as one, for the commands in them: the values of an array, an operand of `[[ ]]`.
pub(super) fn read_loose(raw: &str, scope: &Scope<'_>, found: &mut Found) -> Word {
    read_unsplit(raw, false, scope, found)
}

fn read_unsplit(raw: &str, strict: bool, scope: &Scope<'_>, found: &mut Found) -> Word {
    let word = Word { raw: raw.into(), pieces: Vec::new() };
    let mut reader = Reader { rest: raw, word, strict, scope, found };
    reader.assigned();
    reader.tilde();
    reader.unquoted();
    let mut word = reader.word;
    if word.pieces.len() > 1 {
        // Quotes around something put nothing before it.
        word.pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    }
    word
}

/// Reads text that expands but holds no quotes: the body of a heredoc, arithmetic.
pub(super) fn read_text(text: &str, scope: &Scope<'_>, found: &mut Found) -> Word {
    let word = Word { raw: text.into(), pieces: Vec::new() };
    let mut reader = Reader { rest: text, word, strict: false, scope, found };
    while !reader.rest.is_empty() {
        reader.in_double_quotes(None);
    }
    reader.word
}

/// Whether something is expanded outside of quotes.
fn expands_unquoted(raw: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for c in raw.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '$' | '`' if !single && !double => return true,
            _ => {}
        }
    }
    false
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
pub(super) fn check_arithmetic(text: &str, scope: &Scope<'_>, found: &mut Found) {
    let word = read_text(text, scope, found);
    let compares = ["==", "!=", "<=", ">="].iter().fold(text.to_owned(), |text, op| text.replace(op, " "));
    if compares.contains('=') || text.contains("++") || text.contains("--") {
        match set_by(text) {
            Some(name) => found.numbers.push(name.to_owned()),
            None => found.doubt("it sets variables while it computes"),
        }
    }
    let numeric = |c: char| c.is_ascii_digit() || c.is_ascii_whitespace() || "+-*/%<>=!&|^~?:,()_".contains(c);
    let number = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Number => Some("0".to_owned()),
        Piece::Glob(text) => Some(text.clone()),
        Piece::Below(_) | Piece::Job | Piece::Unknown => None,
    };
    let text = word.pieces.iter().map(number).collect::<Option<String>>();
    let set = found.numbers.clone();
    let mut rest = text.as_deref().unwrap_or("[");
    while let Some(c) = rest.chars().next() {
        let name = leading_name(rest);
        let letters = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit() || "#?$!@*-".contains(c));
        let holds_number = || match scope.get(name).as_deref() {
            Some([Piece::Text(value)]) => value.chars().all(numeric),
            Some([Piece::Number]) => true,
            _ => set.iter().any(|known| known == name) && sets_at_once(text.as_deref().unwrap_or(""), name),
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

/// The only variable that arithmetic sets: `i = …`, `i += …`, `i++`, `--i`.
fn set_by(text: &str) -> Option<&str> {
    let text = text.trim();
    let bare = text.trim_start_matches(['+', '-']);
    let name = leading_name(bare);
    let behind = bare[name.len()..].trim_start();
    let sets = text != bare || behind.starts_with("++") || behind.starts_with("--");
    let assigns = || {
        let operator = behind.trim_start_matches(['+', '-', '*', '/', '%', '&', '|', '^', '<', '>']);
        operator.strip_prefix('=').is_some_and(|value| !value.starts_with('='))
    };
    let rest = if sets { behind.trim_start_matches(['+', '-']) } else { behind.split_once('=')?.1 };
    let compares = ["==", "!=", "<=", ">="].iter().fold(rest.to_owned(), |text, op| text.replace(op, " "));
    let once = !compares.contains('=') && !rest.contains("++") && !rest.contains("--") && !rest.contains(',');
    (is_plain_name(name) && (sets || assigns()) && once).then_some(name)
}

/// Whether the text gives the variable a value before it is looked at.
fn sets_at_once(text: &str, name: &str) -> bool {
    let behind = text.trim().strip_prefix(name).unwrap_or("").trim_start();
    behind.strip_prefix('=').is_some_and(|value| !value.starts_with('=') && !value.contains(name))
}

fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_')
}

/// The name of a variable at the start: letters, or one digit or special character.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    match text.chars().next() {
        Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => &text[..1],
        _ => &text[..end],
    }
}
