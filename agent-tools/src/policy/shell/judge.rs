//! Judges the commands of a plan by the table of programs.

mod below;
mod grants;
mod links;
mod operands;
mod paths;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::arguments::{self, Arguments};
use super::names;
use super::plan::{self, Command, Dirs, Plan};
use super::programs::{self, Kind, Program};
use super::special;
use super::words::Word;
use crate::call::{GrantKey, Needs};
use crate::place::Place;
use crate::policy::zone::Ground;
use crate::policy::{Mode, Rights, Zone};

/// Gathers what commands need.
pub(super) struct Judge<'a> {
    pub(super) needs: Needs,
    ground: Ground<'a>,
    depth: usize,
    entries: usize,
    /// Steps that looking at paths has taken.
    steps: usize,
    /// Below these links may have come about: where a path leads is not what it was when this was judged.
    pub(super) links: Vec<PathBuf>,
    /// A name may have come about that a shell takes apart, or that looks like an option.
    odd_names: bool,
    /// How often a path was looked at.
    located: usize,
    /// Something ran again and again, or may still run.
    beside: bool,
    /// What "for this session" would cover, part by part.
    pub(super) grants: Vec<GrantKey>,
    /// What was needed for words, before the command that they belong to.
    loose: Mode,
    /// What was seen of repositories: each is looked at once, however many commands are about it.
    pub(super) repositories: RefCell<Looks>,
    /// What was found, so that no path is told of twice.
    seen: HashSet<(String, Option<Zone>, Rights)>,
}

/// What is asked about the repository of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Look {
    /// Whether it is another one than that of the session.
    Another,
    /// Whether not all of its submodules are known.
    Unclear,
    /// Whether it keeps keys, or nobody knows.
    Keys,
}

/// The answers so far.
pub(super) type Looks = HashMap<(Look, PathBuf), bool>;

/// What stands around a command while it is judged.
#[derive(Debug, Clone)]
pub(super) struct Around<'p> {
    pub(super) command: &'p Command,
    /// The directories that it may run in; a wrapper may have changed them.
    pub(super) dirs: Dirs,
    pub(super) fed: Fed,
    /// Commands that run beside it look at paths.
    pub(super) beside_paths: bool,
    /// Wrappers around it.
    pub(super) wrappers: usize,
}

impl Around<'_> {
    /// Nothing but directories.
    fn bare(dirs: &Dirs) -> Self {
        static NOTHING: Command = Command::NOTHING;
        Self { command: &NOTHING, dirs: dirs.clone(), fed: Fed::Nobody, beside_paths: false, wrappers: 0 }
    }
}

/// Where a command's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// Whatever the shell has.
    Nobody,
    /// Another command.
    Pipe,
    /// A command that reads from the network.
    Network,
}

/// Directory entries that patterns may look at, in one command.
const ENTRIES: usize = 2_000;
const WRAPPERS: usize = 12;
/// Parts of paths that are looked at, in one command.
const STEPS: usize = 2_500;

/// How far operands of a program reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// What lies below is read, too.
    deep: bool,
    /// What lies below is reached by its name.
    below: bool,
    /// Names with a dot in front are passed over.
    visible: bool,
    /// Links are followed.
    follows: bool,
    /// What is done to paths that are only mentioned.
    mentioned: Rights,
    /// What is done to keys that lie below.
    keys: Rights,
}

impl Reach {
    /// All below, whatever its name.
    pub(super) const ALL: Self =
        Self { deep: true, below: true, visible: false, follows: false, mentioned: Rights::READ, keys: Rights::READ };

    fn of(program: &Program, taken: &Arguments<'_>) -> Self {
        let any = |is: fn(&programs::Effects) -> bool| taken.effects.iter().any(|e| is(e));
        let writes = program.effects.here.union(program.effects.network).covers(Rights::WRITE);
        Self {
            deep: program.effects.deep || any(|e| e.deep),
            below: program.effects.below || any(|e| e.below),
            visible: program.effects.visible && !any(|e| e.hidden),
            follows: any(|e| e.follows),
            keys: if program.keeps_names { Rights::READ_WRITE } else { Rights::READ },
            mentioned: if writes { Rights::READ_WRITE.union(program.effects.here) } else { Rights::READ },
        }
    }
}

