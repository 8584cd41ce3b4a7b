//! A program that runs beside the agent and ends with it, however that ends: a server of tools, say.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::group::{Group, Mark, VARIABLE};

/// What is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program: a path, or a name to be found in the `PATH` of `env`.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it works.
    pub cwd: PathBuf,
}

/// A program that was started. Dropping it kills it and all that it started.
pub struct Companion {
    child: Child,
    group: Group,
}

/// The streams of a program.
pub struct Streams {
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it says.
    pub stdout: ChildStdout,
    /// What it says besides.
    pub stderr: ChildStderr,
}

impl Companion {
    /// Starts a program in a group of its own, over pipes.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Program) -> io::Result<(Self, Streams)> {
        let mark = Mark::alone();
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .current_dir(&program.cwd)
            .env_clear()
            .envs(program.env.iter().map(|(name, value)| (name, value)))
            .env(VARIABLE, mark.text())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = mark.spawn(|| command.spawn())?;
        let group = Group::of(&child, &mark)?;
        let taken = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr) = taken.ok_or_else(|| io::Error::other("its pipes are not there"))?;
        Ok((Self { child, group }, Streams { stdin, stdout, stderr }))
    }

    /// Waits until it has ended, and tells how.
    pub async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => {
                self.group.reaped();
                status.to_string()
            }
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}
