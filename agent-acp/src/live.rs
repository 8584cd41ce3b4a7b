//! A session that a client has open: what the connection keeps of it, and the task that works in it.
//!
//! The task alone has the session; prompts come to it in their order. What a person does meanwhile (stop, another mode or
//! model, words for the turn that runs) reaches it through what [`Live`] shares.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{
    ContentBlock, Error, NoticeSeverity, PromptResponse, RequestId, SessionInfoUpdate, SessionUpdate, StopReason,
};
use agent_core::commands::{self, Command};
use agent_core::{Ending, Event, Prompt, Session, Steering, TurnError, start, start_compacting};
use agent_tools::Part;
use agent_tools::text::clipped;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, result};
use crate::content;
use crate::made::Made;
use crate::options::Mode;
use crate::problem::{internal, invalid_request};
use crate::show::Show;
use crate::slash::{self, Slash};
use crate::translate;

/// The most prompts that may wait in a session.
const MOST_WAITING: usize = 100;
/// The longest title of a session, in characters.
const LONGEST_TITLE: usize = 80;

/// What the connection keeps of a session.
pub struct Live {
    /// Where it works.
    pub cwd: PathBuf,
    /// Says something to the turn that runs.
    pub steering: Steering,
    // A lock, because the client changes it while a turn runs; held for a look, or a change without waiting.
    made: Arc<Mutex<Made>>,
    // A channel, because prompts wait for the task that alone has the session. It is bounded by `MOST_WAITING`.
    prompts: mpsc::UnboundedSender<Prompted>,
    // A lock, because requests and the task both look; held for a look.
    stops: Arc<Mutex<Vec<(RequestId, CancellationToken)>>>,
    closing: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A prompt that waits.
struct Prompted {
    id: RequestId,
    blocks: Vec<ContentBlock>,
    stop: CancellationToken,
}

impl Live {
    /// Opens a session for a client.
    pub fn new(session: Session, made: Made, show: Show, connection: Arc<Connection>, told: Told) -> Arc<Self> {
        let (prompts, waiting) = mpsc::unbounded_channel();
        let made = Arc::new(Mutex::new(made));
        let (stops, closing) = (Arc::default(), CancellationToken::new());
        let (steering, cwd) = (session.steering(), session.place.cwd.clone());
        let titled = !session.turns().is_empty();
        let worker = Worker {
            session,
            show,
            connection,
            titled,
            told,
            made: made.clone(),
            waiting,
            stops: Arc::clone(&stops),
            closing: closing.clone(),
        };
        // A task, because a turn goes on while the connection reads; it ends when the session is closed.
        let task = Mutex::new(Some(tokio::spawn(worker.run())));
        Arc::new(Self { cwd, steering, made, prompts, stops, closing, task })
    }

    /// What it works with.
    pub fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a prompt, to be answered when its turn is over. It can be stopped from here on.
    ///
    /// # Errors
    /// Too many wait.
    pub fn prompt(&self, id: RequestId, blocks: Vec<ContentBlock>) -> Result<(), Error> {
        let mut stops = stops(&self.stops);
        if stops.len() >= MOST_WAITING || self.closing.is_cancelled() {
            let message = format!("{} prompts wait in this session already, or it is being closed", stops.len());
            return Err(invalid_request(message));
        }
        let stop = CancellationToken::new();
        stops.push((id.clone(), stop.clone()));
        // The task is there as long as the session is.
        let _ = self.prompts.send(Prompted { id, blocks, stop });
        Ok(())
    }

    /// Stops what runs, and what waits behind it.
    pub fn cancel(&self) {
        stops(&self.stops).iter().for_each(|(_, stop)| stop.cancel());
    }

    /// Stops one prompt. Says whether it was there.
    pub fn cancel_one(&self, id: &RequestId) -> bool {
        let stops = stops(&self.stops);
        let found = stops.iter().find(|(prompt, _)| prompt == id);
        found.map(|(_, stop)| stop.cancel()).is_some()
    }

    /// Whether a turn runs, or a prompt waits.
    pub fn is_busy(&self) -> bool {
        !stops(&self.stops).is_empty()
    }

    /// Closes the session: all that runs in it is stopped and answered, and its log is free for others.
    pub async fn close(&self) {
        self.closing.cancel();
        self.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // Where the task broke there is nothing to wait for.
            let _ = task.await;
        }
    }
}

type Stops = Mutex<Vec<(RequestId, CancellationToken)>>;

fn stops(stops: &Stops) -> MutexGuard<'_, Vec<(RequestId, CancellationToken)>> {
    stops.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a person should know and no event says, until it is told.
#[derive(Debug, Clone, Default)]
pub struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    /// Adds something.
    pub fn add(&self, lines: &[String]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(lines);
    }

    /// Takes all of it.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The task of a session.
