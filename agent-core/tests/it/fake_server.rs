//! A mini HTTP server that can split, stall and cut what it sends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

/// What the server does with one request.
#[derive(Clone)]
pub enum Step {
    /// Sends these bytes as they are.
    Raw(Vec<u8>),
    /// Sends this as a chunk of the body.
    Chunk(Vec<u8>),
    /// Ends the chunked body.
    End,
    /// Does nothing for so long.
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
}

pub const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A stream in pieces of so many bytes, ended.
pub fn stream(body: &str, size: usize) -> Vec<Step> {
    let chunks = body.as_bytes().chunks(size).map(|c| Step::Chunk(c.to_vec()));
    [Step::Raw(OK.into())].into_iter().chain(chunks).chain([Step::End]).collect()
}

/// The beginning of a stream, and then something else.
pub fn begun(body: &str, then: impl IntoIterator<Item = Step>) -> Vec<Step> {
    [Step::Raw(OK.into()), Step::Chunk(body.into())].into_iter().chain(then).collect()
}

/// A whole answer with status, headers and body.
pub fn answer(status: &str, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    vec![Step::Raw(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes())]
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The number of the connection.
    pub connection: usize,
    /// The first line and the headers, in lower case.
    pub head: String,
    pub body: serde_json::Value,
    /// The bytes of the body.
    pub raw: String,
}

pub struct FakeServer {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl FakeServer {
    /// A server that answers requests with these, in order, and then with 500.
    pub async fn start(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self::with("http", None, answers).await
    }

    /// The same over TLS, with a certificate that `tests/data/ca.pem` vouches for.
    pub async fn encrypted(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        Self::with("https", Some(acceptor()), answers).await
    }

    async fn with(scheme: &str, tls: Option<TlsAcceptor>, answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let (tls, answers, seen) = (tls.clone(), answers.clone(), seen.clone());
                tokio::spawn(async move {
                    socket.set_nodelay(true).unwrap();
                    match tls {
                        None => serve(socket, connection, answers, seen).await,
                        Some(tls) => {
                            if let Ok(socket) = tls.accept(socket).await {
                                serve(socket, connection, answers, seen).await;
                            }
                        }
                    }
                });
                connection += 1;
            }
        });
        Self { url, asked, task }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn acceptor() -> TlsAcceptor {
    let data = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let certificate = CertificateDer::from_pem_file(data("tls.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(data("tls.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(vec![certificate], key).unwrap()))
}

/// A connection that can be reset.
trait Socket: AsyncRead + AsyncWrite + Unpin {
    fn reset(self);
}

impl Socket for TcpStream {
    fn reset(self) {
        self.set_zero_linger().unwrap();
    }
}

impl Socket for tokio_rustls::server::TlsStream<TcpStream> {
    fn reset(self) {
        self.into_inner().0.reset();
    }
}

async fn serve(
    mut socket: impl Socket,
    connection: usize,
    answers: Arc<Mutex<VecDeque<Vec<Step>>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
) {
    while let Some((head, body)) = request(&mut socket).await {
        let raw = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        asked.lock().unwrap().push(Asked { connection, head, body, raw });
        let steps = answers.lock().unwrap().pop_front();
        let steps = steps.unwrap_or_else(|| answer("500 Internal Server Error", "", "no answer left"));
        for step in steps {
            let sent = match step {
                Step::Raw(bytes) => socket.write_all(&bytes).await,
                Step::Chunk(bytes) => {
                    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
                    socket.write_all(&chunk).await
                }
                Step::End => socket.write_all(b"0\r\n\r\n").await,
                Step::Wait(time) => {
                    tokio::time::sleep(time).await;
                    Ok(())
                }
                Step::Close => return,
                Step::Reset => return socket.reset(),
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// The next request of a connection: its head in lower case and its body.
async fn request(socket: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse::<usize>().ok()).unwrap_or(0);
        let mut body = bytes.split_off(end + 4);
        while body.len() < length {
            if socket.read_buf(&mut body).await.ok()? == 0 {
                return None;
            }
        }
        return Some((head, body));
    }
}
