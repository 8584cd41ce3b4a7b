//! A model of one's own behind the trait `Provider`, and a turn with it: `cargo run -p agent-core --example own_provider`.

use std::error::Error;
use std::sync::Arc;

use agent_core::prompt::Sections;
use agent_core::provider::{Delta, Model, Provider, ProviderError, Replies, Request, Stop};
use agent_core::session::{Journal, Memory};
use agent_core::{Agent, Block, Clock, Event, Limits, Message, Prompt, Session, SessionId, start};
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use agent_tools::{Call, Place};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

/// Runs every prompt as a command, and tells what came of it. No intelligence is at work.
struct Parrot(Model);

#[async_trait]
impl Provider for Parrot {
    fn model(&self) -> &Model {
        &self.0
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let deltas = match request.messages.last() {
            Some(Message::Results(results)) => {
                let text: String = results.iter().map(|result| format!("It says: {}", result.text())).collect();
                // The delta is for people, the block for the transcript.
                vec![Delta::Text(text.clone()), Delta::Block(Block::text(text))]
            }
            Some(Message::User(parts)) => {
                let command: String = parts.iter().map(agent_tools::Part::as_text).collect();
                let arguments = serde_json::json!({ "command": command }).to_string();
                vec![Delta::Block(Block::call(Call::new("1", "bash", arguments)))]
            }
            Some(Message::Assistant(_)) | None => Vec::new(),
        };
        let end = [Delta::Stop(Stop::End)];
        Ok(stream::iter(deltas.into_iter().chain(end).map(Ok)).boxed())
    }
}

/// The core is told the time.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent {
        fallbacks: Vec::new(),
        provider: Arc::new(Parrot(Model::new("own", "parrot"))),
        tools: tools(Toolset::Lean, &Parts::of(Toolset::Lean)),
        policy: Arc::new(Gate::new(Mode::DEFAULT, Permissions::Auto)),
        prompt: Arc::new(Sections::default()),
        limits: Limits::default(),
    };
    let mut place = Place::new(std::env::current_dir()?);
    place.env = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    let (clock, log) = (Arc::new(RealClock), Memory::default());
    let journal = Journal::new(SessionId::new(clock.now()), Box::new(log.clone()), clock, ".");
    let mut session = Session::new(place, journal);

    let mut running = start(agent, &mut session, Prompt::text("echo hello"), CancellationToken::new());
    while let Some(stamped) = running.next().await {
        match stamped.event {
            Event::Called { call, outline } => println!("[{}: {}]", call.name, outline.title),
            Event::Text(text) => println!("{text}"),
            Event::Ended(ended) => println!("[{:?}]", ended?),
            _ => {}
        }
    }
    drop(running);
    println!("The log has {} lines.", log.lines().lines().count());
    Ok(())
}
