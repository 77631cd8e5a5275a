//! `tapstone door measure` on a real pcscd with virtual cards.
//!
//! Without pcscd or its virtual readers the tests skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod authority;
mod bad_input;
mod combinations;
mod decisions;
mod icam;
mod people;
mod pin;
mod profiles;
mod revocation;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod trouble;
