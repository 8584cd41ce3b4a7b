//! Loops: what a round changes is seen by the next.

use super::super::parse::Node;
use super::super::words::{Piece, Word};
use super::{Dirs, Planner, ROUNDS, Shell, is_own};

impl Planner<'_> {
    /// A condition, which runs, and what may run behind it.
    pub(super) fn first_and_others(&mut self, parts: &[Node], shell: &mut Shell) {
        let Some((condition, others)) = parts.split_first() else { return };
        self.node(condition, shell);
        shell.may_have_failed();
        self.branches(others, shell);
    }

    /// What a round changes is unknown in the next.
    pub(super) fn again_and_again(&mut self, parts: &[Node], shell: &mut Shell) {
        self.beside += 1;
        self.rounds(parts, shell);
        self.beside -= 1;
    }

    /// Until nothing changes any more: what a round sets the next one sees, and what that makes of it the one after.
    fn rounds(&mut self, parts: &[Node], shell: &mut Shell) {
        const MOST: usize = 8;
        let first = shell.dirs.clone();
        for _ in 0..MOST {
            let before = shell.clone();
            self.round(parts, shell);
            if shell.dirs != first {
                shell.dirs = Dirs(None);
            }
            if *shell == before {
                return;
            }
        }
        self.doubt("what a loop changes takes too many rounds to be followed");
    }

    /// One round, from which `break` and `continue` may lead out anywhere.
    fn round(&mut self, parts: &[Node], shell: &mut Shell) {
        let jumps = self.jumps.len();
        self.nested += 1;
        match parts {
            [body] => self.branches(std::slice::from_ref(body), shell),
            _ => self.first_and_others(parts, shell),
        }
        self.nested -= 1;
        self.land(jumps, shell);
    }

    /// Where what was left by `break`, `continue` or `return` goes on.
    pub(super) fn land(&mut self, jumps: usize, shell: &mut Shell) {
        for jump in &self.jumps[jumps..] {
            shell.merge(jump);
        }
        if self.nested == 0 {
            self.jumps.clear();
        }
    }

    pub(super) fn for_each(&mut self, var: &str, words: Option<&[String]>, body: &Node, shell: &mut Shell) {
        let values = words.map(|words| self.words(words, shell));
        let followed = |word: &Word| !word.pieces.contains(&Piece::Unknown);
        let rounds = values.filter(|v| v.len() <= ROUNDS && v.iter().all(followed));
        if !is_own(var, shell, self.place) {
            self.doubt(format!("setting `{var}` may change what programs do"));
        }
        let Some(values) = rounds else {
            shell.variables.set(var, None);
            return self.again_and_again(std::slice::from_ref(body), shell);
        };
        let before = shell.clone();
        self.beside += 1;
        for value in values {
            let once = value.literal().is_some();
            shell.variables.set(var, Some(value.pieces));
            if once {
                self.round(std::slice::from_ref(body), shell);
            } else {
                self.rounds(std::slice::from_ref(body), shell);
            }
        }
        if shell.dirs != before.dirs {
            shell.dirs = Dirs(None);
            self.branches(std::slice::from_ref(body), shell);
        }
        self.beside -= 1;
        shell.variables.set(var, None);
    }
}
