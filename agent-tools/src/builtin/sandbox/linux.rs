//! Linux: a thread that restricts itself with Landlock and seccomp, and starts the command.
//!
//! Both bind the calling thread and what it starts, for good. So each command is started from a thread of its own, which
//! ends at once, and the process stays free: no helper program, nothing between fork and exec.

use std::fmt::Display;
use std::fs::read_link;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictSelf, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};
use rustix::fs::{FileType, fstat};
use rustix::process::{Signal, kill_process};
use tokio::runtime::Handle;

use super::seatbelt::Front;
use super::{Limits, NotStarted, Report, calls, privileges};
use crate::builtin::group::end_all;

/// The rights that are known and tried here. A newer kernel has more; those stay free.
const KNOWN: ABI = ABI::V6;
const DEVICES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeChar | MakeBlock});
/// The first version that holds all of writing: before, files could be emptied.
const WHOLE: u32 = 3;
/// The first version that can keep signals within.
const SIGNALS: u32 = 6;

/// What this kernel offers. Asking changes nothing: nothing is restricted and no privilege is given up.
pub(super) fn offered() -> Report {
    let asked = RestrictSelf::default().no_new_privs(false).apply();
    let lacking = match asked.map(|answer| answer.landlock) {
        Ok(LandlockStatus::Available { effective_abi, kernel_abi }) => return available(effective_abi, kernel_abi),
        Ok(LandlockStatus::NotEnabled) => "Landlock is switched off in this kernel (boot option `lsm=`)",
        Ok(LandlockStatus::NotImplemented) => "this kernel has no Landlock",
        Err(_) => "Landlock does not answer",
    };
    let by = calls::AVAILABLE.then(|| "seccomp only".to_owned());
    Report { by, lacking: Some(format!("{lacking}; writing is not held")), holds: false }
}

fn available(known: ABI, newer: Option<i32>) -> Report {
    let abi = newer.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(known as u32);
    let seccomp = if calls::AVAILABLE { " and seccomp" } else { "" };
    let lacking = match abi {
        ..WHOLE => Some("files outside can be emptied, and signals sent"),
        WHOLE..SIGNALS => Some("signals to other processes are not held"),
        SIGNALS.. if !calls::AVAILABLE => Some("of the network TCP alone is held on this architecture"),
        SIGNALS.. => None,
    };
    let by = Some(format!("landlock (ABI {abi}){seccomp}"));
    Report { by, lacking: lacking.map(str::to_owned), holds: abi >= WHOLE && calls::AVAILABLE }
}

/// Nothing stands in front of the command here.
pub(in crate::builtin) fn front(_limits: Option<&Limits>) -> Option<Front> {
    None
}

/// What is done in a thread below a session's; told whether signals are held there.
type Start = Box<dyn FnOnce(bool) + Send>;

/// The thread from which a session's commands are started.
///
/// It may send signals to what it started and to nothing else, and all that its commands start inherits that: so a command
/// can end what an earlier one of the same session left running. It waits, restricted, until the session ends.
#[derive(Debug, Default)]
pub(in crate::builtin) struct Keeper {
    // A lock, because calls that run at the same time start here; held for a send only.
    waiting: Mutex<Option<Sender<Start>>>,
}

impl Keeper {
    /// Starts a command within these limits, or free where there are none.
    ///
    /// # Errors
    /// Those of the start, and of the restriction where the command must not run without.
    pub(in crate::builtin) fn start<T: Send + 'static>(
        &self,
        limits: Option<Limits>,
        start: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, NotStarted> {
        let Some(limits) = limits else { return Ok(start()?) };
        // The runtime is that of the caller; the thread has none of its own.
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        self.run(move |_| {
            let _inside = runtime.enter();
            match (restrict(&limits), limits.required) {
                (Err(reason), true) => Err(NotStarted::Unconfined(reason)),
                // The best there is; what is missing is in the report.
                (Ok(()) | Err(_), _) => Ok(start()?),
            }
        })
    }

