//! Which paths words stand for, and what is done to them.

use std::path::{Path, PathBuf};

use super::super::patterns::{self, Expanded};
use super::super::plan::Dirs;
use super::super::words::{Piece, Word};
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

    /// Files of unknown names come about here: in the workspace there may be some among them that something runs later.
    pub(in crate::policy::shell) fn unpacks_here(&mut self, what: &str, dirs: &Dirs) {
        let Some(dirs) = &dirs.0 else { return self.doubt("which directory it works in is not known") };
        for dir in dirs {
            let zone = self.ground.locate(dir).zone;
            let later = if zone == Some(Zone::Workspace) { Rights::EXECUTE } else { Rights::NONE };
            self.needs.find(what, zone, Rights::READ_WRITE.union(later));
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
            if word.below().is_some() {
                self.below(word, rights, dirs);
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

    /// Rights on the path that a word stands for; `-` is what comes in or goes out, except where a file is changed.
    pub(in crate::policy::shell) fn path(&mut self, word: &Word, rights: Rights, dirs: &Dirs) {
        if !self.spend(1) {
            return;
        }
        match (word.literal(), word.pattern()) {
            (Some("-"), _) if rights != Rights::READ_WRITE => {}
            (Some(path), _) => self.locate(path, &word.raw, rights, dirs),
            (None, Some(_)) => self.matches(word, rights, dirs),
            (None, None) if word.below().is_some() => self.below(word, rights, dirs),
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
            if matches!(word.pieces.last(), Some(Piece::Text(text)) if text.contains('/')) {
                // The name is known, whatever lies before it.
                self.at(&dir.join(word.pattern().unwrap_or_default()), &word.raw, rights);
            }
            if rights.covers(Rights::WRITE) {
                self.led_to(word, rights, dir);
                self.put_behind(word, rights, dir);
            }
            let found = self.expand(dir, word);
            match found {
                Some(paths) => paths.iter().for_each(|path| self.at(path, &word.raw, rights)),
                None => self.doubt(format!("`{}` matches too much to be looked through", word.raw)),
            }
        }
    }

    pub(super) fn expand(&mut self, dir: &Path, word: &Word) -> Option<Vec<PathBuf>> {
        self.expanded(dir, &patterns::pattern_parts(word))
    }

    pub(super) fn expanded(&mut self, dir: &Path, parts: &[(String, bool)]) -> Option<Vec<PathBuf>> {
        let budget = ENTRIES.checked_sub(self.entries)?;
        let expanded = patterns::expand(dir, parts, budget);
        // What was too much once is not looked through again.
        self.entries += expanded.as_ref().map_or(ENTRIES, |expanded| expanded.looked + 1);
        let Expanded { found, through, .. } = expanded?;
        // A shell looks there whether anything matches or not.
        through.iter().for_each(|dir| self.at(dir, &dir.to_string_lossy(), Rights::READ));
        Some(found)
    }

    pub(in crate::policy::shell) fn locate(&mut self, path: &str, shown: &str, rights: Rights, dirs: &Dirs) {
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
    pub(in crate::policy::shell) fn spend(&mut self, steps: usize) -> bool {
        self.steps += steps;
        if self.steps > STEPS {
            self.doubt("it names too many paths to be followed");
        }
        self.steps <= STEPS
    }

    pub(super) fn at(&mut self, path: &Path, shown: &str, rights: Rights) {
        if !self.spend(1 + path.components().count() / 4) {
            return;
        }
        if opens_anew(path, rights) {
            return self.needs.find(shown, Some(Zone::System), rights);
        }
        if rights.covers(Rights::WRITE) {
            self.odd_names |= path.as_os_str().as_encoded_bytes().iter().any(|b| ODD.contains(b))
                || path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"-"));
        }
        let located = self.ground.locate(path);
        self.located += 1;
        if located.zone != Some(Zone::System) && self.links.iter().any(|root| self.leads_below(root, path, &located)) {
            self.doubt(format!("where `{shown}` leads is not known: links may have come about before it"));
        }
        let rights = rights_on(&located.resolved, rights);
        if rights.covers(Rights::READ_WRITE) && path.symlink_metadata().is_ok_and(|m| m.is_symlink()) {
            // The link itself may be what is changed.
            let zone = path.parent().and_then(|parent| self.ground.locate(parent).zone);
            self.needs.find(format!("the link {shown}"), zone, Rights::READ_WRITE);
        }
        if self.seen.insert((shown.to_owned(), located.zone, rights)) {
            self.needs.find(shown, located.zone, rights);
        } else if let Some(zone) = located.zone {
            self.needs.mode = self.needs.mode.with(zone, rights);
        }
    }

    /// What is copied into a directory keeps its name there.
    pub(in crate::policy::shell) fn copied_names(&mut self, moves: bool, operands: &[&Word], around: &Around<'_>) {
        let Some((dest, sources)) = operands.split_last() else { return };
        if moves {
            // Another file system may be the end of the way: then all is read there and written here.
            let reach = Reach { keys: Rights::READ_WRITE, ..Reach::ALL };
            sources.iter().for_each(|source| self.secrets(source, reach, &around.dirs));
        }
        if dest.pattern().is_none() {
            return;
        }
        for source in sources {
            for base in self.last_parts(source, &around.dirs) {
                let mut path = (*dest).clone();
                path.pieces.push(Piece::Text(format!("/{base}")));
                self.path(&path.joined(), Rights::WRITE, &around.dirs);
            }
        }
    }

    /// The last parts of the paths that a word stands for.
    fn last_parts(&mut self, word: &Word, dirs: &Dirs) -> Vec<String> {
        let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_owned();
        let mut parts = match word.literal() {
            Some(path) => vec![last(path)],
            None if word.pattern().is_some() => {
                let found = dirs.0.iter().flatten().filter_map(|dir| self.expand(dir, word));
                found.flatten().filter_map(|path| path.to_str().map(last)).collect()
            }
            None => Vec::new(),
        };
        parts.retain(|base| !matches!(base.as_str(), "" | "." | ".."));
        parts
    }
}

/// What a shell, or a reader of lines, takes names apart at.
const ODD: &[u8] = b" \t\n\r'\"\\*?[";

/// Whether this opens anew what a descriptor holds, in the other direction than it was opened for: what is read may not
/// be written for that.
fn opens_anew(path: &Path, rights: Rights) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    match text.strip_prefix(b"/dev/") {
        Some(b"stdin" | b"fd/0") => rights.covers(Rights::WRITE),
        Some(b"stdout" | b"stderr" | b"fd/1" | b"fd/2") => rights.covers(Rights::READ),
        _ => false,
    }
}
