//! `agent --prompts FILE`: many prompts, a bounded number at once, one result line each. A run that was cut off goes on.

mod input;
mod results;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use agent_core::setup::{Chosen, with_model};
use agent_core::{Event, Prompt, Session, start};
use serde_json::{Value, json};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::choose;
use crate::error::{CliError, Exit};
use crate::render::Summary;
use crate::run::{Open, Talk};
use crate::sessions;
use crate::setup::Setup;
use crate::signals::Signals;
use crate::view::{exit_of, tell};
use input::{Input, Job, Line};
use results::{Earlier, Results};

/// What a session is told that was cut off.
const GO_ON: &str = "The work was cut off here. Go on with it from where it stands.";

/// Nobody is there.
const TALK: Talk = Talk { interactive: false, attended: false };

/// What the command line says of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The file of prompts; `-` is stdin.
    pub prompts: PathBuf,
    /// How many run at once.
    pub jobs: NonZeroUsize,
    /// The file of results; none: `.results.jsonl` behind the name of the prompts.
    pub results: Option<PathBuf>,
}

impl Batch {
    /// The prompts come through a pipe.
    fn is_piped(&self) -> bool {
        self.prompts.as_os_str() == "-"
    }

    /// Where results are kept; none where that is not said.
    fn results_file(&self) -> Option<PathBuf> {
        let beside = || {
            let mut name = self.prompts.clone().into_os_string();
            name.push(".results.jsonl");
            PathBuf::from(name)
        };
        self.results.clone().or_else(|| (!self.is_piped()).then(beside))
    }
}

/// Runs all prompts that have no result yet.
///
/// # Errors
/// No model, prompts that cannot be read, results that cannot be written.
pub async fn run(setup: &Setup, batch: &Batch) -> Result<Exit, CliError> {
    let mut signals = Signals::catch()?;
    tell(&setup.warnings);
    let file = batch.results_file().map(|file| setup.world.cwd.join(file));
    if file.is_none() {
        tell(&["results are not kept, so this run cannot be gone on with; --results FILE keeps them".into()]);
    }
    let results = Results::open(file.as_deref())?;
    let input = Input::open(&setup.world.cwd.join(&batch.prompts), batch.is_piped())?;
    let chosen = tokio::select! {
        biased;
        _ = signals.next() => return Ok(Exit::Interrupted),
        chosen = choose::choose(setup, false) => chosen?,
    };
    tell(std::slice::from_ref(&chosen.line));
    let mut runner = Runner {
        shared: Arc::new(Shared { setup: setup.clone(), chosen, results, stop: CancellationToken::new() }),
        running: JoinSet::new(),
        names: HashMap::new(),
        most: batch.jobs.get(),
        all_ok: true,
    };
    runner.all(input, &mut signals).await
}

/// What all prompts of a batch have together.
struct Shared {
    setup: Setup,
    chosen: Chosen,
    results: Results,
    stop: CancellationToken,
}

/// What runs.
struct Runner {
    shared: Arc<Shared>,
    running: JoinSet<Result<bool, CliError>>,
    /// Ids and lines of the prompts that run.
    names: HashMap<Id, (String, u64)>,
    most: usize,
    all_ok: bool,
}

impl Runner {
    /// Runs what comes in. The first interrupt lets all that runs stop in order, the second leaves at once.
    async fn all(&mut self, mut input: Input, signals: &mut Signals) -> Result<Exit, CliError> {
        let stop = self.shared.stop.clone();
        let mut open = true;
        while open || !self.running.is_empty() {
            tokio::select! {
                biased;
                _ = signals.next() => {
                    if stop.is_cancelled() {
                        return Ok(Exit::Interrupted);
                    }
                    stop.cancel();
                    open = false;
                }
                Some(done) = self.running.join_next_with_id() => {
                    let ok = self.ended(done)?;
                    self.all_ok &= ok;
                }
                line = input.next(), if open && self.running.len() < self.most => match line {
                    Some(line) => self.take(line?)?,
                    None => open = false,
                },
            }
        }
        Ok(if stop.is_cancelled() {
            Exit::Interrupted
        } else if self.all_ok {
            Exit::Done
        } else {
            Exit::Failed
        })
    }

    /// Says whether a prompt went well. One that broke this program has a result too.
    fn ended(&mut self, done: Result<(Id, Result<bool, CliError>), JoinError>) -> Result<bool, CliError> {
        match done {
            Ok((task, ok)) => {
                self.names.remove(&task);
                ok
            }
            Err(error) => {
                let (id, line) = self.names.remove(&error.id()).unwrap_or_default();
                self.shared.results.add(&failed(&id, line, "the agent itself failed; please report it"))?;
                Ok(false)
            }
        }
    }

