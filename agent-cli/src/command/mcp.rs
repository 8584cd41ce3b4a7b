//! `agent mcp`: the tools for any client of the Model Context Protocol, over stdin and stdout, through the gate. Nobody
//! can be asked: what would need a question is refused.

use agent_tools::{Call, Part, Status, ToolOutput};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, serve_server};
use serde_json::Value;

use super::tool::Bench;
use crate::error::{CliError, Exit};
use crate::setup::Setup;

/// Tools that need a conversation, or another agent.
const INSIDE: [&str; 3] = ["SubAgent", "PlanConfirm", "PlanClear"];
/// Tools that only read, whatever they are given.
const READS: [&str; 6] = ["Read", "Glob", "Grep", "Skill", "read_file", "read_skill"];

/// Serves until the client is gone.
///
/// # Errors
/// The client speaks something else.
pub async fn run(setup: &Setup) -> Result<Exit, CliError> {
    let served = Served { bench: Bench::new(setup)?.without(&INSIDE) };
    let failed = |why: String| CliError::failed(format!("serving the tools: {why}"));
    let running = serve_server(served, (tokio::io::stdin(), tokio::io::stdout())).await;
    let running = running.map_err(|e| {
        failed(e.to_string()).hint("`agent mcp` is for programs: a client of the Model Context Protocol starts it")
    })?;
    running.waiting().await.map_err(|e| failed(e.to_string()))?;
    Ok(Exit::Done)
}

struct Served {
    bench: Bench,
}

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("agent", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.bench.tools().declarations().map(|declared| {
            let schema = declared.schema.as_object().cloned().unwrap_or_default();
            let mut tool = Tool::new(declared.name.clone(), declared.description.clone(), schema);
            let reads = READS.contains(&declared.name.as_str());
            tool.annotations = Some(ToolAnnotations::from_raw(None, Some(reads), Some(!reads), None, None));
            tool
        });
        Ok(ListToolsResult { tools: tools.collect(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default()).to_string();
        let call = Call::new(format!("{:?}", context.id), request.name.into_owned(), arguments);
        let output = tokio::select! {
            biased;
            // Dropped, the call ends with all that it started.
            () = context.ct.cancelled() => ToolOutput::new(Status::Failed, "[cancelled by the client]"),
            output = self.bench.call(&call) => output,
        };
        Ok(CallToolResponse::Complete(result(&output)))
    }
}

/// What a call came to, as the client reads it.
fn result(output: &ToolOutput) -> CallToolResult {
    let block = |part: &Part| match part {
        Part::Text { text } => Some(ContentBlock::text(text.clone())),
        Part::Image { media_type, data } => Some(ContentBlock::image(data.clone(), media_type.clone())),
        _ => None,
    };
    let content = output.parts.iter().filter_map(block).collect();
    if output.status == Status::Ok { CallToolResult::success(content) } else { CallToolResult::error(content) }
}
