//! The file that a call names: where it lies, what is in it, and what is said when it cannot be had.

use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;

use rustix::io::Errno;

use crate::builtin::disk::Wanted;
use crate::call::{CallKind, GrantKey, Outline};
use crate::context::{Opened, ToolContext};
use crate::error::ToolError;
use crate::place::Place;
use crate::policy::{Mode, Rights, zone};

/// The largest file that is changed: it is held in memory several times over (before, after, and both as text).
pub(super) const MOST: u64 = 128 << 20;

/// The outline of a call that reads a file.
pub(super) fn reads(path: &str, line: Option<u64>, place: &Place) -> Outline {
    outline(CallKind::Read, path, line, Rights::READ, &format!("reading {path}"), place)
}

/// The outline of a call that changes a file. All of them share one grant.
pub(super) fn changes(kind: CallKind, path: &str, place: &Place) -> Outline {
    outline(kind, path, None, Rights::READ_WRITE, "changes of files", place)
}

fn outline(kind: CallKind, path: &str, line: Option<u64>, rights: Rights, grant: &str, place: &Place) -> Outline {
    let mut needs = zone::needs_for(path, rights, place);
    needs.grants.push(GrantKey::new(grant, needs.mode));
    Outline::new(kind, path).at(place.absolute(path), line).needing(needs)
}

/// Where a file lies that is to be changed.
#[derive(Debug)]
pub(super) struct Target {
    /// The path that the model means.
    pub(super) path: PathBuf,
    /// The same with its links followed.
    pub(super) real: PathBuf,
}

impl Target {
    /// # Errors
    /// Those of [`real`].
    pub(super) fn of(path: &str, cx: &ToolContext) -> Result<Self, ToolError> {
        let real = real(path, Rights::READ_WRITE, cx)?;
        Ok(Self { path: cx.place.absolute(path), real })
    }
}

/// Where the file really lies, links followed. It is opened by this path and without following any: whoever swaps
/// something for a link after this gets nothing.
///
/// # Errors
/// No path was given; its links lead elsewhere by now, where the call may not go.
pub(super) fn real(path: &str, rights: Rights, cx: &ToolContext) -> Result<PathBuf, ToolError> {
    if path.is_empty() {
        return Err(ToolError::new("no path provided"));
    }
    let located = zone::locate(path, &cx.place);
    let rights = zone::rights_on(&located.resolved, rights);
    let needs = located.zone.map_or(Mode::NONE, |zone| Mode::NONE.with(zone, rights));
    if !may(needs, cx) {
        return Err(changed(path));
    }
    // That it names a directory is not to be lost.
    let names_directory = path.ends_with('/') || path.ends_with("/.");
    Ok(if names_directory { located.resolved.join("") } else { located.resolved })
}

/// Whether the call at hand may do this.
pub(super) fn may(needs: Mode, cx: &ToolContext) -> bool {
    cx.permitted.is_none_or(|permitted| permitted.covers(needs))
}

/// The answer where a path leads elsewhere than it did when it was judged.
pub(super) fn changed(path: &str) -> ToolError {
    ToolError::new(format!("{path} changed while the call was judged; call again"))
}

/// All that is in a file.
///
/// # Errors
/// Those of the disk; [`ErrorKind::FileTooLarge`]; [`ErrorKind::Interrupted`] once nobody waits any more.
pub(super) fn contents(opened: Opened, wanted: &Wanted) -> io::Result<Vec<u8>> {
    if opened.len > MOST {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(opened.len).unwrap_or(0));
    let mut reader = opened.reader.take(MOST + 1);
    while reader.by_ref().take(1 << 20).read_to_end(&mut bytes)? > 0 {
        wanted.check()?;
    }
    if bytes.len() as u64 > MOST { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// The answer where there is no such file, and on a line of its own one that looks the same.
pub(super) fn missing(text: String, error: io::Error) -> ToolError {
    let text = match error.get_ref() {
        Some(near) => format!("{text}\n{near}"),
        None => text,
    };
    ToolError::new(text).because(error)
}

/// The answer where something cannot be done to a file.
pub(super) fn cannot(what: &str, path: &str, error: io::Error) -> ToolError {
    ToolError::new(format!("cannot {what} {path}: {}", plainly(&error))).because(error)
}

/// An error of the disk in plain words.
fn plainly(error: &io::Error) -> String {
    if error.get_ref().is_some() {
        return error.to_string();
    }
    let known = match error.kind() {
        ErrorKind::NotFound => "no such file or directory",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::IsADirectory => "it is a directory",
        ErrorKind::NotADirectory => "a parent of it is a file, not a directory",
        ErrorKind::InvalidFilename => "its name is too long",
        ErrorKind::StorageFull => "the disk is full",
        ErrorKind::QuotaExceeded => "the disk quota is used up",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::FileTooLarge => "it is larger than 128 MiB; use a command that edits in a stream, such as sed",
        ErrorKind::WouldBlock => "there is nothing to read in it now",
        ErrorKind::Interrupted => "the call was cancelled",
        _ if Errno::from_io_error(error) == Some(Errno::LOOP) => "its links lead in a circle, or changed meanwhile",
        _ => return error.to_string().split(" (os error").next().unwrap_or_default().to_lowercase(),
    };
    known.into()
}