    /// Starts a prompt, unless it has a result.
    fn take(&mut self, line: Line) -> Result<(), CliError> {
        let earlier = self.shared.results.earlier(line.id());
        if let Some(Earlier::Finished { ok }) = earlier {
            self.all_ok &= ok;
            return Ok(());
        }
        match line {
            Line::Bad { id, number, why } => {
                self.all_ok = false;
                self.shared.results.add(&failed(&id, number, &why))
            }
            Line::Job(job) => {
                let begun = match earlier {
                    Some(Earlier::Begun { session }) => Some(session),
                    Some(Earlier::Finished { .. }) | None => None,
                };
                let shared = self.shared.clone();
                // A task of its own, so that a prompt that goes wrong takes no other with it.
                let name = (job.id.clone(), job.number);
                let task = self.running.spawn(async move { shared.one(job, begun).await });
                self.names.insert(task.id(), name);
                Ok(())
            }
        }
    }
}

fn failed(id: &str, line: u64, why: &str) -> Value {
    json!({"id": id, "line": line, "status": "failed", "exit": Exit::Failed as u8, "error": why})
}

impl Shared {
    /// Runs one prompt and keeps its result. Says whether all went well.
    ///
    /// # Errors
    /// Results cannot be written; all else is a result.
    async fn one(&self, job: Job, begun: Option<String>) -> Result<bool, CliError> {
        let result = match self.prepare(&job, begun).await {
            Ok(ready) => self.play(&job, ready).await?,
            Err(error) => failed(&job.id, job.number, error.to_string().trim_start_matches("error: ")),
        };
        self.results.add(&result)?;
        Ok(result["status"] == "ok")
    }

    /// Chooses the model and opens the session.
    async fn prepare(&self, job: &Job, begun: Option<String>) -> Result<Ready, CliError> {
        let mut setup = self.setup.clone();
        if let Some(cwd) = &job.cwd {
            let mut args = setup.args.clone();
            args.cwd = Some(self.setup.world.cwd.join(cwd));
            setup = Setup::new(args)?;
        }
        if let Some(model) = &job.model {
            setup.settings = with_model(&setup.settings, self.chosen.provider.model(), model);
        }
        let as_usual = job.cwd.is_none() && job.model.is_none();
        let chosen = if as_usual { self.chosen.clone() } else { choose::choose(&setup, false).await? };
        // A session that was begun may not have come to its first line.
        setup.args.resume = begun.filter(|session| setup.sessions().find(session).is_ok());
        let earlier = sessions::earlier(&setup)?;
        let open = Open::new(&setup, earlier, TALK)?;
        let gate = choose::gate(&setup, &chosen, false, false);
        let agent = choose::agent(&setup, chosen, gate, &open.session.place)?.agent;
        Ok(Ready { agent, open })
    }

    async fn play(&self, job: &Job, ready: Ready) -> Result<Value, CliError> {
        let Ready { agent, mut open } = ready;
        let session = &mut open.session;
        self.results.add(&json!({"id": job.id, "session": session.id.as_str(), "status": "started"}))?;
        if let Some(answer) = sessions::answered(session) {
            return Ok(result(job, session, &json!({"answer": answer}), Exit::Done));
        }
        let prompt = if session.messages().is_empty() { job.prompt.as_str() } else { GO_ON };
        let (mut summary, mut exit) = (Summary::default(), Exit::Failed);
        let mut running = start(agent, session, Prompt::text(prompt), self.stop.clone());
        while let Some(stamped) = running.next().await {
            if let Event::Ended(ended) = &stamped.event {
                exit = exit_of(ended);
            }
            summary.event(&stamped.event);
        }
        drop(running);
        session.jobs.end_all();
        Ok(result(job, session, &summary.to_json(session), exit))
    }
}

/// What a prompt needs to run.
struct Ready {
    agent: agent_core::Agent,
    open: Open,
}

/// The line of a prompt that ran.
fn result(job: &Job, session: &Session, told: &Value, exit: Exit) -> Value {
    let status = match exit {
        Exit::Done => "ok",
        Exit::Failed | Exit::Usage => "failed",
        Exit::Limit => "limit",
        Exit::Blocked => "blocked",
        Exit::Interrupted => "cancelled",
    };
    let usage = Summary::default().to_json(session)["usage"].take();
    json!({
        "id": job.id,
        "line": job.number,
        "status": status,
        "exit": exit as u8,
        "stop_reason": told["stop_reason"],
        "answer": told["answer"],
        "session": session.id.as_str(),
        "usage": usage,
        "files_changed": told["files_changed"],
        "error": told["error"],
    })
}
