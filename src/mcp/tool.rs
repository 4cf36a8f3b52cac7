//! A tool of a server.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;

use super::connection::ToolCall;
use super::listing::ListedTool;
use super::output::read_result;
use super::server::Server;
use crate::error::Result;
use crate::protocol::{Json, ToolKind};
use crate::tool::{Origin, SchemaCheck, Tool, ToolContext, ToolOutput, ToolSpec};

/// A tool of a server, under the name that the model sees.
pub(super) struct McpTool {
    spec: ToolSpec,
    /// Its name at the server.
    name: String,
    server: Arc<Server>,
    /// Made at the first call; none when the schema is not one that can be checked.
    check: OnceLock<Option<SchemaCheck>>,
}

impl McpTool {
    pub fn new(shown: String, tool: &ListedTool, server: Arc<Server>) -> Self {
        let settings = server.settings();
        let spec = ToolSpec {
            name: shown.into(),
            description: tool.description.clone(),
            schema: tool.schema.clone(),
            source: format!("config.mcpServers.{}", settings.name),
            origin: Origin::Mcp {
                server: settings.name.clone(),
                trusted: settings.trusted,
            },
            kind: ToolKind::Other,
            read_only: tool.read_only,
            // Running a call again is only as harmless as the word of the server is good.
            idempotent: settings.trusted && (tool.idempotent || tool.read_only),
            // The limit of the server holds, see `call`.
            timeout: Some(Duration::ZERO),
            check: None,
        };
        Self {
            spec,
            name: tool.name.clone(),
            server,
            check: OnceLock::new(),
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn faults(&self, input: &Json, _: &ToolContext) -> Option<String> {
        let check = self
            .check
            .get_or_init(|| SchemaCheck::lenient(&self.spec.schema));
        check.as_ref()?.faults(input)
    }

    async fn call(&self, input: Json, ctx: ToolContext) -> Result<ToolOutput> {
        let (server, name) = (&self.server, &self.name);
        let Json::Object(arguments) = input else {
            return Ok(ToolOutput::error("The input must be an object."));
        };
        let _hold = server.hold();
        let call = ToolCall {
            name,
            arguments,
            tool_use_id: &ctx.tool_use_id,
            progress: ctx.progress.clone(),
        };
        let settings = server.settings();
        let limit = settings.timeout;
        let result = tokio::select! {
            biased;
            result = server.call(call) => result,
            () = ctx.cancel.cancelled() => return Ok(ToolOutput::error("The call was cancelled.")),
            () = server.clock().sleep(limit) => {
                return Ok(ToolOutput::error(format!(
                    "MCP server \"{}\" did not answer the call of the tool \"{name}\" within {} ms; the \
                     call was cancelled.",
                    settings.name,
                    limit.as_millis()
                )));
            }
        };
        Ok(match result {
            Ok(result) => read_result(result),
            Err(error) => ToolOutput::error(error.message()),
        })
    }
}
