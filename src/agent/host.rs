//! Functions that the host program gave: tools, hooks.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::error::{ErrorKind, KernelError};
use crate::protocol::Json;

/// A function of the host program, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u32);

/// Calls functions of the host program.
#[async_trait]
pub trait Host: Send + Sync {
    /// Calls a function and waits for what it returns. `cancel` tells the function to stop; dropping
    /// the call tells it too.
    async fn call(
        &self,
        function: FunctionId,
        argument: Json,
        cancel: CancellationToken,
    ) -> Result<Json, HostFailure>;

    /// Calls a function and does not wait; what it returns or throws is lost.
    fn notify(&self, function: FunctionId, argument: Json);
}

/// How a function of the host program failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFailure {
    /// Name of the error, or none when something else was thrown.
    pub name: String,
    pub message: String,
    /// Number under which the host keeps what was thrown.
    pub thrown: Option<u64>,
}

impl HostFailure {
    /// The failure in one line.
    pub fn text(&self) -> &str {
        if self.message.is_empty() {
            &self.name
        } else {
            &self.message
        }
    }

    /// The failure as an error of the kernel that keeps what was thrown.
    pub fn into_error(self, kind: ErrorKind, what: &str) -> KernelError {
        KernelError::new(kind, format!("{what} failed: {}", self.text())).with_thrown(self.thrown)
    }
}
