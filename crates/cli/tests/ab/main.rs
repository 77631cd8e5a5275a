//! `tapstone ab` on real commands: shell scripts of which everything is known.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod bad_input;
mod failures;
mod progress;
mod signals;
mod support;
mod verdicts;
