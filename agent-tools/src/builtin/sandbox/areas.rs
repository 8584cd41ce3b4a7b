//! Where a command may write.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::caches;
use crate::builtin::variables::lookup;
use crate::place::Place;
use crate::policy::zone::Ground;
use crate::policy::{Mode, Rights, Zone};
use crate::repository::git_directory;

/// Devices that hold nothing, terminals that a program makes for itself, and shared memory.
const ALWAYS: [&str; 10] = [
    "/tmp",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Where temporary files may lie besides `/tmp`, although it is the system's.
const TEMPORARY: [&str; 3] = ["/var/tmp", "/var/folders", "/private/var/folders"];

/// The directories and files that a command with this mode may write, with all that lies below; their links followed.
pub(super) fn writable(mode: Mode, place: &Place) -> Vec<PathBuf> {
    let ground = Ground::new(place);
    let executes = mode.workspace.covers(Rights::EXECUTE);
    let mut areas = Areas::default();
    areas.add(ALWAYS.iter().map(PathBuf::from));
    areas.add(place.store.clone());
    areas.add(processes());
    if executes {
        areas.add(calculators());
    }
    if mode.external.covers(Rights::WRITE) {
        areas.add(outside(&ground));
    }
    if mode.workspace.covers(Rights::WRITE) {
        areas.add_where(place.workspace().map(Path::to_path_buf), |real| {
            ground.locate(real).zone == Some(Zone::Workspace)
        });
        let roots: Vec<PathBuf> = place.workspace().filter_map(|root| fs::canonicalize(root).ok()).collect();
        areas.add(roots.iter().flat_map(|root| repository(root, executes, &ground)));
    }
    areas.add(temporary(&ground));
    if executes {
        let fetches_code = mode.network.covers(Rights::EXECUTE);
        let caches = caches::directories(&ground, fetches_code, |path| areas.name(path));
        areas.add(caches);
    }
    areas.all.into_iter().map(|area| area.real).collect()
}

/// What may be written so far.
#[derive(Default)]
struct Areas {
    all: Vec<Area>,
}

struct Area {
    /// As it is called.
    name: PathBuf,
    /// Where that is.
    real: PathBuf,
}

impl Areas {
    fn add(&mut self, names: impl IntoIterator<Item = PathBuf>) {
        self.add_where(names, |_| true);
    }

    /// Adds what exists. A name that lies in what may be written must not lead out of there: an earlier command could have
    /// put a link in its place.
    fn add_where(&mut self, names: impl IntoIterator<Item = PathBuf>, holds: impl Fn(&Path) -> bool) {
        for name in names {
            let Ok(real) = fs::canonicalize(&name) else { continue };
            let led_out = self.containing(&name).any(|area| !real.starts_with(&area.real));
            if !led_out && holds(&real) {
                self.all.push(Area { name, real });
            }
        }
    }

    /// Whether this lies in what may be written, by its name.
    fn name(&self, path: &Path) -> bool {
        self.containing(path).next().is_some()
    }

    fn containing<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Area> {
        self.all.iter().filter(move |area| path.starts_with(&area.name) || path.starts_with(&area.real))
    }
}

/// The top-level directories that are neither the system's nor sensitive.
fn outside(ground: &Ground<'_>) -> Vec<PathBuf> {
    let top = fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
    top.filter(|path| path.is_dir() && ground.locate(path).zone != Some(Zone::System)).collect()
}

/// The session's directory for temporary files, where it is one: nothing of the system's, and nothing that the home
/// directory or the workspace lies in.
fn temporary(ground: &Ground<'_>) -> Option<PathBuf> {
    let place = ground.place();
    let named = Path::new(lookup(place, "TMPDIR")?);
    let dir = fs::canonicalize(named).ok()?;
    let holds_others = place.home.iter().map(PathBuf::as_path).chain(place.workspace()).any(|p| p.starts_with(&dir));
    let usual = TEMPORARY.iter().any(|usual| dir.starts_with(usual));
    let plain = match ground.locate(&dir).zone {
        None | Some(Zone::External) => true,
        Some(Zone::System | Zone::Network | Zone::Workspace) => false,
    };
    (named.is_absolute() && !holds_others && (usual || plain)).then(|| named.to_path_buf())
}

/// Devices that only calculate: graphics cards and virtual machines. What a program does with them stays held.
fn calculators() -> impl Iterator<Item = PathBuf> {
    let devices = fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let wanted = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"nvidia") || [&b"dri"[..], b"kfd", b"kvm"].contains(&name)
    };
    devices.filter(wanted).map(|name| Path::new("/dev").join(name))
}

