//! `tapstone trace` on real programs: what it sees of them is what they did, and they do what they
//! do without it.
//!
//! Without SoftHSM2, OpenSC, a C compiler, Java or pcscd the tests that need them skip, and say so.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod attached;
mod bad_pointers;
mod blindness;
mod callers;
mod capacity;
mod children;
mod clients;
mod endings;
#[path = "../fixtures/mod.rs"]
#[allow(dead_code, reason = "each of these programs needs a part of it")]
mod fixtures;
mod jumps;
mod kept;
mod languages;
mod limits;
mod modules;
mod nothing;
mod ordinary;
mod program;
#[path = "../../../measure/tests/queue/mod.rs"]
mod queue;
mod reads;
mod repetition;
mod replays;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod searches;
mod secrets;
mod signals;
#[path = "../softhsm/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod softhsm;
mod sums;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod system_calls;
mod wastes;
mod workloads;

use std::ffi::OsString;

use self::program::Program;

/// `trouble`, a program that does what an observer may trip over, with the module that it needs.
/// `None`, which has been said then: there is no C compiler.
fn trouble(what: &str, count: usize) -> Option<Program> {
    let module = fixtures::built("stand-in")?;
    trouble_with(module.into_os_string(), what, count)
}

fn trouble_with(module: OsString, what: &str, count: usize) -> Option<Program> {
    let program = Program::new(fixtures::built("trouble")?);
    Some(program.arg(module).arg(what).arg(count.to_string()))
}

/// The number at the beginning of what `trouble` and others say.
#[track_caller]
fn said(stdout: &str) -> u64 {
    let last = stdout.lines().last().and_then(|line| line.split(' ').next());
    last.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{stdout:?}"))
}
