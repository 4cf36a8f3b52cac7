//! Children that are started through the real `oak-helper`.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a failing helper fails its test"
)]

mod helper;
mod limits;
mod load;
mod parent;
mod program;
mod support;
mod tree;
