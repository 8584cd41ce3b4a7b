//! Models behind the OpenAI form: Chat Completions, as most servers speak it.

mod body;
mod decode;

use std::sync::Arc;

use async_trait::async_trait;

use super::http::{Endpoint, Server, below};
use super::quirks::Quirks;
use super::{ErrorKind, Model, Provider, ProviderError, Replies, Request};
use crate::message::Origin;
use body::Body;
use decode::Decoder;

/// A model behind Chat Completions.
pub struct OpenAi {
    model: Model,
    origin: Arc<Origin>,
    server: Server,
    quirks: Quirks,
}

impl OpenAi {
    /// A model at an endpoint. Nothing is connected before the first request.
    pub fn new(model: Model, endpoint: Endpoint) -> Self {
        let url = below(&endpoint.base_url, "/chat/completions");
        let quirks = Quirks::of(&model, &url);
        let server = Server::new(endpoint, url, &model.name);
        let endpoint = server.asking().url().to_owned();
        let origin = Origin { provider: "openai".into(), model: model.name.clone(), endpoint };
        Self { model, origin: Arc::new(origin), server, quirks }
    }

    /// The body of a request, as it is sent.
    ///
    /// # Errors
    /// What cannot be written as JSON.
    pub fn body(&self, request: &Request<'_>) -> Result<Vec<u8>, ProviderError> {
        let body = Body::new(&self.model, request, &self.origin, &self.quirks);
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
        let bearer = self.server.bearer();
        let headers: Vec<_> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
        self.server.post(&headers, body, decoder).await
    }
}
