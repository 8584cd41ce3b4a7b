//! How a command is started, read and ended. Commands of the model are started here and nowhere else.
//!
//! A command is over when its shell has ended, not when its output has: what it left running may hold the output open
//! for ever. What is to stop is ended with all that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, pipe};
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::group::{Group, Leftover, Mark};
use super::printed::Printed;
use super::reading::{Reading, drain};
use super::sandbox::seatbelt::Front;
use super::sandbox::{self, Limits, NotStarted};
use super::variables::{lookup, variables};
use crate::context::{Permit, ToolContext};
use crate::place::Place;
use crate::policy::Rights;

/// How long a command may take to end itself after it was told to.
const TERM_GRACE: Duration = Duration::from_millis(300);
/// How long the end of a killed shell is waited for; one that hangs in the kernel is left to it.
const KILL_GRACE: Duration = Duration::from_secs(1);
/// How often is looked whether a group that was told to end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Where programs are looked for when the session has no `PATH`, as the system does.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// A command that can be started.
#[derive(Debug)]
pub struct Order {
    command: String,
    login: bool,
    bash: PathBuf,
}

/// What a run needs besides the order.
pub(super) struct Run<'r> {
    /// How long it may take; [`Duration::MAX`] for as long as it likes.
    pub(super) limit: Duration,
    /// Told apart by this, whatever groups it makes.
    pub(super) mark: Mark,
    /// Takes what it prints.
    pub(super) printed: &'r Printed,
}

/// What a command came to.
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) elapsed: Duration,
    /// What the model is told where the sandbox may have stopped it.
    pub(super) stopped: Option<String>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, or by a signal of somebody else's.
    Exited(ExitStatus),
    /// It was stopped at the limit.
    TimedOut,
    /// It was stopped by the host.
    Cancelled,
}

impl End {
    fn failed(self) -> bool {
        match self {
            Self::Exited(status) => !status.success(),
            Self::TimedOut | Self::Cancelled => true,
        }
    }
}

/// Why a command was not run; for the model.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRun {
    #[error("the command is empty; nothing was run")]
    Empty,
    #[error(
        "the command contains a NUL character; nothing was run. Write it as `\\0` in a printf format, or leave it out"
    )]
    Nul,
    #[error("bash was not found on the PATH of this session; no command can run here")]
    NoBash,
    #[error("the working directory {} does not exist; create it with a file tool, or ask the user", .0.display())]
    NoDirectory(PathBuf),
    #[error(
        "the command has {0} bytes, more than the system takes as one argument; write long text to a file first, in several calls, and use the file"
    )]
    TooLong(usize),
    #[error(
        "commands may only run in a sandbox here (sandbox: require), and there is {0}; ask the user to set sandbox: auto"
    )]
    Unconfined(String),
    #[error("bash could not be started: {0}")]
    Io(#[from] io::Error),
}

impl Order {
    /// Looks whether this can be started.
    pub(super) fn new(command: &str, login: bool, place: &Place) -> Result<Self, NotRun> {
        if command.trim().is_empty() {
            return Err(NotRun::Empty);
        }
        if command.contains('\0') {
            return Err(NotRun::Nul);
        }
        if command.len() >= longest_argument() {
            return Err(NotRun::TooLong(command.len()));
        }
        if !place.cwd.is_dir() {
            return Err(NotRun::NoDirectory(place.cwd.clone()));
        }
        if let Some(reason) = sandbox::refusal(place.sandbox) {
            return Err(NotRun::Unconfined(reason));
        }
        let bash = find("bash", place).ok_or(NotRun::NoBash)?;
        Ok(Self { command: command.to_owned(), login, bash })
    }

    /// The command.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Runs it to its end, or until it has to stop. If this is dropped before, all that was started is killed.
    pub(super) async fn run(&self, run: Run<'_>, permit: &Permit<'_>, cx: &ToolContext) -> Result<Ran, NotRun> {
        let begun = Instant::now();
        let limits = Limits::of(permit.mode(), &cx.place);
        let confined = limits.is_some();
        let (mut shell, pipe) = self.start(&run.mark, limits, permit, &cx.place)?;
        let mut reading = Reading::new(pipe, run.printed, permit.call(), &*cx.host)?;
        let end = reading.beside(shell.end(run.limit, cx)).await?;
        if !matches!(end, End::Exited(_)) {
            reading.beside(shell.stop()).await;
        }
        reading.rest().await;
        let held_open = reading.finish();
        let left = Leftover {
            group: shell.release(),
            // A task, because it goes on while the model does other things; it ends with its pipe or its job.
            draining: held_open.map(|pipe| tokio::spawn(drain(pipe))),
        };
        if left.draining.is_some() || left.group.has_members() {
            cx.jobs.hold(left);
        }
        // To look at the whole output costs a copy of it: only where it can say anything.
        let stopped =
            (confined && end.failed()).then(|| sandbox::told(&run.printed.told(), true, permit.mode())).flatten();
        Ok(Ran { end, elapsed: begun.elapsed(), stopped })
    }

