//! What a trial changes in the program: each fix in a file of its own, applied while the switch of
//! the shared file is on.

mod apdu;
mod attributes;
mod delay;
mod find;
mod keep;
mod lookup;
mod nodelay;
mod shared_cache;
mod wait;

use tapstone_probe_core::busy_wait::Polled;
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::functions::{Kind, PKCS11_V3_2};
use tapstone_probe_core::leaf::LeafTiming;
use tapstone_probe_core::names::known;
use tapstone_probe_core::wire::Fix;

use crate::state;
use crate::thread::Thread;

/// Functions of PKCS#11 come first in the list of those that are watched.
const PKCS11_FUNCTIONS: u32 = PKCS11_V3_2 as u32;

/// Whether to call the function.
pub(crate) enum FixAnswer {
    Call,
    Replaced(u64),
}

/// Who has answered a call that is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    Function,
    Fix,
}

/// The fixes of a kind.
fn of_kind(kind: u32) -> impl Iterator<Item = &'static Fix> {
    state().header().fixes_of_kind(kind)
}

#[inline(always)]
fn none() -> bool {
    state().header().fix_count == 0
}

/// Asked when a fix was found, not before: both sides of a trial pay for the search.
#[inline(always)]
fn are_on() -> bool {
    state().header().fixes_are_on()
}

/// Before a call of PKCS#11, PC/SC or a driver.
///
/// # Safety
/// The frame is a call of that function.
#[inline(always)]
pub(crate) unsafe fn before_span(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
) -> FixAnswer {
    if none() {
        return FixAnswer::Call;
    }
    if function < PKCS11_FUNCTIONS {
        // SAFETY: as above.
        unsafe {
            // A logout or an end that is kept changes no object.
            if let answered @ FixAnswer::Replaced(_) = keep::before_call(thread, frame, function) {
                return answered;
            }
            if let answered @ FixAnswer::Replaced(_) = find::before_call(frame, function) {
                return answered;
            }
            return attributes::before_call(frame, function);
        }
    }
    // SAFETY: as above.
    unsafe { apdu::before_call(frame, function) }
}

/// After one. Returns whether it took time.
///
/// # Safety
/// The frame is a call of that function, which has returned.
#[inline(always)]
pub(crate) unsafe fn after_span(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
    by: AnsweredBy,
) -> bool {
    if none() {
        return false;
    }
    if by == AnsweredBy::Function && function < PKCS11_FUNCTIONS {
        // SAFETY: as above.
        unsafe {
            keep::after_call(frame, function);
            find::after_call(frame, function);
            attributes::after_call(frame, function);
        }
    } else if by == AnsweredBy::Function {
        // SAFETY: as above.
        unsafe { apdu::after_call(frame, function) };
    }
    delay::after_call(thread, function)
}

/// The process is about to end.
pub(crate) fn process_ends() {
    keep::wipe();
}

/// Before a call of libc.
///
/// # Safety
/// The frame is a call of that function.
#[inline(always)]
pub(crate) unsafe fn before_leaf(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
    kind: Kind,
) -> FixAnswer {
    if none() {
        return FixAnswer::Call;
    }
    match kind {
        // SAFETY: as above.
        Kind::Sleep => unsafe { wait::before_sleep(thread, frame, function) },
        // SAFETY: as above.
        Kind::LookupName | Kind::LookupNumber => unsafe { lookup::before_call(frame, function) },
        Kind::Poll => {
            wait::before_poll(thread, frame, function);
            FixAnswer::Call
        }
        Kind::Write => {
            nodelay::before_write(frame.arguments[0] as u32);
            FixAnswer::Call
        }
        Kind::Close if function == known::CLOSE => {
            nodelay::closed(frame.arguments[0] as u32);
            FixAnswer::Call
        }
        _ => FixAnswer::Call,
    }
}

/// After one. It could not wait, as its arguments said when it began, if it is written at its end.
///
/// # Safety
/// The frame is a call of that function, which has returned.
#[inline(always)]
pub(crate) unsafe fn after_leaf(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
    kind: Kind,
    timing: LeafTiming,
) {
    if none() {
        return;
    }
    match kind {
        // SAFETY: as above.
        Kind::Clock => unsafe { wait::after_clock(thread, frame, function) },
        Kind::Poll => {
            let is_empty = timing == LeafTiming::AtEnd && frame.result as i32 == 0;
            wait::after_poll(thread, if is_empty { Polled::Empty } else { Polled::Otherwise });
        }
        // SAFETY: as above.
        Kind::LookupName | Kind::LookupNumber => unsafe { lookup::after_call(frame, function) },
        _ => {}
    }
}
