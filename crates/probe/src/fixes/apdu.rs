//! `cache-apdu` and `whole-read`: [`apdu_cache`](tapstone_probe_core::apdu_cache) around
//! SCardTransmit.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use tapstone_probe_core::apdu::LONGEST_APDU;
use tapstone_probe_core::apdu_cache::{
    ApduFixes, CARDS, CardCache, CardCall, Instead, card_call, place_of_card,
};
use tapstone_probe_core::capture::{Exchange, apdu_exchange};
use tapstone_probe_core::frame::Frame;
use tapstone_probe_core::wire::{FIX_CACHE_APDU, FIX_WHOLE_READ, Fix};

use super::{FixAnswer, are_on, of_kind};
use crate::memory::memory_of;
use crate::sys;

/// Whose the places are, and what is known of each card.
#[repr(C)]
struct CachedCards {
    handles: [AtomicU64; CARDS],
    caches: [CardCache; CARDS],
}

static CARDS_AT: AtomicPtr<CachedCards> = AtomicPtr::new(ptr::null_mut());

/// What is kept of a card, for the thread that holds its transaction.
fn cache_of(handle: u64) -> Option<&'static mut CardCache> {
    if CARDS_AT.load(Ordering::Acquire).is_null() {
        let made = sys::memory(size_of::<CachedCards>()).cast();
        let none = ptr::null_mut();
        let _ = CARDS_AT.compare_exchange(none, made, Ordering::AcqRel, Ordering::Acquire);
    }
    let table = CARDS_AT.load(Ordering::Acquire);
    if table.is_null() {
        return None;
    }
    // SAFETY: mapped for good, and zeroed.
    let at = place_of_card(unsafe { &(*table).handles }, handle)?;
    // SAFETY: inside the table; the PC/SC service lets one thread at a time talk to a card.
    Some(unsafe { &mut *(&raw mut (*table).caches).cast::<CardCache>().add(at) })
}

/// The fixes that are switched on; `None` when neither is.
fn fixes_on() -> Option<ApduFixes<'static>> {
    let fix = |kind| of_kind(kind).next().filter(|_| are_on());
    let cache = fix(FIX_CACHE_APDU);
    let whole = fix(FIX_WHOLE_READ);
    (cache.is_some() || whole.is_some()).then_some(ApduFixes { cache, whole })
}

/// Before a call: forgets, or answers.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before_call(frame: &mut Frame, function: u32) -> FixAnswer {
    let Some(fixes) = fixes_on() else { return FixAnswer::Call };
    let [handle, second, ..] = frame.arguments;
    match card_call(function, second) {
        CardCall::Other => FixAnswer::Call,
        CardCall::Forget => {
            if let Some(cache) = cache_of(handle) {
                cache.forget();
            }
            FixAnswer::Call
        }
        CardCall::Exchange => {
            // SAFETY: a call of that function.
            let exchange = unsafe { apdu_exchange(function, frame) };
            // SAFETY: the exchange is about to be made.
            exchange.map_or(FixAnswer::Call, |exchange| unsafe {
                before_exchange(frame, fixes, exchange)
            })
        }
    }
}

/// # Safety
/// The frame is a call of SCardTransmit with that exchange, which is about to be made.
unsafe fn before_exchange(
    frame: &mut Frame,
    fixes: ApduFixes<'static>,
    exchange: Exchange,
) -> FixAnswer {
    let Some(cache) = cache_of(frame.arguments[0]) else {
        // More cards than there is room for: whoever tries the fix is to know.
        [fixes.cache, fixes.whole].into_iter().flatten().for_each(Fix::count_refused);
        return FixAnswer::Call;
    };
    let memory = memory_of(frame);
    let received = exchange.received as u64;
    // SAFETY: the exchange is about to be made.
    let (command, room) = unsafe { (exchange.command_in(&memory), memory.words::<1>(received)) };
    // What is not there is for the function to say.
    let (false, Some([room])) = (command.is_empty(), room) else { return FixAnswer::Call };
    let room = if exchange.response.is_null() { 0 } else { room as usize };
    match cache.before_exchange(fixes, command, room) {
        Instead::Exchange => FixAnswer::Call,
        Instead::Widen(widened) => {
            // The program's own bytes stay as they are: the card gets a copy.
            frame.arguments[2] = widened.as_ptr() as u64;
            FixAnswer::Call
        }
        Instead::Answer(response) => {
            // SAFETY: it fits into the room.
            unsafe {
                ptr::copy_nonoverlapping(response.as_ptr(), exchange.response, response.len());
                *exchange.received = response.len() as u64;
            }
            FixAnswer::Replaced(0)
        }
    }
}

/// After a call that the function has answered: keeps.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after_call(frame: &Frame, function: u32) {
    let Some(fixes) = fixes_on() else { return };
    let [handle, second, ..] = frame.arguments;
    if card_call(function, second) != CardCall::Exchange {
        return;
    }
    let Some(cache) = cache_of(handle) else { return };
    // SAFETY: a call of that function.
    let Some(exchange) = (unsafe { apdu_exchange(function, frame) }) else { return };
    if frame.result != 0 || exchange.response.is_null() {
        cache.forget();
        return;
    }
    // SAFETY: the exchange is over.
    let received = unsafe { *exchange.received as usize }.min(LONGEST_APDU);
    if !memory_of(frame).holds_rest(exchange.response as u64, received) {
        cache.forget();
        return;
    }
    // SAFETY: as many bytes are there, and the function has written the first.
    let response = unsafe { core::slice::from_raw_parts_mut(exchange.response, received) };
    if fixes.whole.is_some() && cache.awaits_probe() {
        let length = cache.shorten_probe(response);
        // SAFETY: where the length is.
        unsafe { *exchange.received = length as u64 };
    } else if let Some(fix) = fixes.cache {
        // SAFETY: as many bytes as the caller says; not the widened copy, which awaits its answer.
        let command = unsafe { core::slice::from_raw_parts(exchange.command, exchange.sent) };
        cache.after_exchange(fix, command, response);
    }
}
