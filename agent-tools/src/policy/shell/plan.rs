//! From what was written to what would run: commands with resolved words, each with the directories it may run in.

mod builtins;
mod dirs;
mod functions;
mod loops;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

pub(super) use self::dirs::Dirs;
use super::names;
use super::parse::{self, Join, Node, Redirect, Simple};
use super::printed::{self, Printed};
use super::words::{self, Below, Found, Piece, Scope, Variables, Word};
use crate::place::Place;

/// All commands of a text.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) commands: Vec<Command>,
    /// Why not all of it can be judged.
    pub(super) unsure: Option<String>,
}

/// A command that may run.
#[derive(Debug, Clone, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    pub(super) assignments: Vec<(String, Word)>,
    /// Programs see what is assigned.
    pub(super) exports: bool,
    pub(super) files: Vec<(String, Word)>,
    /// The directories that it may run in.
    pub(super) dirs: Dirs,
    /// The commands whose output it reads, by their place in the plan.
    pub(super) upstream: Range<usize>,
    /// What it reads from a heredoc or a here-string.
    pub(super) input: Option<Word>,
    /// Names that the command it reads from prints.
    pub(super) names: Option<Below>,
    /// Lists of names that a shell takes apart before it runs.
    pub(super) lists: Vec<Below>,
    /// Patterns that a shell looks up before it runs.
    pub(super) patterns: Vec<Word>,
    /// It runs again and again, or beside what follows it.
    pub(super) beside: bool,
}

impl Command {
    pub(super) const NOTHING: Self = Self {
        words: Vec::new(),
        assignments: Vec::new(),
        exports: false,
        files: Vec::new(),
        dirs: Dirs(None),
        upstream: 0..0,
        input: None,
        names: None,
        lists: Vec::new(),
        patterns: Vec::new(),
        beside: false,
    };
}

/// What a shell knows while it runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shell {
    pub(super) dirs: Dirs,
    /// Where it is instead if the last `cd` failed.
    failed: Option<Dirs>,
    variables: Variables,
    /// Functions that it defined; none: with a body that nobody knows.
    functions: Rc<HashMap<String, Option<Rc<Node>>>>,
    /// What its input holds, and the directories that were current where that was printed.
    fed: Option<(Printed, Dirs)>,
}

impl Shell {
    pub(super) fn at(dirs: Dirs) -> Self {
        Self { dirs, failed: None, variables: Variables::default(), functions: Rc::default(), fed: None }
    }

    /// Names that it reads, as long as they mean here what they meant where they were printed.
    fn names(&self) -> Option<&Below> {
        match &self.fed {
            Some((Printed::Names(below), dirs)) if *dirs == self.dirs => Some(below),
            _ => None,
        }
    }

    /// Both may be: what they differ in is unknown.
    fn merge(&mut self, other: &Self) {
        self.dirs.join(&other.dirs);
        if let Some(failed) = &other.failed {
            self.dirs.join(failed);
        }
        self.variables.merge(&other.variables);
        if self.fed != other.fed {
            self.fed = None;
        }
        self.merge_functions(other);
    }

    fn may_have_failed(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.dirs.join(&failed);
        }
    }
}

/// Plans a text that starts in these directories.
pub(super) fn plan(text: &str, dirs: Dirs, place: &Place, depth: usize) -> Plan {
    let mut planner = Planner {
        place,
        plan: Plan::default(),
        depth,
        steps: 0,
        beside: 0,
        jumps: Vec::new(),
        nested: 0,
        calls: 0,
        locals: Vec::new(),
        traps: Vec::new(),
        uncalled: Vec::new(),
    };
    planner.text(text, &mut Shell::at(dirs));
    planner.trapped();
    planner.plan
}

/// Texts within texts: substitutions, `eval`, `sh -c`.
pub(super) const TEXTS: usize = 16;
const COMMANDS: usize = 2_000;
/// Steps before a text takes too long to be followed.
const STEPS: usize = 5_000;
/// Variables that are followed.
const NAMES: usize = 100;
/// A loop over more words is judged once, with a variable that may be any of them.
const ROUNDS: usize = 24;

struct Planner<'a> {
    place: &'a Place,
    plan: Plan,
    depth: usize,
    /// What was done so far: nodes, and what reading words and following directories takes.
    steps: usize,
    /// Loops and jobs in the background that are being planned.
    beside: usize,
    /// What shells knew where `break`, `continue` or `return` left a loop or a function.
    jumps: Vec<Shell>,
    /// Loops and functions that are being planned.
    nested: usize,
    /// Functions that are being planned.
    calls: usize,
    /// Names that hold in the function only that is being planned.
    locals: Vec<String>,
    /// What runs at the end or at a signal, with all that shells may know by then.
    traps: Vec<(String, Shell)>,
    /// Functions that nothing has called so far.
    uncalled: Vec<(Rc<Node>, Shell)>,
}

