//! What went wrong with a request, told to a person: short, with a hint, without keys.

use std::error::Error;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::super::{ErrorKind, ProviderError};
use super::{Endpoint, Secret};

/// How much of an error's body is read, in bytes.
pub(super) const BODY_LIMIT: usize = 64 << 10;

/// How much of it is shown, in characters.
const SHOWN: usize = 300;

const TOO_LONG: &[&str] = &[
    "context_length",
    "context length",
    "context window",
    "context size",
    "context_size",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "too many tokens",
    "reduce the length",
    "maximum number of tokens",
    "exceeds the model",
    "request_too_large",
    "max_prompt_tokens",
];

const NO_CREDIT: &[&str] =
    &["insufficient_quota", "insufficient balance", "credit balance", "exceeded your current quota", "billing"];

const WRONG_KEY: &[&str] = &[
    "invalid_api_key",
    "api key not valid",
    "invalid api key",
    "authentication",
    "unauthorized",
    "permission_denied",
    "permission_error",
];

/// What a request is about, for messages.
#[derive(Debug)]
pub(in super::super) struct Asking {
    model: String,
    url: String,
    key_hint: String,
    keyless: bool,
    secrets: Vec<Secret>,
}

impl Asking {
    pub(in super::super) fn new(endpoint: &Endpoint, url: &str, model: &str) -> Self {
        let parsed = Url::parse(url).ok();
        let password = parsed.as_ref().and_then(|u| u.password()).map(Secret::new);
        let values = endpoint.headers.iter().map(|(_, value)| value.clone());
        let secrets = endpoint.key.iter().cloned().chain(values).chain(password);
        Self {
            model: model.to_owned(),
            url: parsed.map_or_else(|| url.to_owned(), shown),
            key_hint: endpoint.key_hint.clone(),
            keyless: endpoint.key.is_none(),
            // Shorter ones are stand-ins ("x", "none") that stand in any text.
            secrets: secrets.filter(|s| s.reveal().len() >= 4).collect(),
        }
    }

    /// The address, without what may be secret in it.
    pub(in super::super) fn url(&self) -> &str {
        &self.url
    }

    /// An error of this kind, with the hint that goes with it.
    pub(in super::super) fn error(&self, kind: ErrorKind, why: &str) -> ProviderError {
        let why = clip(&self.masked(why));
        let why = why.trim_end_matches('.');
        let hint = self.hint(kind);
        let text = format!("Asking {} at {} failed: {why}. {hint}", self.model, self.url);
        ProviderError::new(kind, text.trim_end())
    }

