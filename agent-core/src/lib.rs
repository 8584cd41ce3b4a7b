//! The turn loop of a coding agent: model, tools, transcript, events, settings.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod discover;
mod event;
mod message;
pub mod prompt;
pub mod provider;
pub mod session;
pub mod settings;
mod turn;

pub use agent::{Agent, Clock, Limits, assemble, equip};
pub use event::{Ask, Decision, Ending, Event, Limit, Notice, Prompt, Stamped, Tally, UsageReport};
pub use message::{Block, CallResult, Message, Origin};
pub use session::{Session, SessionId};
pub use turn::{Events, Running, Step, Turn, TurnError, start};
