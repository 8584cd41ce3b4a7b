//! Which paths words stand for, and what is done to them.

use std::path::{Path, PathBuf};

use super::super::patterns;
use super::super::plan::Dirs;
use super::super::words::Word;
use super::{Around, ENTRIES, Judge, Reach, STEPS};
use crate::policy::zone::rights_on;
use crate::policy::{Rights, Zone};

impl Judge<'_> {
    /// Rights on the directory that a command works in. Running code needs them even where the place is free.
    pub(in crate::policy::shell) fn here(&mut self, what: &str, rights: Rights, dirs: &Dirs) {
        let Some(dirs) = &dirs.0 else { return self.doubt("which directory it works in is not known") };
        for dir in dirs {
            let zone = self.ground.locate(dir).zone;
            let zone = if rights.covers(Rights::EXECUTE) { zone.or(Some(Zone::Workspace)) } else { zone };
            self.needs.find(what, zone, rights);
        }
    }

    /// Words of programs that do with them what they like: what looks like a path outside may be read.
    pub(in crate::policy::shell) fn mentions(&mut self, words: &[Word], dirs: &Dirs) {
        self.mentioned(words, Rights::READ, dirs);
    }

    /// The same, where what leads out may be written as well.
    pub(super) fn mentioned(&mut self, words: &[Word], rights: Rights, dirs: &Dirs) {
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
    pub(in crate::policy::shell) fn file_sent(&mut self, path: &Word, dirs: &Dirs) {
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
    pub(in crate::policy::shell) fn tree(&mut self, word: &Word, rights: Rights, reach: Reach, dirs: &Dirs) {
        self.path(word, rights, dirs);
        self.secrets(word, reach, dirs);
    }

    /// Keys below a directory that is read, or sent, with all below it.
    pub(in crate::policy::shell) fn secrets(&mut self, word: &Word, reach: Reach, dirs: &Dirs) {
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
    pub(in crate::policy::shell) fn may_link(&mut self, name: &str, operands: &[&Word], around: &Around<'_>) {
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
    pub(in crate::policy::shell) fn path(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
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
        let found = patterns::expand(dir, &patterns::pattern_parts(word), budget);
        // What was too much once is not looked through again.
        self.entries += found.as_ref().map_or(ENTRIES, |(_, looked)| *looked + 1);
        found.map(|(found, _)| found)
    }

    pub(super) fn locate(&mut self, path: &str, shown: &str, rights: Rights, dirs: &Dirs) {
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
    pub(super) fn spend(&mut self, steps: usize) -> bool {
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

    /// What is copied into a directory keeps its name there.
    pub(in crate::policy::shell) fn copied_names(&mut self, operands: &[&Word], around: &Around<'_>) {
        let Some((dest, sources)) = operands.split_last() else { return };
        let Some(dest) = dest.literal() else { return };
        for source in sources {
            let path = source.start().trim_end_matches('/');
            let base = path.rsplit('/').next().unwrap_or("");
            if source.literal().is_some() && !matches!(base, "" | "." | "..") {
                self.path(&Word::text(&format!("{dest}/{base}")), Rights::WRITE, &around.dirs);
            }
        }
    }
}
