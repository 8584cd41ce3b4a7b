//! One prompt to a model behind an OpenAI-style interface, with the tools of toolset `lean`, in the current directory:
//!
//! `cargo run -p agent-core --example one_prompt -- http://127.0.0.1:11434/v1 - qwen3 "Which files are here?"`
//!
//! The second argument is the key; `-` where the server needs none.

use std::error::Error;
use std::sync::Arc;

use agent_core::prompt::{Facts, Sections};
use agent_core::provider::http::Endpoint;
use agent_core::provider::models;
use agent_core::provider::openai::OpenAi;
use agent_core::session::{Journal, Nowhere};
use agent_core::{Agent, Clock, Event, Limits, Prompt, Session, SessionId, start};
use agent_tools::Place;
use agent_tools::policy::{Gate, Mode, Permissions};
use agent_tools::toolset::{Parts, Toolset, tools};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

/// The core is told the time.
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base_url, key, model, prompt] = arguments.as_slice() else {
        return Err("give four arguments: BASE_URL KEY MODEL PROMPT".into());
    };
    let mut endpoint = Endpoint::new(base_url);
    if key != "-" {
        endpoint = endpoint.with_key(key, "the second argument");
    }
    let cwd = std::env::current_dir()?;
    let facts = Facts { cwd: cwd.clone(), platform: std::env::consts::OS.into(), git: false };
    let agent = Agent {
        fallbacks: Vec::new(),
        provider: Arc::new(OpenAi::new(models::model("openai", model), endpoint)),
        tools: tools(Toolset::Lean, &Parts::of(Toolset::Lean)),
        // What the mode does not cover is refused: nobody can be asked here.
        policy: Arc::new(Gate::new(Mode::DEFAULT, Permissions::Auto)),
        prompt: Arc::new(Sections::new(Toolset::Lean, &facts, &[])),
        limits: Limits::default(),
    };
    let mut place = Place::new(&cwd);
    // Commands get this environment; nothing is handed on by itself.
    place.env = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
    let clock = Arc::new(RealClock);
    let id = SessionId::new(clock.now());
    let mut session = Session::new(place, Journal::new(id, Box::new(Nowhere), clock, cwd.to_string_lossy()));

    let mut running = start(agent, &mut session, Prompt::text(prompt), CancellationToken::new());
    while let Some(stamped) = running.next().await {
        match stamped.event {
            Event::Text(text) => print!("{text}"),
            Event::Called { call, outline } => println!("[{}: {}]", call.name, outline.title),
            Event::Ended(ended) => println!("\n[{:?}]", ended?),
            _ => {}
        }
    }
    Ok(())
}
