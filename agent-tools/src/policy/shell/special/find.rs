//! `find`, and what it does with what it finds.

use super::super::judge::{Around, Fed, Judge};
use super::super::words::{Below, Word};
use crate::policy::Rights;

/// Where find starts, and what it looks for there.
pub(in crate::policy::shell) fn find_starts(words: &[Word]) -> (Vec<Word>, &[Word]) {
    let is_expression = |w: &Word| w.start().starts_with(['-', '(', ')', '!', ',']);
    let flags = words.iter().take_while(|w| matches!(w.literal(), Some("-H" | "-P"))).count();
    let count = words[flags..].iter().take_while(|w| !is_expression(w)).count();
    let (mut starts, expression) = (words[flags..flags + count].to_vec(), &words[flags + count..]);
    if starts.is_empty() {
        starts.push(Word::text("."));
    }
    (starts, expression)
}

/// Whether the word at this place is a question about a file, or belongs to one.
pub(in crate::policy::shell) fn is_find_test(expression: &[Word], at: usize) -> bool {
    let valued = |text: &str| FIND_VALUES.contains(&text) || text.starts_with("-newer");
    let value = at > 0 && expression[at - 1].literal().is_some_and(valued);
    value
        || expression[at]
            .literal()
            .is_some_and(|text| text != "-printf" && text != "-ls" && (valued(text) || FIND_PLAIN.contains(&text)))
}

pub(super) fn find(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let (starts, expression) = find_starts(words);
    let deletes = expression.iter().any(|w| w.literal() == Some("-delete"));
    if deletes {
        judge.destroys("the files that find deletes");
    }
    let rights = if deletes { Rights::READ_WRITE } else { Rights::READ };
    for start in &starts {
        judge.path(start, rights, &around.dirs);
        judge.reached(start, rights, &around.dirs);
    }
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
                each_found(judge, starts, only_name(expression), &expression[at..at + end], around);
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
fn each_found(judge: &mut Judge<'_>, starts: &[Word], name: Option<&str>, command: &[Word], around: &Around<'_>) {
    if command.first().is_none_or(|head| head.pattern().is_none_or(|text| text.contains("{}"))) {
        return judge.doubt("find runs what it finds");
    }
    for start in starts {
        let Some(dir) = start.literal() else {
            return judge.doubt(format!("where `{}` leads is not known", start.raw));
        };
        let below = Below { dir: dir.into(), name: name.map(str::to_owned), whole: true };
        let command: Vec<Word> = command.iter().map(|word| word.with_found("{}", &below)).collect();
        judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
    }
}

/// The one pattern that the names of all that is found match; `-o` and `!` would make it another question.
pub(in crate::policy::shell) fn only_name(expression: &[Word]) -> Option<&str> {
    let odd = |w: &Word| matches!(w.literal(), None | Some("-o" | "-or" | "!" | "-not" | "," | "("));
    let command = expression.iter().position(|w| w.start().starts_with("-exec") || w.start().starts_with("-ok"));
    let tests = &expression[..command.unwrap_or(expression.len())];
    let at = tests.iter().position(|w| w.literal() == Some("-name"))?;
    let rest = &expression[command.unwrap_or(expression.len())..];
    let alone = !tests.iter().any(odd) && !rest.iter().any(|w| matches!(w.literal(), Some("-o" | "-or" | ",")));
    tests.get(at + 1)?.literal().filter(|_| alone)
}
