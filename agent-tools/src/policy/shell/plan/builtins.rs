//! What builtins of the shell do to the shell itself.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::super::patterns;
use super::super::words::{Piece, Word};
use super::{Command, Dirs, Planner, Shell, assign, is_name, is_own};

impl Planner<'_> {
    /// What a command does to the shell itself.
    pub(super) fn effects(&mut self, command: &mut Command, shell: &mut Shell) {
        let words = command.words.clone();
        let wrapped = words.iter().take_while(|w| matches!(w.literal(), Some("command" | "builtin"))).count();
        let Some((name, operands)) = words[wrapped..].split_first() else { return };
        let Some(name) = name.literal() else { return };
        if words[..wrapped].iter().any(|w| w.literal() == Some("builtin")) {
            self.doubt("it asks for a builtin of the shell by its name");
        }
        if wrapped > 0 && name.starts_with('-') && operands.iter().any(|w| is_builtin(w.literal())) {
            self.doubt("a builtin of the shell stands behind options of `command`");
        }
        // Nothing to split at, for as long as a line is read.
        let whole_line = |(name, value): &(String, Word)| name == "IFS" && value.literal() == Some("");
        if name == "read" && command.assignments.iter().all(whole_line) {
            command.assignments.clear();
        }
        if !command.assignments.is_empty() && is_builtin(Some(name)) {
            self.doubt(format!("what an assignment before `{name}` holds for is not certain"));
        }
        match name {
            "cd" => self.change_directory(operands, shell),
            "pushd" if operands.len() == 1 => self.change_directory(operands, shell),
            "pushd" | "popd" => shell.dirs = Dirs(None),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                let assigned = self.declared(name, operands, shell);
                command.assignments.extend(assigned);
                command.exports = true;
            }
            "break" | "continue" | "return" => self.jump(shell),
            "shift" => self.shift(operands, shell),
            "trap" => self.trap(operands, shell),
            "set" => self.set(operands),
            "printf" => self.printf(operands, shell),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" => self.reads_into(name, operands, shell),
            "eval" => self.eval(operands, shell),
            _ => {}
        }
    }

    /// `printf -v` sets a variable.
    fn printf(&mut self, operands: &[Word], shell: &mut Shell) {
        let Some((option, rest)) = operands.split_first().filter(|(w, _)| w.start().starts_with('-')) else { return };
        match (option.literal(), rest.first()) {
            (Some("--"), _) => {}
            (Some("-v"), Some(target)) => self.reads_into("printf", std::slice::from_ref(target), shell),
            _ => self.doubt(format!("what `printf {}` sets is not known", option.raw)),
        }
    }

    /// Only what makes a shell stricter or more talkative: other options change what words mean.
    fn set(&mut self, operands: &[Word]) {
        let mut rest = operands.iter().map(|w| w.literal().unwrap_or("?"));
        while let Some(option) = rest.next() {
            let letters = option.strip_prefix(['-', '+']).unwrap_or("?");
            let names = letters.ends_with('o');
            let known = !letters.is_empty() && letters.trim_end_matches('o').chars().all(|c| "eux".contains(c));
            if !known || (names && !matches!(rest.next(), Some("pipefail" | "errexit" | "nounset" | "xtrace"))) {
                return self.doubt(format!("what `set {option}` changes is not known here"));
            }
        }
    }

    /// Builtins that set variables, to what nobody knows.
    fn reads_into(&mut self, builtin: &str, operands: &[Word], shell: &mut Shell) {
        let mut rest = operands.iter();
        if builtin == "getopts" {
            rest.next();
        }
        while let Some(word) = rest.next() {
            match word.literal() {
                Some("-r" | "-t" | "-s" | "-rs" | "-sr" | "-a" | "-ra") => {}
                Some("-d" | "-n" | "-p") if builtin == "read" => {
                    rest.next();
                }
                Some(name) if is_name(name) && is_own(name, shell, self.place) => {
                    let whole = builtin == "read" && rest.as_slice().is_empty();
                    let line = if whole { self.line(operands, shell) } else { None };
                    shell.variables.set(name, line);
                }
                Some(number) if builtin == "read" && number.chars().all(|c| c.is_ascii_digit() || c == '.') => {}
                _ => self.doubt(format!("what `{builtin}` does with `{}` is not known here", word.raw)),
            }
        }
    }

    /// What a line of the input is, where one name takes all of it.
    fn line(&mut self, operands: &[Word], shell: &Shell) -> Option<Vec<Piece>> {
        let names = shell.names()?.clone();
        let raw: Vec<&str> = operands.iter().map(|w| w.literal().unwrap_or("?")).collect();
        match raw[..] {
            ["-r", _] if !names.whole => {
                self.push(Command { lists: vec![names.clone()], dirs: shell.dirs.clone(), ..Command::default() });
                Some(vec![Piece::Below(names)])
            }
            ["-r", "-d", "", _] | ["-d", "", "-r", _] if names.whole => Some(vec![Piece::Below(names)]),
            _ => None,
        }
    }

    fn declared(&mut self, builtin: &str, operands: &[Word], shell: &mut Shell) -> Vec<(String, Word)> {
        if matches!(builtin, "declare" | "typeset" | "local") && self.calls > 0 {
            let names = operands.iter().filter_map(|w| w.start().split('=').next());
            self.locals.extend(names.map(str::to_owned));
        }
        let mut assigned = Vec::new();
        for word in operands {
            match word.start().split_once('=') {
                Some((name, _)) if is_name(name) => {
                    let value = word.after(name.len() + 1);
                    assign(shell, name, &value);
                    assigned.push((name.to_owned(), value));
                }
                _ => match word.literal() {
                    Some(option) if option.starts_with('-') && option[1..].chars().all(|c| "xrgaAp".contains(c)) => {}
                    Some(name) if is_name(name) => {
                        shell.variables.set(name, None);
                        assigned.push((name.to_owned(), Word::unknown(name)));
                    }
                    _ => self.doubt(format!("what `{}` declares is not known", word.raw)),
                },
            }
        }
        assigned
    }

    fn change_directory(&mut self, operands: &[Word], shell: &mut Shell) {
        let before = shell.dirs.clone();
        let operands: Vec<&Word> =
            operands.iter().filter(|w| !matches!(w.literal(), Some("--" | "-L" | "-P"))).collect();
        let searched = shell.variables.is_set("CDPATH") || self.place.env.iter().any(|(name, _)| name == "CDPATH");
        let here = |path: &str| path.starts_with(['/', '.']) || !searched;
        let home = || self.place.home.as_deref().filter(|_| !shell.variables.is_set("HOME"));
        let dirs = match operands.as_slice() {
            [] => home().map_or(Dirs(None), Dirs::at),
            [word] => match word.literal() {
                Some(path) if here(path) && !path.starts_with(['-', '+']) && !path.is_empty() => {
                    let steps = path.matches('/').count() * before.0.as_ref().map_or(0, Vec::len);
                    if self.spend(steps) { before.enter(path) } else { Dirs(None) }
                }
                Some(_) => Dirs(None),
                None => self.elsewhere(word, &before).unwrap_or(Dirs(None)),
            },
            _ => Dirs(None),
        };
        shell.dirs = dirs;
        shell.failed = Some(before);
    }

    /// Where `cd` leads by a pattern, or to the top of the repository.
    fn elsewhere(&mut self, word: &Word, before: &Dirs) -> Option<Dirs> {
        const ENTRIES: usize = 1_000;
        let own = word.raw.trim_matches('"');
        if own == "$(git rev-parse --show-toplevel)" {
            let mut top = Dirs::at(&repository(before.only()?)?);
            // Where git fails the word is nothing: then `cd` stays, or goes home.
            let first = self.depth <= 2 && self.plan.commands.len() == 1;
            if own != word.raw {
                top.join(before);
            } else if !first || !self.has_git() {
                top.join(&Dirs::at(self.place.home.as_deref()?));
            }
            return Some(top);
        }
        let pattern = word.pattern().filter(|text| !text.starts_with(['-', '+']))?;
        let mut led = before.enter(&pattern);
        for dir in before.0.iter().flatten() {
            let found = patterns::expand(dir, &patterns::pattern_parts(word), ENTRIES)?.found;
            for path in found.iter().filter(|path| path.is_dir()) {
                led.join(&before.enter(path.to_str()?));
            }
        }
        Some(led)
    }

    fn has_git(&self) -> bool {
        let path = self.place.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
        let on_path = |path: &std::ffi::OsString| std::env::split_paths(path).any(|dir| dir.join("git").is_file());
        path.is_none_or(on_path)
    }

    /// The words that a function was called with, without the first.
    fn shift(&mut self, operands: &[Word], shell: &mut Shell) {
        let count = match operands {
            [] => Some(1),
            [count] => count.literal().and_then(|count| count.parse::<usize>().ok()),
            _ => None,
        };
        let given = shell.variables.given().zip(count).and_then(|(given, count)| given.get(count..)).map(Rc::from);
        shell.variables.give(given);
    }

    fn eval(&mut self, operands: &[Word], shell: &mut Shell) {
        let texts: Option<Vec<&str>> = operands.iter().map(Word::literal).collect();
        match texts {
            Some(texts) => self.text(&texts.join(" "), shell),
            None => self.doubt("`eval` runs text that is computed"),
        }
    }
}

/// Builtins that an assignment before them may hold for longer than they run, or that change the shell.
pub(super) fn is_builtin(name: Option<&str>) -> bool {
    let Some(name) = name else { return true };
    let words = "cd pushd popd export declare typeset local readonly set unset eval source . exec read mapfile readarray getopts printf builtin command trap shopt";
    words.split(' ').any(|word| word == name)
}

/// The top of the repository that a directory lies in, if git takes it for one.
fn repository(dir: &Path) -> Option<PathBuf> {
    let top = dir.ancestors().find(|dir| dir.join(".git").exists())?;
    let git = top.join(".git");
    let head = std::fs::read_to_string(git.join("HEAD")).unwrap_or_default();
    let whole = head.starts_with("ref: refs/") && git.join("objects").is_dir() && git.join("refs").is_dir();
    let linked = || std::fs::read_to_string(&git).is_ok_and(|text| text.starts_with("gitdir: "));
    (whole || linked()).then(|| top.to_path_buf())
}
