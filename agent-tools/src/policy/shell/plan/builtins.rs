//! What builtins of the shell do to the shell itself.

use super::super::words::Word;
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
                let assigned = self.declared(operands, shell);
                command.assignments.extend(assigned);
                command.exports = true;
            }
            "set" => self.set(operands),
            "printf" => {
                if let Some((option, rest)) = operands.split_first().filter(|(w, _)| w.start().starts_with('-')) {
                    match (option.literal(), rest.first()) {
                        (Some("--"), _) => {}
                        (Some("-v"), Some(target)) => self.reads_into(name, std::slice::from_ref(target), shell),
                        _ => self.doubt(format!("what `printf {}` sets is not known", option.raw)),
                    }
                }
            }
            "read" | "mapfile" | "readarray" | "getopts" | "unset" => self.reads_into(name, operands, shell),
            "eval" => self.eval(operands, shell),
            _ => {}
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
                Some(name) if is_name(name) && is_own(name, shell, self.place) => shell.variables.set(name, None),
                Some(number) if builtin == "read" && number.chars().all(|c| c.is_ascii_digit() || c == '.') => {}
                _ => self.doubt(format!("what `{builtin}` does with `{}` is not known here", word.raw)),
            }
        }
    }

    fn declared(&mut self, operands: &[Word], shell: &mut Shell) -> Vec<(String, Word)> {
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
                _ => Dirs(None),
            },
            _ => Dirs(None),
        };
        shell.dirs = dirs;
        shell.failed = Some(before);
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
fn is_builtin(name: Option<&str>) -> bool {
    let Some(name) = name else { return true };
    let words = "cd pushd popd export declare typeset local readonly set unset eval source . exec read mapfile readarray getopts printf builtin command trap shopt";
    words.split(' ').any(|word| word == name)
}
