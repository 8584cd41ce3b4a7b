//! Programs that ask or change the machine: processes and the clock.

use super::super::judge::{Around, Judge};
use super::super::words::{Piece, Word};
use crate::policy::{Rights, Zone};

/// Only what the command itself started may be stopped for free.
pub(super) fn kill(judge: &mut Judge<'_>, words: &[Word]) {
    let own = |w: &Word| w.literal().is_some_and(|t| t.starts_with('%')) || w.pieces == [Piece::Job];
    let signals = |w: &Word| w.literal().is_some_and(|t| t.starts_with('-') && !matches!(t, "-s" | "-n" | "-q" | "--"));
    let skipped = usize::from(words.first().is_some_and(signals));
    let lists = matches!(words.first().and_then(Word::literal), Some("-l" | "-L"));
    if !lists && !words[skipped..].iter().all(own) {
        judge.needs.find("kill", Some(Zone::System), Rights::EXECUTE);
    }
}

/// Only `+format` and plain questions do not set the clock.
pub(super) fn date(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.literal() {
            Some("-u" | "--utc" | "--universal" | "-R" | "--rfc-email" | "-I" | "--help" | "--version") => {}
            Some("-d" | "--date") => {
                rest.next();
            }
            Some("-r" | "--reference" | "-f" | "--file") => {
                rest.next().into_iter().for_each(|file| judge.path(file, Rights::READ, &around.dirs));
            }
            _ if ["+", "-I", "--iso-8601", "--rfc-3339=", "--date="].iter().any(|s| word.start().starts_with(s)) => {}
            _ => judge.needs.find(format!("date {}", word.raw), Some(Zone::System), Rights::WRITE),
        }
    }
}

/// Which processes there are is no secret; what they were started with is.
pub(super) fn ps(judge: &mut Judge<'_>, words: &[Word]) {
    const PLAIN: &str = "aux auxw auxww axu ax a x u ux -e -f -ef -eF -A -a -aux -ax -fe -p -o -u -U -C -eo -axo --sort --no-headers --pid --forest f";
    let mut value = false;
    for word in words {
        let text = word.literal().unwrap_or("environ");
        let takes = matches!(text, "-p" | "-o" | "-u" | "-U" | "-C" | "-eo" | "-axo" | "--sort" | "--pid");
        let known = value && !text.contains("environ") && !text.starts_with('-')
            || PLAIN.split(' ').any(|plain| plain == text)
            || text.starts_with("--sort=")
            || text.chars().all(|c| c.is_ascii_digit() || c == ',');
        if !known {
            judge.needs.find(format!("ps {}", word.raw), Some(Zone::System), Rights::READ);
        }
        value = takes;
    }
}