    /// The server could not be reached, or closed the connection before it answered.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ProviderError {
        let why = root_cause(error);
        let refused = io_kind(error) == Some(io::ErrorKind::ConnectionRefused);
        let hint = match why.to_ascii_lowercase() {
            _ if refused => " (is the server running?)",
            w if w.contains("certificate") => " (the setting `caCert` names further certificates to trust)",
            w if w.contains("lookup address") || w.contains("dns") => " (is the address right, and the network up?)",
            _ if error.is_connect() && error.is_timeout() => " (is the address right, and the network up?)",
            _ => "",
        };
        let doing = if error.is_connect() { "no connection" } else { "the connection broke before the answer began" };
        self.error(ErrorKind::Network, &format!("{doing}: {why}{hint}"))
    }

    /// The answer broke off.
    pub(super) fn broken(&self, error: &reqwest::Error) -> ProviderError {
        self.cut(&format!("the connection broke in the middle of the answer: {}", root_cause(error)))
    }

    /// The answer is not whole.
    pub(in super::super) fn cut(&self, why: &str) -> ProviderError {
        self.error(ErrorKind::Cut, why)
    }

    /// Nothing came for too long.
    pub(super) fn silent(&self, limit: Duration) -> ProviderError {
        let why = format!("the server sent nothing for {} s (the setting `idleTimeout`)", limit.as_secs_f32());
        self.error(ErrorKind::Idle, &why)
    }

    /// The server answered with something that is no answer of a model, a proxy's page as a rule.
    pub(in super::super) fn no_answer(&self, body: &str) -> ProviderError {
        let why = format!("the server sent no model's answer but an unexpected text: {}", told(body));
        self.error(ErrorKind::Server, &why)
    }

    /// The server answered with an error.
    pub(super) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ProviderError {
        let kind = kind_of(status.as_u16(), body);
        let name = match status.as_u16() {
            529 => "Overloaded",
            _ => status.canonical_reason().unwrap_or_default(),
        };
        let mut why = format!("the server answered {} {name}", status.as_str());
        let place = headers.get(LOCATION).and_then(|l| l.to_str().ok());
        let text = place.map_or_else(|| told(body), |to| format!("it has moved to {to}"));
        if !text.is_empty() {
            why = format!("{why}: {text}");
        }
        ProviderError { retry_after: retry_after(headers), ..self.error(kind, &why) }
    }

    /// The server reported an error in the middle of the answer, or with status 200.
    pub(in super::super) fn reported(&self, error: &Value) -> ProviderError {
        let text = error.to_string();
        let kind = status_in(error).map_or_else(|| kind_by_words(&text), |status| kind_of(status, &text));
        self.error(kind, &format!("the server reported an error: {}", told(&text)))
    }

    fn hint(&self, kind: ErrorKind) -> String {
        let key = if self.key_hint.is_empty() { "the key" } else { &self.key_hint };
        match kind {
            ErrorKind::Auth if self.keyless && self.key_hint.is_empty() => "The server wants a key".into(),
            ErrorKind::Auth if self.keyless => format!("Set {key}"),
            ErrorKind::Auth => format!("Check {key}: is it right, and does its account have credit?"),
            ErrorKind::NotFound => "Check the model's name and the base URL".into(),
            ErrorKind::TooLong => "The conversation is too long for the model".into(),
            ErrorKind::Invalid
            | ErrorKind::RateLimited
            | ErrorKind::Server
            | ErrorKind::Network
            | ErrorKind::Cut
            | ErrorKind::Idle => String::new(),
        }
    }

    fn masked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.reveal(), "***"))
    }
}

/// An address without what may be secret in it.
fn shown(mut url: Url) -> String {
    // Fails only for addresses that cannot have a user, and so have none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

fn kind_of(status: u16, body: &str) -> ErrorKind {
    let words = lowercase(body);
    match status {
        401..=403 => ErrorKind::Auth,
        429 if any(&words, NO_CREDIT) => ErrorKind::Auth,
        429 => ErrorKind::RateLimited,
        408 | 409 | 425 => ErrorKind::Network,
        413 => ErrorKind::TooLong,
        400 | 422 | 500 if any(&words, TOO_LONG) => ErrorKind::TooLong,
        400 if any(&words, NO_CREDIT) || any(&words, WRONG_KEY) => ErrorKind::Auth,
        404 | 405 | 410 | 300..=399 => ErrorKind::NotFound,
        500.. => ErrorKind::Server,
        _ => ErrorKind::Invalid,
    }
}

/// The kind of an error without a status. Where nothing is known the request was good, so it may do better later.
fn kind_by_words(text: &str) -> ErrorKind {
    let words = lowercase(text);
    let table = [
        (TOO_LONG, ErrorKind::TooLong),
        (NO_CREDIT, ErrorKind::Auth),
        (WRONG_KEY, ErrorKind::Auth),
        (&["rate_limit", "rate limit", "too many requests", "resource_exhausted"], ErrorKind::RateLimited),
        (&["overloaded", "server_error", "api_error", "timeout", "timed out"], ErrorKind::Server),
        (&["not_found", "model not found", "does not exist"], ErrorKind::NotFound),
        (&["invalid_request", "invalid_argument", "bad_request"], ErrorKind::Invalid),
    ];
    table.iter().find(|(list, _)| any(&words, list)).map_or(ErrorKind::Server, |(_, kind)| *kind)
}

fn any(words: &str, list: &[&str]) -> bool {
    list.iter().any(|w| words.contains(w))
}

fn lowercase(text: &str) -> String {
    text.chars().take(4096).collect::<String>().to_ascii_lowercase()
}

fn status_in(error: &Value) -> Option<u16> {
    let number = |v: &Value| v.as_u64().or_else(|| v.as_str()?.trim().parse().ok());
    let found = ["code", "status", "status_code", "http_code"].iter().find_map(|name| number(error.get(name)?))?;
    u16::try_from(found).ok().filter(|s| (300..600).contains(s))
}

/// What a body says, in plain text: the message of a JSON error, the title of a page, or else the text.
fn told(body: &str) -> String {
    let text = match serde_json::from_str::<Value>(body) {
        Ok(value) => message_in(&value).unwrap_or_else(|| body.to_owned()),
        Err(_) if body.trim_start().starts_with('<') => page_text(body),
        Err(_) => body.to_owned(),
    };
    clip(&text)
}

fn message_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.first().and_then(message_in),
        Value::Object(fields) => {
            let inner = ["error", "message", "detail", "errors", "msg", "reason"].iter().find_map(|n| fields.get(*n));
            let message = inner.and_then(message_in)?;
            // What a server in front passes on of the one behind it says more than its own words.
            let raw = fields.get("metadata").and_then(|m| m.get("raw")).and_then(Value::as_str);
            Some(raw.map_or_else(|| message.clone(), |raw| format!("{message}: {raw}")))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The title of a page, or else its text.
fn page_text(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let from = at + lower[at..].find('>')? + 1;
        let to = from + lower[from..].find("</title")?;
        Some(page[from..to].trim()).filter(|t| !t.is_empty())
    });
    if let Some(title) = title {
        return title.to_owned();
    }
    let mut text = String::new();
    for piece in page.split('<').take(2000) {
        let (tag, after) = piece.split_once('>').unwrap_or(("", piece));
        let hidden = ["script", "style", "!--"].iter().any(|t| tag.to_ascii_lowercase().starts_with(t));
        if !hidden && !after.trim().is_empty() {
            text.push_str(after.trim());
            text.push(' ');
        }
    }
    text
}

