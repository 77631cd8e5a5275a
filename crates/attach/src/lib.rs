//! Watches programs that already run, without starting, stopping or loading anything into them:
//! calls of PKCS#11 modules, by uprobes and small programs in the kernel.
//!
//! - [`modules`]: the functions that a process has, found in its memory and its files.

pub mod modules;
pub mod place;

mod bpf;
mod kernel;
mod layout;
mod process;
