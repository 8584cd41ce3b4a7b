//! What outlives a call: process groups, and commands that run in the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::text::clipped;

/// How much of a command a list shows, in characters.
const SHOWN: usize = 200;
/// How many background commands that have ended are still known.
const ENDED: usize = 64;

/// Something that outlives the call that started it: a process group, a background task.
pub trait Job: Send {
    /// Whether there is still something to end.
    fn alive(&self) -> bool;
    /// Ends it, now.
    fn end(&mut self);
}

/// A command that runs in the background, or did.
pub trait Task: Send + Sync {
    /// Its id, as the model knows it.
    fn id(&self) -> &str;
    /// The command.
    fn title(&self) -> &str;
    /// Whether it still runs.
    fn running(&self) -> bool;
    /// How it stands, in words: `running for 12 s`, `exit code 0 after 3 s`.
    fn state(&self) -> String;
    /// What it has printed so far, cut as results are.
    fn output(&self) -> String;
    /// Tells it to end; it may take a moment.
    fn stop(&self);

    /// What a list says of it, in one line.
    fn line(&self) -> String {
        format!("{} ({}): {}", self.id(), self.state(), clipped(&self.title().replace('\n', " "), SHOWN))
    }
}

/// What outlives a call. Dropping it ends all of it.
#[derive(Default)]
pub struct Jobs {
    // Locks, because calls that run at the same time add to them; held for a push or a sweep only.
    held: Mutex<Vec<Box<dyn Job>>>,
    tasks: Mutex<Vec<Arc<dyn Task>>>,
}

impl Jobs {
    /// Keeps a job until the session ends. Jobs that have ended by themselves are let go.
    pub fn hold(&self, job: impl Job + 'static) {
        let mut held = lock(&self.held);
        held.retain(|j| j.alive());
        held.push(Box::new(job));
    }

    /// Lists a background command. Of those that have ended the oldest are forgotten.
    pub fn list(&self, task: impl Task + 'static) {
        let mut tasks = lock(&self.tasks);
        let ended = tasks.iter().filter(|task| !task.running()).count();
        if ended >= ENDED
            && let Some(oldest) = tasks.iter().position(|task| !task.running())
        {
            tasks.remove(oldest);
        }
        tasks.push(Arc::new(task));
    }

    /// The background commands, in the order of their start.
    pub fn tasks(&self) -> Vec<Arc<dyn Task>> {
        lock(&self.tasks).clone()
    }

    /// How many background commands still run.
    pub fn running(&self) -> usize {
        lock(&self.tasks).iter().filter(|task| task.running()).count()
    }

    /// Ends all that is held.
    pub fn end_all(&self) {
        let held = std::mem::take(&mut *lock(&self.held));
        for mut job in held {
            job.end();
        }
    }
}

impl Job for Jobs {
    fn alive(&self) -> bool {
        lock(&self.held).iter().any(|job| job.alive())
    }

    fn end(&mut self) {
        self.end_all();
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
