//! Falling back to another model, as a layer around several.

use std::sync::Arc;

use async_stream::stream;
use futures_util::StreamExt;

use crate::error::{ErrorKind, KernelError};
use crate::protocol::RestartReason;

use super::{
    Model, ModelEvent, ModelRequest, ModelStream, RequestSettings, RetryPolicy, truncated,
};

/// A model and what it is asked to be.
#[derive(Clone)]
pub struct Target {
    pub model: Arc<dyn Model>,
    pub settings: RequestSettings,
    /// Says whether a consumer sees text grow and whether it can be taken back.
    pub policy: RetryPolicy,
}

/// The first model that answers. A model that is overloaded, limited or out of reach after its
/// retries is followed by the next; every other failure is final.
pub struct Fallback {
    targets: Vec<Target>,
}

impl Fallback {
    /// `targets` in the order in which they are asked; not empty.
    pub fn new(targets: Vec<Target>) -> Self {
        Self { targets }
    }
}

fn moves_on(error: &KernelError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ModelOverloaded
            | ErrorKind::ModelRateLimit
            | ErrorKind::ModelServer
            | ErrorKind::ModelNetwork
            | ErrorKind::ModelTimeout
    )
}

impl Model for Fallback {
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let targets = self.targets.clone();
        stream! {
            let mut rest = targets.into_iter().peekable();
            while let Some(target) = rest.next() {
                let (from, policy) = (target.settings.model.clone(), target.policy);
                let asked = ModelRequest { settings: target.settings, ..(*request).clone() };
                let mut inner = target.model.stream(Arc::new(asked));
                let mut shown = false;
                let error = loop {
                    match inner.next().await {
                        Some(Ok(event)) => {
                            shown = policy.shown_after(shown, &event);
                            let finished = event == ModelEvent::Finished;
                            yield Ok(event);
                            if finished {
                                return;
                            }
                        }
                        Some(Err(error)) => break error,
                        None => break truncated(),
                    }
                };
                match rest.peek() {
                    Some(next) if moves_on(&error) && (policy.restart || !shown) => {
                        yield Ok(ModelEvent::Restart { reason: RestartReason::ErrorEvent, shown });
                        yield Ok(ModelEvent::FellBack { from, to: next.settings.model.clone() });
                    }
                    _ => {
                        yield Err(error);
                        return;
                    }
                }
            }
        }
        .boxed()
    }
}
