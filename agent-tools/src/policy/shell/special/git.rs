//! Subcommands of git whose words say what would be lost, or which settings change.

use std::path::Path;

use super::super::arguments;
use super::super::judge::{Around, Judge, Look};
use super::super::plan::Dirs;
use super::super::programs;
use super::super::words::Word;
use crate::policy::{Rights, Zone};
use crate::repository::{self, Repository, Setting, Settings};

/// How many steps it counts to read the settings of a repository.
const SETTINGS: usize = 100;

/// Whether git would find another repository in one of these directories than in the working directory: only that one's
/// settings are known where a command starts. One whose submodules cannot be told counts as another.
pub(in crate::policy::shell) fn in_another_repository(judge: &Judge<'_>, dirs: &Dirs) -> bool {
    let cwd = &judge.place().cwd;
    let other = |dir: &Path| {
        let comes_about = || !dir.is_dir() || judge.links.iter().any(|root| dir.starts_with(root));
        let another = || judge.look(Look::Another, dir, || repository::around(dir) != repository::around(cwd));
        dir != cwd && (comes_about() || another())
    };
    let elsewhere = dirs.0.as_ref().is_none_or(|dirs| dirs.iter().any(|dir| other(dir)));
    elsewhere || judge.look(Look::Unclear, cwd, || repository::with_submodules(repository::around(cwd)).is_none())
}

/// Names of remotes lead where the repository says: on this machine that is a matter of the path.
pub(super) fn remotes(judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    let taken = programs::find(name).map(|program| arguments::take(program, words));
    let operands = taken.map(|taken| taken.operands).unwrap_or_default();
    let all =
        operands.is_empty() || words.iter().any(|w| w.start().starts_with("--al") || w.start().starts_with("--mu"));
    let rights = match name {
        "git push" => Rights::READ_WRITE.union(Rights::EXECUTE),
        _ => Rights::READ,
    };
    let named = if name == "git push" || name == "git pull" { 1 } else { operands.len() };
    for dir in around.dirs.0.iter().flatten() {
        if !judge.spend(SETTINGS) {
            return;
        }
        let repositories = repository::around(dir);
        let settings = Settings::of(&repositories, judge.place());
        if settings.partial {
            return judge.doubt("where the remotes of this repository lead is more than could be looked through");
        }
        let known: Vec<Setting> = settings
            .entries()
            .filter(|s| matches!(s.section.as_str(), "remote" | "url" | "remotes" | "branch"))
            .collect();
        let mut dirs: Vec<&Path> = repositories.iter().map(|repository| repository.top.as_path()).collect();
        dirs.push(dir);
        if repositories.iter().any(Repository::has_old_remotes) {
            return judge.doubt("where the remotes in `.git/remotes` and `.git/branches` lead is not known here");
        }
        let remote = Remote { known: &known, dirs: &dirs, rights };
        match &operands[..named.min(operands.len())] {
            operands if !all => operands.iter().filter_map(|w| w.literal()).for_each(|word| remote.named(judge, word)),
            _ => remote.every(judge),
        }
    }
}

/// What is known of the remotes of a repository.
struct Remote<'a> {
    known: &'a [Setting],
    /// Where a path may start.
    dirs: &'a [&'a Path],
    rights: Rights,
}

impl Remote<'_> {
    fn every(&self, judge: &mut Judge<'_>) {
        let chosen = |s: &&Setting| match s.section.as_str() {
            "remote" => s.key == "pushdefault",
            "branch" => matches!(s.key.as_str(), "remote" | "pushremote"),
            _ => false,
        };
        self.known.iter().filter(|s| is_address(s) || chosen(s)).for_each(|s| self.address(judge, &s.value));
    }

    fn named(&self, judge: &mut Judge<'_>, name: &str) {
        let mut own = self.known.iter().filter(|s| s.name == name && is_address(s)).peekable();
        if self.known.iter().any(|s| s.section == "remotes" && (s.name.is_empty() && s.key.eq_ignore_ascii_case(name)))
        {
            return self.every(judge);
        }
        if own.peek().is_none() {
            return self.address(judge, name);
        }
        own.for_each(|s| self.address(judge, &s.value));
    }

    /// An address, and what other ones are put in its place.
    fn address(&self, judge: &mut Judge<'_>, address: &str) {
        self.leads(judge, address);
        let instead = |s: &&Setting| s.section == "url" && s.key.ends_with("insteadof");
        for setting in self.known.iter().filter(instead) {
            if let Some(rest) = address.strip_prefix(setting.value.as_str()) {
                self.leads(judge, &format!("{}{rest}", setting.name));
            }
        }
    }

    fn leads(&self, judge: &mut Judge<'_>, address: &str) {
        let Some(path) = local(address) else {
            if address.split('/').next().is_some_and(|start| start.contains("::")) {
                judge.doubt(format!("which program reaches `{address}` is not known"));
            }
            return;
        };
        let plain = !path.contains('/');
        for dir in self.dirs {
            // A bare word is a path only where there is one.
            let exists = [path.to_owned(), format!("{path}.git")].iter().any(|path| dir.join(path).exists());
            if !plain || exists {
                judge.locate(path, address, self.rights, &Dirs::at(dir));
            }
        }
    }
}

fn is_address(setting: &Setting) -> bool {
    setting.section == "remote" && matches!(setting.key.as_str(), "url" | "pushurl")
}

/// The path of an address on this machine.
fn local(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    match scheme {
        "file" => Some(rest),
        "" if rest.split('/').next().is_some_and(|start| start.contains(':')) => None,
        "" => Some(rest),
        _ => None,
    }
}

/// A remote that is added leads somewhere: to a path that whoever pushes there later writes.
pub(super) fn new_remotes(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    for word in words {
        let path = word.literal().filter(|text| !text.starts_with('-')).and_then(local);
        if let Some(path) = path.filter(|path| path.contains('/') || *path == "..") {
            judge.locate(path, &word.raw, Rights::READ_WRITE.union(Rights::EXECUTE), &around.dirs);
        }
    }
}

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

pub(super) fn push(judge: &mut Judge<'_>, words: &[Word], around: &Around<'_>) {
    remotes(judge, "git push", words, around);
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
    if dirs.iter().any(|dir| judge.look(Look::Keys, dir, || repository::keeps_keys(dir) != Some(false))) {
        judge.needs.find(format!("{name}: keys that the repository keeps"), Some(Zone::System), Rights::READ);
    }
}

/// Options that ask for contents, by how they begin.
const PATCHES: &str = "-p -u --patch -U --unified -c --cc -m -L -G -S --full-diff --word-diff --color-words";
/// Options that ask for names and numbers instead.
const SUMMARIES: &str = "--stat --name-only --name-status --shortstat --numstat --summary --raw --dirstat";

/// Whether these words ask for more than names, numbers and messages.
fn shows_contents(name: &str, words: &[Word]) -> bool {
    let is = |word: &Word, options: &str| options.split(' ').any(|option| word.start().starts_with(option));
    let exactly = |word: &Word, options: &[&str]| word.literal().is_some_and(|text| options.contains(&text));
    let patch = words.iter().any(|w| is(w, PATCHES) || w.is_unknown());
    let quiet = words.iter().any(|w| is(w, SUMMARIES) || exactly(w, &["-s", "--no-patch", "-q", "--quiet"]));
    match name {
        "git log" | "git reflog" | "git stash list" | "git whatchanged" => patch,
        "git cat-file" => !words.iter().any(|w| exactly(w, &["-t", "-s", "-e"])),
        _ => patch || !quiet,
    }
}
