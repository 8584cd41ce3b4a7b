//! Where a command may write.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::caches;
use crate::builtin::git_programs::git_directory;
use crate::builtin::variables::lookup;
use crate::place::Place;
use crate::policy::zone::Ground;
use crate::policy::{Mode, Rights, Zone};

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

/// The directories and files that a command with this mode may write, with all that lies below. Some may not exist.
pub(super) fn writable(mode: Mode, place: &Place) -> Vec<PathBuf> {
    let ground = Ground::new(place);
    let mut all: Vec<PathBuf> = ALWAYS.iter().map(PathBuf::from).collect();
    all.extend(place.store.clone());
    all.extend(temporary(&ground));
    all.extend(processes());
    let executes = mode.workspace.covers(Rights::EXECUTE);
    if executes {
        all.extend(calculators());
    }
    if mode.external.covers(Rights::WRITE) {
        all.extend(outside(&ground));
    }
    if mode.workspace.covers(Rights::WRITE) {
        let roots = workspace(&ground);
        all.extend(roots.iter().flat_map(|root| repository(root, executes, &ground)));
        all.extend(roots);
    }
    if executes {
        let fetches_code = mode.network.covers(Rights::EXECUTE);
        let caches = caches::directories(&ground, fetches_code, |path| all.iter().any(|area| path.starts_with(area)));
        all.extend(caches);
    }
    all
}

/// The directories that count as workspace, with their links followed.
fn workspace(ground: &Ground<'_>) -> Vec<PathBuf> {
    let located = ground.place().workspace().map(|root| ground.locate(root));
    located.filter(|root| root.zone == Some(Zone::Workspace)).map(|root| root.resolved).collect()
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
    let dir = fs::canonicalize(lookup(place, "TMPDIR")?).ok()?;
    let holds_others = place.home.iter().map(PathBuf::as_path).chain(place.workspace()).any(|p| p.starts_with(&dir));
    let usual = TEMPORARY.iter().any(|usual| dir.starts_with(usual));
    let plain = match ground.locate(&dir).zone {
        None | Some(Zone::External) => true,
        Some(Zone::System | Zone::Network | Zone::Workspace) => false,
    };
    (!holds_others && (usual || plain)).then_some(dir)
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
    let link = top.join(".git");
    let Ok(about) = fs::symlink_metadata(&link) else { return Vec::new() };
    let own_part = about.is_dir() && top != root && is_plain(top, ground);
    let elsewhere = about.is_file() && names_back(&git, top);
    if !own_part && !elsewhere {
        return Vec::new();
    }
    let common = fs::read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |at| git.join(at.trim()));
    if executes {
        return vec![git, common];
    }
    let contents = ["objects", "refs", "logs"].map(|name| common.join(name));
    // The directory of a linked working tree has neither hooks nor, by default, settings.
    contents.into_iter().chain((elsewhere && git != common).then_some(git)).collect()
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
