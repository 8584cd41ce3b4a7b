//! Programs that run another one with words of their own: `env`, `xargs`.

use super::super::judge::{Around, CODE, Fed, Judge};
use super::super::plan::{Dirs, is_name};
use super::super::words::{Below, Piece, Word};
use crate::policy::Rights;

/// How the variables begin that this agent sets for commands.
const GUARDS: [&str; 4] = ["GIT_", "AGENT_", "SSH_", "PAGER"];

pub(super) fn env(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut around = around.clone();
    let mut at = 0;
    let mut bare = false;
    while let Some(word) = words.get(at) {
        match (word.literal(), word.start().split_once('=')) {
            (Some("-i" | "-" | "--ignore-environment"), _) => bare = true,
            (Some("-0" | "--null" | "-v" | "--debug" | "--"), _) => {}
            (Some("-u" | "--unset"), _) if words.get(at + 1).is_some_and(|w| w.literal() != Some("PATH")) => {
                at += 1;
                bare |=
                    words.get(at).and_then(Word::literal).is_none_or(|name| GUARDS.iter().any(|g| name.starts_with(g)));
            }
            (Some("-C" | "--chdir"), _) => {
                at += 1;
                let dir = words.get(at);
                // Programs look at where they start.
                dir.into_iter().for_each(|dir| judge.path(dir, Rights::READ, &around.dirs));
                let dir = dir.and_then(Word::literal);
                around.dirs = dir.map_or(Dirs(None), |dir| around.dirs.enter(dir));
            }
            (_, Some((name, _))) if is_name(name) => {
                judge.assignment(name, &word.after(name.len() + 1), true, &around.dirs);
            }
            _ if word.start().starts_with('-') => {
                return judge.doubt(format!("env: its option `{}` is not known here", word.raw));
            }
            _ => break,
        }
        at += 1;
    }
    around.wrappers += 1;
    let command = words.get(at..).unwrap_or_default();
    if bare && !command.is_empty() {
        // What keeps git from running programs that a repository names is told to it there.
        judge.needs.find("env: without the environment", CODE.0, CODE.1);
    }
    judge.words(command, &around);
}

pub(super) fn xargs(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let mut at = 0;
    let mut replaced = None;
    let mut split_at_nul = false;
    while let Some(text) = words.get(at).and_then(Word::literal).filter(|text| text.starts_with('-')) {
        match text {
            "-0" | "--null" => split_at_nul = true,
            "-r" | "-t" | "-x" | "--no-run-if-empty" | "--verbose" => {}
            "-n" | "-P" | "-L" | "-d" | "-s" | "-E" => at += 1,
            "-I" => {
                at += 1;
                replaced = words.get(at).and_then(Word::literal);
            }
            _ if text.len() > 2 && ["-n", "-P", "-L", "-d", "-s"].iter().any(|o| text.starts_with(o)) => {}
            _ if text.len() > 2 && text.starts_with("-I") => replaced = Some(&text[2..]),
            _ => return judge.doubt(format!("xargs: its option `{text}` is not known here")),
        }
        at += 1;
    }
    let names = around.command.names.as_ref().filter(|names| names.whole == split_at_nul);
    if let Some(names) = names {
        return each_name(judge, &words[at.min(words.len())..], replaced, names, around);
    }
    let holds = |word: &Word| replaced.is_some_and(|mark| word.pattern().is_none_or(|text| text.contains(mark)));
    let mut command: Vec<Word> = words.get(at..).unwrap_or_default().to_vec();
    for word in &mut command {
        if holds(word) {
            *word = Word::unknown(&word.raw);
        }
    }
    if replaced.is_none() && !command.is_empty() {
        command.push(Word::unknown("what xargs reads"));
    }
    judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
}

/// The command that xargs runs with names that it reads.
fn each_name(judge: &mut Judge<'_>, words: &[Word], mark: Option<&str>, names: &Below, around: &Around<'_>) {
    if !names.whole {
        judge.plain_names(names, &around.dirs);
    }
    let names = Below { whole: true, ..names.clone() };
    let mut command: Vec<Word> = words.to_vec();
    match mark {
        Some(mark) if command.first().is_some_and(|head| head.raw.contains(mark)) => {
            return judge.doubt("xargs runs what it reads");
        }
        Some(mark) => command = command.iter().map(|word| word.with_found(mark, &names)).collect(),
        None => command.push(Word { raw: "what xargs reads".into(), pieces: vec![Piece::Below(names)] }),
    }
    judge.words(&command, &Around { wrappers: around.wrappers + 1, fed: Fed::Nobody, ..around.clone() });
}
