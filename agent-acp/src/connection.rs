//! JSON-RPC 2.0 over lines of UTF-8: what comes in is told apart, what goes out waits for room.
//!
//! A peer of our own over the types of the protocol's schema crate: the official connection queues without bound what a
//! client does not read. Here whoever sends waits while more than [`ROOM`] bytes are not written yet, so that a client
//! that stops reading holds its sessions up and costs no memory.
//! Source: <https://agentclientprotocol.com/protocol/v1/transports>, <https://www.jsonrpc.org/specification>.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::problem::{internal, invalid_params, invalid_request, parse_error};
use agent_client_protocol_schema::v1::{Error, RequestId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How many bytes may wait to be written.
const ROOM: usize = 1 << 20;
/// How much is written at once.
const BATCH: usize = 1 << 16;
/// The longest line that is read, in bytes: pictures come in base64.
const LONGEST: usize = 64 << 20;

/// What came in.
#[derive(Debug)]
pub enum Incoming {
    /// The client wants an answer.
    Request {
        /// To be sent back with the answer.
        id: RequestId,
        /// What it wants.
        method: String,
        /// With this.
        params: Params,
    },
    /// The client tells something.
    Notification {
        /// What.
        method: String,
        /// With this.
        params: Params,
    },
    /// The client answers.
    Response {
        /// The number of our request.
        id: RequestId,
        /// Its answer.
        answer: Result<Box<RawValue>, Error>,
    },
    /// It is no message.
    Broken {
        /// Whose it was, where that can be read.
        id: RequestId,
        /// What is wrong with it.
        error: Error,
    },
}

/// The parameters of a message.
#[derive(Debug, Clone)]
pub struct Params(Option<Box<RawValue>>);

impl Params {
    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with them, without what they hold.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = self.0.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).map_err(|e| {
            let message = format!("the parameters are not those of this method: {e}");
            invalid_params(message)
        })
    }
}

impl Params {
    /// Reads them, where they may name servers of tools: a client that has none may leave them out.
    ///
    /// # Errors
    /// See [`Params::read`].
    pub fn read_with_servers<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut params: serde_json::Value = self.read()?;
        if let Some(fields) = params.as_object_mut() {
            fields.entry("mcpServers").or_insert_with(|| json!([]));
        }
        Self(Some(result(&params)?)).read()
    }
}

#[derive(Deserialize)]
struct Wire<'w> {
    #[serde(default, deserialize_with = "present")]
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'w RawValue>,
    #[serde(borrow, default, deserialize_with = "there")]
    result: Option<&'w RawValue>,
    error: Option<Error>,
}

/// An id that is null is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RequestId>, D::Error> {
    RequestId::deserialize(deserializer).map(Some)
}

/// A result that is null is there.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Incoming {
    /// Reads a line; none where it is empty.
    pub fn of(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        let wire: Wire<'_> = match serde_json::from_slice(line) {
            Ok(wire) => wire,
            Err(error) => return Some(Self::broken(&error)),
        };
        let Wire { id, method, params, result, error } = wire;
        let params = Params(params.filter(|params| params.get() != "null").map(ToOwned::to_owned));
        Some(match (id, method, result, error) {
            (Some(id), Some(method), ..) => Self::Request { id, method, params },
            (None, Some(method), ..) => Self::Notification { method, params },
            (Some(id), None, _, Some(error)) => Self::Response { id, answer: Err(error) },
            (Some(id), None, Some(result), None) => Self::Response { id, answer: Ok(result.to_owned()) },
            (id, None, ..) => Self::Broken {
                id: id.unwrap_or(RequestId::Null),
                error: invalid_request("this is no request: it has no `method`"),
            },
        })
    }

    fn broken(error: &serde_json::Error) -> Self {
        let error = match error.classify() {
            serde_json::error::Category::Data => invalid_request(format!("this is no message of JSON-RPC: {error}")),
            _ => parse_error(format!("this is no JSON: {error}")),
        };
        Self::Broken { id: RequestId::Null, error }
    }
}

