//! `find`, and what it does with what it finds.

use super::super::judge::{Around, Fed, Judge, Reach};
use super::super::words::Word;
use crate::policy::Rights;

pub(super) fn find(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let is_expression = |w: &Word| w.start().starts_with(['-', '(', ')', '!', ',']);
    let flags = words.iter().take_while(|w| matches!(w.literal(), Some("-H" | "-P"))).count();
    let count = words[flags..].iter().take_while(|w| !is_expression(w)).count();
    let (mut starts, expression) = (words[flags..flags + count].to_vec(), &words[flags + count..]);
    if starts.is_empty() {
        starts.push(Word::text("."));
    }
    let deletes = expression.iter().any(|w| w.literal() == Some("-delete"));
    if deletes {
        judge.destroys("the files that find deletes");
    }
    let rights = if deletes { Rights::READ_WRITE } else { Rights::READ };
    starts.iter().for_each(|start| judge.path(start, rights, &around.dirs));
    find_expression(judge, &starts, expression, around);
}

fn find_expression(judge: &mut Judge<'_>, starts: &[Word], expression: &[Word], around: &Around<'_>) {
    let mut at = 0;
    while let Some(word) = expression.get(at) {
        at += 1;
        let value = expression.get(at);
        match word.literal() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                if word.start().ends_with("dir") {
                    judge.doubt("which directory find runs it in is not known");
                }
                let ends = |i: &usize| match expression[at + i].literal() {
                    Some(";") => true,
                    Some("+") => *i > 0 && expression[at + i - 1].literal() == Some("{}"),
                    _ => false,
                };
                let Some(end) = (0..expression.len() - at).find(ends) else {
                    return judge.doubt("a `-exec` does not end");
                };
                each_found(judge, starts, &expression[at..at + end], around);
                at += end + 1;
            }
            Some("-fprint" | "-fprint0" | "-fls") => {
                value.iter().for_each(|file| judge.path(file, Rights::WRITE, &around.dirs));
                at += 1;
            }
            Some("-fprintf") => {
                value.iter().for_each(|file| judge.path(file, Rights::WRITE, &around.dirs));
                at += 2;
            }
            Some("-newer" | "-anewer" | "-cnewer" | "-samefile") => {
                value.iter().for_each(|file| judge.path(file, Rights::READ, &around.dirs));
                at += 1;
            }
            Some(test) if FIND_VALUES.contains(&test) || test.starts_with("-newer") => at += 1,
            Some(test) if FIND_PLAIN.contains(&test) => {}
            _ => judge.doubt(format!("what `{}` means to find is not known here", word.raw)),
        }
    }
}

const FIND_VALUES: [&str; 31] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-maxdepth",
    "-mindepth",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-links",
    "-inum",
    "-fstype",
    "-printf",
    "-lname",
    "-ilname",
];
const FIND_PLAIN: [&str; 25] = [
    "-print",
    "-print0",
    "-ls",
    "-delete",
    "-prune",
    "-quit",
    "-depth",
    "-d",
    "-mount",
    "-xdev",
    "-empty",
    "-readable",
    "-writable",
    "-executable",
    "-true",
    "-false",
    "-o",
    "-or",
    "-a",
    "-and",
    "-not",
    "!",
    "(",
    ")",
    ",",
];

/// The command of `-exec`, for each place that find starts at: what it finds lies there.
fn each_found(judge: &mut Judge<'_>, starts: &[Word], command: &[Word], around: &Around<'_>) {
    if command.first().is_none_or(|head| head.pattern().is_none_or(|text| text.contains("{}"))) {
        return judge.doubt("find runs what it finds");
    }
    for start in starts {
        judge.tree(start, Rights::READ, Reach::ALL, &around.dirs);
        let found = |word: &Word| match word.literal() {
            Some("{}") => start.clone(),
            Some(text) if text.contains("{}") => Word::unknown(&word.raw),
            _ => word.clone(),
        };
        let command: Vec<Word> = command.iter().map(found).collect();
        judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
    }
}
