//! `delay:FUNCTION=LOW..HIGH`: the function returns later, by an even spread. Recreates a defect,
//! and measures how sensitive a whole program is to one call.

use tapstone_probe_core::delay::{delay_nanos, next_random};
use tapstone_probe_core::wire::{CLOCK_TSC, EVENT_FIXED, FIX_DELAY, Head};

use super::{are_on, of_kind};
use crate::file::SharedFile;
use crate::process::now;
use crate::state;
use crate::sys;
use crate::thread::Thread;

/// Waits after the call. Returns whether it did.
pub(super) fn after_call(thread: &mut Thread, function: u32) -> bool {
    let mut waited = false;
    for fix in of_kind(FIX_DELAY) {
        if fix.is_about(function) && are_on() {
            let random = next_random(&mut thread.random);
            let nanos = delay_nanos(random, fix.low_ns, fix.high_ns);
            let start = now();
            sys::sleep(nanos);
            let taken = now().saturating_sub(start);
            // What it took, which is more than what was asked for.
            fix.count_applied();
            let head = Head::new(now(), EVENT_FIXED, 0);
            thread.journal.write_event(&SharedFile, head, [in_nanos(taken)], &[]);
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
