//! The processes of a command: finds them by their group and by their mark, and ends them.
//!
//! A process may leave its group (`setsid`), so each command carries a mark in its environment as well. Where there is
//! no `/proc` to look for marks in, the group alone is known.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::process::{
    Pid, Signal, getpgid, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
};
use tokio::process::Child;
use tokio::task::JoinHandle;

use super::sandbox::{Keeper, Limits, NotStarted};
use super::watchdog::{Watchdog, Watched};
use crate::jobs::{Job, Jobs};

/// The variable that carries the mark.
pub(super) const VARIABLE: &str = "AGENT_CALL";

/// How often those that carry a mark are looked for, when they start others faster than they are ended.
const SWEEPS: usize = 3;

/// The sessions that ran commands, each with a name that no other has.
#[derive(Default)]
pub(super) struct Sessions {
    /// What outlives the agent with its sessions' commands is ended by this.
    watchdog: Arc<Watchdog>,
    // A lock, because calls that run at the same time look here; held for a look-up only.
    known: Mutex<Vec<Known>>,
}

struct Known {
    /// Where its jobs lie. They hold the sweep, which holds the session: as long as that is alive, so is this.
    jobs: usize,
    own: Weak<Own>,
    calls: u64,
}

/// What the commands of one session have in common.
struct Own {
    name: String,
    keeper: Arc<Keeper>,
    watchdog: Arc<Watchdog>,
}

impl Drop for Own {
    fn drop(&mut self) {
        self.watchdog.ended(&self.name);
    }
}

/// What a call is known by, and started with.
pub(super) struct Mark {
    text: String,
    keeper: Arc<Keeper>,
    watchdog: Arc<Watchdog>,
}

impl Mark {
    /// The mark itself.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A mark that belongs to no session, watched over by a process of its own.
    pub(super) fn alone() -> Self {
        Self { text: format!("{}-1", new_name()), keeper: Arc::default(), watchdog: Arc::default() }
    }

    /// Starts a program that no mode holds. From then on it is watched over.
    pub(super) fn spawn(&self, start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
        self.watchdog.begins(self.session());
        start()
    }

    fn session(&self) -> &str {
        self.text.split_once('-').map_or(&*self.text, |(session, _)| session)
    }

    /// Starts a command of this call within these limits. From then on it is watched over.
    pub(super) fn start(
        &self,
        limits: Option<Limits>,
        start: impl FnOnce() -> io::Result<Child> + Send + 'static,
    ) -> Result<Child, NotStarted> {
        self.watchdog.begins(self.session());
        self.keeper.start(limits, start)
    }
}

impl Sessions {
    /// A new mark for a call of the session with these jobs. At the first one the session's sweep is held.
    pub(super) fn mark(&self, jobs: &Arc<Jobs>) -> Mark {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|k| k.own.strong_count() > 0);
        let here = Arc::as_ptr(jobs).addr();
        let (own, calls) = match known.iter_mut().find(|k| k.jobs == here).and_then(|k| Some((k.own.upgrade()?, k))) {
            Some((own, session)) => {
                session.calls += 1;
                (own, session.calls)
            }
            None => {
                let watchdog = Arc::clone(&self.watchdog);
                let own = Arc::new(Own { name: new_name(), keeper: Arc::default(), watchdog });
                jobs.hold(Sweep { own: Arc::clone(&own) });
                known.push(Known { jobs: here, own: Arc::downgrade(&own), calls: 1 });
                (own, 1)
            }
        };
        let (keeper, watchdog) = (Arc::clone(&own.keeper), Arc::clone(&own.watchdog));
        Mark { text: format!("{}-{calls}", own.name), keeper, watchdog }
    }
}

/// A random name. The standard library's hash keys are random; no clock and no environment is needed.
fn new_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Ends what has left its group and outlived its command, when the session ends.
struct Sweep {
    own: Arc<Own>,
}

impl Job for Sweep {
    fn alive(&self) -> bool {
        true
    }

    fn end(&mut self) {
        self.own.keeper.end_all();
        end_marked(|mark| mark.strip_prefix(&*self.own.name).is_some_and(|rest| rest.starts_with('-')));
    }
}

/// The processes of one command.
#[derive(Debug, Clone)]
pub(super) struct Group {
    leader: Pid,
    mark: String,
    /// The leader is gone and its number may be given to another process.
    reaped: bool,
    /// While any of these is kept, the group is ended with the agent.
    _watched: Arc<Watched>,
}

impl Group {
    /// The group whose leader is a child that was just started.
    pub(super) fn of(child: &Child, mark: &Mark) -> io::Result<Self> {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = number.and_then(Pid::from_raw).ok_or_else(|| io::Error::other("it ended before it was seen"))?;
        let watched = Arc::new(mark.watchdog.watch(leader.as_raw_nonzero().get()));
        Ok(Self { leader, mark: mark.text.clone(), reaped: false, _watched: watched })
    }