/// Programs write below `/proc/self`, whose number is not known before they run. For an ordinary user the rest of
/// `/proc` is not theirs to write, and the memory of processes outside is held apart; for root it is the whole system.
fn processes() -> Option<PathBuf> {
    (!rustix::process::geteuid().is_root()).then(|| "/proc".into())
}

/// What git writes for the workspace outside of it: the directory of a working tree that lies elsewhere, or that of the
/// repository which the workspace is a part of.
///
/// What the workspace says of itself is not believed: a `.git` file there could name any repository. The directory has to
/// name the workspace as well, and a link is not followed. Hooks and configuration of a repository are run later, so
/// without execute only its contents may be written.
fn repository(root: &Path, executes: bool, ground: &Ground<'_>) -> Vec<PathBuf> {
    let Some((top, git)) = root.ancestors().find_map(|top| Some((top, git_directory(top)?))) else { return Vec::new() };
    let (Ok(about), Ok(git)) = (fs::symlink_metadata(top.join(".git")), fs::canonicalize(git)) else {
        return Vec::new();
    };
    let own_part = about.is_dir() && top != root && is_plain(top, ground);
    let elsewhere = about.is_file() && names_back(&git, top);
    if !own_part && !elsewhere {
        return Vec::new();
    }
    let common = common(&git);
    if executes {
        return vec![common.to_path_buf(), git];
    }
    let contents = ["objects", "refs", "logs"].map(|name| common.join(name));
    let inside = contents.into_iter().filter(|path| fs::canonicalize(path).is_ok_and(|real| real == *path));
    // The directory of a linked working tree has neither hooks nor, by default, settings.
    inside.chain((elsewhere && git != common).then(|| git.clone())).collect()
}

/// The directory that a linked working tree shares with its repository; what is none has its own. By where it lies: its
/// file `commondir` could have been written by a command.
fn common(git: &Path) -> &Path {
    let linked = git.join("commondir").is_file();
    let trees = git.parent().filter(|trees| linked && trees.file_name().is_some_and(|name| name == "worktrees"));
    trees.and_then(Path::parent).unwrap_or(git)
}

/// Whether this is a directory like another: not the system's, and not one that the home directory is or lies in.
fn is_plain(dir: &Path, ground: &Ground<'_>) -> bool {
    let home_inside = ground.place().home.iter().any(|home| home.starts_with(dir));
    !home_inside && ground.locate(dir).zone != Some(Zone::System)
}

/// Whether a git directory says itself that its working tree is `top`.
fn names_back(git: &Path, top: &Path) -> bool {
    let same = |path: PathBuf, expect: &Path| {
        let found = fs::canonicalize(path);
        found.is_ok_and(|found| fs::canonicalize(expect).is_ok_and(|expect| found == expect))
    };
    // Of a linked working tree: the path of its `.git` file.
    if let Ok(link) = fs::read_to_string(git.join("gitdir")) {
        return same(git.join(link.trim()), &top.join(".git"));
    }
    // Of a submodule: its working tree.
    let config = fs::read_to_string(git.join("config")).unwrap_or_default();
    let mut named = config.lines().filter_map(|line| line.trim().strip_prefix("worktree")?.trim().strip_prefix('='));
    named.next_back().is_some_and(|tree| same(git.join(tree.trim()), top))
}
