//! Watches programs that already run, without starting, stopping or loading anything into them:
//! calls of PKCS#11 modules, by uprobes and small programs in the kernel.
//!
//! - [`modules`]: the functions that a process has, found in its memory and its files.
//! - [`watch`]: watching them; [`Watched`] is what came of it.
//! - [`source`]: the calls one by one, as [`tapstone_events`]; [`counted`]: or only counted.
//! - [`kept`]: a file of them, to be looked at again.
//! - [`calibration`]: what watching adds to a call.
//!
//! Linux on x86-64, kernel 6.6 or later; sessions of uprobes, which cost half, from 6.13 on.

pub mod calibration;
pub mod counted;
pub mod error;
pub mod kept;
pub mod modules;
pub mod place;
pub mod source;
pub mod watch;

mod bpf;
mod functions;
mod kernel;
mod layout;
mod plan;
mod process;
mod spool;
mod targets;

pub use self::error::AttachError;
pub use self::layout::Totals;
pub use self::plan::WatchPlan;
pub use self::watch::{Watch, Watched};
