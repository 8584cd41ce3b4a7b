//! Takes a command line apart: options with their values, operands, and the effects of both, by the table.

use super::programs::{Choice, Effects, Kind, Program};
use super::words::{Piece, Word};

/// A command line, taken apart.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    pub(super) operands: Vec<&'a Word>,
    /// Values of options, with what they are.
    pub(super) values: Vec<(Kind, Word)>,
    pub(super) effects: Vec<&'static Effects>,
    /// The words that are a command of their own: a wrapped one, or a subcommand with all behind it.
    pub(super) rest: &'a [Word],
    /// Why the options cannot be judged.
    pub(super) unsure: Option<String>,
    /// There was a `--`.
    pub(super) ended: bool,
}

/// Takes the words behind a program's name apart.
pub(super) fn take<'a>(program: &'static Program, words: &'a [Word]) -> Arguments<'a> {
    let mut taken = Arguments::default();
    let wraps = program.operands.iter().position(|o| o.kind == Kind::Wrap);
    let stop = program.stop || program.subs || wraps.is_some();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let is_option = word.start().starts_with('-') && word.literal() != Some("-") && !taken.ended;
        if is_option && word.literal() == Some("--") {
            taken.ended = true;
        } else if is_option {
            at += taken.option(program, word, &words[at + 1..]);
        } else if stop && (program.subs || wraps == Some(taken.operands.len())) {
            taken.rest = &words[at..];
            return taken;
        } else {
            taken.operand(program, word);
            taken.ended |= program.stop;
        }
        at += 1;
    }
    taken
}

impl<'a> Arguments<'a> {
    fn doubt(&mut self, why: String) {
        self.unsure.get_or_insert(why);
    }

    fn operand(&mut self, program: &Program, word: &'a Word) {
        // Names that look like options are looked for where names are listed.
        let listed = matches!(word.pieces.first(), Some(Piece::Below(_)));
        let could_be_option = !self.ended && word.start().is_empty() && word.is_unknown() && !listed;
        if could_be_option && !program.options.is_empty() {
            self.doubt(format!("`{}` could be an option", word.raw));
        }
        if word.start().starts_with('+') && program.options.contains_key("+") {
            self.doubt(format!("`{}` is a command of its own", word.raw));
        }
        self.operands.push(word);
    }

    /// Takes an option; tells how many of the next words were its value.
    fn option(&mut self, program: &'static Program, word: &Word, next: &[Word]) -> usize {
        if program.single || word.start().starts_with("--") {
            self.long(program, word, next)
        } else {
            self.short(program, word, next.first())
        }
    }

    fn long(&mut self, program: &'static Program, word: &Word, next: &[Word]) -> usize {
        let start = word.start();
        let name = start.split('=').next().unwrap_or(start);
        let glued = start.contains('=').then(|| word.after(name.len() + 1));
        if glued.is_none() && word.literal().is_none() {
            self.doubt(format!("`{}` could be any option", word.raw));
            return 0;
        }
        let name =
            if program.single { name.strip_prefix('-').filter(|n| n.starts_with('-')).unwrap_or(name) } else { name };
        match (find_long(program, name), glued) {
            (Some(choice), Some(value)) => self.choose(choice, Some(value)),
            (Some(choice), None) if choice.value.is_none() || choice.glued => self.choose(choice, None),
            (Some(choice), None) => {
                self.choose(choice, next.first().cloned());
                if let Some(second) = choice.second {
                    self.values.extend(next.get(1).cloned().map(|word| (second, word)));
                    return 2;
                }
                return 1;
            }
            (None, None) if program.any => {}
            // A value that only switches something; another may be a path, to read or to write.
            (None, Some(value)) if program.any && value.literal().is_some_and(is_switch) => {}
            (None, _) => self.doubt(format!("its option `{name}` is not known here")),
        }
        0
    }

    fn short(&mut self, program: &'static Program, word: &Word, next: Option<&Word>) -> usize {
        let cluster = word.start();
        for (at, letter) in cluster.char_indices().skip(1) {
            let name = &cluster[at..at + letter.len_utf8()];
            let known = program.options.iter().find(|(known, _)| known.strip_prefix('-') == Some(name));
            let rest = word.after(at + letter.len_utf8());
            let Some((_, choice)) = known else {
                if !program.any {
                    self.doubt(format!("its option `-{name}` is not known here"));
                }
                continue;
            };
            if choice.value.is_none() {
                self.choose(choice, None);
            } else if !rest.pieces.is_empty() {
                self.choose(choice, Some(rest));
                return 0;
            } else if choice.glued {
                self.choose(choice, None);
            } else {
                self.choose(choice, next.cloned());
                return 1;
            }
        }
        if word.literal().is_none() {
            if program.any {
                self.values.push((Kind::Mention, word.clone()));
            } else {
                self.doubt(format!("`{}` could be any option", word.raw));
            }
        } else if program.any && cluster.contains('/') {
            // An option that is not listed may have a path glued on.
            let path = cluster.find('/').unwrap_or(0);
            self.values.push((Kind::Mention, word.after(path)));
        }
        0
    }

    fn choose(&mut self, choice: &'static Choice, value: Option<Word>) {
        if choice.value == Some(Kind::Refuse) && value.is_none() {
            self.doubt("what one of its options does is not known here".into());
        }
        self.effects.push(&choice.effects);
        self.values.extend(choice.value.zip(value));
    }
}

fn is_switch(value: &str) -> bool {
    let words = "true false yes no on off auto always never none all json short long full line text error";
    value.chars().all(|c| c.is_ascii_digit()) || words.split(' ').any(|word| word == value)
}

/// The option of this name, or the first of those that it abbreviates.
fn find_long(program: &'static Program, name: &str) -> Option<&'static Choice> {
    let exact = program.options.get_key_value(name);
    let abbreviated = || {
        let candidates =
            program.options.iter().filter(|(known, _)| !program.single && name.len() > 2 && known.starts_with(name));
        candidates.min_by_key(|(known, _)| **known)
    };
    exact.or_else(abbreviated).map(|(_, choice)| choice)
}
