//! Copies between hosts: `scp`, `rsync`.

use super::super::judge::{Around, Judge, Reach};
use super::super::words::Word;
use crate::policy::{Rights, Zone};

/// `host:path` lies on another host; the last operand is written.
pub(super) fn between_hosts(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    let letters = if name == "scp" { "rpqvC346" } else { "avrzhltpqPun" };
    let mut operands: Vec<&Word> = Vec::new();
    for word in words {
        match word.literal() {
            Some("--delete") if name == "rsync" => judge.destroys("what is not at the source"),
            Some("--archive" | "--verbose" | "--recursive" | "--progress" | "--dry-run" | "--stats" | "--update")
                if name == "rsync" => {}
            Some(text) if name == "rsync" && (text.starts_with("--exclude=") || text.starts_with("--include=")) => {}
            Some(text) if text.starts_with('-') && text[1..].chars().all(|c| letters.contains(c)) => {}
            _ if word.start().starts_with('-') || word.is_unknown() => {
                return judge.doubt(format!("{name}: what `{}` does is not known here", word.raw));
            }
            _ => operands.push(word),
        }
    }
    let Some((dest, sources)) = operands.split_last() else { return };
    let remote = |w: &Word| w.start().split('/').next().is_some_and(|first| first.contains(':'));
    for source in sources {
        match (remote(source), name) {
            (true, _) => judge.needs.find(&source.raw, Some(Zone::Network), Rights::READ),
            (false, "scp") => judge.mentions(std::slice::from_ref(*source), &around.dirs),
            (false, _) => judge.tree(source, Rights::READ, Reach::ALL, &around.dirs),
        }
        if !remote(source) && name == "scp" {
            judge.secrets(source, Reach::ALL, &around.dirs);
        }
    }
    if remote(dest) {
        judge.needs.find(&dest.raw, Some(Zone::Network), Rights::WRITE);
    } else {
        judge.path(dest, Rights::READ_WRITE, &around.dirs);
        judge.copied_names(false, &operands, around);
        judge.may_link(false, &[], around);
    }
}
