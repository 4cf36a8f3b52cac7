//! Calling functions of the JavaScript program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use napi::Status;
use napi::bindgen_prelude::{Function, Promise};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::{FunctionId, Host, HostFailure};
use crate::protocol::Json;

/// Weak: it does not keep the process alive. A throwing function is caught, not fatal.
type Dispatch = ThreadsafeFunction<String, Promise<String>, String, Status, false, true>;

/// The functions of one agent, behind one dispatch function.
pub struct JsHost {
    dispatch: Arc<Dispatch>,
    calls: AtomicU64,
}

/// A promise that nothing refers to is collected, and its function never replies; so it is when the
/// environment of the addon ends.
const UNSETTLED: &str = "the function returned a promise that can no longer settle";

impl JsHost {
    pub fn new(dispatch: &Function<'_, String, Promise<String>>) -> napi::Result<Self> {
        let dispatch = dispatch
            .build_threadsafe_function::<String>()
            .weak::<true>()
            .callee_handled::<false>()
            .build()?;
        Ok(Self {
            dispatch: Arc::new(dispatch),
            calls: AtomicU64::new(0),
        })
    }
}

/// Tells JavaScript to stop a call, unless it has returned.
struct CallGuard {
    dispatch: Arc<Dispatch>,
    call: Option<u64>,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            let request = json!({ "cancel": call }).to_string();
            self.dispatch
                .call(request, ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

#[async_trait]
impl Host for JsHost {
    async fn call(
        &self,
        function: FunctionId,
        argument: Json,
        cancel: CancellationToken,
    ) -> Result<Json, HostFailure> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let request =
            json!({ "call": call, "function": function.0, "argument": argument }).to_string();
        let mut guard = CallGuard {
            dispatch: self.dispatch.clone(),
            call: Some(call),
        };
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(failure("the call was stopped")),
            reply = self.reply(request) => reply,
        };
        guard.call = None;
        read(&reply.map_err(|_| failure(UNSETTLED))?)
    }

    fn notify(&self, function: FunctionId, argument: Json) {
        let request = json!({ "notify": function.0, "argument": argument }).to_string();
        self.dispatch
            .call(request, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl JsHost {
    async fn reply(&self, request: String) -> napi::Result<String> {
        self.dispatch.call_async_catch(request).await?.await
    }
}

/// Reads `{value}` or `{error: {name, message, thrown}}`.
fn read(reply: &str) -> Result<Json, HostFailure> {
    let Ok(Json::Object(mut fields)) = serde_json::from_str(reply) else {
        return Err(failure("the returned value cannot be read"));
    };
    let Some(error) = fields.get("error") else {
        return Ok(fields.swap_remove("value").unwrap_or_default());
    };
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    Err(HostFailure {
        name: text("name"),
        message: text("message"),
        thrown: error["thrown"].as_u64(),
    })
}

fn failure(message: &str) -> HostFailure {
    HostFailure {
        message: message.to_owned(),
        ..HostFailure::default()
    }
}
