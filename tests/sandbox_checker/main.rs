//! The sandbox checker against the table of expected verdicts, against made-up attacks, against
//! everyday commands, against text that is meant to hurt, and against a second parser.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod attacks;
mod cases;
mod everyday;
mod hostile;
mod real_shell;
mod second_parser;
mod support;
