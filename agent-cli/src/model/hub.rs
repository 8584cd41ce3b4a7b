//! Fetching from the model's hub over HTTP, going on where an earlier try stopped.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};

use super::{FetchError, Progress, Stage, Told, Weights, accept, sha256};

/// How long the hub may take to answer the call.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How often it is tried again without a byte more.
const TRIES: u32 = 3;

/// Fetches the weights to their place.
pub(super) async fn fetch(weights: &Weights<'_>, target: &Path, told: Told<'_>) -> Result<(), FetchError> {
    let part = target.with_extension("part");
    let client = client()?;
    let mut idle = 0;
    while length(&part) < weights.size {
        let before = length(&part);
        let outcome = go_on(&client, weights, &part, told).await;
        let more = length(&part) > before;
        idle = if more { 0 } else { idle + 1 };
        match outcome {
            Ok(()) => {}
            // What is out of reach at the first call is left to the next source; what broke off is tried again.
            Err(FetchError::Source(why)) if idle >= TRIES || (before == 0 && !more) => {
                return Err(FetchError::Source(why));
            }
            Err(FetchError::Source(_)) => tokio::time::sleep(Duration::from_millis(200) * idle).await,
            Err(other) => return Err(other),
        }
    }
    let total = weights.size;
    let hash = sha256(&part, |done| told(Progress { stage: Stage::Checking, done, total }));
    accept(weights, &part, target, &hash.map_err(FetchError::disk(&part))?)
}

/// How many bytes of it are there.
fn length(part: &Path) -> u64 {
    part.metadata().map_or(0, |m| m.len())
}

fn client() -> Result<Client, FetchError> {
    // Whoever came first has set one; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().connect_timeout(CONNECT).read_timeout(SILENCE);
    client.user_agent(concat!("agent-cli/", env!("CARGO_PKG_VERSION"))).build().map_err(unreachable)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn unreachable(error: reqwest::Error) -> FetchError {
    FetchError::Source(format!("it cannot be reached: {}", cause(&error)))
}

fn broken(done: u64, weights: &Weights<'_>, why: &str) -> FetchError {
    FetchError::Source(format!("the connection broke off after {done} of {} bytes: {why}", weights.size))
}

/// The innermost cause: the outer ones only say that a request failed.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// One request for what is missing.
async fn go_on(client: &Client, weights: &Weights<'_>, part: &Path, told: Told<'_>) -> Result<(), FetchError> {
    let from = length(part);
    let mut request = client.get(weights.hub);
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let response = request.send().await.map_err(unreachable)?;
    let mut file = open(&response, part, from)?;
    let mut done = length(part);
    let mut bytes = response.bytes_stream();
    while let Some(piece) = bytes.next().await {
        let piece = piece.map_err(|e| broken(done, weights, &cause(&e)))?;
        done += piece.len() as u64;
        if done > weights.size {
            drop(file);
            fs::remove_file(part).map_err(FetchError::disk(part))?;
            return Err(FetchError::Source(format!("the file is not the model: more than {} bytes", weights.size)));
        }
        file.write_all(&piece).map_err(FetchError::disk(part))?;
        told(Progress { stage: Stage::Hub, done, total: weights.size });
    }
    if done < weights.size {
        return Err(broken(done, weights, "it was closed"));
    }
    Ok(())
}

/// The file to write to, at the place from which the answer goes on.
fn open(response: &Response, part: &Path, from: u64) -> Result<File, FetchError> {
    let range = response.headers().get(CONTENT_RANGE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let fits = from > 0 && range.starts_with(&format!("bytes {from}-"));
    let file = match response.status() {
        StatusCode::PARTIAL_CONTENT if fits => OpenOptions::new().append(true).open(part),
        // The whole file, because this server cannot give a part of it.
        StatusCode::OK => File::create(part),
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            fs::remove_file(part).map_err(FetchError::disk(part))?;
            return Err(FetchError::Source("it cannot go on where it stopped".into()));
        }
        other => return Err(FetchError::Source(format!("it answered {other}"))),
    };
    file.map_err(FetchError::disk(part))
}
