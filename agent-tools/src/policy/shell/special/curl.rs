//! `curl`: only plain addresses, and files by their plain names.

use super::super::judge::{Around, Judge};
use super::super::words::Word;
use crate::policy::Rights;

/// What the table cannot say of curl's words: only plain addresses, and files by their plain names.
pub(super) fn curl(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut option = "";
    let takes_name = |w: &Word| w.start() == "--remote-name" || (is_cluster(w) && w.start().contains('O'));
    let named = words.iter().any(takes_name);
    for word in words {
        let text = word.start();
        let taken = std::mem::take(&mut option);
        let is_address = text.contains("://") || text.get(..5).is_some_and(|s| s.eq_ignore_ascii_case("file:"));
        match taken {
            "-w" | "--write-out" if text.starts_with('@') || text.contains("%output") || word.literal().is_none() => {
                judge.doubt("what curl writes out is not known");
            }
            "-o" | "--output" if text.contains('#') => judge.doubt("which file curl writes is not known"),
            "-T" | "--upload-file" if text.contains(['{', '[']) => judge.doubt("which files curl sends is not known"),
            "-b" | "--cookie" if !text.contains('=') || text.starts_with('@') => {
                judge.path(word, Rights::READ, &around.dirs);
            }
            "-F" | "--form" => curl_form(judge, word, around),
            "--data-urlencode" if text.contains('@') => {
                judge.doubt(format!("what `{}` sends is not known", word.raw));
            }
            "" if text.starts_with('-') && text.len() > 1 => {
                option = curl_option(judge, word);
            }
            "" | "--url" => curl_address(judge, word, named, around),
            _ if is_address
                && !matches!(
                    taken,
                    "-e" | "--referer" | "-d" | "--data" | "--data-raw" | "-H" | "--header" | "--json"
                ) =>
            {
                judge.doubt(format!("what the address `{}` does here is not known", word.raw));
            }
            _ => {}
        }
    }
}

/// A part of a form: text, or a file by its plain name.
fn curl_form(judge: &mut Judge<'_>, word: &Word, around: &Around<'_>) {
    let text = word.start();
    let value = text.find('=').map_or(0, |at| at + 1);
    let rest = word.after(value);
    if rest.start().starts_with(['@', '<']) {
        judge.file_sent(&rest.after(1), &around.dirs);
    } else if rest.start().contains([';', '@', '<']) || word.literal().is_none() {
        judge.doubt(format!("what the form `{}` sends is not known", word.raw));
    }
}

/// Only plain addresses; with `-O` the last part of one names a file.
fn curl_address(judge: &mut Judge<'_>, word: &Word, named: bool, around: &Around<'_>) {
    let text = word.start();
    let plain = ["http://", "https://", "localhost"].iter().any(|start| text.starts_with(start));
    let pattern = text.contains(['{', '}', '[', ']', '#']) || word.pattern().is_none() && !has_host(text);
    if !plain || pattern {
        judge.doubt(format!("which address `{}` is is not plain", word.raw));
    }
    let last = text.split('?').next().unwrap_or("").rsplit('/').next().unwrap_or("");
    if named && !last.is_empty() {
        judge.path(&Word::text(last), Rights::WRITE, &around.dirs);
    }
}

/// The option that takes the next word, as curl spells it in full or by its letter.
fn curl_option(judge: &mut Judge<'_>, word: &Word) -> &'static str {
    const VALUES: &str = "-w --write-out -o --output -T --upload-file -b --cookie -F --form --data-urlencode --url -d --data --data-raw --data-binary --data-ascii --json --form-string -X --request -H --header -A --user-agent -e --referer -u --user --oauth2-bearer -m --max-time --connect-timeout --retry --retry-delay --retry-max-time -r --range -C --continue-at --limit-rate --max-redirs --cacert --cert --key -E --etag-compare -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --etag-save";
    let text = word.literal().unwrap_or("-?");
    if let Some(known) = VALUES.split(' ').find(|known| *known == text) {
        return known;
    }
    if text.starts_with("--") {
        if text.contains('=') {
            judge.doubt(format!("curl: what `{text}` says is not plain"));
        }
        return "";
    }
    let valued = |c: char| VALUES.split(' ').find(|known| known.len() == 2 && known.ends_with(c));
    for (at, c) in text.char_indices().skip(1) {
        if let Some(known) = valued(c) {
            // Glued values are seen by nobody here: only where they can do no harm.
            if at + 1 < text.len() && !matches!(c, 'X' | 'm' | 'o' | 'H' | 'A' | 'r' | 'C' | 'u') {
                judge.doubt(format!("curl: what `{text}` says is not plain"));
            }
            if at + 1 < text.len() && text.contains('#') {
                judge.doubt("which file curl writes is not known");
            }
            return if at + 1 == text.len() { known } else { "" };
        }
    }
    ""
}

/// Options of one letter, perhaps several.
fn is_cluster(word: &Word) -> bool {
    word.start().starts_with('-') && !word.start().starts_with("--")
}

/// Whether the known start of an address holds all of its host.
fn has_host(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']))
}
