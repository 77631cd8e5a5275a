//! What a trial changes in the program: each fix in a file of its own, applied while the switch of
//! the shared file is on.

mod apdu;
mod delay;
mod lookup;
mod nodelay;
mod wait;

use core::sync::atomic::Ordering;

use crate::state;
use crate::stubs::Frame;
use crate::thread::Thread;
use crate::wire::{
    FIX_CACHE_APDU, FIX_DELAY, FIX_MEMOISE, FIX_NO_BUSY_WAIT, FIX_NO_SLEEP, FIX_TCP_NODELAY,
    FIX_WHOLE_READ, FIXES, FUNCTIONS, Fix, Kind,
};

/// Whether to call the function.
pub(crate) enum Answer {
    Call,
    Replaced(u64),
}

/// The fixes of a kind.
fn of_kind(kind: u32) -> impl Iterator<Item = &'static Fix> {
    let header = state().header();
    let count = (header.fix_count as usize).min(FIXES);
    header.fixes.iter().take(count).filter(move |fix| fix.kind == kind)
}

#[inline(always)]
fn none() -> bool {
    state().header().fix_count == 0
}

/// Asked when a fix was found, not before: both sides of a trial pay for the search.
#[inline(always)]
fn are_on() -> bool {
    state().header().on.load(Ordering::Relaxed) != 0
}

impl Fix {
    /// Whether it is about that function, or about any.
    fn is_about(&self, function: u32) -> bool {
        let Some(function) = FUNCTIONS.get(function as usize) else { return false };
        let name = function.name.as_bytes();
        self.function[0] == 0
            || (self.function.starts_with(name) && self.function.get(name.len()) == Some(&0))
    }

    /// Counts a call that was changed. Writing about each would cost more than some of them.
    fn apply(&self) {
        self.applied.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that it could not change.
    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
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
