//! Judges the commands of a plan by the table of programs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::arguments::{self, Arguments};
use super::plan::{self, Command, Dirs, Plan};
use super::programs::{self, Kind, Program};
use super::special;
use super::words::{Piece, Word};
use crate::call::Needs;
use crate::place::Place;
use crate::policy::zone::{Ground, rights_on};
use crate::policy::{Rights, Zone};

/// Gathers what commands need.
pub(super) struct Judge<'a> {
    pub(super) needs: Needs,
    ground: Ground<'a>,
    depth: usize,
    entries: usize,
    /// Steps that looking at paths has taken.
    steps: usize,
    /// Links may have come about: where a path leads is not what it was when this was judged.
    pub(super) links: bool,
    /// Something ran again and again, or may still run.
    beside: bool,
    /// What was found, so that no path is told of twice.
    seen: HashSet<(String, Option<Zone>, Rights)>,
}

/// What stands around a command while it is judged.
#[derive(Debug, Clone)]
pub(super) struct Around<'p> {
    pub(super) command: &'p Command,
    /// The directories that it may run in; a wrapper may have changed them.
    pub(super) dirs: Dirs,
    pub(super) fed: Fed,
    /// Wrappers around it.
    pub(super) wrappers: usize,
}

impl Around<'_> {
    /// Nothing but directories.
    fn bare(dirs: &Dirs) -> Self {
        static NOTHING: Command = Command::NOTHING;
        Self { command: &NOTHING, dirs: dirs.clone(), fed: Fed::Nobody, wrappers: 0 }
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
const ENTRIES: usize = 3_000;
const WRAPPERS: usize = 12;
/// Parts of paths that are looked at, in one command.
const STEPS: usize = 2_500;

/// How far operands of a program reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// What lies below is read, too.
    deep: bool,
    /// Names with a dot in front are passed over.
    visible: bool,
    /// Links are followed.
    follows: bool,
    /// What is done to paths that are only mentioned.
    mentioned: Rights,
}

impl Reach {
    /// All below, whatever its name.
    pub(super) const ALL: Self = Self { deep: true, visible: false, follows: false, mentioned: Rights::READ };

    fn of(program: &Program, taken: &Arguments<'_>) -> Self {
        let any = |is: fn(&programs::Effects) -> bool| taken.effects.iter().any(|e| is(e));
        let writes = program.effects.here.union(program.effects.network).covers(Rights::WRITE);
        Self {
            deep: program.effects.deep || any(|e| e.deep),
            visible: program.effects.visible && !any(|e| e.hidden),
            follows: any(|e| e.follows),
            mentioned: if writes { Rights::READ_WRITE } else { Rights::READ },
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
            links: false,
            beside: false,
            seen: HashSet::new(),
        }
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
        for command in &plan.commands {
            let mut feeders = networked[command.upstream.clone()].iter();
            let fed = match (command.upstream.is_empty(), feeders.any(|n| *n)) {
                (true, _) => Fed::Nobody,
                (false, false) => Fed::Pipe,
                (false, true) => Fed::Network,
            };
            self.beside |= command.beside;
            let before = std::mem::take(&mut self.needs.mode);
            self.command(&Around { command, dirs: command.dirs.clone(), fed, wrappers: 0 });
            networked.push(fed == Fed::Network || self.needs.mode.network.covers(Rights::READ));
            self.needs.mode = before.union(self.needs.mode);
        }
    }

