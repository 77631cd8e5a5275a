//! `syscalls::observe` on real programs: a fixture in C whose calls are known, and programs of the
//! system. What a program does under observation is held to what it does without.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod behaviour;
mod counts;
mod stacks;
mod support;
mod terminal;
mod times;
