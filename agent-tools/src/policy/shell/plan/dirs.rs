//! The directories that a command may work in.

use std::path::{Component, Path, PathBuf};

use crate::policy::zone::resolve;

/// The directories that may be current. None: nobody knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::policy::shell) struct Dirs(pub(in crate::policy::shell) Option<Vec<PathBuf>>);

impl Dirs {
    pub(in crate::policy::shell) fn at(dir: &Path) -> Self {
        Self(Some(vec![dir.to_path_buf()]))
    }

    /// The directory, where there is only one that it may be.
    pub(in crate::policy::shell) fn only(&self) -> Option<&Path> {
        match self.0.as_deref() {
            Some([dir]) => Some(dir),
            _ => None,
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        const MOST: usize = 16;
        let all = self.0.take().zip(other.0.as_ref()).map(|(mut all, more)| {
            for dir in more {
                if !all.contains(dir) {
                    all.push(dir.clone());
                }
            }
            all
        });
        self.0 = all.filter(|all| all.len() <= MOST);
    }

    /// Where a relative path leads from here: the shell takes `..` back by name, the kernel by place.
    pub(in crate::policy::shell) fn enter(&self, path: &str) -> Self {
        /// No directory that people work in has a longer name, and following links takes time with the square of it.
        const LONGEST: usize = 1024;
        let mut to = Vec::new();
        for dir in self.0.iter().flatten() {
            let joined = dir.join(path);
            if joined.as_os_str().len() > LONGEST {
                return Self(None);
            }
            let by_place = resolve(&joined).unwrap_or_else(|| joined.clone());
            for dir in [by_name(&joined), by_place] {
                if !to.contains(&dir) {
                    to.push(dir);
                }
            }
        }
        Self(self.0.as_ref().map(|_| to))
    }
}

fn by_name(path: &Path) -> PathBuf {
    let mut done = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                done.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => done.push(part),
        }
    }
    done
}
