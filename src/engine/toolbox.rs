//! Where a run gets its tools.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::KernelError;
use crate::tool::ToolSet;

/// The tools that a run may use. They may change between its requests.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// What the next request offers. May wait for tools that are about to be there.
    async fn offer(&self) -> Offer;
}

/// What one request offers.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    pub tools: ToolSet,
    /// What the model should know about the tools, behind the system prompt.
    pub notes: Option<Arc<str>>,
    /// Why tools are missing that the user counts on; each is told once.
    pub failures: Vec<KernelError>,
}

#[async_trait]
impl Toolbox for ToolSet {
    async fn offer(&self) -> Offer {
        Offer {
            tools: self.clone(),
            ..Offer::default()
        }
    }
}
