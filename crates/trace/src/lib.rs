//! Runs a program under observation, says where its time goes, and tries fixes on it.
//!
//! - [`probe`], [`events`], [`observe`]: a program with the probe inside, and what it saw;
//!   [`kept`]: what an earlier one saw; [`blind`], [`starts`], [`losses`]: what it did not see.
//! - [`syscalls`], [`system_calls`]: the system calls that a program makes, with the stacks that
//!   made them.
//! - [`timeline`], [`owners`], [`operation`]: what the program did, whose time it was, and what
//!   counts as one operation.
//! - [`findings`]: time that is wasted. [`trial`], [`behaviour`], [`guard`]: a fix, tried.
//! - [`tables`], [`exchanges`], [`perfetto`], [`folded`]: what was seen, for a record and for other
//!   programs.

mod clock;

pub mod behaviour;
pub mod blind;
pub mod codes;
pub mod daemon;
pub mod exchanges;
pub mod findings;
pub mod folded;
pub mod guard;
pub mod kept;
pub mod observe;
pub mod operation;
pub mod owners;
pub mod perfetto;
pub mod probe;
pub mod reading;
pub mod recording;
pub mod starts;
#[cfg_attr(not(probe), path = "syscalls_elsewhere.rs")]
pub mod syscalls;
pub mod system_calls;
pub mod tables;
pub mod timeline;
pub mod trial;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod synthetic;
mod tree;

use tapstone_probe_core::wire;
