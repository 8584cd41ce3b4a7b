//! What the table says of the words of a program.

use super::super::arguments::Arguments;
use super::super::plan::Dirs;
use super::super::programs::{self, Kind, Operand, Program};
use super::super::special;
use super::super::words::Word;
use super::{Around, Judge, Reach};
use crate::policy::{Rights, Zone};

impl Judge<'_> {
    pub(super) fn effects(
        &mut self,
        name: &str,
        program: &'static Program,
        taken: &Arguments<'_>,
        around: &Around<'_>,
    ) {
        let elsewhere = taken.effects.iter().any(|e| e.elsewhere);
        for effects in taken.effects.iter().copied().chain([&program.effects]) {
            let own = std::ptr::eq(effects, &raw const program.effects);
            if effects.here != Rights::NONE && !(own && elsewhere) {
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
                    if reach.below {
                        self.reached(&Word::text("."), Rights::READ, &around.dirs);
                    }
                }
            }
            if let Some(lost) = effects.destroys {
                self.destroys(lost);
            }
        }
    }

    pub(super) fn operands(
        &mut self,
        program: &'static Program,
        taken: &Arguments<'_>,
        listing: bool,
        around: &Around<'_>,
    ) {
        let replaced = taken.effects.iter().find_map(|e| e.operands);
        let reach = Reach::of(program, taken);
        let skipped = usize::from(taken.effects.iter().any(|e| e.skip));
        let kinds = program.operands.get(skipped..).unwrap_or_default();
        let count = taken.operands.len();
        let mut code = Vec::new();
        let mut shifted = false;
        for (at, word) in taken.operands.iter().enumerate() {
            let kind = replaced.or_else(|| kind_at(kinds, at, count)).unwrap_or(Kind::Mention);
            match kind {
                _ if listing => {}
                Kind::Code => code.push((*word).clone()),
                kind => self.operand(kind, word, around, &reach),
            }
            // A word that may be several moves those behind it to other places.
            shifted |= word.literal().is_none();
            if shifted && !listing && replaced.is_none() {
                let firm = kinds.iter().any(|o| o.many) && !kinds.first().is_some_and(|o| o.kind == Kind::Text);
                // In the last place, of one that is several itself only the last is what stands there.
                let stands = |o: &Operand| !firm || o.many && word.literal().is_none();
                let places = kinds.iter().filter(|o| o.kind != kind && stands(o));
                places.for_each(|o| self.operand(o.kind, word, around, &reach));
            }
        }
        self.code(&code, around);
        if kinds.iter().any(|o| o.kind == Kind::Wrap) && !listing {
            self.words(taken.rest, &Around { wrappers: around.wrappers + 1, ..around.clone() });
        }
    }

    pub(super) fn operand(&mut self, kind: Kind, word: &Word, around: &Around<'_>, reach: &Reach) {
        match kind {
            Kind::Text | Kind::Dir | Kind::Wrap => {}
            Kind::Read | Kind::Change if reach.below && !reach.deep => {
                let rights = if kind == Kind::Read { Rights::READ } else { Rights::READ_WRITE };
                self.path(word, rights, &around.dirs);
                self.reached(word, rights, &around.dirs);
            }
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
        if word.literal().is_none() {
            self.needs.find(&word.raw, Some(Zone::Network), Rights::WRITE);
        }
        let at = word.start().find('@').filter(|at| *at == 0 || word.start()[..*at].ends_with('='));
        if let Some(at) = at {
            self.path(&word.after(at + 1), Rights::READ, dirs);
        }
    }

    pub(super) fn subcommand(&mut self, name: &str, taken: &Arguments<'_>, around: &Around<'_>) {
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
        let Some((full, program)) = special::find_subcommand(name, word) else {
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
}

/// How many operands there are before a directory is not read by default.
fn expected(program: &Program, taken: &Arguments<'_>) -> usize {
    let skipped = usize::from(taken.effects.iter().any(|e| e.skip));
    let fixed = program.operands.iter().skip(skipped).filter(|o| !o.many && o.kind == Kind::Text).count();
    fixed + 1
}

/// The kind of operand number `at` of `count`: what repeats takes all that the others leave.
fn kind_at(kinds: &[Operand], at: usize, count: usize) -> Option<Kind> {
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
