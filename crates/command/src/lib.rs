//! Runs a program as its user would run it: once, in rounds, or two of them interleaved.
//!
//! - [`command`]: a program with its arguments, found before anything is measured.
//! - [`run`]: one run of it: what it took, how it ended, what it printed.
//! - [`observation`]: what is done beside a run by those who observe the program. This crate knows
//!   none of them.
//! - [`rounds`]: several things in turns, so that drift meets all of them alike.
//! - [`ab`]: two whole commands in rounds, and the ratio of their times.

pub mod ab;
pub mod command;
pub mod observation;
pub mod rounds;
pub mod run;
