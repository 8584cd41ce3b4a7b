//! Models behind OpenAI's Responses. Nothing is kept at the server: what it wants back is sent back.

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

/// A model behind Responses.
pub struct Responses {
    model: Model,
    origin: Arc<Origin>,
    server: Server,
    quirks: Quirks,
}

impl Responses {
    /// A model at an endpoint. Nothing is connected before the first request.
    pub fn new(model: Model, endpoint: Endpoint) -> Self {
        let url = below(&endpoint.base_url, "/responses");
        let quirks = Quirks::of(&model, &url);
        let server = Server::new(endpoint, url, &model.name);
        let endpoint = server.asking().url().to_owned();
        let origin = Origin { provider: "responses".into(), model: model.name.clone(), endpoint };
        Self { model, origin: Arc::new(origin), server, quirks }
    }
}

#[async_trait]
impl Provider for Responses {
    fn model(&self) -> &Model {
        &self.model
    }

    async fn reply(&self, request: Request<'_>) -> Result<Replies, ProviderError> {
        let asking = self.server.asking();
        let body = Body::new(&self.model, &request, &self.origin, &self.quirks);
        let body = serde_json::to_vec(&body).map_err(|e| asking.error(ErrorKind::Invalid, &e.to_string()))?;
        let decoder = Decoder::new(asking.clone(), self.origin.clone(), &request);
        let bearer = self.server.bearer();
        let headers: Vec<_> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
        self.server.post(&headers, body, decoder).await
    }
}
