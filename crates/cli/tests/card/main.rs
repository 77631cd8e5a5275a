//! `tapstone card` on a real pcscd with virtual cards.
//!
//! Without pcscd or its virtual readers the tests skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod bad_input;
mod bench;
mod firewall;
mod malformed;
mod pin;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod trouble;
