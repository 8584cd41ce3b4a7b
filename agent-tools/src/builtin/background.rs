//! Commands that run in the background: started, listed, read, stopped, and told of when they end.

use std::future::pending;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::group::Mark;
use super::printed::Printed;
use super::process::{End, NotRun, Order, Ran, Run};
use crate::context::{Lasting, Permit, ToolContext};
use crate::error::ToolError;
use crate::host::{Host, Note, TaskEnd};
use crate::jobs::{Job, Jobs, Task};
use crate::text::append_line;

/// How long the end of a command that was told to stop is waited for.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// What the shell says of a command that ran into its limit, as `timeout` does.
const TIMED_OUT: i32 = 124;
/// Added to a signal's number, as the shell does.
const SIGNALLED: i32 = 128;

/// Starts a command and answers with its id. Its end is told to the host; it honours its limit, and ends with the session.
pub(super) fn start(
    order: Order,
    limit: Duration,
    mark: Mark,
    printed: Printed,
    permit: &Permit<'_>,
    cx: &ToolContext,
) -> String {
    let id = new_id(&cx.jobs);
    let (stop, stopped) = watch::channel(false);
    let (tell_end, end) = watch::channel(None);
    let printed = Arc::new(printed);
    let running = Running {
        id: id.clone(),
        order,
        limit,
        mark,
        printed: printed.clone(),
        leave: permit.lasting(),
        jobs: Arc::downgrade(&cx.jobs),
        stopped,
    };
    let (title, host) = (running.order.command().to_owned(), cx.host.clone());
    let mut own = cx.clone();
    // Jobs of its own: a task that held the session's would keep them, and so itself, alive.
    own.jobs = Arc::default();
    own.host = Arc::new(Silent { stopped: running.stopped.clone() });
    let begun = Instant::now();
    // A task, because it goes on while the model does other things; it ends with the session's jobs.
    let task = tokio::spawn(async move {
        let ended = running.finish(&own).await;
        let code = ended.exit_code;
        // The news first: whoever sees that it runs no more finds them.
        host.note(Note::ended(ended));
        tell_end.send_replace(Some((code, begun.elapsed())));
    });
    cx.jobs.hold(Held { task: task.abort_handle() });
    cx.jobs.list(Listed { id: id.clone(), title, begun, printed, stop, end });
    id
}

/// A command on its way.
struct Running {
    id: String,
    order: Order,
    limit: Duration,
    mark: Mark,
    printed: Arc<Printed>,
    leave: Lasting,
    jobs: Weak<Jobs>,
    stopped: watch::Receiver<bool>,
}

impl Running {
    async fn finish(self, cx: &ToolContext) -> TaskEnd {
        let run = Run { limit: self.limit, mark: self.mark, printed: &self.printed };
        let ran = self.order.run(run, &self.leave.permit(), cx).await;
        // What it left running goes on until the session ends.
        if let (Some(session), true) = (self.jobs.upgrade(), cx.jobs.alive()) {
            session.hold(Shared(cx.jobs.clone()));
        }
        let mut output = self.printed.told();
        let stopped = ran.as_ref().ok().and_then(|ran| ran.stopped.clone());
        let (exit_code, line) = ended(ran, self.limit);
        for line in stopped.into_iter().chain(line) {
            append_line(&mut output, &line);
        }
        TaskEnd { id: self.id, exit_code, output }
    }
}

fn ended(ran: Result<Ran, NotRun>, limit: Duration) -> (i32, Option<String>) {
    match ran.map(|ran| ran.end) {
        Ok(End::Exited(status)) => (status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0)), None),
        Ok(End::TimedOut) => {
            (TIMED_OUT, Some(format!("[... command timed out after {} seconds ...]", limit.as_secs_f64())))
        }
        Ok(End::Cancelled) => (SIGNALLED + rustix::process::Signal::TERM.as_raw(), Some("[stopped]".into())),
        Err(reason) => (SIGNALLED - 1, Some(format!("[{reason}]"))),
    }
}

