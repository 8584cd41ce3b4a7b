//! Switches off the programs that a repository's own configuration makes git start.
//!
//! Settings for all of git are overridden in any case, those of named drivers where the configuration of the repository
//! around the working directory names some. A repository elsewhere (`git -C`) is judged by the classifier.

use std::fs;
use std::path::{Path, PathBuf};

use super::variables::lookup;
use crate::place::Place;

/// Overridden whatever the repository says.
const ALWAYS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", "/bin/false"),
    ("core.sshCommand", "ssh"),
    ("core.alternateRefsCommand", "true"),
    ("credential.helper", ""),
    ("log.showSignature", "false"),
];

/// An external diff cannot be unset, only be another one.
const PLAIN_DIFF: &str = "f() { diff -u --label \"a/$1\" --label \"b/$1\" \"$2\" \"$5\"; true; }; f";

/// How many files of configuration are read at most; they may name each other.
const FILES: usize = 16;
/// How much of each is read.
const SIZE: u64 = 1024 * 1024;

/// The variables that override a repository's configuration, after those that the session has.
pub(super) fn switched_off(place: &Place) -> Vec<(String, String)> {
    let first = lookup(place, "GIT_CONFIG_COUNT").and_then(|n| n.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    let mut settings: Vec<(String, String)> = ALWAYS.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    for text in configurations(place) {
        settings.extend(named_programs(&text));
    }
    let mut variables = vec![("GIT_CONFIG_COUNT".into(), (first + settings.len()).to_string())];
    for (i, (key, value)) in (first..).zip(settings) {
        variables.push((format!("GIT_CONFIG_KEY_{i}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{i}"), value));
    }
    variables
}

/// What to set so that the programs named in this configuration do not run.
fn named_programs(text: &str) -> Vec<(String, String)> {
    let mut off = Vec::new();
    if text.to_ascii_lowercase().contains("external") {
        off.push(("diff.external".into(), PLAIN_DIFF.into()));
    }
    for (section, name) in sections(text) {
        let instead: &[(&str, &str)] = match section.as_str() {
            "filter" => &[("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")],
            "diff" => &[("textconv", "cat"), ("command", PLAIN_DIFF)],
            "merge" => &[("driver", "false")],
            _ => &[],
        };
        off.extend(instead.iter().map(|(key, value)| (format!("{section}.{name}.{key}"), (*value).into())));
    }
    off
}

/// The named sections, `[section "name"]` or `[section.name]`. What only looks like one is found too: one too many is
/// switched off, never one too few.
fn sections(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split('[').skip(1).filter_map(|header| {
        let end = header.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
        let (section, rest) = header.split_at(end);
        let name = match rest.strip_prefix('.') {
            Some(rest) => rest.split(']').next()?.to_ascii_lowercase(),
            None => quoted(rest.trim_start().strip_prefix('"')?),
        };
        Some((section.to_ascii_lowercase(), name))
    })
}

/// The text up to the closing quote; a backslash makes the next character literal.
fn quoted(text: &str) -> String {
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        name.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    name
}

/// The texts of the configuration of the repository around the working directory, included files among them.
fn configurations(place: &Place) -> Vec<String> {
    let Some(git) = place.cwd.ancestors().find_map(git_directory) else { return Vec::new() };
    let common = fs::read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |c| git.join(c.trim()));
    let mut waiting = vec![common.join("config"), git.join("config.worktree")];
    let mut texts = Vec::new();
    while let Some(file) = waiting.pop()
        && texts.len() < FILES
    {
        if let Some(text) = read(&file) {
            let base = file.parent().unwrap_or(&place.cwd);
            waiting.extend(included(&text).map(|path| match path.strip_prefix("~/") {
                Some(_) => place.absolute(path),
                None => base.join(path),
            }));
            texts.push(text);
        }
    }
    texts
}

fn read(file: &Path) -> Option<String> {
    let about = fs::metadata(file).ok()?;
    let bytes = (about.is_file() && about.len() <= SIZE).then(|| fs::read(file).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The git directory of the repository whose top this is, be it bare.
pub(super) fn git_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    if let Ok(link) = fs::read_to_string(&git) {
        return Some(top.join(link.strip_prefix("gitdir:")?.trim()));
    }
    (top.join("HEAD").is_file() && top.join("objects").is_dir()).then(|| top.to_owned())
}

/// The values of all keys `path`.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let entry = line.rsplit(']').next()?;
        let (key, value) = entry.split_once('=')?;
        key.trim().eq_ignore_ascii_case("path").then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_drivers_are_found_however_they_are_written() {
        for (text, expect) in [
            ("[filter \"lfs\"]\n\tclean = x\n", "filter.lfs.clean"),
            ("[core] [FILTER \"a b\"] clean = x", "filter.a b.smudge"),
            ("[diff \"q\\\"q\"]\n", "diff.q\"q.textconv"),
            ("[filter.Old]\n", "filter.old.process"),
            ("[merge \"m\"]\n", "merge.m.driver"),
            ("[diff]\nExternal = ./x\n", "diff.external"),
        ] {
            let keys: Vec<String> = named_programs(text).into_iter().map(|(key, _)| key).collect();
            assert!(keys.iter().any(|key| key == expect), "{text:?}: {keys:?}");
        }
        assert_eq!(named_programs("[core]\n\tbare = false\n[remote \"origin\"]\n"), []);
    }

    #[test]
    fn included_files_are_read_and_the_sessions_own_settings_stay() {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir_all(at.path().join(".git")).unwrap();
        fs::create_dir_all(at.path().join("sub")).unwrap();
        fs::write(at.path().join(".git/config"), "[include]\n\tpath = \"../more\"\n").unwrap();
        fs::write(at.path().join("more"), "[filter \"x\"] clean = ./evil\n[include] path = more\n").unwrap();
        let mut place = Place::new(at.path().join("sub"));
        place.env = vec![("GIT_CONFIG_COUNT".into(), "2".into())];
        let off = switched_off(&place);
        assert_eq!(off[1], ("GIT_CONFIG_KEY_2".into(), "core.fsmonitor".into()));
        assert!(off.iter().any(|(_, key)| key == "filter.x.clean"), "{off:?}");
        assert_eq!(off.len(), 1 + 2 * (off[0].1.parse::<usize>().unwrap() - 2));
    }
}