impl Planner<'_> {
    fn doubt(&mut self, why: impl Into<String>) {
        self.plan.unsure.get_or_insert_with(|| why.into());
    }

    /// Whether there is room for this many more steps.
    fn spend(&mut self, steps: usize) -> bool {
        self.steps += steps;
        if self.steps > STEPS {
            self.doubt("it takes too many steps to be followed");
        }
        self.steps <= STEPS
    }

    fn push(&mut self, mut command: Command) {
        command.beside = self.beside > 0;
        self.plan.commands.push(command);
    }

    fn scope<'s>(&'s self, shell: &'s Shell) -> Scope<'s> {
        Scope { variables: &shell.variables, place: self.place, dirs: &shell.dirs, plain: false }
    }

    fn text(&mut self, text: &str, shell: &mut Shell) {
        if self.depth > TEXTS {
            return self.doubt("it is nested more than 16 levels deep, or has too many substitutions");
        }
        match parse::parse(text) {
            Ok(node) => {
                self.depth += 1;
                self.node(&node, shell);
                self.depth -= 1;
            }
            Err(why) => self.doubt(why),
        }
    }

    fn node(&mut self, node: &Node, shell: &mut Shell) {
        self.any_node(node, shell);
        for (_, known) in &mut self.traps {
            known.merge(shell);
        }
    }

    fn any_node(&mut self, node: &Node, shell: &mut Shell) {
        if self.plan.commands.len() > COMMANDS {
            return self.doubt("it has more than 2,000 commands");
        }
        if !self.spend(1) {
            return;
        }
        if shell.variables.count() > NAMES {
            return self.doubt("it sets too many variables");
        }
        self.redirected(node.redirects(), shell);
        match node {
            Node::Simple(simple) => self.simple(simple, shell),
            Node::Pipeline(stages) => self.pipeline(stages, shell),
            Node::List(items) => self.list(items, shell),
            Node::Group { body, own_shell: true, .. } => self.node(body, &mut shell.clone()),
            Node::Group { body, own_shell: false, .. } => self.node(body, shell),
            Node::Branches { parts, .. } => self.first_and_others(parts, shell),
            Node::Loop { parts, .. } => self.again_and_again(parts, shell),
            Node::For { var, words, body, .. } => self.for_each(var, words.as_deref(), body, shell),
            Node::Case { words, bodies, .. } => {
                self.texts(words, shell);
                self.branches(bodies, shell);
            }
            Node::Test { terms, .. } => self.test(terms, shell),
            Node::Arithmetic { texts, body, .. } => self.arithmetic(texts, body.as_deref(), shell),
            Node::Function { name, body } => self.define(name, body, shell),
            Node::Empty => {}
        }
    }

    fn list(&mut self, items: &[(Node, Join)], shell: &mut Shell) {
        // A chain of `&&` and `||` with `&` behind it runs in a shell of its own.
        let mut chain = shell.clone();
        let mut before = Join::Then;
        let mut skips: Vec<Shell> = Vec::new();
        for (node, after) in items {
            let skipped = shell.clone();
            if before == Join::Or {
                shell.may_have_failed();
            }
            let jobs = usize::from(*after == Join::Background);
            self.beside += jobs;
            self.node(node, shell);
            self.beside -= jobs;
            match before {
                // What stands behind the next `&&` runs only if this did, too.
                Join::And => skips.push(skipped),
                Join::Or => shell.merge(&skipped),
                Join::Then | Join::Background => {}
            }
            if *after != Join::And {
                skips.drain(..).for_each(|skipped| shell.merge(&skipped));
            }
            match after {
                Join::And | Join::Or => {}
                Join::Then => {
                    shell.may_have_failed();
                    chain = shell.clone();
                }
                Join::Background => *shell = chain.clone(),
            }
            before = *after;
        }
    }

    fn pipeline(&mut self, stages: &[Node], shell: &Shell) {
        let start = self.plan.commands.len();
        let mut printed: Option<Printed> = None;
        for stage in stages {
            let here = self.plan.commands.len();
            let fed = printed.take().map(|printed| (printed, shell.dirs.clone()));
            printed = match stage {
                Node::Simple(simple) => printed::by_simple(simple, fed.as_ref().map(|(p, _)| p), &self.scope(shell)),
                _ => None,
            };
            let mut own = shell.clone();
            own.fed = fed;
            self.node(stage, &mut own);
            for command in &mut self.plan.commands[here..] {
                if command.upstream.is_empty() {
                    command.upstream = start..here;
                }
            }
        }
    }

    fn branches(&mut self, parts: &[Node], shell: &mut Shell) {
        for part in parts {
            let skipped = shell.clone();
            self.node(part, shell);
            shell.may_have_failed();
            shell.merge(&skipped);
        }
    }

    fn test(&mut self, terms: &[(String, String)], shell: &mut Shell) {
        let mut command = Command { dirs: shell.dirs.clone(), words: vec![Word::text("test")], ..Command::default() };
        for (op, raw) in terms {
            let reads = op.len() == 2 && op.starts_with('-') && "abcdefghkprstuwxLOGSN".contains(&op[1..]);
            let word = self.loose_word(raw, shell);
            if matches!(op.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R") {
                let mut found = Found::default();
                words::check_arithmetic(raw.trim_matches('"'), &self.scope(shell), &mut found);
                self.take(found, shell);
            }
            if reads {
                command.words.extend([Word::text(op), word]);
            }
        }
        self.push(command);
    }

    fn arithmetic(&mut self, texts: &[String], body: Option<&Node>, shell: &mut Shell) {
        let mut found = Found::default();
        for text in texts {
            words::check_arithmetic(text, &self.scope(shell), &mut found);
            // What is set here is a number from here on.
            self.numbers(&mut found, shell);
        }
        self.take(found, shell);
        if let Some(body) = body {
            self.again_and_again(std::slice::from_ref(body), shell);
        }
    }

    fn redirected(&mut self, redirects: &[Redirect], shell: &mut Shell) {
        if !redirects.is_empty() {
            shell.fed = self.fed_by(redirects, shell).or(shell.fed.take());
            let mut command = Command { dirs: shell.dirs.clone(), ..Command::default() };
            self.redirects(redirects, shell, &mut command);
            self.push(command);
        }
    }

    /// What `< <(…)` feeds; nothing known where the input comes from elsewhere.
    fn fed_by(&self, redirects: &[Redirect], shell: &mut Shell) -> Option<(Printed, Dirs)> {
        let input = redirects.iter().rfind(|r| match r {
            Redirect::File { op, .. } => op.starts_with('<'),
            Redirect::Text { .. } => true,
        })?;
        shell.fed = None;
        let Redirect::File { target, .. } = input else { return None };
        let text = target.strip_prefix("<(")?.strip_suffix(')')?;
        Some((printed::by_text(text, &self.scope(shell))?, shell.dirs.clone()))
    }

    /// Variables that arithmetic set.
    fn numbers(&self, found: &mut Found, shell: &mut Shell) {
        for name in std::mem::take(&mut found.numbers) {
            if is_own(&name, shell, self.place) {
                shell.variables.set(&name, Some(vec![Piece::Number]));
            } else {
                found.unsure.get_or_insert_with(|| format!("setting `{name}` may change what programs do"));
            }
        }
    }

    fn redirects(&mut self, redirects: &[Redirect], shell: &Shell, command: &mut Command) {
        for redirect in redirects {
            match redirect {
                Redirect::File { op, target } => {
                    let word = self.word(target, shell);
                    command.files.push((op.clone(), word));
                }
                Redirect::Text { text, expands: false, .. } => command.input = Some(Word::text(text)),
                Redirect::Text { text, word: true, .. } => command.input = Some(self.word(text, shell)),
                Redirect::Text { text, .. } => {
                    let mut found = Found::default();
                    let word = words::read_text(text, &self.scope(shell), &mut found);
                    self.take(found, shell);
                    command.input = Some(word);
                }
            }
        }
    }

    fn simple(&mut self, simple: &Simple, shell: &mut Shell) {
        let mut command = Command { dirs: shell.dirs.clone(), ..Command::default() };
        self.redirects(&simple.redirects, shell, &mut command);
        for raw in &simple.assignments {
            let assignment = self.assignment(raw, shell);
            command.assignments.extend(assignment);
        }
        command.words = self.words(&simple.words, shell);
        if self.call(&mut command, shell) {
            return;
        }
        let takes_names = command.words.first().is_some_and(|word| word.literal() == Some("xargs"));
        if takes_names && command.input.is_none() && !command.files.iter().any(|(op, _)| op == "<") {
            command.names = shell.names().cloned();
        }
        command.exports = !command.words.is_empty();
        if command.words.is_empty() {
            for (name, value) in &command.assignments {
                assign(shell, name, value);
            }
        }
        self.effects(&mut command, shell);
        self.push(command);
    }

    fn assignment(&mut self, raw: &str, shell: &Shell) -> Option<(String, Word)> {
        let (name, value) = raw.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        if is_name(name)
            && !value.starts_with('(')
            && !value.contains(":~")
            && !raw[..raw.len() - value.len()].ends_with("+=")
        {
            let word = self.word(value, shell);
            return Some((name.to_owned(), word));
        }
        // Arrays and additions: their commands count, their values are not followed.
        let listed = raw[name.len()..].trim_start_matches(['+', '=']).trim_start_matches('(');
        self.loose_word(listed, shell);
        if computes_a_place(listed) {
            self.doubt(format!("a place in the list of `{name}` is computed"));
        }
        let (base, subscript) = name.split_once('[').unwrap_or((name, ""));
        if !subscript.trim_end_matches(']').chars().all(|c| c.is_ascii_digit()) {
            self.loose_word(subscript, shell);
            self.doubt(format!("the place that `{name}` names is computed"));
        }
        Some((base.to_owned(), Word::unknown(raw)))
    }

    /// The words of a command. What are patterns is looked up where it runs.
    fn words(&mut self, raw: &[String], shell: &Shell) -> Vec<Word> {
        let words = self.texts(raw, shell);
        let is_pattern = |word: &&Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
        let patterns: Vec<Word> = words.iter().filter(is_pattern).cloned().collect();
        if !patterns.is_empty() {
            self.push(Command { patterns, dirs: shell.dirs.clone(), ..Command::default() });
        }
        words
    }

    /// Words that are read, but no names of files.
    fn texts(&mut self, raw: &[String], shell: &Shell) -> Vec<Word> {
        if !self.spend(raw.iter().map(|raw| raw.len() / 16).sum()) {
            return Vec::new();
        }
        let mut found = Found::default();
        let words: Vec<Word> = raw.iter().flat_map(|raw| words::read(raw, &self.scope(shell), &mut found)).collect();
        self.take(found, shell);
        words
    }

    fn word(&mut self, raw: &str, shell: &Shell) -> Word {
        let mut found = Found::default();
        let word = words::read_one(raw, &self.scope(shell), &mut found);
        self.take(found, shell);
        word
    }

    fn loose_word(&mut self, raw: &str, shell: &Shell) -> Word {
        let mut found = Found::default();
        let word = words::read_loose(raw, &self.scope(shell), &mut found);
        self.take(found, shell);
        word
    }

    /// Plans what was found in words: each command in a shell of its own.
    fn take(&mut self, found: Found, shell: &Shell) {
        if let Some(why) = found.unsure {
            self.doubt(why);
        }
        if !self.spend(found.put_in / 16) {
            return;
        }
        if !found.lists.is_empty() {
            self.push(Command { lists: found.lists, dirs: shell.dirs.clone(), ..Command::default() });
        }
        for text in found.commands {
            self.text(&text, &mut shell.clone());
        }
    }
}

fn assign(shell: &mut Shell, name: &str, value: &Word) {
    let length = value.length();
    let followed = !value.pieces.contains(&Piece::Unknown)
        && length <= words::VALUE
        && (length < 64 || shell.variables.size() + length <= 4 * words::VALUE);
    shell.variables.set(name, followed.then(|| value.pieces.clone()));
}

/// A name that the command may set to anything: no program and no shell reads it.
fn is_own(name: &str, shell: &Shell, place: &Place) -> bool {
    let given = place.env.iter().any(|(key, _)| key == name) && !shell.variables.is_set(name);
    !names::means_something(name) && (!given || names::is_own_name(name))
}

pub(super) fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.chars().all(letter) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an element of a list names its place by more than a number: that is arithmetic, which runs what it is told.
fn computes_a_place(listed: &str) -> bool {
    let place = |word: &str| {
        let bare = word.trim_start_matches(['(', '\'', '"']);
        bare.strip_prefix('[').map(|rest| rest.split(']').next().unwrap_or(rest).to_owned())
    };
    let mut places = listed.split_whitespace().filter_map(place);
    (listed.contains("]=") || listed.contains("]+="))
        && places.any(|place| place.is_empty() || !place.chars().all(|c| c.is_ascii_digit()))
}
