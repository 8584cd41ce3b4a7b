//! The Agent Client Protocol server over agent-core: an editor talks to it over a stream of lines.
//!
//! For whoever wants the agent behind another stream than `agent-acp`'s own stdin and stdout. It only wires: tools, rules
//! and models are those of the libraries below, and sessions are those of the command line: what the editor began the
//! terminal goes on with, and the other way round.
//!
//! It speaks version 1 of the protocol (<https://agentclientprotocol.com>). What it will not do: print, read the
//! environment, or end the process; that is `main.rs`.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
mod ask;
mod client;
mod connection;
mod content;
mod files;
mod live;
mod made;
mod opening;
mod options;
mod problem;
mod replay;
mod server;
mod show;
mod slash;
mod terminal;
mod translate;

use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::time::timeout;

pub use ask::ask;
pub use made::House;

use connection::{Connection, read};
use server::Server;

/// How long the end of all sessions may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves one client until it is gone, or `stop` is ready. All that runs is stopped then, and all logs are whole.
pub async fn serve(
    reader: impl AsyncBufRead + Unpin,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    house: House,
    stop: impl Future<Output = ()>,
) {
    let (connection, writing) = Connection::new(writer);
    // A task, because what is said goes out while more comes in; it ends with the connection.
    let writing = tokio::spawn(writing);
    let server = Server::new(house, connection.clone());
    let gone = connection.gone().clone();
    tokio::select! {
        // A stream that breaks is one that ends.
        _ = read(reader, |incoming| server.take(incoming)) => {}
        () = gone.cancelled() => {}
        () = stop => {}
    }
    let _ = timeout(PATIENCE, server.end()).await;
    drop((server, connection));
    // What was said last reaches a client that still reads.
    let _ = timeout(PATIENCE / 4, writing).await;
}
