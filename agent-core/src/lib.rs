//! The turn loop of a coding agent: a prompt goes to a model, its tool calls are answered, until the model is done.
//!
//! For whoever wants the agent in a program of their own, with another screen, another model or another store than the
//! command line's. An [`Agent`] is a value: model, tools, rules, system prompt, limits. A [`Session`] is one
//! conversation and its log. [`start`] runs a prompt; what happens comes out as [`Event`]s:
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_core::prompt::Sections;
//! use agent_core::provider::scripted::{Answer, Scripted}; // feature `testing`: a model that plays a script
//! use agent_core::session::{Journal, Memory};
//! use agent_core::{Agent, Clock, Ending, Event, Limits, Prompt, Session, SessionId, start};
//! use agent_tools::policy::{Gate, Mode, Permissions};
//! use agent_tools::toolset::{Parts, Toolset, tools};
//!
//! struct Noon;
//! impl Clock for Noon {
//!     fn now(&self) -> jiff::Timestamp {
//!         jiff::Timestamp::UNIX_EPOCH
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let cwd = directory.path();
//! let script = [
//!     Answer::calls([("1", "write_file", r#"{"path": "hello.txt", "content": "Hello!\n"}"#)]),
//!     Answer::text("There is a file hello.txt now."),
//! ];
//! let agent = Agent {
//!     provider: Arc::new(Scripted::new(script)),
//!     tools: tools(Toolset::Lean, &Parts::of(Toolset::Lean)),
//!     fallbacks: Vec::new(),
//!     policy: Arc::new(Gate::new(Mode::DEFAULT, Permissions::Auto)),
//!     prompt: Arc::new(Sections::default()),
//!     limits: Limits::default(),
//! };
//! let journal = Journal::new(SessionId::named("first"), Box::new(Memory::default()), Arc::new(Noon), "here");
//! let mut session = Session::new(agent_tools::Place::new(cwd), journal);
//!
//! let mut running = start(agent, &mut session, Prompt::text("Greet the world"), Default::default());
//! let (mut said, mut ending) = (String::new(), None);
//! while let Some(stamped) = running.next().await {
//!     match stamped.event {
//!         Event::Text(text) => said.push_str(&text),
//!         Event::Ended(ended) => ending = Some(ended?),
//!         _ => {}
//!     }
//! }
//! assert_eq!((said.as_str(), ending), ("There is a file hello.txt now.", Some(Ending::Done)));
//! assert_eq!(std::fs::read_to_string(cwd.join("hello.txt"))?, "Hello!\n");
//! # Ok(())
//! # }
//! ```
//!
//! A model of one's own implements [`provider::Provider`], a place for logs [`session::Store`], rules
//! [`agent_tools::policy::Policy`]. [`settings`] and [`discover`] are what the command line finds its settings and its
//! model with; one who knows both needs neither.
//!
//! What it will not do: read the environment, the home directory, the process directory or the wall clock (they are
//! handed in), print, ask a person in any other way than through [`Event::Ask`], run a call in any other way than through
//! the gate of agent-tools, or retry for ever.
//!
//! Features: `http` (default) has the providers behind an address, `local` the embedded model, `mcp` servers of tools,
//! `clap` the options that both binaries share, `testing` the scripted provider.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
mod budget;
mod children;
pub mod commands;
pub mod context;
pub mod discover;
mod event;
mod fuzz;
mod history;
mod inbox;
#[cfg(feature = "mcp")]
pub mod mcp;
mod message;
pub mod pictures;
pub mod prompt;
pub mod provider;
pub mod session;
pub mod settings;
pub mod setup;
mod turn;

pub use agent::{Agent, Clock, Limits, assemble, equip};
pub use children::{ChildEnd, ChildStatus};
pub use event::{
    Ask, Compacted, Decision, Ending, Event, Limit, Notice, Prompt, SpentOn, Stamped, Tally, Trigger, UsageReport,
};
pub use history::{Undo, UndoState};
pub use inbox::Steering;
pub use message::{Block, CallResult, Message, Origin};
pub use session::{Session, SessionId, Waits};
pub use turn::{Events, Running, Step, Turn, TurnError, start, start_compacting, start_on_news};
