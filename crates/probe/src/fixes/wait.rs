//! `no-sleep[:FUNCTION]`: sleeps inside the function return at once, as if the time had passed.
//!
//! `no-busy-wait[:FUNCTION]`: when three polls without a time limit have found nothing inside one
//! call, every further one moves that thread's clock on by a millisecond until the call returns.
//! The call gives up when its own deadline says so, without having spun for so long. Other time
//! limits that it computes from the clock become shorter too.

use super::{Answer, FIX_NO_BUSY_WAIT, FIX_NO_SLEEP, are_on, of_kind};
use crate::capture::known;
use crate::stubs::Frame;
use crate::thread::Thread;

/// Polls that find nothing before it counts as spinning.
const EMPTY_POLLS: u32 = 3;
/// What an empty poll is worth from then on, in nanoseconds.
const STEP_NANOS: u64 = 1_000_000;

/// # Safety
/// The frame is a call that sleeps.
pub(super) unsafe fn before_sleep(thread: &mut Thread, frame: &Frame, function: u32) -> Answer {
    let Some(inside) = thread.innermost().map(|open| open.function) else { return Answer::Call };
    let mut fixes = of_kind(FIX_NO_SLEEP).filter(|fix| fix.is_about(inside));
    let Some(fix) = fixes.next().filter(|_| are_on()) else { return Answer::Call };
    fix.count_applied();
    let left = frame.arguments[1] as *mut [u64; 2];
    if function == known::NANOSLEEP && !left.is_null() {
        // SAFETY: nanosleep(2) would write the time that is left.
        unsafe { *left = [0, 0] };
    }
    Answer::Replaced(0)
}

/// `empty`: it did not wait, and found nothing.
pub(super) fn after_poll(thread: &mut Thread, empty: bool) {
    let Some(open) = thread.innermost() else { return };
    open.empty_polls = if empty { open.empty_polls + 1 } else { 0 };
    let (spins, inside) = (open.empty_polls > EMPTY_POLLS, open.function);
    if !spins {
        return;
    }
    let mut fixes = of_kind(FIX_NO_BUSY_WAIT).filter(|fix| fix.is_about(inside));
    if let Some(fix) = fixes.next().filter(|_| are_on()) {
        if let Some(open) = thread.innermost() {
            open.ahead_nanos += STEP_NANOS;
        }
        fix.count_applied();
    }
}

/// # Safety
/// The frame is a call of a function that reads a clock, and that has returned.
pub(super) unsafe fn after_clock(thread: &mut Thread, frame: &mut Frame, function: u32) {
    let Some(ahead) = thread.innermost().map(|open| open.ahead_nanos) else { return };
    if ahead == 0 {
        return;
    }
    let [first, second, ..] = frame.arguments;
    // SAFETY: where the function has just written the time.
    unsafe {
        match function {
            known::CLOCK_GETTIME => move_on(second, ahead, 1_000_000_000),
            known::GETTIMEOFDAY => move_on(first, ahead / 1_000, 1_000_000),
            known::TIME => {
                frame.result += ahead / 1_000_000_000;
                if first != 0 {
                    *(first as *mut u64) = frame.result;
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// `at` is null or points to seconds and their parts, of which so many are one.
unsafe fn move_on(at: u64, parts: u64, one: u64) {
    let at = at as *mut u64;
    if at.is_null() {
        return;
    }
    // SAFETY: two words.
    unsafe {
        let all = *at.add(1) + parts;
        *at += all / one;
        *at.add(1) = all % one;
    }
}
