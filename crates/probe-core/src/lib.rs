//! What the probe and its tracer share, and the probe's logic that needs no process.
//!
//! The probe (`crates/probe`) sits inside an observed program, where no test can look. What it
//! decides there is here, so that unit tests decide the same: without standard library, without
//! system calls, and without the linker.
//!
//! - [`wire`]: the file that the probe writes and the tracer reads; [`chunks`]: the parts of it
//!   that a process takes and gives back.
//! - [`functions`], [`names`]: the functions that are watched, by number and by name.
//! - [`frame`], [`capture`], [`reads`], [`apdu`], [`text`]: a call, and what is kept of it;
//!   [`program_memory`]: what may be read for that.
//! - [`journal`]: where a thread writes its events; [`totals`]: sums of calls that it lists no more.
//! - [`leaf`]: calls of libc, which are listed, counted or left out; [`descriptors`]: what they
//!   work on.
//! - [`callers`]: where calls come from; [`cost`]: what watching itself costs.
//! - [`apdu_cache`], [`find_cache`], [`attribute_cache`], [`session_keeper`], [`lookup`],
//!   [`busy_wait`], [`delay`]: what the fixes of a trial decide.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod apdu;
pub mod apdu_cache;
pub mod attribute_cache;
pub mod busy_wait;
pub mod callers;
pub mod capture;
pub mod chunks;
pub mod cost;
pub mod delay;
pub mod descriptors;
pub mod find_cache;
mod fix;
pub mod foreign;
pub mod frame;
pub mod functions;
pub mod journal;
pub mod last_calls;
pub mod leaf;
pub mod lookup;
pub mod names;
pub mod program_memory;
pub mod questions;
pub mod reads;
pub mod session_keeper;
pub mod text;
pub mod times;
pub mod totals;
pub mod wire;