    /// Kills all that the session's confined commands started, also what has left its group and carries no mark. Only
    /// where the kernel holds signals: a thread of the session reaches nothing else.
    pub(in crate::builtin) fn end_all(&self) {
        let started = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if started {
            // Without that thread nothing was started that could be ended.
            let _ = self.run(|held| {
                if held {
                    end_all(|pid| kill_process(pid, Signal::KILL).is_ok());
                }
                Ok(())
            });
        }
    }

    /// Runs this in a thread below the session's.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(bool) -> Result<T, NotStarted> + Send + 'static,
    ) -> Result<T, NotStarted> {
        let (answer, answered) = sync_channel(1);
        let start = Box::new(move |held| {
            // Whoever waits for it went away only if this process is ending.
            let _ = answer.send(work(held));
        });
        self.sender()?.send(start).map_err(|_| ended())?;
        answered.recv().map_err(|_| ended())?
    }

    fn sender(&self) -> io::Result<Sender<Start>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*waiting {
            return Ok(sender.clone());
        }
        let (sender, starts) = mpsc::channel();
        thread::Builder::new().name("commands".into()).stack_size(STACK).spawn(move || keep(&starts))?;
        Ok(waiting.insert(sender).clone())
    }
}

/// How much stack a thread gets that starts one command.
const STACK: usize = 256 * 1024;

fn ended() -> io::Error {
    io::Error::other("the thread that starts commands ended")
}

/// Starts what comes, each in a thread that inherits the restriction of this one.
fn keep(starts: &Receiver<Start>) {
    // Where signals are not held the report says so.
    let held = keep_signals().unwrap_or(false);
    for start in starts {
        // Where no thread can be had the answer is dropped unsent, and whoever waits for it is told.
        let _ = thread::Builder::new().name("command".into()).stack_size(STACK).spawn(move || start(held));
    }
}

/// Keeps the signals of the calling thread, and of all that it starts, to what it starts. Whether the kernel does.
fn keep_signals() -> Result<bool, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    // Every restriction forbids moving files between directories unless it says otherwise; this one is not about files.
    let rules = rules.scope(Scope::Signal)?.handle_access(AccessFs::Refer)?.create()?;
    let Ok(root) = PathFd::new("/") else { return Ok(false) };
    let status = rules.add_rule(PathBeneath::new(root, AccessFs::Refer))?.restrict_self()?;
    Ok(status.ruleset == RulesetStatus::FullyEnforced)
}

/// Restricts the calling thread and all that it starts, as far as that can be done; tells what could not.
fn restrict(limits: &Limits) -> Result<(), String> {
    let told = |e: &dyn Display| e.to_string();
    let Some(writable) = &limits.writable else {
        return calls::filter(false, limits.network).map_err(|e| told(&e));
    };
    let confined = confine(writable, limits.network).map_err(|e| told(&e));
    let given_up = privileges::give_up().map_err(|e| told(&e));
    let filtered = calls::filter(true, limits.network).map_err(|e| told(&e));
    confined.and(given_up).and(filtered)
}

fn confine(writable: &[PathBuf], network: bool) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default().handle_access(writing() | DEVICES)?;
    if !network {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut rules = rules.create()?;
    for path in writable {
        rules = allow(rules, path)?;
    }
    rules.restrict_self().map(drop)
}

/// All of writing but to make devices: those lead to what lies nowhere.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(KNOWN) & !DEVICES
}

/// Lets this be written, and all below, if it is still what is found there: something that runs already could put a link
/// in its place.
fn allow(rules: RulesetCreated, path: &PathBuf) -> Result<RulesetCreated, RulesetError> {
    let Ok(open) = PathFd::new(path) else { return Ok(rules) };
    let found = read_link(format!("/proc/self/fd/{}", open.as_fd().as_raw_fd()));
    if found.is_ok_and(|found| found != *path) {
        return Ok(rules);
    }
    let is_dir = fstat(&open).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Directory);
    let rights = if is_dir { writing() } else { writing() & AccessFs::from_file(KNOWN) };
    rules.add_rule(PathBeneath::new(open, rights))
}
