//! Keeps the first entries in the order of their paths, whatever the order they are found in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The first entries in path order (name by name, as a sorted walk has them): as many as fill a room, in bytes, and one
/// that does not fit any more. Which ones they are depends on the entries alone, so that several threads can keep some
/// each and merge them.
#[derive(Debug)]
pub(super) struct First<T> {
    room: usize,
    bytes: usize,
    held: BTreeMap<PathBuf, (usize, T)>,
}

impl<T> First<T> {
    pub(super) fn new(room: usize) -> Self {
        Self { room, bytes: 0, held: BTreeMap::new() }
    }

    /// Whether an entry at this path could be among the first.
    pub(super) fn wants(&self, path: &Path) -> bool {
        self.bytes < self.room || self.held.last_key_value().is_some_and(|(last, _)| path < last.as_path())
    }

    /// Adds an entry that takes so many bytes, and lets go of those that lie beyond the room now.
    pub(super) fn add(&mut self, path: PathBuf, bytes: usize, item: T) {
        self.bytes += bytes;
        self.held.insert(path, (bytes, item));
        while let Some(last) = self.held.last_entry()
            && self.bytes - last.get().0 >= self.room
        {
            self.bytes -= last.remove().0;
        }
    }

    /// Takes over what another one kept.
    pub(super) fn merge(&mut self, other: Self) {
        for (path, (bytes, item)) in other.held {
            self.add(path, bytes, item);
        }
    }

    /// The entries in order.
    pub(super) fn into_sorted(self) -> impl ExactSizeIterator<Item = (PathBuf, T)> {
        self.held.into_iter().map(|(path, (_, item))| (path, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_the_same_however_it_is_found(
            entries in prop::collection::btree_map("[a-c]{1,2}(/[a-c.]{1,2}){0,2}", 1_usize..20, 0..30),
            room in 1_usize..80,
            split in any::<u64>(),
        ) {
            let mut expect = Vec::new();
            let mut sorted: Vec<(PathBuf, usize)> = entries.iter().map(|(path, size)| (path.into(), *size)).collect();
            sorted.sort();
            sorted.dedup_by(|a, b| a.0 == b.0);
            let mut used = 0;
            for (path, size) in &sorted {
                if used < room {
                    expect.push(path.clone());
                }
                used += size;
            }
            let mut kept = [First::new(room), First::new(room)];
            for (at, (path, size)) in sorted.iter().enumerate().rev() {
                let side = usize::from(split >> (at % 64) & 1 == 1);
                if kept[side].wants(path) {
                    kept[side].add(path.clone(), *size, ());
                }
            }
            let [mut one, other] = kept;
            one.merge(other);
            prop_assert_eq!(one.into_sorted().map(|(path, ())| path).collect::<Vec<_>>(), expect);
        }
    }
}
