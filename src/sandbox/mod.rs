//! Places where tools act: what a command or a path may touch, and later the sandboxes themselves.
//!
//! `checker` decides from text and settings alone; it knows nothing of sandboxes, tools or agents.

pub mod checker;