/// Reads lines and hands them on until there are no more.
///
/// # Errors
/// Those of the stream.
pub async fn read(mut reader: impl AsyncBufRead + Unpin, mut take: impl FnMut(Incoming)) -> io::Result<()> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let there = reader.fill_buf().await?;
        if there.is_empty() {
            return Ok(());
        }
        let (piece, ended) = match there.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&there[..end], true),
            None => (there, false),
        };
        too_long |= line.len() + piece.len() > LONGEST;
        if !too_long {
            line.extend_from_slice(piece);
        }
        let used = piece.len() + usize::from(ended);
        reader.consume(used);
        if !ended {
            continue;
        }
        let message = if too_long { Some(of_long()) } else { Incoming::of(&line) };
        message.into_iter().for_each(&mut take);
        // What one long message took is not kept.
        line = Vec::new();
        too_long = false;
    }
}

fn of_long() -> Incoming {
    let message = format!("a message has at most {} MiB", LONGEST >> 20);
    Incoming::Broken { id: RequestId::Null, error: invalid_request(message) }
}

/// Where answers, notifications and our own requests go out.
pub struct Connection {
    // A channel, because many sessions send and one task writes. It is bounded by `room`, in bytes.
    queue: mpsc::UnboundedSender<Queued>,
    room: Arc<Semaphore>,
    // A lock, because answers come in while requests are made; held for a look.
    waiting: Mutex<Waiting>,
    next: AtomicI64,
    gone: CancellationToken,
}

/// Our requests that wait for their answers.
type Waiting = HashMap<i64, oneshot::Sender<Result<Box<RawValue>, Error>>>;

/// A line, and how much room it took.
struct Queued {
    line: Vec<u8>,
    room: usize,
}

impl Connection {
    /// A connection, and what writes it: to be driven until it ends.
    pub fn new(writer: impl AsyncWrite + Unpin) -> (Arc<Self>, impl Future<Output = ()>) {
        let (queue, lines) = mpsc::unbounded_channel();
        let (room, gone) = (Arc::new(Semaphore::new(ROOM)), CancellationToken::new());
        let connection =
            Self { queue, room: room.clone(), waiting: Mutex::default(), next: AtomicI64::new(0), gone: gone.clone() };
        (Arc::new(connection), write(writer, lines, room, gone))
    }

    /// Fires when nobody reads any more.
    pub fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// Tells the client something, as soon as there is room.
    pub async fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers a request, as soon as there is room.
    pub async fn respond(&self, id: &RequestId, answer: Result<Box<RawValue>, Error>) {
        let answer = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        self.send(&answer).await;
    }

    /// Asks the client. Dropped before the answer, the request is taken back.
    ///
    /// # Errors
    /// The client's, or one of ours where it is gone or its answer makes no sense.
    pub async fn request<R: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<R, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(id, sender);
        let asked = Asked { connection: self, id };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = tokio::select! {
            biased;
            answer = answer => answer.map_err(|_| Error::request_cancelled()),
            () = self.gone.cancelled() => Err(Error::request_cancelled()),
        };
        drop(asked);
        serde_json::from_str(answer??.get()).map_err(|e| internal(e.to_string()))
    }

    /// Takes up the client's answer. One that nobody waits for is passed over.
    pub fn answered(&self, id: &RequestId, answer: Result<Box<RawValue>, Error>) {
        let RequestId::Number(id) = id else { return };
        if let Some(waiting) = self.waiting().remove(id) {
            // Whoever asked has given up meanwhile.
            let _ = waiting.send(answer);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, message: &serde_json::Value) {
        let line = format!("{message}\n").into_bytes();
        let room = line.len().min(ROOM);
        let wanted = u32::try_from(room).unwrap_or(u32::MAX);
        let permit = tokio::select! {
            biased;
            () = self.gone.cancelled() => return,
            permit = self.room.acquire_many(wanted) => permit,
        };
        let Ok(permit) = permit else { return };
        permit.forget();
        // Nobody writes any more where the client is gone.
        let _ = self.queue.send(Queued { line, room });
    }
}

/// A request of ours that waits for its answer.
struct Asked<'c> {
    connection: &'c Connection,
    id: i64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.connection.waiting().remove(&self.id).is_some() {
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": self.id}});
            // It waits for no room: a few bytes, once for each question that a person was asked.
            let _ = self.connection.queue.send(Queued { line: format!("{cancel}\n").into_bytes(), room: 0 });
        }
    }
}

