//! What a command has printed: as much as the model is to read, and the whole of it in a file where that is wanted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::Call;
use crate::place::Place;
use crate::text::{Cut, Kept};

/// The most that is written to a file, in bytes: a command that prints for ever must not fill the disk.
const LONGEST: u64 = 1 << 30;
/// How many outputs may bear the same name.
const NAMESAKES: u32 = 1000;

/// What a command has printed so far.
pub(super) struct Printed {
    // A lock, because the output of a background command is looked at while it runs; held for a copy only.
    kept: Mutex<Sheet>,
}

struct Sheet {
    kept: Kept,
    whole: Whole,
}

impl Printed {
    /// Keeps what this cut shows, and no file.
    pub(super) fn new(cut: Cut) -> Self {
        Self { kept: Mutex::new(Sheet { kept: cut.keep(), whole: Whole::Unwanted }) }
    }

    /// The same, and the whole output in the session's directory once it is longer than what is shown.
    pub(super) fn beside_file(cut: Cut, call: &Call, place: &Place) -> Self {
        let printed = Self::new(cut);
        if let Some(store) = &place.store {
            printed.lock().whole = Whole::Wanted(store.join("outputs").join(file_name(&call.id)));
        }
        printed
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        let sheet = &mut *self.lock();
        let before = sheet.kept.is_whole().then(|| sheet.kept.head().len());
        sheet.kept.push(bytes);
        if !sheet.kept.is_whole() {
            // Up to now all of it is in the head.
            let start = before.map_or(&[][..], |len| &sheet.kept.head()[..len]);
            sheet.whole.write(start, bytes);
        }
    }

    /// The text as the model reads it, as far as it has come.
    pub(super) fn told(&self) -> String {
        let sheet = self.lock();
        let remark = sheet.whole.remark();
        sheet.kept.clone().told_with(|_| remark)
    }

    fn lock(&self) -> MutexGuard<'_, Sheet> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file with the whole output.
enum Whole {
    Unwanted,
    /// It is made at this path once it is needed.
    Wanted(PathBuf),
    Open {
        path: PathBuf,
        file: File,
        written: u64,
    },
    Failed,
}

impl Whole {
    /// Appends; `start` comes first where the file is made now. An output that cannot be kept is no reason to stop the
    /// command.
    fn write(&mut self, start: &[u8], bytes: &[u8]) {
        if let Self::Wanted(path) = self {
            *self = match create(path) {
                Ok((path, file)) => Self::Open { path, file, written: 0 },
                Err(_) => Self::Failed,
            };
        }
        let Self::Open { file, written, .. } = self else { return };
        for piece in [start, bytes] {
            let room = usize::try_from(LONGEST - *written).unwrap_or(usize::MAX);
            let piece = &piece[..piece.len().min(room)];
            if file.write_all(piece).is_err() {
                *self = Self::Failed;
                return;
            }
            *written += piece.len() as u64;
        }
    }

    fn remark(&self) -> String {
        match self {
            Self::Unwanted | Self::Wanted(_) | Self::Failed => String::new(),
            Self::Open { path, written, .. } if *written < LONGEST => format!("all of it is in {}", path.display()),
            Self::Open { path, .. } => format!("its first {} MiB are in {}", LONGEST >> 20, path.display()),
        }
    }
}

/// Makes a file that was not there, for its owner alone.
fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    for number in 1..NAMESAKES {
        let path = if number == 1 { path.to_owned() } else { path.with_extension(format!("{number}.txt")) };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The call's id as a file's name; a provider may put anything into it.
fn file_name(id: &str) -> String {
    let name: String = id.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).take(64).collect();
    format!("{}.txt", if name.is_empty() { "output" } else { &name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(store: &Path) -> Place {
        Place { store: Some(store.to_owned()), ..Place::new("/nowhere") }
    }

    #[test]
    fn the_whole_output_is_in_the_file_that_the_marker_names() {
        let dir = tempfile::tempdir().unwrap();
        for (step, id) in [(1, "call_1"), (7, "call_1"), (1000, "../é")] {
            let call = Call::new(id, "Bash", "{}");
            let printed = Printed::beside_file(Cut::HeadTailBytes(300), &call, &place(dir.path()));
            let whole: Vec<u8> = (0..200).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
            whole.chunks(step).for_each(|piece| printed.push(piece));
            let told = printed.told();
            let path = told.split("all of it is in ").nth(1).and_then(|rest| rest.split(" ...]").next()).unwrap();
            assert!(path.starts_with(dir.path().to_str().unwrap()), "{told}");
            assert_eq!(fs::read(path).unwrap(), whole, "{step}");
        }
        assert_eq!(fs::read_dir(dir.path().join("outputs")).unwrap().count(), 3);
    }

    #[test]
    fn what_is_shown_whole_makes_no_file_and_a_file_that_cannot_be_made_is_not_named() {
        let dir = tempfile::tempdir().unwrap();
        let call = Call::new("1", "Bash", "{}");
        let printed = Printed::beside_file(Cut::HeadTailBytes(300), &call, &place(dir.path()));
        printed.push(&[b'x'; 300]);
        assert_eq!(printed.told(), "x".repeat(300));
        assert!(!dir.path().join("outputs").exists());
        fs::write(dir.path().join("outputs"), "a file").unwrap();
        printed.push(b"more");
        assert!(printed.told().contains("portions of 304 bytes ...]"), "{}", printed.told());
    }
}
