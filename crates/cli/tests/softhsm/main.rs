//! `tapstone token` and `tapstone targets` against SoftHSM2, a real token in software.
//!
//! Each test makes tokens of its own in a temporary directory. Without SoftHSM2 every test skips,
//! and says so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod catalogue;
mod concurrency;
mod default_suite;
mod existing_keys;
mod hostile;
mod interrupts;
mod login;
mod output;
mod phases;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod sizes;
mod soak;
mod support;
mod targets;
mod token_keys;
mod tokens;
