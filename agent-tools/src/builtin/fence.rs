//! Keeps a search away from files whose contents the permit does not cover: keys and secrets above all.

use std::path::{Path, PathBuf};

use crate::place::Place;
use crate::policy::zone::{self, Ground};
use crate::policy::{Mode, Rights, Zone};

/// How many directories are remembered at most.
const REMEMBERED: usize = 4096;

/// Tells of each file whether it may be read. Made for files that come directory by directory.
pub(super) struct Fence<'a> {
    place: &'a Place,
    ground: Ground<'a>,
    mode: Mode,
    home: Option<PathBuf>,
    private: Vec<PathBuf>,
    /// The directory that was looked at last, and whether names alone tell of its files.
    last: (PathBuf, bool),
    looked: usize,
}

impl<'a> Fence<'a> {
    /// A fence for what is permitted in this mode.
    pub(super) fn new(mode: Mode, place: &'a Place) -> Self {
        let home = place.home.as_deref().and_then(zone::resolve);
        let private = place.private.iter().filter_map(|path| zone::resolve(path)).collect();
        Self { place, ground: Ground::new(place), mode, home, private, last: (PathBuf::new(), false), looked: 0 }
    }

    /// Whether the file at this absolute path, which is no link, may be read.
    pub(super) fn lets_through(&mut self, path: &Path) -> bool {
        let readable = |zone| self.mode.get(zone).covers(Rights::READ);
        if [Zone::System, Zone::External, Zone::Workspace].into_iter().all(readable) {
            return true;
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return false };
        if self.last.0 != directory {
            self.last = (directory.to_path_buf(), self.names_tell(directory));
        }
        if self.last.1 { !zone::is_sensitive_name(name) } else { self.permits(self.ground.locate(path).zone) }
    }

    fn permits(&self, zone: Option<Zone>) -> bool {
        zone.is_none_or(|zone| self.mode.get(zone).covers(Rights::READ))
    }

    /// In most directories of the workspace. To judge a file by its whole path takes longer than to search it.
    fn names_tell(&mut self, directory: &Path) -> bool {
        self.looked += 1;
        if self.looked.is_multiple_of(REMEMBERED) {
            self.ground = Ground::new(self.place);
        }
        let found = self.ground.locate(directory);
        let holds_private = self.private.iter().any(|path| path.parent() == Some(&found.resolved));
        found.zone == Some(Zone::Workspace)
            && self.permits(found.zone)
            && !holds_private
            && !self.is_near_home(&found.resolved)
    }

    /// Files that are sensitive for where they lie lie at most two directories below the home directory.
    fn is_near_home(&self, directory: &Path) -> bool {
        self.home.as_deref().is_some_and(|home| directory.ancestors().take(3).any(|above| above == home))
    }
}
