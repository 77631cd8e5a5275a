//! `no-sleep[:FUNCTION]`: sleeps inside the function return at once, as if the time had passed; with
//! `:program` those of the program itself, on threads that have made a call before.
//!
//! `no-busy-wait[:FUNCTION]`: a call that polls again and again has its clock moved on:
//! [`busy_wait`](tapstone_probe_core::busy_wait). With `:program`, a program that polls again and again
//! outside of any call waits in its polls.

use tapstone_probe_core::busy_wait::{Polled, move_reading_on, would_sleep};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::wire::{FIX_NO_BUSY_WAIT, FIX_NO_SLEEP};

use super::{FixAnswer, are_on, of_kind};
use crate::memory::memory_of;
use crate::thread::Thread;

/// # Safety
/// The frame is a call that sleeps.
pub(super) unsafe fn before_sleep(thread: &mut Thread, frame: &Frame, function: u32) -> FixAnswer {
    let inside = thread.innermost().map(|open| open.function());
    let has_called = thread.has_called;
    let mut fixes = of_kind(FIX_NO_SLEEP).filter(|fix| match inside {
        Some(function) => fix.is_about(function),
        None => fix.is_about_program() && has_called,
    });
    let Some(fix) = fixes.next().filter(|_| are_on()) else { return FixAnswer::Call };
    // SAFETY: the caller's promise.
    if !unsafe { would_sleep(frame, function, &memory_of(frame)) } {
        return FixAnswer::Call;
    }
    fix.count_applied();
    FixAnswer::Replaced(0)
}

pub(super) fn before_poll(thread: &mut Thread, frame: &mut Frame, function: u32) {
    if thread.innermost().is_some() {
        return;
    }
    let mut fixes = of_kind(FIX_NO_BUSY_WAIT).filter(|fix| fix.is_about_program());
    if let Some(fix) = fixes.next().filter(|_| are_on())
        && thread.own_polls.let_wait(frame, function)
    {
        fix.count_applied();
    }
}

pub(super) fn after_poll(thread: &mut Thread, polled: Polled) {
    let Some(open) = thread.innermost() else { return thread.own_polls.note(polled) };
    let spins = open.busy_wait.note_poll(polled);
    let inside = open.function();
    if !spins {
        return;
    }
    let mut fixes = of_kind(FIX_NO_BUSY_WAIT).filter(|fix| fix.is_about(inside));
    if let Some(fix) = fixes.next().filter(|_| are_on()) {
        if let Some(open) = thread.innermost() {
            open.busy_wait.move_clock_on();
        }
        fix.count_applied();
    }
}

/// # Safety
/// The frame is a call of a function that reads a clock, and that has returned.
pub(super) unsafe fn after_clock(thread: &mut Thread, frame: &mut Frame, function: u32) {
    let ahead = thread.innermost().map_or(0, |open| open.busy_wait.ahead_nanos());
    if ahead != 0 {
        // SAFETY: the caller's promise.
        unsafe { move_reading_on(frame, function, ahead) };
    }
}