/// The host of a background command: no screen, and a cancelled turn does not end it.
struct Silent {
    stopped: watch::Receiver<bool>,
}

#[async_trait]
impl Host for Silent {
    async fn cancelled(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|stop| *stop).await.is_err() {
            // Nobody can stop it any more.
            pending::<()>().await;
        }
    }
}

/// Ends the task with the session: dropping what it runs kills that.
struct Held {
    task: AbortHandle,
}

impl Job for Held {
    fn alive(&self) -> bool {
        !self.task.is_finished()
    }

    fn end(&mut self) {
        self.task.abort();
    }
}

/// What a background command left running.
struct Shared(Arc<Jobs>);

impl Job for Shared {
    fn alive(&self) -> bool {
        self.0.alive()
    }

    fn end(&mut self) {
        self.0.end_all();
    }
}

/// A background command as it is listed.
struct Listed {
    id: String,
    title: String,
    begun: Instant,
    printed: Arc<Printed>,
    stop: watch::Sender<bool>,
    /// Its exit status and how long it ran, once it has ended.
    end: watch::Receiver<Option<(i32, Duration)>>,
}

impl Task for Listed {
    fn id(&self) -> &str {
        &self.id
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn running(&self) -> bool {
        // Also over where its task was aborted: then nobody will tell the end.
        self.end.borrow().is_none() && self.end.has_changed().is_ok()
    }

    fn state(&self) -> String {
        match *self.end.borrow() {
            Some((code, took)) => format!("ended with exit code {code} after {} s", took.as_secs()),
            None if self.running() => format!("running for {} s", self.begun.elapsed().as_secs()),
            None => "ended with the session".into(),
        }
    }

    fn output(&self) -> String {
        self.printed.told()
    }

    fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// The background commands, one line each.
pub(super) fn listed(jobs: &Jobs) -> String {
    let lines: Vec<String> = jobs.tasks().iter().map(|task| task.line()).collect();
    if lines.is_empty() { "There are no background commands.".into() } else { lines.join("\n") }
}

/// What a background command has printed, and how it stands.
pub(super) fn output(id: &str, jobs: &Jobs) -> Result<String, ToolError> {
    let task = find(id, jobs)?;
    let mut text = task.output();
    append_line(&mut text, &format!("[{} is {}]", task.id(), task.state()));
    Ok(text)
}

/// The background command of this id.
pub(super) fn find(id: &str, jobs: &Jobs) -> Result<Arc<dyn Task>, ToolError> {
    let tasks = jobs.tasks();
    let known: Vec<&str> = tasks.iter().map(|task| task.id()).collect();
    match tasks.iter().find(|task| task.id() == id) {
        Some(task) => Ok(task.clone()),
        None if known.is_empty() => Err(ToolError::new("there are no background commands in this session")),
        None => Err(ToolError::new(format!("there is no background command {id:?}; there are: {}", known.join(", ")))),
    }
}

/// Stops a background command and waits until it has ended.
pub(super) async fn stop(id: &str, cx: &ToolContext) -> Result<String, ToolError> {
    let task = find(id, &cx.jobs)?;
    if !task.running() {
        return Ok(format!("{id} is not running any more: {}", task.state()));
    }
    task.stop();
    let gone = async {
        while task.running() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match timeout(STOP_GRACE, gone).await {
        Ok(()) => Ok(format!("Stopped {id}.")),
        Err(_) => {
            Err(ToolError::new(format!("{id} was told to stop and has not ended yet; look again with action list")))
        }
    }
}

/// An id that no other command of the session has, nor one of an earlier run of it that the model may remember.
fn new_id(jobs: &Jobs) -> String {
    let random = RandomState::new().hash_one(0u8) & 0xffff;
    format!("task_{}-{random:04x}", jobs.tasks().len() + 1)
}
