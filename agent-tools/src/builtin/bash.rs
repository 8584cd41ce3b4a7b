//! Runs a shell command.

use std::marker::PhantomData;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::group::Sessions;
use super::process::{Bounds, End, NotRun, Order, Ran};
use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::{Details, Exit, Status, ToolOutput};
use crate::policy::shell;
use crate::text::{Cut, append_line};
use crate::tool::{Declaration, Prepared, Tool};

/// What one toolset calls the shell: its arguments and its wording.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Name, description and arguments.
    fn declaration() -> Declaration;

    /// The command.
    fn command(&self) -> &str;

    /// The last line for a command that ran to its end; none where all went well.
    fn ended(status: ExitStatus) -> Option<String>;

    /// The last line for a command that was stopped at its limit.
    fn timed_out(limit: Duration) -> String;

    /// The last line for a command that was stopped by a person.
    fn cancelled() -> String;

    /// The whole text for a command that could not be run.
    fn not_run(reason: &str) -> String;
}

/// Runs a command with `bash -c` in the session's working directory.
///
/// Each call has a shell of its own, no input, no terminal, and one pipe for all that it prints. The call is over when
/// the shell ends; what that left running goes on until the session ends. At the limit, and when the host says so, the
/// shell and all that it started are ended.
pub struct Bash<D> {
    bounds: Bounds,
    sessions: Sessions,
    dialect: PhantomData<fn() -> D>,
}

impl<D: Dialect> Bash<D> {
    /// A shell whose output is cut like this and whose commands may run for `limit`.
    pub fn new(cut: Cut, limit: Duration) -> Self {
        Self { bounds: Bounds { cut, limit }, sessions: Sessions::default(), dialect: PhantomData }
    }

    fn output(&self, ran: Ran) -> ToolOutput {
        let mut text = self.bounds.cut.told(ran.output);
        if let Some(line) = self.last_line(ran.end) {
            append_line(&mut text, &line);
        }
        let status = match ran.end {
            End::Exited(_) => Status::Ok,
            End::TimedOut | End::Cancelled => Status::Failed,
        };
        ToolOutput::new(status, text).with(Details::Shell(exit(ran.end, ran.elapsed)))
    }

    fn last_line(&self, end: End) -> Option<String> {
        match end {
            End::Exited(status) => D::ended(status),
            End::TimedOut => Some(D::timed_out(self.bounds.limit)),
            End::Cancelled => Some(D::cancelled()),
        }
    }
}

#[async_trait]
impl<D: Dialect> Tool for Bash<D> {
    type Input = D;
    type Work = Order;

    fn declaration(&self) -> Declaration {
        D::declaration()
    }

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        let command = input.command();
        Outline::new(CallKind::Command, command).needing(shell::judge(command, &cx.place))
    }

    async fn prepare(&self, input: D, cx: &ToolContext) -> Result<Prepared<Order>, ToolError> {
        Order::new(input.command(), &cx.place).map(Prepared::new).map_err(failure::<D>)
    }

    async fn run(&self, order: Order, permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mark = self.sessions.mark(&cx.jobs);
        let ran = order.run(self.bounds, mark, permit, cx).await.map_err(failure::<D>)?;
        Ok(self.output(ran))
    }
}

fn failure<D: Dialect>(reason: NotRun) -> ToolError {
    ToolError::new(D::not_run(&reason.to_string())).because(reason)
}

fn exit(end: End, elapsed: Duration) -> Exit {
    let base = Exit { elapsed, ..Exit::default() };
    match end {
        End::Exited(status) => Exit { exit_code: status.code(), signal: signal(status), ..base },
        End::TimedOut => Exit { timed_out: true, ..base },
        End::Cancelled => base,
    }
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}
