//! Fixes, tried on an unmodified program.
//!
//! - [`trial`]: rounds with the fix off, on, and without observation; predicted beside measured.
//! - [`behaviour`]: whether the program did the same with the fix.
//! - [`guard`]: what a program must not have done to be run again.

#![forbid(unsafe_code)]

pub mod behaviour;
pub mod guard;
pub mod trial;
