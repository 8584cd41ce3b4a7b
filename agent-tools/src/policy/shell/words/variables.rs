//! The variables of a shell, as far as their values can be followed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::rc::Rc;

use super::{Piece, Word};
use crate::place::Place;

/// What variables hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::policy::shell) struct Variables {
    /// Set by the command itself; none: to something unknown.
    /// Shared, because a shell is copied at each command and changes at few.
    set: Rc<HashMap<String, Option<Vec<Piece>>>>,
    /// The words that a function was called with; none: nobody knows.
    given: Option<Rc<[Word]>>,
}

impl Variables {
    pub(in crate::policy::shell) fn set(&mut self, name: &str, value: Option<Vec<Piece>>) {
        Rc::make_mut(&mut self.set).insert(name.into(), value);
    }

    /// Keeps what both agree on; all else is unknown.
    pub(in crate::policy::shell) fn merge(&mut self, other: &Self) {
        if self.given != other.given {
            self.given = None;
        }
        if Rc::ptr_eq(&self.set, &other.set) {
            return;
        }
        let set = Rc::make_mut(&mut self.set);
        for (name, value) in &mut *set {
            let theirs = other.set.get(name);
            if theirs != Some(value) {
                let both = theirs.is_some_and(is_number) && is_number(value);
                *value = both.then(|| vec![Piece::Number]);
            }
        }
        for name in other.set.keys() {
            set.entry(name.clone()).or_insert(None);
        }
    }

    pub(in crate::policy::shell) fn count(&self) -> usize {
        self.set.len()
    }

    /// Bytes of all values.
    pub(in crate::policy::shell) fn size(&self) -> usize {
        self.set.values().flatten().flatten().map(Piece::length).sum()
    }

    pub(in crate::policy::shell) fn is_set(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    /// The words of `"$@"`.
    pub(in crate::policy::shell) fn given(&self) -> Option<&[Word]> {
        self.given.as_deref()
    }

    pub(in crate::policy::shell) fn give(&mut self, words: Option<Rc<[Word]>>) -> Option<Rc<[Word]>> {
        std::mem::replace(&mut self.given, words)
    }

    pub(super) fn get(&self, name: &str, place: &Place) -> Option<Vec<Piece>> {
        if let Some(value) = self.set.get(name) {
            return value.clone();
        }
        if let Some(at) = name.parse::<usize>().ok().filter(|at| *at > 0) {
            // A word that may be several moves those behind it.
            let firm = |words: &&[Word]| words.iter().take(at - 1).all(|word| word.literal().is_some());
            return self.given().filter(firm).and_then(|words| Some(words.get(at - 1)?.pieces.clone()));
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

fn is_number(value: &Option<Vec<Piece>>) -> bool {
    match value.as_deref() {
        Some([Piece::Number]) => true,
        Some([Piece::Text(text)]) => !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()),
        _ => false,
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
