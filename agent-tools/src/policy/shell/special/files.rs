//! Programs that look at files, copy, pack or link them, with command lines of their own kind.

use super::super::judge::{Around, Judge, Reach};
use super::super::plan::Dirs;
use super::super::words::Word;
use crate::policy::Rights;

/// Questions about a file look at it; what is not known is a mere question.
pub(super) fn test(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    for pair in words.windows(2) {
        let file = pair[0]
            .literal()
            .is_some_and(|op| op.len() == 2 && op.starts_with('-') && "abcdefghkprstuwxLOGSN".contains(&op[1..]));
        if file && pair[1].literal().is_some_and(|path| path != "]") {
            judge.path(&pair[1], Rights::READ, &around.dirs);
        }
    }
    if words.iter().any(|w| matches!(w.literal(), Some("-v" | "-R"))) {
        judge.doubt("it computes the name of a variable");
    }
}

pub(super) fn dd(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    for word in words {
        match word.start().split_once('=').map(|(key, _)| key) {
            Some("if") => judge.path(&word.after(3), Rights::READ, &around.dirs),
            Some("of") => judge.path(&word.after(3), Rights::WRITE, &around.dirs),
            Some("bs" | "ibs" | "obs" | "count" | "skip" | "seek" | "conv" | "status" | "iflag" | "oflag") => {}
            _ => judge.doubt(format!("what `{}` means to dd is not known here", word.raw)),
        }
    }
}

/// `tar xzf a.tgz -C dir`: letters first, then values in their order, then options.
pub(super) fn tar(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let Some((first, rest)) = words.split_first() else { return };
    let letters = first.literal().unwrap_or("?").trim_start_matches('-').to_owned();
    if first.start().starts_with("--") || !letters.chars().all(|c| "xctfzvjJkpmC".contains(c)) {
        return judge.doubt("these options of tar are not known here");
    }
    let (extracts, creates) = (letters.contains('x'), letters.contains('c'));
    let mut dirs = around.dirs.clone();
    let mut values: Vec<char> = letters.chars().filter(|c| "fC".contains(*c)).rev().collect();
    let mut members: Vec<&Word> = Vec::new();
    for word in rest {
        match (values.pop(), word.literal()) {
            (Some('f'), _) if word.start().contains(':') => judge.doubt("tar reaches another host"),
            (Some('f'), _) => judge.path(word, if creates { Rights::WRITE } else { Rights::READ }, &around.dirs),
            (Some('-'), _) => {}
            (Some(_), path) => {
                judge.path(word, Rights::READ, &dirs);
                dirs = path.map_or(Dirs(None), |path| dirs.enter(path));
            }
            (None, Some("-C" | "--directory")) => values.push('C'),
            (None, Some("-f" | "--file")) => values.push('f'),
            (None, Some(text)) if text.starts_with("--exclude=") || text.starts_with("--strip-components=") => {}
            (None, Some("--exclude" | "--strip-components")) => values.push('-'),
            (None, _) if word.start().starts_with('-') => judge.doubt("these options of tar are not known here"),
            (None, _) => members.push(word),
        }
    }
    if extracts {
        judge.unpacks_here("tar", &dirs);
    }
    if creates {
        members.iter().for_each(|word| judge.tree(word, Rights::READ, Reach::ALL, &dirs));
    }
    if extracts {
        judge.may_link(false, &[], around);
    }
}

/// A link gives what it leads to another name: it takes what direct access takes. Where it leads is seen from the
/// directory that it lies in, which may be the name itself.
pub(super) fn ln(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut operands: Vec<&Word> = Vec::new();
    let mut symbolic = false;
    for word in words {
        match word.literal() {
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                let flags = text.strip_prefix("--").is_none() && text[1..].chars().all(|c| "sfnvTP".contains(c));
                if !flags && !matches!(text, "--symbolic" | "--force" | "--no-dereference" | "--verbose" | "--") {
                    return judge.doubt(format!("ln: its option `{text}` is not known here"));
                }
                symbolic |= text == "--symbolic" || (flags && text.contains('s'));
            }
            Some(_) => operands.push(word),
            None => return judge.doubt(format!("where `{}` leads is not known", word.raw)),
        }
    }
    let here = Word::text(".");
    let (targets, name) = match operands.as_slice() {
        [] => return,
        [target] => (vec![*target], &here),
        [targets @ .., name] => (targets.to_vec(), *name),
    };
    let name = name.literal().unwrap_or(".");
    let parent =
        name.trim_end_matches('/').rsplit_once('/').map_or(".", |(dir, _)| if dir.is_empty() { "/" } else { dir });
    // A symbolic link is read from where it lies; another name for the same file is found from here.
    let bases =
        if symbolic { vec![around.dirs.enter(parent), around.dirs.enter(name)] } else { vec![around.dirs.clone()] };
    for target in targets {
        bases.iter().for_each(|dirs| judge.path(target, Rights::READ_WRITE, dirs));
        let base = target.literal().unwrap_or("").trim_end_matches('/').rsplit('/').next().unwrap_or("");
        judge.path(&Word::text(&format!("{name}/{base}")), Rights::READ_WRITE, &around.dirs);
    }
    judge.path(&Word::text(name), Rights::READ_WRITE, &around.dirs);
    judge.may_link(false, &[], around);
}