/// Writes what is queued until nobody is left to queue, or to read.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: mpsc::UnboundedReceiver<Queued>,
    room: Arc<Semaphore>,
    gone: CancellationToken,
) {
    while let Some(Queued { line: mut batch, room: mut taken }) = lines.recv().await {
        while batch.len() < BATCH
            && let Ok(next) = lines.try_recv()
        {
            batch.extend_from_slice(&next.line);
            taken += next.room;
        }
        let written = async {
            writer.write_all(&batch).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            break;
        }
        room.add_permits(taken);
    }
    gone.cancel();
}

/// A result as it is sent.
///
/// # Errors
/// It cannot be written as JSON.
pub fn result(value: &impl Serialize) -> Result<Box<RawValue>, Error> {
    to_raw_value(value).map_err(|e| internal(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        for (line, expect) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, "request 1 m {\"a\":1}"),
            (r#"{"id":"x","method":"m"}"#, "request \"x\" m {}"),
            (r#"{"id":null,"method":"m","params":null}"#, "request null m {}"),
            (r#"{"method":"m","params":[1]}"#, "notification m [1]"),
            (r#"{"id":7,"result":null}"#, "response 7 null"),
            (r#"{"id":7,"result":{}}"#, "response 7 {}"),
            (r#"{"id":7,"error":{"code":-32601,"message":"no"}}"#, "response 7 error -32601"),
            (r#"{"id":7}"#, "broken 7 -32600"),
            ("{}", "broken null -32600"),
            ("42", "broken null -32600"),
            ("\"x\"", "broken null -32600"),
            ("[]", "broken null -32600"),
            ("{this", "broken null -32700"),
            ("\u{feff}{", "broken null -32700"),
            ("", "nothing"),
            ("  \r", "nothing"),
        ] {
            assert_eq!(shown(Incoming::of(line.as_bytes())), expect, "{line}");
        }
    }

    fn shown(incoming: Option<Incoming>) -> String {
        let code = |error: Error| serde_json::to_value(error).unwrap()["code"].to_string();
        let id = |id: RequestId| serde_json::to_string(&id).unwrap();
        let text = |params: Params| params.0.map_or("{}".to_owned(), |params| params.get().to_owned());
        match incoming {
            None => "nothing".into(),
            Some(Incoming::Request { id: i, method, params }) => format!("request {} {method} {}", id(i), text(params)),
            Some(Incoming::Notification { method, params }) => format!("notification {method} {}", text(params)),
            Some(Incoming::Response { id: i, answer: Ok(result) }) => format!("response {} {}", id(i), result.get()),
            Some(Incoming::Response { id: i, answer: Err(e) }) => format!("response {} error {}", id(i), code(e)),
            Some(Incoming::Broken { id: i, error }) => format!("broken {} {}", id(i), code(error)),
        }
    }

    #[tokio::test]
    async fn whoever_sends_waits_for_a_client_that_does_not_read() {
        let (near, far) = tokio::io::duplex(1024);
        let (connection, writing) = Connection::new(near);
        let sent = async {
            let text = "x".repeat(10_000);
            for _ in 0..1000 {
                connection.notify("m", &text).await;
            }
        };
        let waited = tokio::select! {
            () = sent => false,
            () = writing => false,
            () = tokio::time::sleep(std::time::Duration::from_millis(100)) => true,
        };
        assert!(waited);
        assert!(connection.room.available_permits() < 10_100);
        drop(far);
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_is_taken_back() {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (connection, writing) = Connection::new(near);
        tokio::spawn(writing);
        let mut lines = tokio::io::BufReader::new(far).lines();
        {
            let question = connection.request::<serde_json::Value>("ask", &1);
            tokio::select! {
                _ = question => panic!("nobody answers"),
                line = lines.next_line() => assert!(line.unwrap().unwrap().contains("\"ask\"")),
            }
        }
        assert!(lines.next_line().await.unwrap().unwrap().contains("$/cancel_request"));
        assert!(connection.waiting().is_empty());
    }

    #[tokio::test]
    async fn what_is_too_long_is_refused_and_what_follows_is_read() {
        let long = format!("\"{}\"\n42\n", "x".repeat(LONGEST));
        let mut seen = Vec::new();
        read(long.as_bytes(), |incoming| seen.push(shown(Some(incoming)))).await.unwrap();
        assert_eq!(seen, ["broken null -32600", "broken null -32600"]);
    }
}
