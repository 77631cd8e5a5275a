//! What observed events say: a timeline of calls, whose time it was, and what of it was wasted.
//!
//! Everything here is made from [`tapstone_events`]: this crate runs and observes nothing, and knows
//! modules, cards and readers by the names of their functions and codes only.
//!
//! - [`reading`], [`timeline`]: events as calls inside calls, thread by thread.
//! - [`owners`], [`operation`]: whose time it was, and what counts as one operation.
//! - [`system_calls`]: the system calls of a run beside its timeline.
//! - `process_time`: what each process did with its time.
//! - [`findings`]: time that is wasted, and what removing it would save.
//! - [`tables`], [`exchanges`], [`codes`]: what was seen, for a record.
//! - [`perfetto`], [`folded`]: what was seen, for other programs.

#![forbid(unsafe_code)]

pub mod codes;
pub mod exchanges;
pub mod findings;
pub mod folded;
pub mod operation;
pub mod owners;
pub mod perfetto;
mod process_time;
pub mod reading;
pub mod system_calls;
pub mod tables;
pub mod timeline;

#[cfg(test)]
mod samples;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
mod tree;
