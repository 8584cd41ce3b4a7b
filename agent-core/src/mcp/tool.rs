//! A tool of a server, as a tool of ours.

use std::sync::Arc;
use std::time::Duration;

use agent_tools::policy::Mode;
use agent_tools::text::clipped;
use agent_tools::{
    CallKind, Declaration, GrantKey, Needs, Outline, Part, Permit, Prepared, Status, Tool, ToolContext, ToolError,
    ToolOutput,
};
use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, ResourceContents,
    ServerResult, Tool as Declared,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{Server, State};

/// The longest description that the model reads of a tool, in characters.
const LONGEST_DESCRIPTION: usize = 2048;

/// A tool of a server.
pub(super) struct McpTool {
    declaration: Declaration,
    /// What its server calls it.
    own_name: String,
    /// It only reads, as a server says that a person vouches for.
    reads: bool,
    server: Arc<Server>,
}

impl McpTool {
    pub(super) fn new(name: String, declared: Declared, server: Arc<Server>) -> Self {
        let hinted = declared.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true);
        let mut schema = Value::Object(declared.input_schema.as_ref().clone());
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            schema = json!({"type": "object", "properties": {}});
        }
        let description = declared.description.as_deref().or(declared.title.as_deref()).unwrap_or_default();
        let description = clipped(description, LONGEST_DESCRIPTION);
        let own_name = declared.name.into_owned();
        let reads = hinted && server.spec.trusted;
        Self { declaration: Declaration { name, description, schema }, own_name, reads, server }
    }

    pub(super) fn name(&self) -> &str {
        &self.declaration.name
    }

    /// A server that is gone is wanted back: the next call may find it.
    fn gone(&self, why: &str) -> ToolError {
        self.server.wanted.notify_one();
        ToolError::new(format!(
            "the MCP server {} is not there: {why}. It is started again; call once more, or do without it",
            self.server.spec.name
        ))
    }

    async fn call(&self, arguments: Map<String, Value>, cx: &ToolContext) -> Result<CallToolResult, ToolError> {
        let peer = match &*self.server.state() {
            State::Ready { peer, .. } => peer.clone(),
            State::Connecting => return Err(ToolError::new("the MCP server is not there yet; call again in a moment")),
            State::Gone(why) => return Err(self.gone(why)),
        };
        let params = CallToolRequestParams::new(self.own_name.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle = sent.map_err(|error| self.failed(&error))?;
        let limit: Duration = self.server.around.timeout;
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer,
            () = cx.host.cancelled() => {
                // One that is gone has nothing to cancel.
                let _ = handle.cancel(Some("cancelled by the user".into())).await;
                return Err(ToolError::new("[cancelled by the user]"));
            }
            () = sleep(limit) => {
                let _ = handle.cancel(Some("it took too long".into())).await;
                return Err(ToolError::new(format!("[error: {}s timeout exceeded]", limit.as_secs())));
            }
        };
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
            Ok(Ok(_)) => Err(ToolError::new("the MCP server answered with something that is no result of a call")),
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_) => Err(self.gone("the connection broke")),
        }
    }

    fn failed(&self, error: &ServiceError) -> ToolError {
        match error {
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => self.gone("the connection broke"),
            error => ToolError::new(format!("the MCP server {} refused the call: {error}", self.server.spec.name)),
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    type Input = Map<String, Value>;
    type Work = Map<String, Value>;

    fn declaration(&self) -> Declaration {
        self.declaration.clone()
    }

    fn outline(&self, input: &Map<String, Value>, _cx: &ToolContext) -> Outline {
        let words = input.values().find_map(Value::as_str).unwrap_or_default();
        let title = clipped(&words.split_whitespace().collect::<Vec<_>>().join(" "), 80);
        let mut needs = Needs::mode(Mode::NONE);
        if !self.reads {
            needs.unsure = Some(format!("what `{}` of the MCP server {} does", self.own_name, self.server.spec.name));
            needs.grants = vec![GrantKey::new(format!("the tool `{}`", self.declaration.name), Mode::NONE)];
        }
        Outline::new(CallKind::Other, title).needing(needs)
    }

    async fn prepare(
        &self,
        input: Map<String, Value>,
        _cx: &ToolContext,
    ) -> Result<Prepared<Map<String, Value>>, ToolError> {
        Ok(Prepared::new(input))
    }

    async fn run(
        &self,
        work: Map<String, Value>,
        _permit: &Permit<'_>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let result = self.call(work, cx).await?;
        let status = if result.is_error == Some(true) { Status::Failed } else { Status::Ok };
        let mut text = String::new();
        let mut pictures = Vec::new();
        for block in result.content {
            match said(block) {
                Part::Text { text: words } => {
                    text.push_str(if text.is_empty() { "" } else { "\n" });
                    text.push_str(&words);
                }
                picture => pictures.push(picture),
            }
        }
        if text.is_empty() && pictures.is_empty() {
            text = result.structured_content.map(|value| value.to_string()).unwrap_or_default();
        }
        let mut output = ToolOutput::new(status, self.server.around.cut.told(text));
        output.parts.extend(pictures);
        Ok(output)
    }
}

/// A piece of an answer as the model reads it.
fn said(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => Part::Image { media_type: image.mime_type, data: image.data },
        ContentBlock::Audio(audio) => Part::text(format!("[a sound, {}, is left out]", audio.mime_type)),
        ContentBlock::ResourceLink(link) => Part::text(format!("[{}]({})", link.name, link.uri)),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, uri, .. } => {
                Part::text(format!("<resource uri=\"{uri}\">\n{text}\n</resource>"))
            }
            ResourceContents::BlobResourceContents { uri, .. } => Part::text(format!("[the file {uri} is no text]")),
            _ => Part::text("[a resource of an unknown kind]"),
        },
        _ => Part::text("[something of an unknown kind]"),
    }
}
