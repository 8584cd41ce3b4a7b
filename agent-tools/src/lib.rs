//! Tools that read, change and run things on a person's machine for a model, behind one permission gate.
//!
//! This crate knows no model, no message and no session: it turns a [`Call`] into a [`ToolOutput`]. Put
//! [`Tools::declarations`] into your own request, and give each call that comes back to [`dispatch`]:
//!
//! ```
//! use agent_tools::policy::{Gate, Mode, Permissions};
//! use agent_tools::{Call, ToolContext, Tools, dispatch, simple};
//!
//! # fn main() {
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { name: String }
//!
//! let tools = Tools::default()
//!     .with(simple("greet", "Greets somebody.", Mode::NONE, |who: Greet, _cx| async move { Ok(format!("Hello, {}!", who.name)) }));
//! let cx = ToolContext::new(".", Gate::new(Mode::DEFAULT, Permissions::Auto));
//! let call = Call::new("1", "greet", r#"{"name": "Ada"}"#);
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! assert_eq!(dispatch(&tools, &call, &cx).await.text(), "Hello, Ada!");
//! # });
//! # }
//! ```
//!
//! What it will not do: read the environment, the home directory or the process directory (a [`Place`] tells it), print,
//! or run a tool in any other way than through the gate.
//!
//! Without features it is the contract alone ([`Tool`], [`Tools`], [`dispatch`], [`policy`]); `builtin` (default) has the
//! tools of the two toolsets.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[cfg(feature = "builtin")]
pub mod builtin;
mod call;
mod context;
#[cfg(feature = "builtin")]
pub mod diff;
mod error;
mod host;
mod jobs;
mod lenient;
mod output;
mod place;
pub mod policy;
#[cfg(feature = "builtin")]
mod repository;
mod secrets;
pub mod text;
mod tool;
mod tools;
#[cfg(feature = "builtin")]
pub mod toolset;

pub use call::{Call, CallKind, Finding, GrantKey, Location, Needs, Outline};
pub use context::{Files, NoFiles, Opened as OpenedFile, Permit, ToolContext, WriteError};
pub use error::ToolError;
pub use host::{Alone, Answer, Compaction, Host, Note, SubTask, TaskEnd};
pub use jobs::{Job, Jobs, Task};
pub use output::{Change, Details, Exit, Part, Status, Todo, ToolOutput};
pub use place::{Place, Sandbox};
pub use secrets::masked;
pub use tool::{Declaration, Prepared, Simple, Tool, simple};
pub use tools::{Opened, Tools, dispatch};
