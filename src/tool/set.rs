//! The tools of one request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{KernelError, Result};
use crate::model::ToolDeclaration;
use crate::protocol::bare_name;

use super::Tool;

/// Longest tool name that the Messages API accepts everywhere.
pub const NAME_LENGTH: usize = 64;

/// An immutable set of tools, sorted by name so that the prompt cache of the gateway matches.
#[derive(Clone, Default)]
pub struct ToolSet {
    by_name: Arc<HashMap<Arc<str>, Arc<dyn Tool>>>,
    declarations: Arc<[ToolDeclaration]>,
}

impl ToolSet {
    /// Fails when two tools have one name, naming both sources.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Result<Self> {
        let mut by_name: HashMap<Arc<str>, Arc<dyn Tool>> = HashMap::with_capacity(tools.len());
        for tool in tools {
            let name = tool.spec().name.clone();
            if let Some(other) = by_name.get(&name) {
                let (first, second) = (&other.spec().source, &tool.spec().source);
                return Err(KernelError::invalid(format!(
                    "{first} and {second} are both named \"{name}\": tool names must be unique"
                )));
            }
            by_name.insert(name, tool);
        }
        let mut declarations: Vec<_> = by_name
            .values()
            .map(|tool| declare(tool.as_ref()))
            .collect();
        declarations.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            by_name: Arc::new(by_name),
            declarations: declarations.into(),
        })
    }

    /// The tools, in no order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.by_name.values()
    }

    /// The tool with a name. The names that an older kernel gave to the tools of the program count too.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let named = self.by_name.get(name);
        named.or_else(|| self.by_name.get(bare_name(name)))
    }

    /// What the model is told.
    pub fn declarations(&self) -> Arc<[ToolDeclaration]> {
        self.declarations.clone()
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.declarations.iter().map(|tool| &tool.name))
            .finish()
    }
}

fn declare(tool: &dyn Tool) -> ToolDeclaration {
    let spec = tool.spec();
    ToolDeclaration {
        name: spec.name.to_string(),
        description: spec.description.clone(),
        input_schema: spec.schema.clone(),
    }
}

/// Whether the Messages API accepts a tool name.
pub fn is_valid_name(name: &str) -> bool {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=NAME_LENGTH).contains(&name.len()) && name.chars().all(accepted)
}
