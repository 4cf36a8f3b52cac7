//! The open agent kernel.
//!
//! The floors, from the top down: `node` (bindings), `agent`, `runtime`, `engine`, `render`, `mcp`,
//! `sandbox`, `tool`, `model`, `store`, `base`, `protocol`. An import may only go down; `docs/architecture.md` has the map.

// Test helpers take and give what makes the tests short.
#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        clippy::too_many_lines,
        clippy::unnecessary_wraps
    )
)]

pub mod agent;
pub mod base;
pub mod engine;
pub mod error;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
// Node-API is absent from a Rust test process.
#[cfg(not(test))]
mod node;
pub mod protocol;
pub mod render;
pub mod sandbox;
pub mod store;
pub mod tool;