    fn start(
        &self,
        mark: &Mark,
        limits: Option<Limits>,
        permit: &Permit<'_>,
        place: &Place,
    ) -> Result<(Shell, PipeReader), NotRun> {
        let (output, input) = pipe()?;
        let may_execute = permit.mode().workspace.covers(Rights::EXECUTE);
        let mut command = self.program(place, sandbox::front(limits.as_ref()));
        command
            .current_dir(&place.cwd)
            .env_clear()
            .envs(variables(place, mark.text(), may_execute))
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input)
            .kill_on_drop(true);
        let child = mark.start(limits, move || command.spawn()).map_err(|e| self.not_started(e, place))?;
        let group = Group::of(&child, mark)?;
        Ok((Shell { child, group, released: false }, output))
    }

    /// The shell in a group of its own. Where the agent has a terminal, in a session of its own: otherwise a program
    /// that asks for a password could open the terminal and, being in the background, would be stopped there for good.
    fn program(&self, place: &Place, front: Option<Front>) -> Command {
        let setsid = has_terminal().then(|| find("setsid", place)).flatten().map(|setsid| (setsid, Vec::new()));
        let in_session = setsid.is_some();
        let mut words: Vec<OsString> = setsid
            .into_iter()
            .chain(front)
            .flat_map(|(program, args)| iter::once(program.into()).chain(args))
            .collect();
        words.push(self.bash.clone().into());
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        let alone = words.len() == 0;
        command.args(words);
        if alone {
            command.arg0("bash");
        }
        if !in_session {
            command.process_group(0);
        }
        command.arg(if self.login { "-lc" } else { "-c" }).arg(&self.command).args((!alone).then_some("bash"));
        command
    }

    fn not_started(&self, error: NotStarted, place: &Place) -> NotRun {
        let error = match error {
            NotStarted::Unconfined(reason) => return NotRun::Unconfined(format!("none: {reason}")),
            NotStarted::Io(error) => error,
        };
        match error.kind() {
            io::ErrorKind::ArgumentListTooLong => NotRun::TooLong(self.command.len()),
            io::ErrorKind::NotFound if !place.cwd.is_dir() => NotRun::NoDirectory(place.cwd.clone()),
            _ => NotRun::Io(error),
        }
    }
}

/// A shell that was started. Dropping it kills it and all that it started, unless that was released.
struct Shell {
    child: Child,
    group: Group,
    released: bool,
}

impl Shell {
    /// Waits for its end, its limit, or the host's word to stop.
    async fn end(&mut self, limit: Duration, cx: &ToolContext) -> io::Result<End> {
        tokio::select! {
            biased;
            status = self.wait() => Ok(End::Exited(status?)),
            () = cx.host.cancelled() => Ok(End::Cancelled),
            () = sleep(limit) => Ok(End::TimedOut),
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.reaped();
        Ok(status)
    }

    /// Ends it and all that it started: asks first, then kills.
    async fn stop(&mut self) {
        let outsiders = self.group.signal(Signal::TERM);
        // Not gone in time: killed below.
        let _ = timeout(TERM_GRACE, self.gone(outsiders)).await;
        self.group.kill();
        let _ = timeout(KILL_GRACE, self.wait()).await;
    }

    /// Waits until the group has ended; for ever, where some have left the group and cannot be watched.
    async fn gone(&mut self, outsiders: bool) {
        // An error here means that there is no child to wait for any more.
        let _ = self.wait().await;
        while outsiders || self.group.has_members() {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Leaves what it started alone.
    fn release(mut self) -> Group {
        self.released = true;
        self.group.clone()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if !self.released {
            self.group.kill();
        }
    }
}

/// Looks for a program on the session's `PATH`. Only absolute directories count: what lies in the workspace is not
/// started because it bears the name.
pub(super) fn find(name: &str, place: &Place) -> Option<PathBuf> {
    let path = lookup(place, "PATH").unwrap_or(USUAL_PATH.as_ref());
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether this process has a controlling terminal, which commands would inherit.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

/// What Linux takes as one argument: 32 pages, the final NUL included.
#[cfg(target_os = "linux")]
fn longest_argument() -> usize {
    32 * rustix::param::page_size()
}

/// Elsewhere only the whole is bounded, which shows at the start.
#[cfg(not(target_os = "linux"))]
fn longest_argument() -> usize {
    usize::MAX
}
