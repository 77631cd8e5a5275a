//! One load from many machines: a real nats-server, and machines with networks and clocks of their
//! own. The laboratory itself is tested too, and what is shipped to deploy agents.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod attacks;
mod deploy;
mod faults;
mod keys;
mod laboratory;
mod machines;
mod many;
mod measuring;
mod own_sample;
mod packets;
mod real_token;
mod relays;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod safety;
mod server;
mod support;
