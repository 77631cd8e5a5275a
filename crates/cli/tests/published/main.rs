//! The published cards, played by the virtual card and measured by `tapstone card` on a real
//! pcscd. A program of its own, so that no other test runs beside what is timed.
//!
//! Without pcscd or its virtual readers the tests skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod cards;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
