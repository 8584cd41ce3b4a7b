//! Runs a shell command.

use std::marker::PhantomData;
use std::process::ExitStatus;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::background;
use super::group::Sessions;
use super::printed::Printed;
use super::process::{End, NotRun, Order, Ran, Run};
use crate::call::{CallKind, Outline};
use crate::context::{Permit, ToolContext};
use crate::error::ToolError;
use crate::output::{Details, Exit, Status, ToolOutput};
use crate::policy::shell;
use crate::text::{Cut, append_line};
use crate::tool::{Declaration, Prepared, Tool};

/// What one toolset calls the shell: its arguments and its wording.
pub trait Dialect: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Whether the whole of an output that is cut is kept in a file of the session.
    const KEEPS_WHOLE: bool = false;

    /// Name, description and arguments.
    fn declaration() -> Declaration;

    /// The command.
    fn command(&self) -> &str;

    /// What is to be done; `usual` is how long a command may run where the call does not say.
    ///
    /// # Errors
    /// Arguments that mean nothing.
    fn wish(&self, usual: Duration) -> Result<Wish<'_>, ToolError> {
        Ok(Wish::Run { limit: usual, background: false })
    }

    /// The last line for a command that ran to its end; none where all went well.
    fn ended(status: ExitStatus) -> Option<String>;

    /// The last line for a command that was stopped at its limit.
    fn timed_out(limit: Duration) -> String;

    /// The last line for a command that was stopped by a person.
    fn cancelled() -> String;

    /// The text of a command that was stopped.
    fn stopped(text: String) -> String {
        text
    }

    /// The whole text for a command that could not be run.
    fn not_run(reason: &str) -> String;
}

/// What a call of the shell is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish<'a> {
    /// Run the command.
    Run {
        /// For so long at most; [`Duration::MAX`] for as long as it likes.
        limit: Duration,
        /// Answer at once, and tell of its end later.
        background: bool,
    },
    /// List the background commands.
    List,
    /// Show what this background command has printed.
    Output(&'a str),
    /// Stop this background command.
    Stop(&'a str),
}

/// Runs a command with `bash -c` in the session's working directory.
///
/// Each call has a shell of its own, no input, no terminal, and one pipe for all that it prints. The call is over when
/// the shell ends; what that left running goes on until the session ends. At the limit, and when the host says so, the
/// shell and all that it started are ended.
pub struct Bash<D> {
    cut: Cut,
    limit: Duration,
    login: bool,
    sessions: Sessions,
    dialect: PhantomData<fn() -> D>,
}

impl<D: Dialect> Bash<D> {
    /// A shell whose output is cut like this and whose commands may run for `limit`.
    pub fn new(cut: Cut, limit: Duration) -> Self {
        Self { cut, limit, login: false, sessions: Sessions::default(), dialect: PhantomData }
    }

    /// Whether commands run in a login shell, which reads the person's profile first.
    #[must_use]
    pub fn login(self, login: bool) -> Self {
        Self { login, ..self }
    }

    fn printed(&self, permit: &Permit<'_>, cx: &ToolContext) -> Printed {
        if D::KEEPS_WHOLE { Printed::beside_file(self.cut, permit.call(), &cx.place) } else { Printed::new(self.cut) }
    }
}

/// What a call is to do, and can.
pub enum Work {
    /// Run this.
    Run {
        /// The command.
        order: Order,
        /// For so long at most.
        limit: Duration,
    },
    /// Start this, and answer at once.
    Start {
        /// The command.
        order: Order,
        /// For so long at most.
        limit: Duration,
    },
    /// Answer with this.
    Tell(String),
    /// Stop this background command.
    Stop(String),
}

#[async_trait]
impl<D: Dialect> Tool for Bash<D> {
    type Input = D;
    type Work = Work;

    fn declaration(&self) -> Declaration {
        D::declaration()
    }

    fn outline(&self, input: &D, cx: &ToolContext) -> Outline {
        match input.wish(self.limit) {
            Ok(Wish::Run { .. }) => {
                let command = input.command();
                Outline::new(CallKind::Command, command).needing(shell::judge(command, &cx.place))
            }
            Ok(Wish::List) => Outline::new(CallKind::Other, "background commands"),
            Ok(Wish::Output(id)) => Outline::new(CallKind::Other, format!("output of {id}")),
            Ok(Wish::Stop(id)) => Outline::new(CallKind::Other, format!("stop {id}")),
            Err(_) => Outline::new(CallKind::Other, input.command()),
        }
    }

    async fn prepare(&self, input: D, cx: &ToolContext) -> Result<Prepared<Work>, ToolError> {
        let order = || Order::new(input.command(), self.login, &cx.place).map_err(failure::<D>);
        let work = match input.wish(self.limit)? {
            Wish::Run { limit, background: false } => Work::Run { order: order()?, limit },
            Wish::Run { limit, background: true } => Work::Start { order: order()?, limit },
            Wish::List => Work::Tell(background::listed(&cx.jobs)),
            Wish::Output(id) => Work::Tell(background::output(id, &cx.jobs)?),
            Wish::Stop(id) => Work::Stop(background::find(id, &cx.jobs)?.id().to_owned()),
        };
        Ok(Prepared::new(work))
    }

    async fn run(&self, work: Work, permit: &Permit<'_>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match work {
            Work::Run { order, limit } => {
                let printed = self.printed(permit, cx);
                let run = Run { limit, mark: self.sessions.mark(&cx.jobs), printed: &printed };
                let ran = order.run(run, permit, cx).await.map_err(failure::<D>)?;
                Ok(output::<D>(printed.told(), limit, ran))
            }
            Work::Start { order, limit } => {
                let mark = self.sessions.mark(&cx.jobs);
                let id = background::start(order, limit, mark, self.printed(permit, cx), permit, cx);
                Ok(ToolOutput::ok(format!("Async task started: task_id={id}")))
            }
            Work::Tell(text) => Ok(ToolOutput::ok(text)),
            Work::Stop(id) => background::stop(&id, cx).await.map(ToolOutput::ok),
        }
    }
}

fn output<D: Dialect>(mut text: String, limit: Duration, ran: Ran) -> ToolOutput {
    let (line, status) = match ran.end {
        End::Exited(status) => (D::ended(status), Status::Ok),
        End::TimedOut => (Some(D::timed_out(limit)), Status::Failed),
        End::Cancelled => (Some(D::cancelled()), Status::Failed),
    };
    for line in ran.stopped.into_iter().chain(line) {
        append_line(&mut text, &line);
    }
    let text = if status == Status::Failed { D::stopped(text) } else { text };
    ToolOutput::new(status, text).with(Details::Shell(exit(ran.end, ran.elapsed)))
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
