//! The open agent kernel.
//!
//! The floors, from the top down: `node` (bindings), `agent`, `runtime`, `engine`, `render`, `tool`,
//! `model`, `base`, `protocol`. An import may only go down; `docs/architecture.md` has the map.

pub mod agent;
pub mod base;
pub mod engine;
pub mod error;
pub mod model;
mod node;
pub mod protocol;
pub mod render;
pub mod tool;
