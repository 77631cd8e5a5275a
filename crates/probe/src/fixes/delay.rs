//! `delay:FUNCTION=LOW..HIGH`: the function returns later, by an even spread. Recreates a defect,
//! and measures how sensitive a whole program is to one call.

use super::{FIX_DELAY, are_on, of_kind};
use crate::state;
use crate::sys;
use crate::thread::{Thread, now};
use tapstone_probe_core::wire::{CLOCK_TSC, EVENT_FIXED};

/// Waits after the call. Returns whether it did.
pub(super) fn after(thread: &mut Thread, function: u32) -> bool {
    let mut waited = false;
    for fix in of_kind(FIX_DELAY) {
        if fix.is_about(function) && are_on() {
            let spread = fix.high_ns.saturating_sub(fix.low_ns) + 1;
            let nanos = fix.low_ns + random(thread) % spread;
            let start = now();
            sys::sleep(nanos);
            let taken = now().saturating_sub(start);
            // What it took, which is more than what was asked for.
            fix.count_applied();
            thread.journal.put(now(), EVENT_FIXED, 0, 0, [in_nanos(taken)], &[]);
            waited = true;
        }
    }
    waited
}

fn in_nanos(taken: u64) -> u64 {
    let header = state().header();
    match header.clock {
        CLOCK_TSC => taken.saturating_mul(1000) / u64::from(header.ticks_per_micro.max(1)),
        _ => taken,
    }
}

/// Marsaglia's xorshift64 ("Xorshift RNGs", 2003).
fn random(thread: &mut Thread) -> u64 {
    let mut value = thread.random;
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    thread.random = value;
    value
}
