//! Asks a server on this machine which models it has: one small HTTP request, so that no client need be built.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// How long a body may be, in bytes.
const LONGEST_BODY: usize = 256 << 10;
/// How long the head of an answer may be, in bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// Where a base address on this machine lists its models; none for any other address.
pub(super) fn endpoint(base_url: &str) -> Option<(SocketAddr, String)> {
    let rest = base_url.strip_prefix("http://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let path = path.trim_end_matches('/');
    let address = match host.strip_prefix("localhost") {
        None => host.parse().or_else(|_| host.parse().map(|ip: IpAddr| SocketAddr::new(ip, 80))).ok()?,
        Some(port) => {
            let port = if port.is_empty() { 80 } else { port.strip_prefix(':')?.parse().ok()? };
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)
        }
    };
    let path = if path.is_empty() { "/v1" } else { path };
    let plain = path.bytes().all(|b| b.is_ascii_graphic());
    (address.ip().is_loopback() && plain).then(|| (address, format!("{path}/models")))
}

/// The names of the models that the server at this address has; none where it does not answer in time, or with anything
/// else than such a list.
pub(super) async fn models(address: SocketAddr, path: &str, until: Instant) -> Option<Vec<String>> {
    let body = timeout_at(until, get(address, path)).await.ok()??;
    let list: List = serde_json::from_slice(&body).ok()?;
    Some(list.data.into_iter().map(|model| model.id).filter(|id| !id.is_empty()).collect())
}

#[derive(Deserialize)]
struct List {
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

async fn get(address: SocketAddr, path: &str) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    loop {
        let ended = stream.read_buf(&mut answer).await.ok()? == 0;
        match body(&answer, ended) {
            Found::Whole(body) => return Some(body),
            Found::Part if ended || answer.len() > LONGEST_HEAD + 2 * LONGEST_BODY => return None,
            Found::Part => {}
            Found::Other => return None,
        }
    }
}

/// What there is of an answer.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Its body.
    Whole(Vec<u8>),
    /// The beginning of it.
    Part,
    /// Nothing that could be used.
    Other,
}

fn body(answer: &[u8], ended: bool) -> Found {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        let hopeful = answer.len() <= LONGEST_HEAD && answer.iter().zip(b"HTTP/1.").all(|(a, b)| a == b);
        return if hopeful { Found::Part } else { Found::Other };
    };
    let (Ok(head), rest) = (str::from_utf8(&answer[..end]), &answer[end + 4..]) else { return Found::Other };
    let mut lines = head.split("\r\n");
    if !lines.next().is_some_and(is_fine) {
        return Found::Other;
    }
    let header = |wanted: &str| {
        let named =
            |line: &str| line.split_once(':').filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).is_some();
        lines.clone().find(|line| named(line)).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    };
    if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return chunks(rest);
    }
    match header("content-length").map(str::parse::<usize>) {
        Some(Ok(length)) if length <= LONGEST_BODY => {
            rest.get(..length).map_or(Found::Part, |body| Found::Whole(body.to_vec()))
        }
        Some(_) => Found::Other,
        None if rest.len() > LONGEST_BODY => Found::Other,
        None if ended => Found::Whole(rest.to_vec()),
        None => Found::Part,
    }
}

fn is_fine(status: &str) -> bool {
    let mut words = status.split(' ');
    words.next().is_some_and(|version| version.starts_with("HTTP/1.")) && words.next() == Some("200")
}

fn chunks(mut rest: &[u8]) -> Found {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return if rest.len() > LONGEST_HEAD { Found::Other } else { Found::Part };
        };
        let size = str::from_utf8(&rest[..end]).ok().and_then(|line| line.split(';').next());
        let Some(size) = size.and_then(|hex| usize::from_str_radix(hex.trim(), 16).ok()) else { return Found::Other };
        if size == 0 {
            return Found::Whole(body);
        }
        if size > LONGEST_BODY || body.len() + size > LONGEST_BODY {
            return Found::Other;
        }
        let (from, to) = (end + 2, end + 2 + size);
        let Some(after) = rest.get(to + 2..) else { return Found::Part };
        body.extend_from_slice(&rest[from..to]);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_found_whole_in_part_or_not() {
        let whole = |text: &str| Found::Whole(text.as_bytes().to_vec());
        for (answer, ended, expect) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, whole("hi")),
            ("HTTP/1.0 200 OK\r\ncontent-length:2\r\n\r\nhi and more", false, whole("hi")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", false, Found::Part),
            ("HTTP/1.1 200 OK\r\n\r\nhi", false, Found::Part),
            ("HTTP/1.1 200 OK\r\n\r\nhi", true, whole("hi")),
            ("HTTP/1.1 200 OK\r\n", false, Found::Part),
            ("", false, Found::Part),
            ("HTT", false, Found::Part),
            ("SSH", false, Found::Other),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", false, whole("hi")),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\nh\r\n1\r\ni\r\n0\r\n", false, whole("hi")),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", false, Found::Part),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nh", false, Found::Part),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false, Found::Other),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", false, Found::Other),
            ("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", false, Found::Other),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", false, Found::Other),
            ("HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", false, Found::Other),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false, Found::Other),
            ("SSH-2.0-OpenSSH\r\n\r\n", false, Found::Other),
        ] {
            assert_eq!(body(answer.as_bytes(), ended), expect, "{answer:?}");
        }
    }

    #[test]
    fn only_this_machine_is_asked() {
        for (url, expect) in [
            ("http://127.0.0.1:11434", Some(("127.0.0.1:11434", "/v1/models"))),
            ("http://127.0.0.1:11434/", Some(("127.0.0.1:11434", "/v1/models"))),
            ("http://127.0.0.1:8080/api/v1", Some(("127.0.0.1:8080", "/api/v1/models"))),
            ("http://localhost:80/v1/", Some(("127.0.0.1:80", "/v1/models"))),
            ("http://localhost", Some(("127.0.0.1:80", "/v1/models"))),
            ("http://127.0.0.1", Some(("127.0.0.1:80", "/v1/models"))),
            ("http://[::1]:9/v1", Some(("[::1]:9", "/v1/models"))),
            ("http://localhost.evil.com/v1", None),
            ("http://10.0.0.1:80", None),
            ("https://127.0.0.1:1", None),
            ("http://u:p@127.0.0.1:1", None),
            ("http://127.0.0.1:1/a b", None),
            ("http://127.0.0.1:1/\r\nX: y", None),
            ("", None),
        ] {
            let expect = expect.map(|(address, path)| (address.parse().unwrap(), path.to_owned()));
            assert_eq!(endpoint(url), expect, "{url}");
        }
    }
}