struct Worker {
    session: Session,
    show: Show,
    connection: Arc<Connection>,
    /// The client knows its title.
    titled: bool,
    told: Told,
    made: Arc<Mutex<Made>>,
    waiting: mpsc::UnboundedReceiver<Prompted>,
    stops: Arc<Stops>,
    closing: CancellationToken,
}

impl Worker {
    async fn run(mut self) {
        loop {
            let prompted = tokio::select! {
                biased;
                prompted = self.waiting.recv() => prompted,
                () = self.closing.cancelled() => None,
            };
            let Some(Prompted { id, blocks, stop }) = prompted else { break };
            let answer = self.answer(blocks, &stop).await;
            stops(&self.stops).retain(|(prompt, _)| *prompt != id);
            self.connection.respond(&id, answer.and_then(|answer| result(&answer))).await;
        }
        self.session.jobs.end_all();
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a prompt says: a command, or a turn.
    async fn answer(&mut self, blocks: Vec<ContentBlock>, stop: &CancellationToken) -> Result<PromptResponse, Error> {
        if stop.is_cancelled() {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        }
        match content::typed(&blocks).and_then(commands::parse) {
            Some(Ok((Command::Compact, _))) => return self.turn(Work::Compact, stop).await,
            Some(Ok((command, rest))) if slash::is_offered(command) => {
                let rest = rest.to_owned();
                return self.slash(command, &rest).await;
            }
            Some(Ok(_) | Err(_)) | None => {}
        }
        let sees = self.made().agent.provider.model().sees;
        let mut prompt = content::prompt(blocks, sees)?;
        if Mode::of(&self.made().gate) == Mode::Plan {
            prompt.parts.extend(slash::plan_first(&self.session.place).map(Part::text));
        }
        self.turn(Work::Prompt(prompt), stop).await
    }

    async fn slash(&mut self, command: Command, rest: &str) -> Result<PromptResponse, Error> {
        let words = {
            let made = self.made.clone();
            Slash { session: &mut self.session, made }.run(command, rest).await
        };
        self.show.say(words.join("\n")).await;
        self.show.planned(&CancellationToken::new()).await;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    /// Runs a turn to its end, and shows it.
    async fn turn(&mut self, work: Work, stop: &CancellationToken) -> Result<PromptResponse, Error> {
        let (agent, told) = {
            let made = self.made();
            (made.agent(), made.servers.told())
        };
        self.told.add(&told);
        self.show.begin(agent.provider.model().context);
        self.tell().await;
        let before = self.session.usage().total;
        let title = match &work {
            Work::Prompt(prompt) if !self.titled => Some(title_of(prompt)),
            Work::Prompt(_) | Work::Compact => None,
        };
        let mut running = match work {
            Work::Prompt(prompt) => start(agent, &mut self.session, prompt, stop.clone()),
            Work::Compact => start_compacting(agent, &mut self.session, stop.clone()),
        };
        let mut ended = None;
        while let Some(stamped) = running.next().await {
            if let Event::Ended(how) = stamped.event {
                ended = Some(how);
                continue;
            }
            self.show.event(stamped, stop).await;
        }
        drop(running);
        self.show.close_questions(stop).await;
        self.show.planned(stop).await;
        self.tell().await;
        if let Some(title) = title {
            self.titled = true;
            let update = SessionInfoUpdate::new().title(title);
            self.show.update(SessionUpdate::SessionInfoUpdate(update)).await;
        }
        self.response(ended, &before).await
    }

    async fn response(
        &mut self,
        ended: Option<Result<Ending, TurnError>>,
        before: &agent_core::provider::Usage,
    ) -> Result<PromptResponse, Error> {
        let ending = match ended {
            Some(Ok(ending)) => ending,
            Some(Err(error)) => return Err(translate::turn_error(&error)),
            None => return Err(internal("the turn broke off")),
        };
        if let Ending::Limit(limit) = ending {
            self.show.notice(NoticeSeverity::Warning, &translate::limit(limit)).await;
        }
        let usage = translate::spent(before, &self.session.usage().total);
        Ok(PromptResponse::new(translate::stop_reason(&ending)).usage(usage))
    }

    /// Tells what a person should know and no event says.
    async fn tell(&mut self) {
        for line in self.told.take() {
            self.show.notice(NoticeSeverity::Warning, &line).await;
        }
    }
}

/// What a turn is for.
enum Work {
    Prompt(Prompt),
    Compact,
}

/// The beginning of what was said first.
fn title_of(prompt: &Prompt) -> String {
    let text: String = prompt.parts.iter().map(Part::as_text).collect();
    clipped(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_TITLE)
}
