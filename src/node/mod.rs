//! The Node-API binding: thin classes over `agent`, and nothing else.
//!
//! Values cross as JSON text, made and read by the files in `js/`; callbacks cross through one
//! dispatch function per agent. This is the only room that knows napi.

// Node-API hands arguments over by value, and `Env` by reference for the lifetime it carries.
#![allow(clippy::needless_pass_by_value, clippy::trivially_copy_pass_by_ref)]

mod agent;
mod checker;
mod documents;
mod error;
mod host;
mod run;
mod session;
mod stopper;
mod store;

use napi_derive::napi;

/// Version of the package.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Names of the environment variables that an agent reads.
#[napi]
pub fn environment_variables() -> Vec<&'static str> {
    crate::base::environment::variables()
}
