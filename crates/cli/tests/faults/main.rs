//! Whatever goes wrong around a run: it ends, in good order and with the right exit code; what was
//! measured is somewhere, old files are whole, and nothing is left.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod cards;
mod deaths;
mod matrix;
mod outputs;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod verbs;
mod workplace;
