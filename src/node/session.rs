//! Sessions.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, within_runtime_if_available};
use napi_derive::napi;
use serde::Serialize;
use serde_json::json;

use crate::agent::{HistoryQuery, PromptResult, Respond, Session};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;
use crate::render::acp::UsageTotals;
use crate::render::{RenderOptions, Renderer};

use super::error::promise;
use super::run::NativeRun;
use super::stopper::Stopper;

/// One conversation.
#[napi]
pub struct NativeSession {
    session: Arc<Session>,
    renderer: Renderer,
}

impl NativeSession {
    pub fn new(session: Arc<Session>, render: RenderOptions) -> Self {
        let renderer = Renderer::new(render, session.id().into());
        Self { session, renderer }
    }
}

#[napi]
impl NativeSession {
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.session.id().to_owned()
    }

    #[napi(getter)]
    pub fn user_id(&self) -> String {
        self.session.user_id().to_owned()
    }

    #[napi(getter)]
    pub fn state(&self) -> String {
        self.session.state()
    }

    /// Starts a run. `input` and `options` are JSON texts.
    #[napi(catch_unwind)]
    pub fn run<'env>(
        &self,
        env: &'env Env,
        input: String,
        options: String,
        stopper: &Stopper,
    ) -> napi::Result<PromiseRaw<'env, NativeRun>> {
        let (interrupter, renderer) = (stopper.interrupter(), self.renderer.clone());
        // At once: of several messages the first that JavaScript sent takes the session.
        let started = within_runtime_if_available(|| {
            self.session
                .start(&json(&input)?, &json(&options)?, interrupter)
        });
        let work = async move { started?.admitted().await };
        promise(env, work, move |run| NativeRun::new(run, renderer))
    }

    /// Starts a run that begins with the answer to a call; `method` is the one of the interface. `answer`
    /// and `options` are JSON texts.
    #[napi(catch_unwind)]
    pub fn respond<'env>(
        &self,
        env: &'env Env,
        method: String,
        answer: String,
        options: String,
        stopper: &Stopper,
    ) -> napi::Result<PromiseRaw<'env, NativeRun>> {
        let method = match method.as_str() {
            "respondAskUser" => Respond::AskUser,
            _ => Respond::ToolUse,
        };
        let (interrupter, renderer) = (stopper.interrupter(), self.renderer.clone());
        let started = within_runtime_if_available(|| {
            let (answer, options) = (json(&answer)?, json(&options)?);
            self.session.respond(method, &answer, &options, interrupter)
        });
        let work = async move { started?.admitted().await };
        promise(env, work, move |run| NativeRun::new(run, renderer))
    }

    /// Runs to the end; resolves to JSON text.
    #[napi(catch_unwind)]
    pub fn prompt<'env>(
        &self,
        env: &'env Env,
        input: String,
        options: String,
        stopper: &Stopper,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let (session, interrupter) = (self.session.clone(), stopper.interrupter());
        let work = async move {
            session
                .prompt(&json(&input)?, &json(&options)?, interrupter)
                .await
        };
        promise(env, work, |result| describe(&result))
    }

    #[napi(catch_unwind)]
    pub fn abort<'env>(
        &self,
        env: &'env Env,
        reason: Option<String>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let ended = self.session.abort(reason);
        let work = async move {
            ended.await;
            Ok(())
        };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let ended = self.session.close();
        promise(env, ended, |()| ())
    }

    /// A page of the history, as JSON text.
    #[napi(catch_unwind)]
    pub fn history<'env>(
        &self,
        env: &'env Env,
        options: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let session = self.session.clone();
        let work = async move {
            let query = HistoryQuery::parse(&json(&options)?)?;
            to_text(&session.history(&query).await?)
        };
        promise(env, work, |text| text)
    }

    #[napi(catch_unwind)]
    pub fn clear_history<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let session = self.session.clone();
        let work = async move { session.clear_history().await };
        promise(env, work, |()| ())
    }

    /// Resolves when every entry is stored.
    #[napi(catch_unwind)]
    pub fn flush<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let session = self.session.clone();
        let work = async move { session.flush().await };
        promise(env, work, |()| ())
    }

    #[napi(catch_unwind)]
    pub fn settled<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        let session = self.session.clone();
        let work = async move {
            session.settled().await;
            Ok(())
        };
        promise(env, work, |()| ())
    }
}

/// Reads JSON that `js/` wrote.
pub fn json(text: &str) -> Result<Json> {
    serde_json::from_str(text)
        .map_err(|error| KernelError::invalid(format!("the value cannot be read: {error}")))
}

/// Writes JSON for `js/`.
pub fn to_text<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| KernelError::new(ErrorKind::Internal, error.to_string()))
}

/// A finished run as JSON text.
pub fn describe(result: &PromptResult) -> String {
    json!({
        "text": result.text,
        "conversationId": result.conversation_id,
        "stopReason": result.stop_reason,
        "usage": UsageTotals::from(&result.usage),
        "numTurns": result.num_turns,
        "pending": result.pending,
    })
    .to_string()
}
