//! What lies below directories, and what patterns and lists of names stand for.

use std::path::{Path, PathBuf};

use super::super::patterns;
use super::super::plan::Dirs;
use super::super::words::{Below, Piece, Word};
use super::{ENTRIES, Judge, Reach, STEPS};
use crate::policy::zone::Walk;
use crate::policy::{Rights, Zone};

impl Judge<'_> {
    /// A directory that is read with all below it.
    pub(in crate::policy::shell) fn tree(&mut self, word: &Word, rights: Rights, reach: Reach, dirs: &Dirs) {
        self.path(word, rights, dirs);
        self.reached(word, rights, dirs);
        let is_root = |dir: &PathBuf| self.ground.locate(&dir.join(word.start())).resolved == Path::new("/");
        if word.start().starts_with(['/', '.']) && dirs.0.iter().flatten().any(is_root) {
            // All there is lies below it, what is nobody's too.
            self.needs.find(format!("{} and all below it", word.raw), Some(Zone::External), rights);
        }
        self.secrets(word, reach, dirs);
    }

    /// What lies below a directory that is gone through and is another zone: the workspace, places of keys.
    pub(in crate::policy::shell) fn reached(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        if !self.spend(1) {
            return;
        }
        for dir in dirs.0.iter().flatten() {
            let starts = match word.literal() {
                Some(path) => vec![dir.join(path)],
                None if word.start() == "/" => vec![PathBuf::from("/")],
                None => self.expand(dir, word).unwrap_or_default(),
            };
            for start in starts {
                let (workspace, keys) = self.ground.reaches(&start);
                for (zone, holds) in [(Zone::Workspace, workspace), (Zone::System, keys)] {
                    if holds {
                        self.needs.find(format!("{} and all below it", word.raw), Some(zone), rights);
                    }
                }
            }
        }
    }

    /// Keys below a directory that is read, or sent, with all below it.
    pub(in crate::policy::shell) fn secrets(&mut self, word: &Word, reach: Reach, dirs: &Dirs) {
        self.look_below(word, &word.raw, reach.keys, reach, None, dirs);
    }

    /// What lies below a directory and is guarded more than it.
    pub(super) fn look_below(
        &mut self,
        word: &Word,
        shown: &str,
        rights: Rights,
        reach: Reach,
        name: Option<&str>,
        dirs: &Dirs,
    ) {
        let Some(path) = word.pattern().filter(|_| self.spend(1)) else { return };
        let walk = Walk { visible: reach.visible, follows: reach.follows, name, ..Walk::default() };
        for dir in dirs.0.iter().flatten() {
            let starts = match word.literal() {
                Some(_) => vec![dir.join(&path)],
                None => self.expand(dir, word).unwrap_or_default(),
            };
            for start in starts {
                let left = ENTRIES.saturating_sub(self.entries);
                let Ok(looked) = self.ground.look_below(&start, walk, left) else {
                    self.entries = ENTRIES;
                    self.steps = STEPS;
                    self.doubt(format!("`{shown}` holds too much to be looked through for keys"));
                    continue;
                };
                self.entries += looked.entries;
                if looked.dashed && shown != word.raw && path == "." {
                    self.doubt(format!("a name that `{shown}` may be looks like an option"));
                }
                if looked.outside {
                    for zone in [Zone::External, Zone::Workspace] {
                        self.needs.find(format!("{shown} and what links below it lead to"), Some(zone), rights);
                    }
                }
                if looked.guarded {
                    self.needs.find(format!("{shown} and the keys below it"), Some(Zone::System), rights);
                }
                if looked.later && rights.covers(Rights::WRITE) {
                    let zone = self.ground.locate(&start).zone;
                    self.needs.find(format!("{shown} and what is run later"), zone, Rights::EXECUTE);
                }
            }
        }
    }

    /// Paths below a directory: what may be done to any of them.
    pub(super) fn below(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        let Some((before, below, behind)) = word.below() else { return };
        if behind.split('/').any(|part| part == "..") {
            return self.doubt(format!("where `{}` leads is not known", word.raw));
        }
        let whole = format!("{before}{}", below.dir);
        let cut = below.dir.is_empty() && !whole.is_empty() && !whole.ends_with('/');
        let base = if cut { whole.rsplit_once('/').map_or(".", |(dir, _)| dir) } else { &whole };
        let base = if base.is_empty() { if whole.starts_with('/') { "/" } else { "." } } else { base };
        self.locate(base, &word.raw, rights, dirs);
        if !behind.is_empty() {
            self.locate(&format!("{whole}{behind}"), &word.raw, rights, dirs);
        }
        let reach = Reach { follows: true, ..Reach::ALL };
        let name = below.name.as_deref().filter(|_| behind.is_empty());
        self.look_below(&Word::text(base), &word.raw, rights, reach, name, dirs);
    }

    /// A file that is written anew beside the one that it takes the place of, and read again.
    pub(in crate::policy::shell) fn beside(&mut self, word: &Word, dirs: &Dirs) {
        let fixed = word.start();
        let dir = fixed.rfind('/').map_or(".", |at| if at == 0 { "/" } else { &fixed[..at] });
        self.locate(dir, &word.raw, Rights::READ_WRITE, dirs);
    }

    /// A list of names that a shell takes apart at blanks: one that has some would be several, and lead anywhere.
    pub(in crate::policy::shell) fn plain_names(&mut self, below: &Below, dirs: &Dirs) {
        let dir = if below.dir.is_empty() { "." } else { &below.dir };
        if self.odd_names || !self.links.is_empty() {
            return self
                .doubt(format!("what names lie below `{dir}` by then is not known: use `-print0` and `xargs -0`"));
        }
        for start in dirs.0.iter().flatten() {
            let walk = Walk { whole: true, names: true, ..Walk::default() };
            let left = ENTRIES.saturating_sub(self.entries);
            match self.ground.look_below(&start.join(dir), walk, left) {
                Ok(looked) => {
                    self.entries += looked.entries;
                    if looked.odd || (looked.dashed && below.dir.is_empty()) {
                        self.doubt(format!(
                            "below `{dir}` lie names that would be taken apart: use `-print0` and `xargs -0`"
                        ));
                    }
                }
                Err(()) => {
                    self.entries = ENTRIES;
                    self.doubt(format!(
                        "below `{dir}` lies too much to be looked through: use `-print0` and `xargs -0`"
                    ));
                }
            }
        }
    }

    /// The directories that a shell reads to find out what a pattern matches.
    pub(super) fn looked_up(&mut self, word: &Word, dirs: &Dirs) {
        let fixed = word.start();
        let base = fixed.rfind('/').map_or("", |at| &fixed[..=at]);
        self.locate(if base.is_empty() { "." } else { base }, &word.raw, Rights::READ, dirs);
        for dir in dirs.0.iter().flatten() {
            self.led_to(word, Rights::READ, dir);
        }
        if word.start().is_empty() {
            self.dashed(word, dirs);
        }
    }

    /// The directories that a pattern leads to on its way.
    pub(super) fn led_to(&mut self, word: &Word, rights: Rights, dir: &Path) {
        let mut parts = patterns::pattern_parts(word);
        parts.pop();
        if parts.iter().all(|(_, literal)| *literal) {
            return;
        }
        match self.expanded(dir, &parts) {
            Some(found) => found.iter().for_each(|path| self.at(path, &word.raw, rights)),
            None => self.doubt(format!("`{}` matches too much to be looked through", word.raw)),
        }
    }

    /// Something is put behind a pattern that a variable holds: it was matched without that.
    pub(super) fn put_behind(&mut self, word: &Word, rights: Rights, dir: &Path) {
        let Some(last) = word.pieces.iter().rposition(|piece| matches!(piece, Piece::Glob(_))) else { return };
        let behind = Word { raw: word.raw.clone(), pieces: word.pieces[last + 1..].to_vec() };
        let Some(text) = behind.literal().filter(|text| !text.is_empty() && !text.contains('/')) else { return };
        let matched = Word { raw: word.raw.clone(), pieces: word.pieces[..=last].to_vec() };
        match self.expand(dir, &matched) {
            Some(paths) => paths.iter().for_each(|path| {
                let mut named = path.clone().into_os_string();
                named.push(text);
                self.at(Path::new(&named), &word.raw, rights);
            }),
            None => self.doubt(format!("`{}` matches too much to be looked through", word.raw)),
        }
    }

    /// Names that a pattern stands for and that look like options.
    fn dashed(&mut self, word: &Word, dirs: &Dirs) {
        let parts = patterns::pattern_parts(word);
        let Some(first) = parts.first().filter(|(_, literal)| !literal) else { return };
        let mut found = self.odd_names;
        for dir in dirs.0.iter().flatten() {
            let paths = self.expanded(dir, std::slice::from_ref(first)).unwrap_or_default();
            found |= paths.iter().any(|path| path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"-")));
        }
        if found {
            self.doubt(format!(
                "a name that `{}` matches may look like an option: `./{}` says that it is none",
                word.raw, word.raw
            ));
        }
    }
}
