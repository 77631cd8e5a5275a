//! Observes programs, and yields what was seen as [`tapstone_events`].
//!
//! - [`observe`]: one run of a command, observed: by the probe, and at its system calls if wanted.
//! - [`probe`]: the library inside the program, and the file that it writes to; [`recording`]: what
//!   is in that file, as events; [`kept`]: a file that an earlier run has kept.
//! - `callers`: the stacks that calls came from; `code`: the files of code that these lead into.
//! - [`syscalls`]: system calls by ptrace(2), with the stacks that made them.
//! - [`daemon`]: a program beside the observed one, observed too.
//! - [`blind`], [`starts`]: programs that the probe did not reach, and why.

mod callers;
mod clock;
#[cfg_attr(not(probe), allow(dead_code, unused_imports, reason = "no probe, no stacks of its own"))]
mod code;

pub mod blind;
pub mod daemon;
pub mod kept;
pub mod observe;
pub mod probe;
pub mod recording;
pub mod starts;
#[cfg_attr(not(probe), path = "syscalls_elsewhere.rs")]
pub mod syscalls;

use tapstone_probe_core::wire;