/// One line of at most so many characters, without what moves a cursor.
fn clip(text: &str) -> String {
    let mut line = String::new();
    let mut room = SHOWN;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(room));
        room = room.saturating_sub(word.chars().count() + 1);
        if room == 0 {
            return line + "…";
        }
    }
    line
}

/// How long the server wants us to wait.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let seconds = |s: f64| Duration::try_from_secs_f64(s).ok();
    if let Some(ms) = text("retry-after-ms").and_then(|t| t.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    let wanted = text(RETRY_AFTER.as_str())?;
    if let Ok(s) = wanted.parse::<f64>() {
        return seconds(s);
    }
    // A date is measured by the server's own clock: ours may differ, and is not ours to read.
    let date = |t: &str| rfc2822::DateTimeParser::new().parse_timestamp(t).ok();
    let (until, now): (Timestamp, Timestamp) = (date(wanted)?, date(text(DATE.as_str())?)?);
    seconds(until.duration_since(now).as_secs_f64().max(0.0))
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    // The outermost error names the address, which the message has already.
    if error.source().is_none() && error.url().is_some() { "the request could not be sent".into() } else { text }
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(e) = cause {
        if let Some(io) = e.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        cause = e.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderName;

    use super::*;

    fn asking() -> Asking {
        let endpoint = Endpoint::new("http://u:pw-1234@h/v1?k=v").with_key("sk-case-2001", "OPENAI_API_KEY");
        Asking::new(&endpoint, &endpoint.base_url, "m")
    }

    fn refused(status: u16, body: &str) -> ProviderError {
        asking().refused(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body)
    }

    #[test]
    fn a_status_and_its_words_give_the_kind() {
        use ErrorKind::*;
        for (status, body, kind) in [
            (401, "", Auth),
            (403, "{}", Auth),
            (402, "", Auth),
            (404, r#"{"error":"model 'x' not found"}"#, NotFound),
            (308, "", NotFound),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#, TooLong),
            (400, "the request exceeds the available context size", TooLong),
            (400, "prompt is too long: 200001 tokens > 200000 maximum", TooLong),
            (413, "", TooLong),
            (400, "max_tokens is wrong", Invalid),
            (400, r#"[{"error":{"message":"API key not valid. Please pass a valid API key."}}]"#, Auth),
            (400, "Your credit balance is too low", Auth),
            (422, "x", Invalid),
            (408, "", Network),
            (409, "", Network),
            (425, "", Network),
            (429, "slow down", RateLimited),
            (429, r#"{"error":{"type":"insufficient_quota"}}"#, Auth),
            (500, "", Server),
            (503, "", Server),
            (529, "", Server),
            (418, "", Invalid),
        ] {
            assert_eq!(refused(status, body).kind, kind, "{status} {body}");
        }
    }

    #[test]
    fn an_error_within_an_answer_gives_the_kind() {
        use ErrorKind::*;
        for (error, kind) in [
            (r#"{"message":"upstream timed out","code":504}"#, Server),
            (r#"{"message":"x","code":"429"}"#, RateLimited),
            (r#"{"type":"overloaded_error","message":"Overloaded"}"#, Server),
            (r#"{"type":"rate_limit_error","message":"x"}"#, RateLimited),
            (r#"{"type":"authentication_error","message":"x"}"#, Auth),
            (r#"{"type":"invalid_request_error","message":"x"}"#, Invalid),
            (r#"{"type":"invalid_request_error","message":"prompt is too long"}"#, TooLong),
            (r#"{"code":"insufficient_quota","message":"x"}"#, Auth),
            (r#"{"code":1305,"message":"x"}"#, Server),
            (r#""went wrong""#, Server),
        ] {
            let error: Value = serde_json::from_str(error).unwrap();
            assert_eq!(asking().reported(&error).kind, kind, "{error}");
        }
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        assert_eq!(asking().url(), "http://h/v1");
    }

    #[test]
    fn messages_are_short_plain_and_without_keys() {
        let page = format!("<html><style>b{{}}</style>{}</html>", "<p>bad gateway</p>".repeat(60000));
        for (status, body, expect) in [
            (
                401,
                r#"{"error":{"message":"invalid x-api-key sk-case-2001 pw-1234"}}"#,
                "Asking m at http://h/v1 failed: the server answered 401 Unauthorized: invalid x-api-key *** ***. Check OPENAI_API_KEY: is it right, and does its account have credit?",
            ),
            (
                502,
                "<html><head><TITLE>502 Bad\nGateway</TITLE></head></html>",
                "Asking m at http://h/v1 failed: the server answered 502 Bad Gateway: 502 Bad Gateway.",
            ),
            (
                500,
                "\x1b[31mred\x07",
                "Asking m at http://h/v1 failed: the server answered 500 Internal Server Error: [31mred.",
            ),
            (503, "", "Asking m at http://h/v1 failed: the server answered 503 Service Unavailable."),
            (529, "", "Asking m at http://h/v1 failed: the server answered 529 Overloaded."),
            (
                429,
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"upstream is busy"}}}"#,
                "Asking m at http://h/v1 failed: the server answered 429 Too Many Requests: Provider returned error: upstream is busy.",
            ),
            (
                404,
                r#"{"detail":[{"msg":"no model"}]}"#,
                "Asking m at http://h/v1 failed: the server answered 404 Not Found: no model. Check the model's name and the base URL",
            ),
        ] {
            assert_eq!(refused(status, body).message, expect);
        }
        let long = refused(502, &page).message;
        assert!(long.contains("bad gateway bad gateway") && long.chars().count() < 450, "{long}");
        // Masked before it is cut: half a key is a secret too.
        let edge = format!("{}sk-case-2001", "x".repeat(250));
        for pad in 0..60 {
            assert!(!refused(500, &format!("{}{edge}", "y".repeat(pad))).message.contains("sk-c"));
        }
    }

    #[test]
    fn waiting_times_are_read_in_all_their_forms() {
        for (headers, expect) in [
            (&[("retry-after", "2")][..], Some(2.0)),
            (&[("retry-after", "0.5")], Some(0.5)),
            (&[("retry-after-ms", "250"), ("retry-after", "9")], Some(0.25)),
            (
                &[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")],
                Some(30.0),
            ),
            (&[("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT"), ("date", "Wed, 21 Oct 2026 07:28:00 GMT")], Some(0.0)),
            (&[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ] {
            let map: HeaderMap =
                headers.iter().map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap())).collect();
            assert_eq!(retry_after(&map).map(|d| d.as_secs_f64()), expect, "{headers:?}");
        }
    }
}
