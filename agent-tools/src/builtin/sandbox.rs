//! Confines commands by the kernel, so that what a command was let do holds for what it does, not for its text alone.
//!
//! Held on Linux, as far as the kernel has it (Landlock, seccomp):
//! * Writing: only where the mode has the write bit, and in temporary directories, the session's own directory, harmless
//!   devices, and [`caches`] of build tools where the mode has workspace execute. Making, moving, linking, truncating and
//!   deleting count as writing. Git may write the repository that the workspace is a part or a working tree of.
//! * The network: without the network's 4 or 2 no socket that leaves the machine can be made, of whatever kind; nor one of
//!   this machine's own network.
//! * Signals: only to processes of the same session (from Landlock ABI 6). Debugging: only of what the command started.
//! * The system itself: no mounts, clock, modules, devices, typing into terminals. Commands of root give up the privileges
//!   for that.
//!
//! Not held:
//! * Reading: programs need the system's files. What may be read is the classifier's matter alone.
//! * Modes, owners, times and attributes of files elsewhere (`chmod`, `chown`, `touch`), priorities of other processes:
//!   Landlock does not know them. (Their limits are held by seccomp.)
//! * What lies below a directory that may be written: keys at home under external write, `.git/hooks` in the workspace
//!   without execute, a workspace below `/tmp`.
//! * Local sockets and shared memory: a daemon that does what it is told (docker, systemd, an agent for keys) does it
//!   outside.
//! * Running programs: what is run is held, not whether it is run.
//!
//! A mode with system write is held to its network alone, one with system execute not at all: what runs as root needs
//! privileges that confinement takes away for good. Confined programs gain none (`sudo`, `ping` with a file capability),
//! and programs of 32 bits do not run on a 64-bit system.

mod areas;
pub mod caches;
#[cfg(target_os = "linux")]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")),
    path = "sandbox/no_calls.rs"
)]
mod calls;
mod denied;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod privileges;
pub mod seatbelt;

use std::fmt;
use std::io;
use std::path::PathBuf;

pub use denied::told;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;
pub(super) use system::{Keeper, front};

use crate::place::{Place, Sandbox};
use crate::policy::{Mode, Rights};

/// What there is to confine commands with, here and now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What confines: `landlock (ABI 6) and seccomp`. None where commands run free.
    pub by: Option<String>,
    /// Why not, or not wholly.
    pub lacking: Option<String>,
    /// Whether writing and the network are held, which is what [`Sandbox::Require`] asks for.
    pub holds: bool,
}

impl Report {
    fn none(reason: &str) -> Self {
        Self { by: None, lacking: Some(reason.into()), holds: false }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.by.as_deref().unwrap_or("none"))?;
        self.lacking.iter().try_for_each(|reason| write!(f, ": {reason}"))
    }
}

/// What confines commands under this setting. Asks the kernel; changes nothing.
pub fn report(sandbox: Sandbox) -> Report {
    match sandbox {
        Sandbox::Off => Report::none("the setting `sandbox` is off"),
        Sandbox::Auto | Sandbox::Require => system::offered(),
    }
}

/// Why no command may run here; none where they may.
pub(super) fn refusal(sandbox: Sandbox) -> Option<String> {
    match sandbox {
        Sandbox::Off | Sandbox::Auto => None,
        Sandbox::Require => {
            let report = report(sandbox);
            (!report.holds).then(|| report.to_string())
        }
    }
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    /// It must not run unconfined, and this is why it would.
    #[error("{0}")]
    Unconfined(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What one command may do, for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limits {
    /// Where it may write, with all below; where there is none, everywhere, and it may change the system.
    writable: Option<Vec<PathBuf>>,
    /// Whether it may reach other hosts.
    network: bool,
    /// Whether it must not run without this.
    required: bool,
}

impl Limits {
    /// The limits of a command that runs with this mode; none where it runs free.
    pub(super) fn of(mode: Mode, place: &Place) -> Option<Self> {
        let network = mode.network.intersection(Rights::READ_WRITE) != Rights::NONE;
        let changes_system = mode.system.covers(Rights::WRITE);
        let free = mode.system.covers(Rights::EXECUTE) || (changes_system && network);
        if free || place.sandbox == Sandbox::Off || system::offered().by.is_none() {
            return None;
        }
        let writable = (!changes_system).then(|| areas::writable(mode, place));
        Some(Self { writable, network, required: place.sandbox == Sandbox::Require })
    }
}
