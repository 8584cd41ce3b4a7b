//! Links that come about while a command runs: behind them paths lead where nobody looked.

use std::path::{Component, Path, PathBuf};

use super::super::plan::Dirs;
use super::super::words::Word;
use super::{Around, ENTRIES, Judge};
use crate::policy::zone::{Located, Walk};

impl Judge<'_> {
    /// Links may have come about by this command below one of these directories, unless all it moves or copies is there
    /// and holds none.
    pub(in crate::policy::shell) fn may_link(&mut self, moves: bool, operands: &[&Word], around: &Around<'_>) {
        let moved = operands.split_last().map_or(&[][..], |(_, moved)| moved);
        if moves
            && !moved.is_empty()
            && self.links.is_empty()
            && !self.beside
            && moved.iter().all(|word| self.is_without_links(word, &around.dirs))
        {
            return;
        }
        self.links_below(PathBuf::from("/"), around);
    }

    /// Links may have come about below this directory.
    pub(in crate::policy::shell) fn links_below(&mut self, dir: PathBuf, around: &Around<'_>) {
        self.links.push(dir);
        if self.beside || self.depth > 1 || around.beside_paths {
            self.doubt("links may come about while other commands run");
        }
    }

    /// Whether this is there, and neither it nor anything below it is a link.
    fn is_without_links(&mut self, word: &Word, dirs: &Dirs) -> bool {
        const MOST: usize = 500;
        let Some((path, dirs)) = word.literal().zip(dirs.0.as_ref()) else { return false };
        dirs.iter().all(|dir| {
            let path = dir.join(path);
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_dir() => {
                    let left = MOST.min(ENTRIES.saturating_sub(self.entries));
                    let looked =
                        self.ground.look_below(&path, Walk { whole: true, names: true, ..Walk::default() }, left);
                    self.entries += looked.map_or(MOST, |looked| looked.entries);
                    looked.is_ok_and(|looked| !looked.links && !looked.odd)
                }
                Ok(metadata) => metadata.is_file(),
                Err(_) => false,
            }
        })
    }

    /// Whether a path leads below this directory, by its name or through links.
    pub(super) fn leads_below(&self, root: &Path, path: &Path, located: &Located) -> bool {
        let below = |path: &Path, root: &Path| path.starts_with(root) && path.components().ne(root.components());
        let up = path.components().any(|part| part == Component::ParentDir);
        up || below(path, root)
            || below(&located.resolved, root)
            || below(&located.resolved, &self.ground.locate(root).resolved)
    }
}
