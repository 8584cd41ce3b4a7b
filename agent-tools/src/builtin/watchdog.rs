//! Ends what commands left running when the agent is gone, however it went: a process of its own sees to it.
//!
//! It is a few lines of `sh` that read from a pipe. The system closes the pipe when the agent ends, be it killed; then
//! what was told over it is ended. It starts with the first command and sleeps until it is told something.

use std::io::{self, PipeWriter, Write, pipe};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};

const SHELL: &str = "/bin/sh";
/// Where its programs are. Not the session's `PATH`: a command could have put a program of its own there.
const PATH: &str = "/usr/bin:/bin:/run/current-system/sw/bin";
const SCRIPT: &str = include_str!("watchdog.sh");

/// The way to the process that watches. Shared by all sessions of the same tools; it goes when the last of them does.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    // A lock, because calls that run at the same time tell it of themselves; held for a write, and once for the start.
    pipe: Mutex<Option<PipeWriter>>,
}

impl Watchdog {
    /// Told before a command of this session is started. Starts the process that watches, where there is none yet.
    pub(super) fn begins(&self, session: &str) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe.is_none() {
            // Without a shell nobody watches; commands run all the same.
            *pipe = start().ok();
        }
        tell(&mut pipe, &format!("session {session}"));
    }

    /// Told when nothing of a session is left.
    pub(super) fn ended(&self, session: &str) {
        self.tell(&format!("ended {session}"));
    }

    /// Told of a group that was started. Dropping the answer tells that it is gone.
    pub(super) fn watch(self: &Arc<Self>, group: i32) -> Watched {
        self.tell(&format!("group {group}"));
        Watched { watchdog: Arc::clone(self), group }
    }

    fn tell(&self, line: &str) {
        tell(&mut self.pipe.lock().unwrap_or_else(PoisonError::into_inner), line);
    }
}

/// A group that is watched.
#[derive(Debug)]
pub(super) struct Watched {
    watchdog: Arc<Watchdog>,
    group: i32,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watchdog.tell(&format!("gone {}", self.group));
    }
}

/// Lines are shorter than what a pipe takes at once, so they arrive whole or not at all. If nobody reads any more, the
/// next command starts another process.
fn tell(pipe: &mut Option<PipeWriter>, line: &str) {
    let told = pipe.as_mut().map(|pipe| pipe.write_all(format!("{line}\n").as_bytes()));
    if let Some(Err(error)) = told
        && error.kind() != io::ErrorKind::WouldBlock
    {
        *pipe = None;
    }
}

/// Starts the process. The shell that is waited for here ends at once and leaves the watching one behind, which is
/// nobody's child and in a group of its own: signals to the agent's do not reach it.
fn start() -> io::Result<PipeWriter> {
    let (lines, told) = pipe()?;
    // Nothing waits for a process that watches, should it ever be stopped.
    fcntl_setfl(&told, OFlags::NONBLOCK)?;
    Command::new(SHELL)
        .args(["-c", SCRIPT, "agent-watchdog"])
        .current_dir("/")
        .env_clear()
        .env("PATH", PATH)
        .stdin(lines)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()?;
    Ok(told)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::Child;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    /// A process in a group of its own, with this in its environment.
    fn sleeper(mark: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("300").env("AGENT_CALL", mark).process_group(0).spawn().unwrap()
    }

    fn ends(child: &mut Child) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    #[test]
    fn what_carries_the_name_is_ended_and_nothing_else() {
        let name = format!("{:08x}watched", std::process::id());
        let mut own = [sleeper(&format!("{name}-1")), sleeper(&format!("outer-3/{name}-2"))];
        let mut others = [sleeper("other-1"), sleeper(&format!("{name}ish-1")), sleeper(&format!("x{name}"))];
        let dog = Arc::new(Watchdog::default());
        dog.begins(&name);
        dog.begins("gone");
        dog.ended("gone");
        // Numbers that were used again: they belong to others now.
        let reused = others.iter().map(|other| i32::try_from(other.id()).unwrap());
        let watched: Vec<_> = reused.map(|group| dog.watch(group)).collect();
        for group in &watched {
            dog.tell(&format!("group {}", group.group));
        }
        drop((watched, dog));
        assert!(own.iter_mut().all(ends));
        // What is not killed by now is not killed any more: groups come first.
        assert!(others.iter_mut().all(|other| other.try_wait().unwrap().is_none()));
        for other in &mut others {
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