impl<'a> Judge<'a> {
    pub(super) fn new(place: &'a Place) -> Self {
        Self {
            needs: Needs::default(),
            ground: Ground::new(place),
            depth: 0,
            entries: 0,
            steps: 0,
            links: Vec::new(),
            odd_names: false,
            located: 0,
            beside: false,
            grants: Vec::new(),
            loose: Mode::NONE,
            repositories: RefCell::default(),
            seen: HashSet::new(),
        }
    }

    /// What is asked about the repository of this directory, looked up once.
    pub(super) fn look(&self, what: Look, dir: &Path, look: impl FnOnce() -> bool) -> bool {
        *self.repositories.borrow_mut().entry((what, dir.to_path_buf())).or_insert_with(look)
    }

    pub(super) fn place(&self) -> &'a Place {
        self.ground.place()
    }

    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        self.needs.unsure.get_or_insert_with(|| why.into());
    }

    pub(super) fn destroys(&mut self, what: &str) {
        self.needs.destroys.get_or_insert_with(|| what.to_owned());
    }

    /// Judges text that a shell runs in one of these directories.
    pub(super) fn text(&mut self, text: &str, dirs: &Dirs) {
        if !self.spend(1) {
            return;
        }
        self.depth += 1;
        let plan = plan::plan(text, dirs.clone(), self.place(), self.depth);
        self.plan(&plan);
        self.depth -= 1;
    }

    fn plan(&mut self, plan: &Plan) {
        if let Some(why) = &plan.unsure {
            self.doubt(why.clone());
        }
        let mut networked: Vec<bool> = Vec::with_capacity(plan.commands.len());
        let mut looking: Vec<bool> = Vec::with_capacity(plan.commands.len());
        for command in &plan.commands {
            let mut feeders = networked[command.upstream.clone()].iter();
            let fed = match (command.upstream.is_empty(), feeders.any(|n| *n)) {
                (true, _) => Fed::Nobody,
                (false, false) => Fed::Pipe,
                (false, true) => Fed::Network,
            };
            self.beside |= command.beside;
            let before = std::mem::take(&mut self.needs.mode);
            let beside_paths = looking[command.upstream.clone()].iter().any(|looks| *looks);
            let located = self.located;
            self.command(&Around { command, dirs: command.dirs.clone(), fed, beside_paths, wrappers: 0 });
            looking.push(self.located > located);
            self.granted(command);
            networked.push(fed == Fed::Network || self.needs.mode.network.covers(Rights::READ));
            self.needs.mode = before.union(self.needs.mode);
        }
    }

    fn command(&mut self, around: &Around<'_>) {
        for below in &around.command.lists {
            self.plain_names(below, &around.dirs);
        }
        for word in &around.command.patterns {
            self.looked_up(word, &around.dirs);
        }
        for (op, target) in &around.command.files {
            self.redirect(op, target, &around.dirs);
        }
        for (name, value) in &around.command.assignments {
            self.assignment(name, value, around.command.exports, &around.dirs);
        }
        self.words(&around.command.words, around);
    }

    fn redirect(&mut self, op: &str, target: &Word, dirs: &Dirs) {
        let shown = |rest: &str| format!("{op}{rest}");
        let number = |text: &str| text.strip_suffix('-').unwrap_or(text).chars().all(|c| c.is_ascii_digit());
        let rights = match op {
            "<" => Rights::READ,
            ">" | ">>" | ">|" | "&>" | "&>>" => Rights::WRITE,
            "<>" => Rights::READ_WRITE,
            ">&" | "<&" if target.literal().is_some_and(number) => return,
            ">&" => Rights::WRITE,
            ">&-" | "<&-" => return,
            _ => return self.doubt(format!("the redirection `{}` is not known here", shown(&target.raw))),
        };
        match target.literal() {
            None if op.len() > 1 && op.contains(['&']) && op != "&>" && op != "&>>" => {
                self.doubt(format!("where `{}` leads is not known", shown(&target.raw)));
            }
            None => {
                if ["/dev/tcp/", "/dev/udp/"].iter().any(|start| target.start().starts_with(start)) {
                    self.needs.find(shown(&target.raw), Some(Zone::Network), Rights::READ_WRITE);
                }
                if target.pattern().is_some() {
                    self.looked_up(target, dirs);
                }
                self.path(target, rights, dirs);
            }
            Some(path) if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.needs.find(shown(path), Some(Zone::Network), Rights::READ_WRITE);
            }
            Some(path) => self.locate(path, &shown(&target.raw), rights, dirs),
        }
    }

    /// A variable that changes what runs is execution.
    pub(super) fn assignment(&mut self, name: &str, value: &Word, exported: bool, dirs: &Dirs) {
        let tame = names::is_command_line(name)
            && matches!(value.literal(), Some("" | "cat" | "less" | "true" | "false" | "more"));
        let given = self.place().env.iter().any(|(key, _)| key == name);
        if names::is_harmless(name, value) {
            return;
        }
        if names::changes_shell(name) {
            self.doubt(format!("setting `{name}` changes what words mean"));
        } else if names::names_program(name) && !tame {
            self.needs.find(format!("{name}={}", value.raw), Some(Zone::Workspace), Rights::EXECUTE);
            if names::is_command_line(name) && value.start().contains([' ', '$', '`']) {
                self.code(std::slice::from_ref(value), &Around::bare(dirs));
            }
            if !names::only_runs(name) || !names::only_adds(name, value) {
                self.doubt(format!("what `{name}` makes programs do is not known here"));
            }
            let paths = value.literal().unwrap_or(value.start()).split([':', ' ']);
            for path in paths.filter(|p| p.contains('/') && !special::is_ordinary_dir(p)) {
                self.locate(path, path, Rights::EXECUTE, dirs);
            }
        } else if !tame && (exported || given || names::means_something(name)) && !names::is_own_variable(name, value) {
            self.doubt(format!("what `{name}` makes programs do is not known here"));
        }
    }

    /// Judges words as a command.
    pub(super) fn words(&mut self, words: &[Word], around: &Around<'_>) {
        let Some((head, rest)) = words.split_first() else { return };
        if around.wrappers > WRAPPERS {
            return self.doubt("its wrappers are nested too deeply");
        }
        let Some(name) = head.literal() else {
            return self.doubt(format!("which program `{}` is is not known", head.raw));
        };
        let Some(name) = special::ordinary(name) else {
            return self.code_file(head, rest, Rights::READ.union(Rights::EXECUTE), around);
        };
        if special::is_key_word(name) {
            return;
        }
        match special::find_program(name) {
            Some(program) => self.program(name, program, rest, around),
            None => {
                self.mentions(rest, &around.dirs);
                self.doubt(format!("what the program `{name}` does is not known here"));
            }
        }
    }

    /// A file whose code runs, with the paths that it is given.
    pub(super) fn code_file(&mut self, file: &Word, operands: &[Word], rights: Rights, around: &Around<'_>) {
        if around.fed == Fed::Network {
            self.needs.find("what comes from the network runs code", Some(Zone::Network), Rights::EXECUTE);
        }
        match file.literal() {
            Some(path) if path.starts_with("/dev/") || path == "-" => {
                self.doubt(format!("what `{}` runs is computed", file.raw));
            }
            Some(path) => {
                let before = self.needs.mode;
                let outside = |dir: &PathBuf| self.ground.locate(&dir.join(path)).zone;
                let outside = around.dirs.0.iter().flatten().filter_map(outside).any(|zone| zone != Zone::Workspace);
                // What is run has to be read; in the workspace that goes without saying.
                let rights = if outside { rights.union(Rights::READ) } else { rights };
                self.locate(path, &file.raw, rights, &around.dirs);
                if self.needs.mode == before && !before.workspace.covers(Rights::EXECUTE) {
                    self.needs.find(&file.raw, Some(Zone::Workspace), Rights::EXECUTE);
                }
            }
            None => self.doubt(format!("which file `{}` is is not known", file.raw)),
        }
        self.mentions(operands, &around.dirs);
    }

    fn program(&mut self, name: &str, program: &'static Program, words: &[Word], around: &Around<'_>) {
        if !self.spend(1) {
            return;
        }
        if !program.takes_any_words()
            && let Some(word) = words.iter().find(|word| word.splits())
        {
            self.doubt(format!("`{name}`: `{}` without quotes could become options and further words", word.raw));
        }
        if let Some(judge) = program.judge.filter(|_| program.alone) {
            return special::judge(judge, self, name, words, around);
        }
        let mut around = around.clone();
        if program.remote && words.iter().any(|w| w.is_unknown() || w.start().contains("::")) {
            self.doubt(format!("which program `{name}` runs to reach the other side is not known"));
        }
        let taken = arguments::take(program, words);
        if let Some(why) = &taken.unsure {
            self.doubt(format!("`{name}`: {why}"));
        }
        for (_, word) in taken.values.iter().filter(|(kind, _)| *kind == Kind::Dir) {
            self.path(word, Rights::READ, &around.dirs);
            around.dirs = word.literal().map_or(Dirs(None), |path| around.dirs.enter(path));
        }
        let reach = Reach::of(program, &taken);
        for (kind, word) in &taken.values {
            self.operand(*kind, word, &around, &Reach { deep: false, ..reach });
        }
        let listing = taken.effects.iter().any(|e| e.lists);
        if !listing {
            self.effects(name, program, &taken, &around);
        }
        if let Some(judge) = program.judge {
            special::judge(judge, self, name, words, &around);
        }
        if name == "git" {
            let chosen = taken.values.iter().any(|(kind, _)| *kind == Kind::Dir);
            if chosen || special::in_another_repository(self, &around.dirs) {
                // It has settings of its own, which may name programs.
                self.needs.find(if chosen { "git -C" } else { "git in another repository" }, CODE.0, CODE.1);
            }
        }
        self.operands(program, &taken, listing, &around);
        self.aftermath(program, &taken, listing, &around);
        if program.subs {
            self.subcommand(name, &taken, &around);
        }
    }

    /// What is there once the program is done: files beside the operands, copies by their names, links.
    fn aftermath(&mut self, program: &Program, taken: &Arguments<'_>, listing: bool, around: &Around<'_>) {
        if program.beside {
            taken.operands.iter().for_each(|word| self.beside(word, &around.dirs));
        }
        if program.keeps_names {
            let moves = program.operands.first().is_some_and(|operand| operand.kind == Kind::Change);
            self.copied_names(moves, &taken.operands, around);
        }
        if !listing && (program.effects.links || taken.effects.iter().any(|e| e.links)) {
            self.may_link(program.keeps_names, &taken.operands, around);
        }
    }

    /// Text that a shell runs, in one word or several.
    pub(super) fn code(&mut self, words: &[Word], around: &Around<'_>) {
        if words.is_empty() {
            return;
        }
        let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
        match texts.map(|t| t.join(" ")) {
            Some(text) if text.is_empty() || text == "-" => {}
            Some(text) => self.text(&text, &around.dirs),
            None => self.doubt(format!("the code `{}` is computed", words[0].raw)),
        }
    }
}

/// The mode that a run of code given on the line needs at least.
pub(super) const CODE: (Option<Zone>, Rights) = (Some(Zone::Workspace), Rights::EXECUTE);
