//! Does the search for the limit name the right one? Devices of known nature, with parameters drawn
//! from a seed, and the truth by intervention: a cause is right if the rate rises by a tenth or more
//! once it is removed, and "the device" is right only if no removal does that. A verdict that is
//! withheld is wrong only where an intervention decides.
//!
//! `make attribution` makes 16 runs of each device; the tests make one of some.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use std::sync::{Mutex, MutexGuard, PoisonError};

mod bench;
mod claim;
mod delayed_link;
mod devices;
mod remote;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod setup;
#[path = "../null_token/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod truth;

/// Programs that take the processors would disturb the test beside.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
