//! The stream of a run, in batches.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use crate::agent::RunHandle;
use crate::base::channel::Bounds;
use crate::protocol::StopReason;
use crate::render::Renderer;

use super::error::{promise, to_js};

/// What crosses at once at most.
const BATCH: Bounds = Bounds {
    elements: 256,
    bytes: 256 << 10,
};

/// A batch of which the format shows nothing.
const EMPTY: &str = "[]";

/// A started run. When JavaScript forgets it, the run is stopped.
#[napi]
pub struct NativeRun {
    run: Arc<RunHandle>,
    renderer: Renderer,
}

impl NativeRun {
    pub fn new(run: RunHandle, renderer: Renderer) -> Self {
        Self {
            run: Arc::new(run),
            renderer,
        }
    }
}

#[napi]
impl NativeRun {
    /// Everything that is ready, as the text of a JSON array; null at the end of the stream.
    #[napi(catch_unwind)]
    pub fn next_batch<'env>(
        &self,
        env: &'env Env,
    ) -> napi::Result<PromiseRaw<'env, Option<String>>> {
        let (run, renderer) = (self.run.clone(), self.renderer.clone());
        let work = async move {
            while let Some(updates) = run.updates.batch(BATCH).await {
                let text = renderer.batch(&updates);
                // What the format does not show is not worth a crossing.
                if text != EMPTY {
                    return Ok(Some(text));
                }
            }
            Ok(None)
        };
        promise(env, work, |text| text)
    }

    /// Throws the rest of the stream away and stops the run; resolves when it is over.
    #[napi(catch_unwind)]
    pub fn close<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, ()>> {
        self.run.close();
        let run = self.run.clone();
        let work = async move {
            run.ended().await;
            Ok(())
        };
        promise(env, work, |()| ())
    }

    /// Resolves when the run is over; tells whether it was stopped from outside.
    #[napi(catch_unwind)]
    pub fn stopped<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, bool>> {
        let run = self.run.clone();
        let work = async move { Ok(run.ended().await.stop_reason == StopReason::Aborted) };
        promise(env, work, |stopped| stopped)
    }

    /// Throws the error that the run ended with, if any.
    #[napi(catch_unwind)]
    pub fn rethrow(&self, env: &Env) -> napi::Result<()> {
        match self.run.end().and_then(|end| end.error.clone()) {
            Some(error) => Err(to_js(env, &error)),
            None => Ok(()),
        }
    }
}
