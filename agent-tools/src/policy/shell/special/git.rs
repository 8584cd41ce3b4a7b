//! Subcommands of git whose words say what would be lost, or which settings change.

use super::super::arguments;
use super::super::judge::{Around, Judge};
use super::super::programs;
use super::super::words::Word;
use super::git_index;
use crate::policy::{Rights, Zone};

/// Paths are put back to what is committed.
pub(super) fn checkout(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let exists = |word: &&Word| {
        let path = word.literal().unwrap_or("");
        !path.is_empty() && !path.starts_with('-') && around.dirs.0.iter().flatten().any(|dir| dir.join(path).exists())
    };
    if words.iter().any(|w| matches!(w.literal(), Some("--" | "."))) || words.iter().any(|w| exists(&w)) {
        judge.destroys("changes that are not committed");
    }
}

pub(super) fn push(judge: &mut Judge<'_>, words: &[Word]) {
    if words.iter().any(|w| w.start().starts_with(['+', ':'])) {
        judge.destroys("what others pushed");
    }
}

pub(super) fn git_config(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let has = |names: &[&str]| words.iter().any(|w| w.literal().is_some_and(|text| names.contains(&text)));
    if has(&["--global", "--system", "-f", "--file", "--blob"])
        || words.iter().any(|w| w.is_unknown() || w.start().starts_with("--file="))
    {
        return judge.doubt("which settings of git it is about is not known here");
    }
    let reads = has(&["--get", "--get-all", "--get-regexp", "-l", "--list", "get", "list"]);
    let names = words.iter().filter(|w| !w.start().starts_with('-')).count();
    if !reads && names != 1 {
        judge.here("git config", Rights::WRITE.union(Rights::EXECUTE), &around.dirs);
    }
}

/// What comes with a repository may hold links; the directory that it comes in is none.
pub(super) fn clone(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    let taken = programs::find("git clone").map(|program| arguments::take(program, words));
    let operands = taken.map(|taken| taken.operands).unwrap_or_default();
    let literal = |at: usize| operands.get(at).and_then(|word: &&Word| word.literal());
    let name = literal(1).or_else(|| {
        let last = literal(0)?.trim_end_matches('/').rsplit(['/', ':']).next()?;
        Some(last.strip_suffix(".git").unwrap_or(last)).filter(|_| operands.len() == 1)
    });
    match (name, around.dirs.only()) {
        (Some(name), Some(dir)) if !name.is_empty() && name.split('/').all(|part| !matches!(part, "." | "..")) => {
            judge.links_below(dir.join(name), around);
        }
        _ => judge.links_below("/".into(), around),
    }
}

/// What a repository keeps is shown: as guarded as the keys among it.
pub(super) fn shows(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    let has = |start: &str| words.iter().any(|w| w.start().starts_with(start));
    if name == "git grep" && ["--no-i", "--unt", "--no-exc"].iter().any(|option| has(option)) {
        return judge.doubt("`git grep` beyond what is tracked looks into every file; use rg or the tool for it");
    }
    if name != "git grep" && !shows_contents(name, words) {
        return;
    }
    let Some(dirs) = &around.dirs.0 else { return };
    if dirs.iter().any(|dir| git_index::keeps_keys(dir) != Some(false)) {
        judge.needs.find(format!("{name}: keys that the repository keeps"), Some(Zone::System), Rights::READ);
    }
}

/// Whether these words ask for more than names, numbers and messages.
fn shows_contents(name: &str, words: &[Word]) -> bool {
    let names =
        ["--stat", "--name-only", "--name-status", "--shortstat", "--numstat", "--summary", "--raw", "--dirstat"];
    let is = |word: &Word, options: &[&str]| options.iter().any(|option| word.start().starts_with(option));
    let patch = words.iter().any(|w| {
        is(
            w,
            &[
                "-p",
                "-u",
                "--patch",
                "-U",
                "--unified",
                "-c",
                "--cc",
                "-m",
                "-L",
                "-G",
                "-S",
                "--full-diff",
                "--word-diff",
                "--color-words",
            ],
        ) || w.is_unknown()
    });
    let quiet =
        words.iter().any(|w| is(w, &names) || matches!(w.literal(), Some("-s" | "--no-patch" | "-q" | "--quiet")));
    match name {
        "git log" | "git reflog" | "git stash list" | "git whatchanged" => patch,
        "git cat-file" => !words.iter().any(|w| matches!(w.literal(), Some("-t" | "-s" | "-e"))),
        _ => patch || !quiet,
    }
}
