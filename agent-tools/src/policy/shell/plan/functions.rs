//! Functions and traps: text that runs later than where it stands.

use std::rc::Rc;

use super::super::parse::Node;
use super::super::special;
use super::super::words::Word;
use super::{Command, Planner, Shell, builtins};

/// Calls within calls.
const CALLS: usize = 6;
/// Traps that are followed.
const TRAPS: usize = 8;
/// Where `return` and its kin may lead from.
const JUMPS: usize = 100;

impl Shell {
    /// A function that only one of both knows, or that both know differently, has a body that nobody knows.
    pub(super) fn merge_functions(&mut self, other: &Self) {
        if Rc::ptr_eq(&self.functions, &other.functions) {
            return;
        }
        let functions = Rc::make_mut(&mut self.functions);
        for (name, body) in &mut *functions {
            if other.functions.get(name) != Some(body) {
                *body = None;
            }
        }
        for name in other.functions.keys() {
            functions.entry(name.clone()).or_insert(None);
        }
    }
}

impl Planner<'_> {
    /// A function is known by its name from here on. One with the name of a program would hide it from who looks for
    /// that program by other ways.
    pub(super) fn define(&mut self, name: &str, body: &Node, shell: &mut Shell) {
        let hides = name == "command_not_found_handle"
            || special::find_program(name).is_some()
            || builtins::is_builtin(Some(name))
            || name.contains('/');
        if hides || !self.spend(1) {
            self.doubt(format!("it defines the function `{name}`, which has the name of a program"));
            return self.node(body, &mut shell.clone());
        }
        let body = Rc::new(body.clone());
        self.uncalled.push((Rc::clone(&body), shell.clone()));
        Rc::make_mut(&mut shell.functions).insert(name.to_owned(), Some(body));
    }

    /// Plans the body of a function where the command calls one. What it is called with may be anything once it is known.
    pub(super) fn call(&mut self, command: &mut Command, shell: &mut Shell) -> bool {
        let Some((head, given)) = command.words.split_first() else { return false };
        let Some(known) = head.literal().and_then(|name| shell.functions.get(name)) else { return false };
        let body = match known {
            Some(body) if self.calls < CALLS && command.assignments.is_empty() => Rc::clone(body),
            _ => {
                self.doubt(format!("what the function `{}` does here is not certain", head.raw));
                return true;
            }
        };
        self.uncalled.retain(|(other, _)| !Rc::ptr_eq(other, &body));
        let given: Rc<[Word]> = given.into();
        command.words.clear();
        self.push(std::mem::take(command));
        let outer = shell.variables.give(Some(given));
        let (jumps, locals) = (self.jumps.len(), self.locals.len());
        self.calls += 1;
        self.nested += 1;
        self.node(&body, shell);
        shell.may_have_failed();
        self.nested -= 1;
        self.calls -= 1;
        self.land(jumps, shell);
        for name in self.locals.drain(locals..) {
            shell.variables.set(&name, None);
        }
        shell.variables.give(outer);
        true
    }

    /// `break`, `continue`, `return`: what the shell knows here it may know behind the loop or the function.
    pub(super) fn jump(&mut self, shell: &Shell) {
        if self.nested > 0 {
            self.jumps.push(shell.clone());
        }
        if self.jumps.len() > JUMPS {
            self.doubt("it leaves loops and functions in too many places");
        }
    }

    /// Text that runs at the end or at a signal.
    pub(super) fn trap(&mut self, operands: &[Word], shell: &Shell) {
        const SIGNALS: &str = "EXIT 0 INT TERM HUP QUIT ERR SIGINT SIGTERM SIGHUP SIGQUIT 1 2 3 15";
        let operands = match operands.first().and_then(Word::literal) {
            Some("--") => &operands[1..],
            Some("-p" | "-l") => return,
            _ => operands,
        };
        let Some((code, signals)) = operands.split_first() else { return };
        let known = |w: &Word| w.literal().is_some_and(|name| SIGNALS.split(' ').any(|signal| signal == name));
        match code.literal() {
            Some(text) if !signals.is_empty() && signals.iter().all(known) => {
                if self.traps.len() >= TRAPS {
                    self.doubt("it sets too many traps");
                } else if !matches!(text, "" | "-") {
                    self.traps.push((text.to_owned(), shell.clone()));
                }
            }
            _ => self.doubt(format!("what a trap for `{}` runs is not known here", code.raw)),
        }
    }

    /// A function that nothing calls does nothing; what its body says counts all the same, as whoever wrote it meant it.
    fn left_over(&mut self) {
        for (body, mut shell) in std::mem::take(&mut self.uncalled) {
            self.node(&body, &mut shell);
        }
    }

    /// Plans what traps run, with all that shells may have known when it did.
    pub(super) fn trapped(&mut self) {
        for _ in 0..=TRAPS {
            let Some((text, mut shell)) = self.traps.pop() else { return self.left_over() };
            self.beside += 1;
            self.text(&text, &mut shell);
            self.beside -= 1;
        }
        self.doubt("it sets too many traps");
    }
}
