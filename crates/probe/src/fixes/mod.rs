//! What a trial changes in the program: each fix in a file of its own, applied while the switch of
//! the shared file is on.

mod apdu;
mod delay;
mod lookup;
mod nodelay;
mod wait;

use crate::state;
use crate::stubs::Frame;
use crate::thread::Thread;
use tapstone_probe_core::functions::Kind;
use tapstone_probe_core::wire::{
    FIX_CACHE_APDU, FIX_DELAY, FIX_MEMOISE, FIX_NO_BUSY_WAIT, FIX_NO_SLEEP, FIX_TCP_NODELAY,
    FIX_WHOLE_READ, Fix,
};

/// Whether to call the function.
pub(crate) enum Answer {
    Call,
    Replaced(u64),
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
pub(crate) unsafe fn before_span(frame: &mut Frame, function: u32) -> Answer {
    if none() {
        return Answer::Call;
    }
    // SAFETY: as above.
    unsafe { apdu::before(frame, function) }
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
    replaced: bool,
) -> bool {
    if none() {
        return false;
    }
    // SAFETY: as above.
    unsafe { apdu::after(frame, function, replaced) };
    delay::after(thread, function)
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
) -> Answer {
    if none() {
        return Answer::Call;
    }
    match kind {
        // SAFETY: as above.
        Kind::Sleep => unsafe { wait::before_sleep(thread, frame, function) },
        // SAFETY: as above.
        Kind::LookupName | Kind::LookupNumber => unsafe { lookup::before(frame, function) },
        Kind::Write => {
            nodelay::before(frame.arguments[0] as u32);
            Answer::Call
        }
        Kind::Close => {
            nodelay::closed(frame.arguments[0] as u32);
            Answer::Call
        }
        _ => Answer::Call,
    }
}

/// After one. `quick`: it could not wait, as its arguments said when it began.
///
/// # Safety
/// The frame is a call of that function, which has returned.
#[inline(always)]
pub(crate) unsafe fn after_leaf(
    thread: &mut Thread,
    frame: &mut Frame,
    function: u32,
    kind: Kind,
    quick: bool,
) {
    if none() {
        return;
    }
    match kind {
        // SAFETY: as above.
        Kind::Clock => unsafe { wait::after_clock(thread, frame, function) },
        Kind::Poll => wait::after_poll(thread, quick && frame.result as i32 == 0),
        // SAFETY: as above.
        Kind::LookupName | Kind::LookupNumber => unsafe { lookup::after(frame, function) },
        _ => {}
    }
}
