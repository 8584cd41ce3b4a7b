//! The environment that a command gets: the session's, a mark, and what keeps programs from waiting for a person.

use std::ffi::{OsStr, OsString};

use super::{git_programs, group};
use crate::place::Place;

/// Set whatever the person has: nobody is there to leaf through pages or to close an editor.
const ALWAYS: &[(&str, &str)] = &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_EDITOR", "true")];

/// Set where the person has nothing: passwords and names cannot be asked for. An askpass program of the person's own
/// stays; some answer by themselves.
const UNLESS_SET: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SUDO_ASKPASS", "/bin/false"),
];

/// Terminals of the person's, where programs would ask although the command has none.
const TERMINALS: &[&str] = &["GPG_TTY", "SSH_TTY"];

/// The whole environment of a command; of two of the same name the later one counts. `may_execute`: whether programs
/// that the workspace names may run.
pub(super) fn variables(place: &Place, mark: &str, may_execute: bool) -> Vec<(OsString, OsString)> {
    let mut all: Vec<_> = place.env.iter().filter(|(name, _)| TERMINALS.iter().all(|t| name != t)).cloned().collect();
    let mut set = |name: &str, value: &OsStr| all.push((name.into(), value.into()));
    let missing = UNLESS_SET.iter().filter(|(name, _)| lookup(place, name).is_none());
    for (name, value) in ALWAYS.iter().chain(missing) {
        set(name, value.as_ref());
    }
    // A shell that believes itself to be the first one of a remote login reads ~/.bashrc, even as `bash -c`.
    if lookup(place, "SHLVL").is_none_or(|level| level == "0") {
        set("SHLVL", "1".as_ref());
    }
    if !may_execute {
        for (name, value) in git_programs::switched_off(place) {
            set(&name, value.as_ref());
        }
    }
    set(group::VARIABLE, &below(lookup(place, group::VARIABLE), mark));
    all
}

/// A variable of the session.
pub(super) fn lookup<'p>(place: &'p Place, name: &str) -> Option<&'p OsStr> {
    place.env.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_os_str())
}

/// The mark below that of the agent which this agent runs under, so that both find their own.
fn below(outer: Option<&OsStr>, mark: &str) -> OsString {
    let mut value = outer.map(OsStr::to_owned).unwrap_or_default();
    if !value.is_empty() {
        value.push("/");
    }
    value.push(mark);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(&str, &str)], expect: &[(&str, &str)]) {
        let mut place = Place::new("/nowhere");
        place.env = given.iter().map(|(n, v)| (n.into(), v.into())).collect();
        let all = variables(&place, "s-1", true);
        for (name, value) in expect {
            let got = all.iter().rev().find(|(n, _)| n == name).and_then(|(_, v)| v.to_str());
            assert_eq!(got, Some(*value), "{name} of {given:?}");
        }
    }

    #[test]
    fn nobody_is_waited_for_and_the_rest_stays() {
        check(&[], &[("PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("SHLVL", "1"), ("AGENT_CALL", "s-1")]);
        check(&[("PAGER", "less"), ("X", "1")], &[("PAGER", "cat"), ("GIT_PAGER", "cat"), ("X", "1")]);
        check(&[("GIT_ASKPASS", "/mine"), ("SHLVL", "3")], &[("GIT_ASKPASS", "/mine"), ("SHLVL", "3")]);
        let mut place = Place::new("/nowhere");
        place.env = vec![("GPG_TTY".into(), "/dev/pts/1".into())];
        assert!(variables(&place, "s-1", false).iter().all(|(name, _)| name != "GPG_TTY"));
        check(&[("SHLVL", "0"), ("AGENT_CALL", "o-4")], &[("SHLVL", "1"), ("AGENT_CALL", "o-4/s-1")]);
    }
}
