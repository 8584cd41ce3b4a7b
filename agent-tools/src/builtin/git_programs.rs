//! Switches off the programs that a repository's own configuration makes git start.
//!
//! Settings for all of git are overridden in any case, those of named drivers where the configuration of the repository
//! around the working directory, or of a submodule in it, names some. A repository elsewhere (`git -C`, `cd`) is judged
//! by the classifier.

use super::variables::lookup;
use crate::place::Place;
use crate::repository::{Repository, Setting, Settings, around, settings, with_submodules};

/// Overridden whatever the repository says.
const ALWAYS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", "/bin/false"),
    ("core.sshCommand", "ssh"),
    ("core.alternateRefsCommand", "true"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("credential.helper", ""),
    ("log.showSignature", "false"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("interactive.diffFilter", "cat"),
    ("protocol.ext.allow", "never"),
    ("web.browser", ""),
    ("help.browser", ""),
    // Objects that are cleaned up are shown to a program first.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    // What is put into new repositories runs later.
    ("init.templateDir", ""),
];

/// Where nobody knows all that is set, git had better not start: it refuses a value that is neither yes nor no.
const REFUSAL: (&str, &str) =
    ("core.fileMode", "the settings of this repository are more than could be looked through");

/// An external diff cannot be unset, only be another one.
const PLAIN_DIFF: &str = "f() { diff -u --label \"a/$1\" --label \"b/$1\" \"$2\" \"$5\"; true; }; f";

/// The variables that override a repository's configuration, after those that the session has.
pub(super) fn switched_off(place: &Place) -> Vec<(String, String)> {
    let first = lookup(place, "GIT_CONFIG_COUNT").and_then(|n| n.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    let mut settings: Vec<(String, String)> = ALWAYS.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    settings.extend(of_repositories(place));
    let mut variables = vec![("GIT_CONFIG_COUNT".into(), (first + settings.len()).to_string())];
    // Of several proxies the first one counts, which no setting replaces.
    if lookup(place, "GIT_PROXY_COMMAND").is_none() {
        variables.push(("GIT_PROXY_COMMAND".into(), String::new()));
    }
    for (i, (key, value)) in (first..).zip(settings) {
        variables.push((format!("GIT_CONFIG_KEY_{i}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{i}"), value));
    }
    variables
}

/// What to set for the repositories around the working directory and those that lie in them.
fn of_repositories(place: &Place) -> Vec<(String, String)> {
    let repositories = around(&place.cwd);
    let mut settings = Vec::new();
    if !repositories.iter().any(Repository::is_bare) {
        // Files of the working tree may look like a repository.
        settings.push(("safe.bareRepository".into(), "explicit".into()));
    }
    // Where it cannot be told which submodules there are, the classifier lets no git run.
    let all = with_submodules(repositories.clone()).unwrap_or(repositories);
    let read = Settings::of(&all, place);
    if read.partial {
        settings.push((REFUSAL.0.into(), REFUSAL.1.into()));
    }
    settings.extend(read.texts.iter().flat_map(|text| named_programs(text)));
    settings
}

/// What to set so that the programs named in this configuration do not run.
fn named_programs(text: &str) -> Vec<(String, String)> {
    let mut off = Vec::new();
    if text.to_ascii_lowercase().contains("external") {
        off.push(("diff.external".into(), PLAIN_DIFF.into()));
    }
    for foreign in settings(text).into_iter().filter(is_remote_program) {
        off.push((format!("remote.{}.vcs", foreign.name), "none".into()));
    }
    for (section, name) in sections(text) {
        let instead: &[(&str, &str)] = match section.as_str() {
            "filter" => &[("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")],
            "diff" => &[("textconv", "cat"), ("command", PLAIN_DIFF)],
            "merge" => &[("driver", "false")],
            "man" => &[("cmd", "man"), ("path", "man")],
            "browser" | "difftool" | "mergetool" | "guitool" => &[("cmd", "true"), ("path", "true")],
            "trailer" => &[("command", "true"), ("cmd", "true")],
            "tar" if matches!(name.as_str(), "tgz" | "tar.gz") => &[("command", "gzip -cn")],
            "tar" => &[("command", "false")],
            "hook" => &[("command", "true"), ("enabled", "false")],
            _ => &[],
        };
        off.extend(instead.iter().map(|(key, value)| (format!("{section}.{name}.{key}"), (*value).into())));
    }
    off
}

/// Whether it names the program that reaches a remote. Of several the first counts: only another kind of remote, which
/// there is none of, keeps it from running.
fn is_remote_program(setting: &Setting) -> bool {
    setting.section == "remote" && matches!(setting.key.as_str(), "uploadpack" | "receivepack" | "vcs")
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

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
        assert_eq!(named_programs("[core]\n\tbare = false\n[branch \"main\"]\n"), []);
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
        assert_eq!(off[2], ("GIT_CONFIG_KEY_2".into(), "core.fsmonitor".into()));
        assert!(off.iter().any(|(_, key)| key == "filter.x.clean"), "{off:?}");
        assert_eq!(off.len(), 2 + 2 * (off[0].1.parse::<usize>().unwrap() - 2));
    }

    fn run(dir: &Path, more: &[(String, String)], command: &str) -> String {
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_PAGER", "cat");
        bash.env("HOME", dir).env("GIT_CONFIG_SYSTEM", "/dev/null").env("GIT_EDITOR", "true");
        bash.envs(more.iter().map(|(name, value)| (name, value)));
        let out = bash.output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    }

    /// A repository with a program that leaves `ran`, and these settings; whether each command starts it, without and
    /// with what is switched off.
    fn held(prepare: &str, commands: &[&str]) {
        let at = tempfile::tempdir().unwrap();
        let dir = at.path().canonicalize().unwrap();
        let start = r#"
            git init -q -b main . && git config user.name u && git config user.email u@h
            printf '#!/bin/sh\ntouch %s/ran\n' "$PWD" > .git/evil; chmod +x .git/evil
            E=$PWD/.git/evil; echo one > f; git add f; git commit -qm one
        "#;
        run(&dir, &[], &format!("{start}\n{prepare}"));
        for command in commands {
            let _ = fs::remove_file(dir.join("ran"));
            let said = run(&dir, &[], command);
            assert!(dir.join("ran").exists(), "`{command}` starts nothing by itself: {said}");
            fs::remove_file(dir.join("ran")).unwrap();
            let off = switched_off(&Place::new(&dir));
            let said = run(&dir, &off, command);
            assert!(!dir.join("ran").exists(), "`{command}` ran it: {said}\n{off:?}");
        }
    }

    /// A commit that only looks signed: what it says is asked of the program that checks.
    const SIGNED: &str = r#"
        { git cat-file commit HEAD | sed '/^$/,$d'; printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nm\n'; } > .git/c
        git update-ref HEAD $(git hash-object -t commit -w .git/c); git config gpg.program $E; git tag t
    "#;

    #[test]
    fn programs_that_look_at_signatures_are_the_ordinary_ones() {
        held(SIGNED, &["git log --show-signature", "git log --format=%G?", "git verify-commit HEAD"]);
    }

    #[test]
    fn pages_are_shown_by_ordinary_programs() {
        held("git config man.viewer x; git config man.x.cmd $E", &["git help log", "git log --help"]);
        held("git config web.browser x; git config browser.x.cmd $E", &["git web--browse f"]);
    }

    #[test]
    fn remotes_name_no_programs() {
        let up = "git clone -q --bare . .git/up; git remote add up $PWD/.git/up; git config remote.up.uploadpack $E";
        held(up, &["git ls-remote up", "git remote show up", "git fetch up"]);
        let ext = "git config protocol.ext.allow always; git remote add up \"ext::$E x\"";
        held(ext, &["git ls-remote up"]);
        held("git config core.gitProxy $E", &["git ls-remote git://127.0.0.1:9/x"]);
    }

    #[test]
    fn archives_are_packed_by_ordinary_programs() {
        held("git config tar.tar.gz.command $E", &["git archive -o .git/y.tar.gz HEAD"]);
    }

    #[test]
    fn submodules_name_no_programs() {
        let sub = "git init -q s; cd s; echo '*.x filter=e diff=e' > .gitattributes; echo a > a.x; git add .;
            git -c user.name=u -c user.email=u@h commit -qm s; git config filter.e.clean $E; git config diff.e.textconv $E;
            cd ..; git add s; git -c user.name=u -c user.email=u@h commit -qm s; echo b > s/a.x";
        held(sub, &["touch s/a.x; git status", "git diff --submodule=diff"]);
    }

    #[test]
    fn files_that_look_like_a_repository_are_none() {
        let bare = "mkdir -p n/objects n/refs; echo 'ref: refs/heads/x' > n/HEAD; cp .git/config n/config;
            git config -f n/config diff.external $E; echo a > n/a; echo b > n/b";
        held(bare, &["cd n && git diff --no-index a b"]);
    }

    #[test]
    fn what_only_looks_like_a_repository_hides_none_around_it() {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir_all(at.path().join(".git")).unwrap();
        fs::create_dir_all(at.path().join("sub/.git")).unwrap();
        fs::write(at.path().join(".git/config"), "[filter \"x\"] clean = ./evil\n").unwrap();
        let off = switched_off(&Place::new(at.path().join("sub")));
        assert!(off.iter().any(|(_, key)| key == "filter.x.clean"), "{off:?}");
    }

    #[test]
    fn settings_beyond_what_is_read_make_git_refuse() {
        let at = tempfile::tempdir().unwrap();
        run(at.path(), &[], "git init -q .");
        let mut config = fs::read_to_string(at.path().join(".git/config")).unwrap();
        config.push_str(&"# filler\n".repeat(200_000));
        fs::write(at.path().join(".git/config"), config).unwrap();
        let said = run(at.path(), &switched_off(&Place::new(at.path())), "git status");
        assert!(said.contains("more than could be looked through"), "{said}");
    }
}
