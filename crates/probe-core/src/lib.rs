//! What the probe and its tracer share, and the probe's logic that needs no process.
//!
//! The probe (`crates/probe`) sits inside an observed program, where no test can look. What it
//! decides there is here, so that unit tests decide the same: without standard library, without
//! system calls, and without the linker.
//!
//! - [`wire`]: the file that the probe writes and the tracer reads.
//! - [`functions`]: the functions that are watched, by number.
#![no_std]

#[cfg(test)]
extern crate std;

mod fix;
pub mod functions;
pub mod wire;
