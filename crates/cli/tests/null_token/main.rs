//! `tapstone token` against a module of which everything is known: what a record says is held
//! against what the module did.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod bad_input;
mod claims;
mod claims_of_known_rate;
mod faults;
mod interfaces;
mod interrupt;
mod keys;
mod leftovers;
mod limit;
mod live;
mod open_loop;
mod pin;
mod python;
#[path = "../../../measure/tests/queue/mod.rs"]
mod queue;
mod rates;
mod reconnect;
mod rounds;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod samples;
mod support;
mod within;
