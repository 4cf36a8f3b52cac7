//! Errors of the kernel as instances of the JavaScript classes.

use std::cell::RefCell;

use napi::bindgen_prelude::{Function, FunctionRef, PromiseRaw, ToNapiValue, Unknown};
use napi::{Env, Error, Status};
use napi_derive::napi;
use serde_json::json;

use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;

type Factory = FunctionRef<String, Unknown<'static>>;

thread_local! {
    /// Makes error objects; each worker thread has its own classes.
    static FACTORY: RefCell<Option<Factory>> = const { RefCell::new(None) };
}

/// Registers the function that turns the JSON of an error into an instance of its class.
#[napi]
pub fn set_error_factory(factory: Function<'_, String, Unknown<'static>>) -> napi::Result<()> {
    let factory = factory.create_ref()?;
    FACTORY.with_borrow_mut(|slot| *slot = Some(factory));
    Ok(())
}

/// Every error as `[code, class]`, for the JavaScript classes and their documentation.
#[napi]
pub fn error_table() -> Vec<Vec<&'static str>> {
    ErrorKind::ALL
        .iter()
        .map(|kind| vec![kind.code(), kind.class()])
        .collect()
}

/// The JavaScript error for an error of the kernel. Call it on the JavaScript thread.
pub fn to_js(env: &Env, error: &KernelError) -> Error {
    let made = FACTORY.with_borrow(|factory| {
        let factory = factory.as_ref()?.borrow_back(env).ok()?;
        factory.call(describe(error).to_string()).ok()
    });
    made.map_or_else(
        || Error::new(Status::GenericFailure, error.to_string()),
        Error::from_unknown_without_coercion,
    )
}

/// A promise for work in the core.
pub fn promise<T, V>(
    env: &Env,
    work: impl Future<Output = Result<T>> + Send + 'static,
    finish: impl FnOnce(T) -> V + Send + 'static,
) -> napi::Result<PromiseRaw<'_, V>>
where
    T: Send + 'static,
    V: ToNapiValue + 'static,
{
    env.spawn_future_with_callback(
        async move { Ok(work.await) },
        move |env, result| match result {
            Ok(value) => Ok(finish(value)),
            Err(error) => Err(to_js(env, &error)),
        },
    )
}

fn describe(error: &KernelError) -> Json {
    json!({
        "code": error.code(),
        "class": error.kind().class(),
        "message": error.message(),
        "retryable": error.is_retryable(),
        "status": error.status(),
        "requestId": error.request_id(),
        "details": error.details(),
        "thrown": error.thrown(),
    })
}