    fn command(&mut self, around: &Around<'_>) {
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
            None => self.doubt(format!("where `{}` leads is not known", shown(&target.raw))),
            Some(path) if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
                self.needs.find(shown(path), Some(Zone::Network), Rights::READ_WRITE);
            }
            Some(path) => self.locate(path, &shown(&target.raw), rights, dirs),
        }
    }

    /// A variable that changes what runs is execution.
    pub(super) fn assignment(&mut self, name: &str, value: &Word, exported: bool, dirs: &Dirs) {
        let tame = special::is_command_line(name)
            && matches!(value.literal(), Some("" | "cat" | "less" | "true" | "false" | "more"));
        let given = self.place().env.iter().any(|(key, _)| key == name);
        if special::is_harmless(name, value) {
            return;
        }
        if special::changes_shell(name) {
            self.doubt(format!("setting `{name}` changes what words mean"));
        } else if special::names_program(name) && !tame {
            self.needs.find(format!("{name}={}", value.raw), Some(Zone::Workspace), Rights::EXECUTE);
            if special::is_command_line(name) && value.start().contains([' ', '$', '`']) {
                self.code(std::slice::from_ref(value), &Around::bare(dirs));
            }
            if !special::only_runs(name) || !special::only_adds(name, value) {
                self.doubt(format!("what `{name}` makes programs do is not known here"));
            }
            let paths = value.literal().unwrap_or(value.start()).split([':', ' ']);
            for path in paths.filter(|p| p.contains('/') && !special::is_ordinary_dir(p)) {
                self.locate(path, path, Rights::EXECUTE, dirs);
            }
        } else if !tame && (exported || given || special::means_something(name)) {
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
        if let Some(judge) = program.judge.filter(|judge| special::judges_alone(judge)) {
            return special::judge(judge, self, name, words, around);
        }
        let mut around = around.clone();
        if special::is_remote(name) && words.iter().any(|w| w.is_unknown() || w.start().contains("::")) {
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
        if name == "git" && taken.values.iter().any(|(kind, _)| *kind == Kind::Dir) {
            // Another repository, with settings of its own.
            self.needs.find("git -C", CODE.0, CODE.1);
        }
        self.operands(program, &taken, listing, &around);
        if matches!(name, "cp" | "mv") {
            special::copied_names(self, &taken.operands, &around);
        }
        if !listing && (program.effects.links || taken.effects.iter().any(|e| e.links)) {
            self.may_link(name, &taken.operands, &around);
        }
        if program.subs {
            self.subcommand(name, &taken, &around);
        }
    }

    fn effects(&mut self, name: &str, program: &'static Program, taken: &Arguments<'_>, around: &Around<'_>) {
        for effects in taken.effects.iter().copied().chain([&program.effects]) {
            if effects.here != Rights::NONE {
                self.here(name, effects.here, &around.dirs);
            }
            for (zone, rights) in [(Zone::Network, effects.network), (Zone::System, effects.system)] {
                if rights != Rights::NONE {
                    self.needs.find(name, Some(zone), rights);
                }
            }
            if effects.reads_here && taken.operands.len() < expected(program, taken) {
                let reach = Reach::of(program, taken);
                if reach.deep {
                    self.tree(&Word::text("."), Rights::READ, reach, &around.dirs);
                } else {
                    self.here(name, Rights::READ, &around.dirs);
                }
            }
            if let Some(lost) = effects.destroys {
                self.destroys(lost);
            }
        }
    }

    fn operands(&mut self, program: &'static Program, taken: &Arguments<'_>, listing: bool, around: &Around<'_>) {
        let replaced = taken.effects.iter().find_map(|e| e.operands);
        let reach = Reach::of(program, taken);
        let skipped = usize::from(taken.effects.iter().any(|e| e.skip));
        let kinds = program.operands.get(skipped..).unwrap_or_default();
        let count = taken.operands.len();
        let mut code = Vec::new();
        for (at, word) in taken.operands.iter().enumerate() {
            let kind = replaced.or_else(|| kind_at(kinds, at, count)).unwrap_or(Kind::Mention);
            match kind {
                _ if listing => {}
                Kind::Code => code.push((*word).clone()),
                kind => self.operand(kind, word, around, &reach),
            }
        }
        self.code(&code, around);
        if kinds.iter().any(|o| o.kind == Kind::Wrap) && !listing {
            self.words(taken.rest, &Around { wrappers: around.wrappers + 1, ..around.clone() });
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

    fn operand(&mut self, kind: Kind, word: &Word, around: &Around<'_>, reach: &Reach) {
        match kind {
            Kind::Text | Kind::Dir | Kind::Wrap => {}
            Kind::Read if reach.deep => self.tree(word, Rights::READ, *reach, &around.dirs),
            Kind::Read => self.path(word, Rights::READ, &around.dirs),
            Kind::Write => self.path(word, Rights::WRITE, &around.dirs),
            Kind::Change => self.path(word, Rights::READ_WRITE, &around.dirs),
            Kind::Run => self.code_file(word, &[], Rights::EXECUTE, around),
            Kind::Code => self.code(std::slice::from_ref(word), around),
            Kind::Mention => self.mentioned(std::slice::from_ref(word), reach.mentioned, &around.dirs),
            Kind::Name => {
                if word.literal().is_none_or(|name| name.contains('/')) {
                    self.doubt(format!("which file `{}` means is not known", word.raw));
                }
            }
            Kind::Filter => special::filter(self, word),
            Kind::Makes => self.here(&word.raw, Rights::WRITE, &around.dirs),
            Kind::Url => self.url(word, &around.dirs),
            Kind::Send => self.sent(word, &around.dirs),
            Kind::Method => {
                if !matches!(word.literal(), Some("GET" | "HEAD" | "OPTIONS")) {
                    self.needs.find(&word.raw, Some(Zone::Network), Rights::WRITE);
                }
            }
            Kind::Refuse => self.doubt(format!("what `{}` does here is not known", word.raw)),
        }
    }

    fn url(&mut self, word: &Word, dirs: &Dirs) {
        let text = word.start();
        let remote =
            ["http://", "https://", "ftp://", "ssh://", "git://"].iter().any(|scheme| text.starts_with(scheme));
        if word.is_unknown() {
            // What is put into an address leaves the machine.
            self.needs.find(&word.raw, Some(Zone::Network), Rights::WRITE);
            if !remote {
                self.doubt(format!("where `{}` leads is not known", word.raw));
            }
        } else if word.literal().is_none() || (!remote && text.contains("://")) || text.contains("::") {
            self.doubt(format!("what `{}` does is not known here", word.raw));
        } else if !remote && (text.starts_with(['/', '.', '~']) || !text.contains(['.', ':'])) {
            self.path(word, Rights::READ, dirs);
        }
    }

    fn sent(&mut self, word: &Word, dirs: &Dirs) {
        if word.is_unknown() {
            self.needs.find(&word.raw, Some(Zone::Network), Rights::WRITE);
        }
        let at = word.start().find('@').filter(|at| *at == 0 || word.start()[..*at].ends_with('='));
        if let Some(at) = at {
            self.path(&word.after(at + 1), Rights::READ, dirs);
        }
    }

    fn subcommand(&mut self, name: &str, taken: &Arguments<'_>, around: &Around<'_>) {
        let mut rest = taken.rest;
        if name == "cargo" && rest.first().is_some_and(|w| w.start().starts_with('+')) {
            rest = &rest[1..];
        }
        let Some((word, operands)) = rest.split_first() else {
            if name == "yarn" {
                self.doubt("`yarn` by itself installs");
            }
            return;
        };
        let full = word.literal().map(|sub| format!("{} {sub}", special::family(name)));
        let Some((full, program)) = full.and_then(|full| programs::find(&full).map(|p| (full, p))) else {
            self.mentions(operands, &around.dirs);
            return self.doubt(format!("what `{name} {}` does is not known here", word.raw));
        };
        if name == "go" && operands.iter().any(|w| w.is_unknown() || w.start().contains('@')) {
            self.needs.find(
                format!("{full} of another's code"),
                Some(Zone::Network),
                Rights::READ.union(Rights::EXECUTE),
            );
        }
        let deeper = operands.first().and_then(Word::literal).map(|sub| format!("{full} {sub}"));
        match deeper.and_then(|full| programs::find(&full).map(|p| (full, p))) {
            Some((full, program)) => self.program(&full, program, &operands[1..], around),
            None => self.program(&full, program, operands, around),
        }
    }

    /// Rights on the directory that a command works in. Running code needs them even where the place is free.
    pub(super) fn here(&mut self, what: &str, rights: Rights, dirs: &Dirs) {
        let Some(dirs) = &dirs.0 else { return self.doubt("which directory it works in is not known") };
        for dir in dirs {
            let zone = self.ground.locate(dir).zone;
            let zone = if rights.covers(Rights::EXECUTE) { zone.or(Some(Zone::Workspace)) } else { zone };
            self.needs.find(what, zone, rights);
        }
    }

    /// Words of programs that do with them what they like: what looks like a path outside may be read.
    pub(super) fn mentions(&mut self, words: &[Word], dirs: &Dirs) {
        self.mentioned(words, Rights::READ, dirs);
    }

    /// The same, where what leads out may be written as well.
    fn mentioned(&mut self, words: &[Word], rights: Rights, dirs: &Dirs) {
        for word in words {
            if !self.spend(1) {
                return;
            }
            if word.literal().is_none() && word.pattern().is_some() {
                self.mentioned_pattern(word, rights, dirs);
                continue;
            }
            let text = word.pattern().unwrap_or_else(|| word.start().to_owned());
            let path = text.find('=').map_or(text.as_str(), |at| &text[at + 1..]);
            let leads_out = path.starts_with('/') || path.split('/').any(|part| part == "..");
            // `HEAD:.env` names a file, too.
            let behind = path.rsplit_once(':').map_or(path, |(_, behind)| behind);
            if !word.is_unknown() && behind != path && self.is_elsewhere(behind, dirs) {
                self.locate(behind, &word.raw, rights, dirs);
            }
            if !word.is_unknown() && (leads_out || self.is_elsewhere(path, dirs)) {
                self.locate(path, &word.raw, rights, dirs);
            } else if word.is_unknown() && word.start().contains('/') {
                self.doubt(format!("where `{}` leads is not known", word.raw));
            }
        }
    }

    /// What a pattern matches counts where it is elsewhere.
    fn mentioned_pattern(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        let start = word.start();
        if start.starts_with('/') || word.pattern().is_some_and(|text| text.split('/').any(|part| part == "..")) {
            return self.path(word, rights, dirs);
        }
        for dir in dirs.0.iter().flatten() {
            match self.expand(dir, word) {
                Some(paths) => {
                    let elsewhere = |path: &&PathBuf| self.ground.locate(path).zone != Some(Zone::Workspace);
                    let found: Vec<PathBuf> = paths.iter().filter(elsewhere).cloned().collect();
                    found.iter().for_each(|path| self.at(path, &word.raw, rights));
                }
                None => self.doubt(format!("`{}` matches too much to be looked through", word.raw)),
            }
        }
    }

    /// Text that is sent, or with this in front the path of a file that is.
    pub(super) fn file_sent(&mut self, path: &Word, dirs: &Dirs) {
        if path.literal().is_none_or(|path| path.contains([',', ';', '"', '\\', '@', '<', '='])) {
            self.doubt(format!("which file `{}` sends is not known", path.raw));
        }
        self.path(path, Rights::READ, dirs);
    }

    /// A plain name that is a key file, or a link that leads out.
    fn is_elsewhere(&self, path: &str, dirs: &Dirs) -> bool {
        let located = dirs.0.iter().flatten().map(|dir| self.ground.locate(&dir.join(path)).zone);
        !path.is_empty() && !path.starts_with('-') && located.flatten().any(|zone| zone != Zone::Workspace)
    }

    /// A directory that is read with all below it.
    pub(super) fn tree(&mut self, word: &Word, rights: Rights, reach: Reach, dirs: &Dirs) {
        self.path(word, rights, dirs);
        self.secrets(word, reach, dirs);
    }

    /// Keys below a directory that is read, or sent, with all below it.
    pub(super) fn secrets(&mut self, word: &Word, reach: Reach, dirs: &Dirs) {
        let rights = Rights::READ;
        let Some(path) = word.pattern().filter(|_| self.spend(1)) else { return };
        for dir in dirs.0.iter().flatten() {
            let starts = match word.literal() {
                Some(_) => vec![dir.join(&path)],
                None => self.expand(dir, word).unwrap_or_default(),
            };
            for start in starts {
                let left = ENTRIES.saturating_sub(self.entries);
                match self.ground.secrets_below(&start, reach.visible, reach.follows, left) {
                    Ok((holds, looked)) => {
                        self.entries += looked;
                        if holds {
                            self.needs.find(format!("{} and the keys below it", word.raw), Some(Zone::System), rights);
                        }
                    }
                    Err(()) => {
                        self.entries = ENTRIES;
                        self.steps = STEPS;
                        self.doubt(format!("`{}` holds too much to be looked through for keys", word.raw));
                    }
                }
            }
        }
    }

    /// Links may have come about by this command, unless all it moves are files that are there and no links.
    pub(super) fn may_link(&mut self, name: &str, operands: &[&Word], around: &Around<'_>) {
        let is_file = |word: &&Word| {
            let there = |dir: &PathBuf| {
                word.literal().is_some_and(|path| dir.join(path).symlink_metadata().is_ok_and(|m| m.is_file()))
            };
            around.dirs.0.as_ref().is_some_and(|dirs| dirs.iter().all(there))
        };
        let moved = operands.split_last().map_or(&[][..], |(_, moved)| moved);
        if name == "mv" && !moved.is_empty() && moved.iter().all(is_file) && !self.links {
            return;
        }
        self.links = true;
        if self.beside || self.depth > 1 || !around.command.upstream.is_empty() {
            self.doubt(format!("`{name}` may make links while other commands run"));
        }
    }

    /// Rights on the path that a word stands for.
    pub(super) fn path(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        if !self.spend(1) {
            return;
        }
        match (word.literal(), word.pattern()) {
            (Some("-"), _) => {}
            (Some(path), _) => self.locate(path, &word.raw, rights, dirs),
            (None, Some(_)) => self.matches(word, rights, dirs),
            (None, None) => self.doubt(format!("where `{}` leads is not known", word.raw)),
        }
    }

    /// A pattern: the directory that it looks into, and what it matches there.
    fn matches(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        let fixed = word.start();
        let base = fixed.rfind('/').map_or("", |at| &fixed[..=at]);
        self.locate(if base.is_empty() { "." } else { base }, &word.raw, rights, dirs);
        for dir in dirs.0.iter().flatten() {
            if self.ground.locate(&dir.join(base)).zone == Some(Zone::System) {
                // Nothing that it may match is guarded more.
                continue;
            }
            let found = self.expand(dir, word);
            match found {
                Some(paths) => paths.iter().for_each(|path| self.at(path, &word.raw, rights)),
                None => self.doubt(format!("`{}` matches too much to be looked through", word.raw)),
            }
        }
    }

    fn expand(&mut self, dir: &Path, word: &Word) -> Option<Vec<PathBuf>> {
        let budget = ENTRIES.checked_sub(self.entries)?;
        let found = special::expand(dir, &pattern_parts(word), budget);
        // What was too much once is not looked through again.
        self.entries += found.as_ref().map_or(ENTRIES, |(_, looked)| *looked + 1);
        found.map(|(found, _)| found)
    }

    fn locate(&mut self, path: &str, shown: &str, rights: Rights, dirs: &Dirs) {
        if path.starts_with('/') {
            return self.at(Path::new(path), shown, rights);
        }
        let Some(dirs) = &dirs.0 else {
            return self.doubt(format!("which directory `{shown}` lies in is not known"));
        };
        for dir in dirs {
            self.at(&dir.join(path), shown, rights);
        }
    }

    /// Whether there is room for this many more steps.
    fn spend(&mut self, steps: usize) -> bool {
        self.steps += steps;
        if self.steps > STEPS {
            self.doubt("it names too many paths to be followed");
        }
        self.steps <= STEPS
    }

    fn at(&mut self, path: &Path, shown: &str, rights: Rights) {
        if !self.spend(1 + path.components().count() / 4) {
            return;
        }
        let located = self.ground.locate(path);
        if self.links && located.zone != Some(Zone::System) {
            self.doubt(format!("where `{shown}` leads is not known: links may have come about before it"));
        }
        let rights = rights_on(&located.resolved, rights);
        if self.seen.insert((shown.to_owned(), located.zone, rights)) {
            self.needs.find(shown, located.zone, rights);
        } else if let Some(zone) = located.zone {
            self.needs.mode = self.needs.mode.with(zone, rights);
        }
    }
}

/// How many operands there are before a directory is not read by default.
fn expected(program: &Program, taken: &Arguments<'_>) -> usize {
    let skipped = usize::from(taken.effects.iter().any(|e| e.skip));
    let fixed = program.operands.iter().skip(skipped).filter(|o| !o.many && o.kind == Kind::Text).count();
    fixed + 1
}

/// The kind of operand number `at` of `count`: what repeats takes all that the others leave.
fn kind_at(kinds: &[programs::Operand], at: usize, count: usize) -> Option<Kind> {
    let many = kinds.iter().position(|o| o.many);
    let Some(many) = many else { return kinds.get(at).map(|o| o.kind) };
    let behind = kinds.len() - many - 1;
    if at < many {
        Some(kinds[at].kind)
    } else if at + behind >= count && behind > 0 {
        kinds.get(kinds.len() + at - count).map(|o| o.kind)
    } else {
        Some(kinds[many].kind)
    }
}

/// A pattern cut at its slashes, each part with whether it is literal.
fn pattern_parts(word: &Word) -> Vec<(String, bool)> {
    let mut parts = vec![(String::new(), true)];
    for piece in &word.pieces {
        let (text, literal) = match piece {
            Piece::Text(text) => (text.as_str(), true),
            Piece::Glob(text) => (text.as_str(), false),
            Piece::Unknown => ("*", false),
        };
        for (i, part) in text.split('/').enumerate() {
            if i > 0 {
                parts.push((String::new(), true));
            }
            if let Some(last) = parts.last_mut() {
                last.0.push_str(part);
                last.1 &= literal;
            }
        }
    }
    parts
}

/// The mode that a run of code given on the line needs at least.
pub(super) const CODE: (Option<Zone>, Rights) = (Some(Zone::Workspace), Rights::EXECUTE);
