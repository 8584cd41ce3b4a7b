//! Models behind the OpenAI form: Chat Completions, as most servers speak it.

mod body;
mod decode;

use std::sync::Arc;

use async_trait::async_trait;

use super::http::{Endpoint, Server, base};
use super::{ErrorKind, Model, Provider, ProviderError, Replies, Request};
use crate::message::Origin;
use body::Body;
use decode::Decoder;

/// A model behind Chat Completions.
pub struct OpenAi {
    model: Model,
    origin: Arc<Origin>,
    server: Server,
    // OpenAI's own newer models refuse `max_tokens`, most other servers know nothing else.
    new_limit: bool,
}

impl OpenAi {
    /// A model at an endpoint. Nothing is connected before the first request.
    pub fn new(model: Model, endpoint: Endpoint) -> Self {
        let url = url(&endpoint.base_url);
        let new_limit = ["://api.openai.com", ".openai.azure.com"].iter().any(|host| url.contains(host));
        let server = Server::new(endpoint, url, &model.name);
        let endpoint = server.asking().url().to_owned();
        let origin = Origin { provider: "openai".into(), model: model.name.clone(), endpoint };
        Self { model, origin: Arc::new(origin), server, new_limit }
    }

    /// The body of a request, as it is sent.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, ProviderError> {
        let body = Body::new(&self.model, request, &self.origin, self.new_limit);
        serde_json::to_vec(&body).map_err(|e| self.server.asking().error(ErrorKind::Invalid, &e.to_string()))
    }
}

#[async_trait]
impl Provider for OpenAi {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let body = self.body(&request)?;
        let decoder = Decoder::new(self.server.asking().clone(), self.origin.clone(), &request);
        let bearer = self.server.key().map(|key| format!("Bearer {}", key.reveal()));
        let headers: Vec<_> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
        self.server.post(&headers, body, decoder).await
    }
}

/// The address of chat completions below a base URL.
fn url(base_url: &str) -> String {
    let (base, has_path) = base(base_url);
    let query = base_url.trim().split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"));
    match (has_path, base.ends_with("/chat/completions")) {
        (_, true) => format!("{base}{query}"),
        (true, false) => format!("{base}/chat/completions{query}"),
        (false, false) => format!("{base}/v1/chat/completions{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_without_path_gets_a_version() {
        for (base, expect) in [
            ("http://h:1", "http://h:1/v1/chat/completions"),
            ("http://h:1/", "http://h:1/v1/chat/completions"),
            ("http://h/v1", "http://h/v1/chat/completions"),
            ("http://h/s/abc/", "http://h/s/abc/chat/completions"),
            ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/d?api-version=1", "https://h/d/chat/completions?api-version=1"),
        ] {
            assert_eq!(url(base), expect);
        }
    }
}
