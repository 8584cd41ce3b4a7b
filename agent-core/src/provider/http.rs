//! The way to a server that speaks HTTP: address, key, time limits, and answers as they come in.

pub(crate) mod client;
mod failure;
mod replies;
pub(super) mod wire;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response, Url};
use tokio::time::timeout;

pub(super) use failure::Asking;
#[cfg(test)]
pub(super) use replies::played;
pub(super) use replies::{Decode, Outbox};

use super::{ErrorKind, ProviderError, Replies};

/// How long a server may be silent where nothing else is set.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a list of models may be, in bytes.
const LIST_LIMIT: usize = 8 << 20;

const AGENT: &str = concat!("agent-core/", env!("CARGO_PKG_VERSION"));

/// A key. Its `Debug` does not show it, and no message does.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A key; blanks and line ends around it are dropped.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// The key itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a server is and how it is talked to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Endpoint {
    /// The base URL; the provider appends its path.
    pub base_url: String,
    /// The key; local servers need none.
    pub key: Option<Secret>,
    /// Where the key comes from, for messages: the name of the variable.
    pub key_hint: String,
    /// How long the server may be silent: before it answers and between two pieces of the answer.
    pub idle_timeout: Duration,
    /// The URL of a proxy. The environment is not looked at.
    pub proxy: Option<String>,
    /// Hosts that are asked without the proxy, as `NO_PROXY` has them. Those of this machine always are.
    pub no_proxy: Vec<String>,
    /// A PEM file of certificates that are trusted besides the system's.
    pub ca_cert: Option<PathBuf>,
    /// Further headers. Their values are secrets too.
    pub headers: Vec<(String, Secret)>,
}

impl Endpoint {
    /// An endpoint without a key, with the default time limit.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            key_hint: String::new(),
            idle_timeout: IDLE_TIMEOUT,
            proxy: None,
            no_proxy: Vec::new(),
            ca_cert: None,
            headers: Vec::new(),
        }
    }

    /// Sets the key, and the name of the variable that it comes from.
    #[must_use]
    pub fn with_key(mut self, key: impl AsRef<str>, hint: impl Into<String>) -> Self {
        self.key = Some(Secret::new(key));
        self.key_hint = hint.into();
        self
    }
}

/// The base URL without a query and closing slashes, and whether it has a path.
pub(super) fn base(url: &str) -> (&str, bool) {
    let url = url.trim();
    let base = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    (base, rest.contains('/'))
}

/// The address of a path of the OpenAI forms below a base URL: one without any path gets a version first.
pub(super) fn below(base_url: &str, path: &str) -> String {
    let (base, has_path) = base(base_url);
    let query = query(base_url);
    match (has_path, base.ends_with(path)) {
        (_, true) => format!("{base}{query}"),
        (true, false) => format!("{base}{path}{query}"),
        (false, false) => format!("{base}/v1{path}{query}"),
    }
}

/// The query of an address, with its mark.
pub(super) fn query(url: &str) -> String {
    url.trim().split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"))
}

/// A server that one kind of request is sent to. The client is made at the first one, and keeps its connection.
pub(super) struct Server {
    endpoint: Endpoint,
    url: String,
    asking: Arc<Asking>,
    client: OnceLock<Result<Client, ProviderError>>,
}

impl Server {
    pub(super) fn new(endpoint: Endpoint, url: String, model: &str) -> Self {
        let asking = Arc::new(Asking::new(&endpoint, &url, model));
        Self { endpoint, url, asking, client: OnceLock::new() }
    }

    /// What messages say of a request.
    pub(super) fn asking(&self) -> &Arc<Asking> {
        &self.asking
    }

    /// The key, where there is one.
    pub(super) fn key(&self) -> Option<&Secret> {
        self.endpoint.key.as_ref()
    }

    /// The headers of the OpenAI forms: the key, where there is one.
    pub(super) fn bearer(&self) -> Option<String> {
        self.endpoint.key.as_ref().map(|key| format!("Bearer {}", key.reveal()))
    }

