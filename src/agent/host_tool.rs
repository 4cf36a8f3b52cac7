//! A tool whose work is done by a function of the host program.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use crate::base::json::to_text;
use crate::error::Result;
use crate::protocol::Json;
use crate::tool::{Tool, ToolContext, ToolOutput, ToolSpec};

use super::host::{FunctionId, Host};

/// An element of `config.tools`.
pub struct HostTool {
    pub spec: ToolSpec,
    /// None: its calls are answered by the program that reads the stream.
    pub execute: Option<FunctionId>,
    /// Checks inputs in the place of the JSON Schema; answers nothing, or a text of faults.
    pub check: Option<FunctionId>,
    pub host: Arc<dyn Host>,
}

#[async_trait]
impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn faults(&self, input: &Json, ctx: &ToolContext) -> Option<String> {
        let Some(check) = self.check else {
            return self.spec.check.as_ref()?.faults(input);
        };
        let checked = self
            .host
            .call(check, argument(input, ctx), ctx.cancel.clone())
            .await;
        match checked {
            Ok(Json::Null) => None,
            Ok(faults) => Some(to_text(&faults)),
            Err(failure) => Some(format!("- input: the schema failed: {}", failure.text())),
        }
    }

    async fn call(&self, input: Json, ctx: ToolContext) -> Result<ToolOutput> {
        let Some(execute) = self.execute else {
            return Ok(ToolOutput::error(
                "This call is answered by the program that reads the stream.",
            ));
        };
        let argument = argument(&input, &ctx);
        Ok(
            match self.host.call(execute, argument, ctx.cancel.clone()).await {
                Ok(value) => ToolOutput::value(value),
                Err(failure) if failure.text().is_empty() => ToolOutput::error("The tool failed."),
                Err(failure) => ToolOutput::error(failure.text()),
            },
        )
    }
}

fn argument(input: &Json, ctx: &ToolContext) -> Json {
    json!({ "input": input, "context": context(ctx) })
}

/// The context of a call as the host program sees it; the host adds the signal.
pub fn context(ctx: &ToolContext) -> Json {
    json!({
        "toolUseId": ctx.tool_use_id,
        "conversationId": ctx.session.conversation_id,
        "userId": ctx.session.user_id,
        "envId": ctx.session.env_id,
        "idempotencyKey": ctx.idempotency_key,
    })
}
