//! Models behind the Anthropic form: Messages.

mod body;
mod decode;

use std::sync::Arc;

use async_trait::async_trait;

use super::http::{Endpoint, Server, base, query};
use super::quirks::Quirks;
use super::{ErrorKind, Model, Provider, ProviderError, Replies, Request};
use crate::message::Origin;
use body::Body;
use decode::Decoder;

/// The version of the interface.
pub(super) const VERSION: &str = "2023-06-01";

/// A model behind Messages.
pub struct Anthropic {
    model: Model,
    origin: Arc<Origin>,
    server: Server,
    quirks: Quirks,
}

impl Anthropic {
    /// A model at an endpoint. Nothing is connected before the first request.
    pub fn new(model: Model, endpoint: Endpoint) -> Self {
        let url = url(&endpoint.base_url);
        let quirks = Quirks::of(&model, &url);
        let server = Server::new(endpoint, url, &model.name);
        let endpoint = server.asking().url().to_owned();
        let origin = Origin { provider: "anthropic".into(), model: model.name.clone(), endpoint };
        Self { model, origin: Arc::new(origin), server, quirks }
    }
}

#[async_trait]
impl Provider for Anthropic {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let body = Body::new(&self.model, &request, &self.origin, &self.quirks);
        let asking = self.server.asking();
        let body = serde_json::to_vec(&body).map_err(|e| asking.error(ErrorKind::Invalid, &e.to_string()))?;
        let decoder = Decoder::new(asking.clone(), self.origin.clone(), &request);
        let key = self.server.key().map(|key| ("x-api-key", key.reveal()));
        let headers: Vec<_> = key.into_iter().chain([("anthropic-version", VERSION)]).collect();
        self.server.post(&headers, body, decoder).await
    }
}

/// The address of messages below a base URL.
fn url(base_url: &str) -> String {
    let (base, _) = base(base_url);
    let query = query(base_url);
    match base {
        whole if whole.ends_with("/v1/messages") => format!("{whole}{query}"),
        versioned if versioned.ends_with("/v1") => format!("{versioned}/messages{query}"),
        bare => format!("{bare}/v1/messages{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gets_a_version_unless_it_ends_in_one() {
        for (base, expect) in [
            ("http://h:1", "http://h:1/v1/messages"),
            ("http://h:1/v1/", "http://h:1/v1/messages"),
            ("https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1/messages"),
            ("http://h/v1/messages", "http://h/v1/messages"),
        ] {
            assert_eq!(url(base), expect);
        }
    }
}