    /// Sends a JSON body, and decodes the answer as it comes in.
    pub(super) async fn post(
        &self,
        headers: &[(&'static str, &str)],
        body: Vec<u8>,
        decoder: impl Decode,
    ) -> Result<Replies, ProviderError> {
        let headers = self.headers(headers)?;
        let response = self.send(|client, url| client.post(url).headers(headers).body(body)).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        Ok(replies::read(response, self.endpoint.idle_timeout, decoder, self.asking.clone()).boxed())
    }

    /// The body of what lies there.
    pub(super) async fn get(&self, headers: &[(&'static str, &str)]) -> Result<Vec<u8>, ProviderError> {
        let headers = self.headers(headers)?;
        let mut response = self.send(|client, url| client.get(url).headers(headers)).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|e| self.asking.broken(&e))? {
            body.extend_from_slice(&bytes);
            if body.len() > LIST_LIMIT {
                return Err(self.asking.error(ErrorKind::Invalid, "the list is too long"));
            }
        }
        Ok(body)
    }

    async fn send(&self, request: impl FnOnce(&Client, Url) -> RequestBuilder) -> Result<Response, ProviderError> {
        let url = self.address()?;
        let client = self.client.get_or_init(|| client::build(&self.endpoint, &url, &self.asking));
        let client = client.as_ref().map_err(Clone::clone)?;
        match timeout(self.endpoint.idle_timeout, request(client, url).send()).await {
            Ok(sent) => sent.map_err(|e| self.asking.unreachable(&e)),
            Err(_) => Err(self.asking.silent(self.endpoint.idle_timeout)),
        }
    }

    fn address(&self) -> Result<Url, ProviderError> {
        let url = Url::parse(&self.url).map_err(|e| self.asking.error(ErrorKind::Invalid, &e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(self.asking.error(ErrorKind::Invalid, "a base URL begins with http:// or https://"));
        }
        Ok(url)
    }

    fn headers(&self, own: &[(&'static str, &str)]) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let further = self.endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        for (name, value) in own.iter().copied().chain(further) {
            let (name, value) = self.header(name, value)?;
            headers.insert(name, value);
        }
        Ok(headers)
    }

    fn header(&self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ProviderError> {
        let wrong = || {
            let why = format!("the header `{name}` (the key, as a rule) holds characters that no header may");
            self.asking.error(ErrorKind::Auth, &why)
        };
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value))
    }

    async fn refusal(&self, mut response: Response) -> ProviderError {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while body.len() < failure::BODY_LIMIT {
            match timeout(self.endpoint.idle_timeout, response.chunk()).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                // What there is of it has to do.
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        self.asking.refused(status, &headers, &String::from_utf8_lossy(&body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_shown() {
        let mut endpoint = Endpoint::new("http://h").with_key(" sk-1234\n", "KEY");
        endpoint.headers.push(("x".into(), Secret::new("hush-5678")));
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("1234") && !shown.contains("5678"), "{shown}");
        assert_eq!(endpoint.key.unwrap().reveal(), "sk-1234");
    }

    #[test]
    fn a_base_without_path_gets_a_version() {
        for (base, expect) in [
            ("http://h:1", "http://h:1/v1/x"),
            ("http://h:1/", "http://h:1/v1/x"),
            ("http://h/v1", "http://h/v1/x"),
            ("http://h/s/abc/", "http://h/s/abc/x"),
            ("https://h/v1beta/openai/", "https://h/v1beta/openai/x"),
            ("https://h/v1/x", "https://h/v1/x"),
            ("https://h/d?api-version=1", "https://h/d/x?api-version=1"),
        ] {
            assert_eq!(below(base, "/x"), expect);
        }
    }

    #[test]
    fn bases_are_cut_to_what_a_path_can_be_appended_to() {
        for (url, expect) in [
            ("http://h", ("http://h", false)),
            (" http://h:1/ ", ("http://h:1", false)),
            ("https://h/v1//", ("https://h/v1", true)),
            ("https://h/a/b?x=/y", ("https://h/a/b", true)),
        ] {
            assert_eq!(base(url), expect, "{url}");
        }
    }
}
