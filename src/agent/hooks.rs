//! `AgentHooks`: functions of the host program around a turn.
//!
//! `onAgentMessage` and `onSessionEnd` are observers: their failure is reported and changes
//! nothing. Every other hook that fails, or takes too long, fails the run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::base::clock::SharedClock;
use crate::base::json::type_name;
use crate::base::telemetry;
use crate::engine::{HookedCall, LostCall, StoredCall, TurnHooks};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap};
use crate::tool::{SessionRef, ToolOutput};

use super::host::{FunctionId, Host};
use super::host_tool::context;

/// Time that a hook may take.
const HOOK_TIME: Duration = Duration::from_secs(30);

/// The hooks that were given, under the names that users know.
#[expect(clippy::struct_field_names, reason = "the names of the interface")]
#[derive(Clone, Copy, Debug, Default)]
pub struct HookTable {
    pub on_session_start: Option<FunctionId>,
    pub on_session_end: Option<FunctionId>,
    pub on_user_message: Option<FunctionId>,
    pub on_tool_start: Option<FunctionId>,
    pub on_tool_end: Option<FunctionId>,
    pub on_agent_message: Option<FunctionId>,
    /// `config.onUnknownOutcome`, which is no hook but asked like one.
    pub on_unknown_outcome: Option<FunctionId>,
}

/// The hooks of an agent.
pub struct AgentHooks {
    pub table: HookTable,
    pub host: Arc<dyn Host>,
    pub clock: SharedClock,
}

impl AgentHooks {
    /// Before the first run of a session.
    pub async fn session_start(&self, session: &SessionRef) -> Result<()> {
        let payload = || session_payload(session);
        self.call("onSessionStart", self.table.on_session_start, payload)
            .await
            .map(drop)
    }

    /// After the last run of a session.
    pub async fn session_end(&self, session: &SessionRef) {
        let payload = || session_payload(session);
        observe(
            "onSessionEnd",
            self.call("onSessionEnd", self.table.on_session_end, payload)
                .await,
        );
    }

    /// Calls a hook; gives the fields of the object it returned, none when it returned nothing.
    async fn call(
        &self,
        name: &'static str,
        function: Option<FunctionId>,
        payload: impl FnOnce() -> Json,
    ) -> Result<Option<JsonMap>> {
        let name = format!("config.hooks.{name}");
        match self.ask(&name, function, payload).await? {
            Json::Null => Ok(None),
            Json::Object(fields) => Ok(Some(fields)),
            other => Err(KernelError::new(
                ErrorKind::Hook,
                format!(
                    "{name} must return an object or nothing, not {}",
                    type_name(&other)
                ),
            )),
        }
    }

    /// Calls a function and waits for what it returns; null when there is no function.
    async fn ask(
        &self,
        name: &str,
        function: Option<FunctionId>,
        payload: impl FnOnce() -> Json,
    ) -> Result<Json> {
        let Some(function) = function else {
            return Ok(Json::Null);
        };
        let cancel = CancellationToken::new();
        let result = tokio::select! {
            biased;
            result = self.host.call(function, payload(), cancel.clone()) => result,
            () = self.clock.sleep(HOOK_TIME) => {
                cancel.cancel();
                let ms = HOOK_TIME.as_millis();
                let message = format!("{name} did not settle within {ms} ms");
                return Err(KernelError::new(ErrorKind::HookTimeout, message));
            }
        };
        result.map_err(|failure| failure.into_error(ErrorKind::Hook, name))
    }
}

#[async_trait]
impl TurnHooks for AgentHooks {
    async fn user_message(&self, session: &SessionRef, prompt: &str) -> Result<Option<String>> {
        let payload = || {
            json!({
                "conversationId": session.conversation_id,
                "userId": session.user_id,
                "prompt": prompt,
            })
        };
        let name = "onUserMessage";
        let returned = self.call(name, self.table.on_user_message, payload).await?;
        match returned.and_then(|mut fields| fields.swap_remove("modifiedPrompt")) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(_) => Err(KernelError::new(
                ErrorKind::Hook,
                format!("config.hooks.{name} must return modifiedPrompt as a non-empty string"),
            )),
        }
    }

    async fn tool_start(&self, call: &HookedCall<'_>) -> Result<()> {
        let payload = || call_payload(call);
        self.call("onToolStart", self.table.on_tool_start, payload)
            .await
            .map(drop)
    }

    async fn tool_end(&self, call: &HookedCall<'_>, output: &ToolOutput) -> Result<Option<Json>> {
        let payload = || {
            let mut payload = call_payload(call);
            payload["output"] = output.to_json();
            payload["isError"] = output.is_error.into();
            payload
        };
        let returned = self
            .call("onToolEnd", self.table.on_tool_end, payload)
            .await?;
        Ok(returned.and_then(|mut fields| fields.swap_remove("updatedOutput")))
    }

    async fn unknown_outcome(&self, session: &SessionRef, call: &StoredCall) -> Result<LostCall> {
        let payload = || {
            json!({
                "conversationId": session.conversation_id,
                "userId": session.user_id,
                "toolUseId": call.id,
                "toolName": call.name,
                "input": call.input,
            })
        };
        let name = "config.onUnknownOutcome";
        match self
            .ask(name, self.table.on_unknown_outcome, payload)
            .await?
        {
            Json::Null => Ok(LostCall::Unknown),
            Json::String(word) if word == "retry" => Ok(LostCall::Retry),
            Json::Object(mut fields) if fields.contains_key("result") => Ok(LostCall::Result(
                fields.swap_remove("result").unwrap_or_default(),
            )),
            other => Err(KernelError::new(
                ErrorKind::Hook,
                format!(
                    "{name} must return nothing, 'retry' or {{result}}, not {}",
                    type_name(&other)
                ),
            )),
        }
    }

    async fn agent_message(&self, session: &SessionRef, text: &str) {
        let payload = || {
            json!({
                "conversationId": session.conversation_id,
                "userId": session.user_id,
                "text": text,
            })
        };
        let result = self
            .call("onAgentMessage", self.table.on_agent_message, payload)
            .await;
        observe("onAgentMessage", result);
    }
}

fn observe<T>(hook: &'static str, result: Result<T>) {
    if let Err(error) = result {
        tracing::warn!(target: telemetry::SESSION, hook, code = error.code(), "observer hook failed");
    }
}

fn session_payload(session: &SessionRef) -> Json {
    json!({
        "conversationId": session.conversation_id,
        "userId": session.user_id,
        "envId": session.env_id,
    })
}

fn call_payload(call: &HookedCall<'_>) -> Json {
    let mut payload = context(call.ctx);
    payload["toolName"] = call.name.into();
    payload["input"] = call.input.clone();
    payload
}