    /// Told once the leader's end was taken note of.
    pub(super) fn reaped(&mut self) {
        self.reaped = true;
    }

    /// Whether the group has members. The system gives a number to no new process while a group bears it: a process
    /// of the leader's number after the leader's end means that the group has died out and this is another one.
    pub(super) fn has_members(&self) -> bool {
        let gone = rustix::io::Errno::SRCH;
        let another = self.reaped && test_kill_process(self.leader) != Err(gone);
        !another && test_kill_process_group(self.leader) != Err(gone)
    }

    /// Sends a signal to all. Returns whether some had left the group.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        // What fails here has ended meanwhile, or is not ours to end.
        if self.has_members() {
            let _ = kill_process_group(self.leader, signal);
        } else if !self.reaped {
            // It has not made its group yet.
            let _ = kill_process(self.leader, signal);
        }
        self.signal_outsiders(signal)
    }

    fn signal_outsiders(&self, signal: Signal) -> bool {
        let mut some = false;
        for pid in processes().filter(|pid| carries(*pid, |mark| mark == self.mark)) {
            if getpgid(Some(pid)) != Ok(self.leader) {
                some = true;
                let _ = kill_process(pid, signal);
            }
        }
        some
    }

    /// Ends all, now.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        end_marked(|mark| mark == self.mark);
    }
}

/// What a command left behind: members of its group, or a holder of its output.
pub(super) struct Leftover {
    pub(super) group: Group,
    /// Reads on, so that a server that was started stays alive and does not block on a full pipe.
    pub(super) draining: Option<JoinHandle<()>>,
}

impl Job for Leftover {
    fn alive(&self) -> bool {
        self.group.has_members() || self.draining.as_ref().is_some_and(|task| !task.is_finished())
    }

    fn end(&mut self) {
        self.group.kill();
        if let Some(task) = &self.draining {
            task.abort();
        }
    }
}

/// Kills all processes with a mark like this, and those that they start meanwhile.
fn end_marked(wanted: impl Fn(&str) -> bool) {
    end_all(|pid| carries(pid, &wanted) && kill_process(pid, Signal::KILL).is_ok());
}

/// Goes through all processes but this one, which a function ends or leaves alone, until it ends no more.
pub(super) fn end_all(ends: impl Fn(Pid) -> bool) {
    for _ in 0..SWEEPS {
        let ended = processes().filter(|pid| ends(*pid)).count();
        if ended == 0 {
            return;
        }
    }
}

/// Whether a process carries a mark like this. It is to be signalled at once: numbers are used again.
#[cfg(target_os = "linux")]
fn carries(pid: Pid, wanted: impl Fn(&str) -> bool) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    environment.is_ok_and(|text| marks(&text).any(&wanted))
}

/// All processes but this one.
#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = Pid> {
    let own = rustix::process::getpid();
    let all = std::fs::read_dir("/proc").into_iter().flatten();
    all.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter(move |pid| *pid != own)
}

/// Without `/proc` nobody's environment can be read: the group alone is known.
#[cfg(not(target_os = "linux"))]
fn carries(_pid: Pid, _wanted: impl Fn(&str) -> bool) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn processes() -> impl Iterator<Item = Pid> {
    std::iter::empty()
}

/// The marks in an environment: that of the command, after those of the agents that this agent itself runs under.
#[cfg(target_os = "linux")]
fn marks(environment: &[u8]) -> impl Iterator<Item = &str> {
    environment
        .split(|b| *b == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix(VARIABLE)?.strip_prefix('='))
        .flat_map(|value| value.split('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_and_calls_have_marks_of_their_own() {
        let (sessions, one, two) = (Sessions::default(), Arc::new(Jobs::default()), Arc::new(Jobs::default()));
        let marks = [&one, &one, &two].map(|jobs| sessions.mark(jobs).text);
        let name = |i: usize| marks[i].split_once('-').unwrap();
        assert_eq!((name(0).0, name(0).1, name(1).1), (name(1).0, "1", "2"));
        assert_ne!(name(0).0, name(2).0);
        one.end_all();
        assert!(
            !sessions.mark(&one).text.starts_with(name(0).0),
            "after its end a session is a new one, with a new sweep"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn marks_are_found_below_those_of_outer_agents() {
        for (environment, expect) in [
            (&b"PATH=/bin\0AGENT_CALL=a-1\0"[..], &["a-1"][..]),
            (b"AGENT_CALL=out-7/in-1\0X=AGENT_CALL=no-1\0", &["out-7", "in-1"]),
            (b"AGENT_CALLS=a-1\0\xff=\xff\0", &[]),
            (b"", &[]),
        ] {
            assert_eq!(marks(environment).collect::<Vec<_>>(), expect);
        }
    }
}
