//! Programs and words that a table cannot tell of: each has a function of its own.

mod awk;
mod curl;
mod files;
mod find;
mod git;
mod hosts;
mod interpreters;
mod jq;
mod sed;
mod system;
mod wrappers;

pub(super) use self::find::{find_starts, is_find_test, only_name};
pub(super) use self::git::in_another_repository;
use super::judge::{Around, Judge};
use super::programs::{self, Program};
use super::words::Word;

/// The name of an ordinary program: one from PATH, or named by its path where the system keeps them.
pub(super) fn ordinary(name: &str) -> Option<&str> {
    if !name.contains('/') {
        return Some(name);
    }
    let name = ["/usr/local/bin/", "/usr/bin/", "/bin/"].iter().find_map(|dir| name.strip_prefix(dir));
    name.filter(|name| !name.contains('/') && !matches!(*name, "" | "." | ".."))
}

pub(super) fn is_ordinary_dir(path: &str) -> bool {
    matches!(
        path.trim_end_matches('/'),
        "/usr/local/bin" | "/usr/bin" | "/bin" | "/usr/sbin" | "/sbin" | "/usr/local/sbin"
    )
}

pub(super) fn find_program(name: &str) -> Option<&'static Program> {
    let unversioned = || name.strip_prefix("python").filter(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'));
    programs::find(family(name)).or_else(|| unversioned().and_then(|_| programs::find("python")))
}

/// Programs with the same subcommands.
pub(super) fn family(name: &str) -> &str {
    match name {
        "pnpm" | "yarn" => "npm",
        "pip3" | "pipx" | "uv pip" => "pip",
        name => name,
    }
}

/// A subcommand by its own name, or by that of the programs which have the same ones.
pub(super) fn find_subcommand(name: &str, word: &Word) -> Option<(String, &'static Program)> {
    let sub = word.literal()?;
    let alike = if matches!(name, "uv" | "poetry") { "pip" } else { family(name) };
    [name, alike].iter().find_map(|name| {
        let full = format!("{name} {sub}");
        programs::find(&full).map(|program| (full, program))
    })
}

/// Words that mean nothing by themselves.
pub(super) fn is_key_word(name: &str) -> bool {
    matches!(name, ":" | "{" | "}" | "!")
}

/// Calls the function of this name.
pub(super) fn judge(which: &str, judge: &mut Judge<'_>, name: &str, words: &[Word], around: &Around<'_>) {
    match which {
        "test" => files::test(judge, words, around),
        "find" => find::find(judge, words, around),
        "sed" => sed::sed(judge, words, around),
        "awk" => awk::awk(judge, words, around),
        "dd" => files::dd(judge, words, around),
        "tar" => files::tar(judge, words, around),
        "env" => wrappers::env(judge, words, around),
        "xargs" => wrappers::xargs(judge, words, around),
        "shell" => interpreters::shell(judge, words, around),
        "interpreter" => interpreters::interpreter(judge, name, words, around),
        "kill" => system::kill(judge, words),
        "checkout" => git::checkout(judge, words, around),
        "git-shows" => git::shows(judge, name, words, around),
        "push" => git::push(judge, words, around),
        "git-remote" => git::remotes(judge, name, words, around),
        "git-remotes" => git::new_remotes(judge, words, around),
        "clone" => git::clone(judge, words, around),
        "date" => system::date(judge, words, around),
        "ps" => system::ps(judge, words),
        "ln" => files::ln(judge, words, around),
        "curl" => curl::curl(judge, words, around),
        "scp" | "rsync" => hosts::between_hosts(judge, name, words, around),
        "git-config" => git::git_config(judge, words, around),
        _ => judge.doubt(format!("`{name}` is not known here")),
    }
}

/// A filter of jq or yq.
pub(super) fn filter(judge: &mut Judge<'_>, word: &Word) {
    jq::filter(judge, word);
}
