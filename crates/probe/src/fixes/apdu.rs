//! `cache-apdu`: the card's answer to a reading command is kept and given again, until something
//! could have changed it. A command and the GET RESPONSE commands behind it are one unit.
//!
//! `whole-read`: a length probe (a reading command with a small Le) asks for all there is, and the
//! whole read that follows is answered from it.
//!
//! Both are kept by card handle, and forgotten at SELECT of another application, at every command
//! that is not known to read only, at a reset, reconnect or disconnect, at SCardControl (a pin pad
//! verifies there) and SCardSetAttrib, and when an exchange fails. They outlive a transaction that
//! leaves the card as it is: programs read the same object in one transaction after the other.
//! Another program that changes the card in between is not noticed, which whoever tries this fix is
//! told.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::{Answer, FIX_CACHE_APDU, FIX_WHOLE_READ, are_on, of_kind};
use crate::capture::{self, Exchange, known};
use crate::stubs::Frame;
use crate::sys;
use tapstone_probe_core::wire::Fix;

const CARDS: usize = 8;
const COMMAND: usize = 64;
const RESPONSE: usize = 260;
/// Exchanges that are kept for a card: 128 of them hold 32 KiB of objects.
const KEPT: usize = 128;
/// A Le of at most so many bytes is a length probe: a tag and a length.
const PROBE: u8 = 16;

/// An exchange, and whether it goes on with the next one.
#[derive(Clone, Copy)]
#[repr(C)]
struct Kept {
    command: [u8; COMMAND],
    response: [u8; RESPONSE],
    sent: u16,
    received: u16,
    /// Whether it is a GET RESPONSE that belongs to the exchange before.
    goes_on: bool,
}

/// Whose the places are, and what is known of each card.
#[repr(C)]
struct Cards {
    handles: [AtomicU64; CARDS],
    cards: [Card; CARDS],
}

/// What is known of one card.
#[repr(C)]
struct Card {
    count: usize,
    /// Where in a unit that is answered from memory the program is; 0: nowhere.
    next: usize,
    /// Whether the last command that went to the card was kept, so that GET RESPONSE continues it.
    open: bool,
    /// The probe that was widened: what the card answered, and how much of it was handed out.
    probe: Kept,
    probe_is_held: bool,
    /// Its own Le.
    asked: u8,
    kept: [Kept; KEPT],
}

static CARDS_AT: AtomicPtr<Cards> = AtomicPtr::new(ptr::null_mut());

/// The state of a card, for the thread that holds its transaction.
fn card(handle: u64) -> Option<&'static mut Card> {
    let (acquire, none) = (Ordering::Acquire, ptr::null_mut());
    if CARDS_AT.load(acquire).is_null() {
        let made = sys::memory(size_of::<Cards>()).cast();
        let _ = CARDS_AT.compare_exchange(none, made, Ordering::AcqRel, acquire);
    }
    let table = CARDS_AT.load(acquire);
    if table.is_null() {
        return None;
    }
    // SAFETY: mapped for good, and zeroed.
    let handles = unsafe { &(*table).handles };
    let is_its = |place: &AtomicU64| match place.compare_exchange(0, handle, acquire, acquire) {
        Ok(_) => true,
        Err(has) => has == handle,
    };
    let at = handles.iter().position(is_its)?;
    // SAFETY: inside the table; the PC/SC service lets one thread at a time talk to a card.
    Some(unsafe { &mut *(&raw mut (*table).cards).cast::<Card>().add(at) })
}

impl Card {
    fn forget(&mut self) {
        (self.count, self.next, self.open) = (0, 0, false);
        self.forget_probe();
    }

    fn forget_probe(&mut self) {
        (self.probe.sent, self.probe_is_held) = (0, false);
    }

    /// Whether all of a unit is kept: its last response says that no more is to come.
    fn has_whole(&self, from: usize) -> bool {
        let kept = self.kept.get(from..self.count).unwrap_or_default();
        let unit = kept.iter().enumerate().take_while(|(at, part)| *at == 0 || part.goes_on);
        let ends = |part: &Kept| part.response.get(..part.received.into()).is_some_and(is_last);
        unit.last().is_some_and(|(_, part)| ends(part))
    }
}

fn fix(kind: u32) -> Option<&'static Fix> {
    of_kind(kind).next().filter(|_| are_on())
}

/// A transaction ends and the card stays as it is.
const SCARD_LEAVE_CARD: u64 = 0;
const INS: usize = 1;
const SELECT: u8 = 0xA4;
const GET_RESPONSE: u8 = 0xC0;

fn is_last(response: &[u8]) -> bool {
    matches!(response, [.., 0x90, 0x00])
}

/// Before a call: forgets, or answers.
///
/// # Safety
/// The frame is a call of that function.
pub(super) unsafe fn before(frame: &mut Frame, function: u32) -> Answer {
    let (cache, whole) = (fix(FIX_CACHE_APDU), fix(FIX_WHOLE_READ));
    if cache.is_none() && whole.is_none() {
        return Answer::Call;
    }
    match function {
        known::SCARD_RECONNECT
        | known::SCARD_DISCONNECT
        | known::SCARD_CONTROL
        | known::SCARD_SET_ATTRIB => forget(frame),
        known::SCARD_END_TRANSACTION if frame.arguments[1] != SCARD_LEAVE_CARD => forget(frame),
        known::SCARD_TRANSMIT => {
            // SAFETY: a call of that function.
            let Some(exchange) = (unsafe { capture::exchange(function, frame) }) else {
                return Answer::Call;
            };
            let Some(card) = card(frame.arguments[0]) else {
                // More cards than there is room for: whoever tries the fix is to know.
                [cache, whole].into_iter().flatten().for_each(Fix::count_refused);
                return Answer::Call;
            };
            // SAFETY: as many bytes as the caller says.
            let command = unsafe { core::slice::from_raw_parts(exchange.command, exchange.sent) };
            if !capture::reads(command) {
                card.forget();
                return Answer::Call;
            }
            // SAFETY: the exchange's own pointers.
            unsafe {
                if let Some(fix) = cache.filter(|_| from_memory(card, command, exchange)) {
                    fix.count_applied();
                    return Answer::Replaced(0);
                }
                if let Some(fix) = whole.filter(|_| from_probe(card, command, exchange)) {
                    fix.count_applied();
                    return Answer::Replaced(0);
                }
                if let Some(fix) = whole.filter(|_| widen(card, frame, command)) {
                    fix.count_applied();
                }
            }
        }
        _ => {}
    }
    Answer::Call
}

fn forget(frame: &Frame) {
    if let Some(card) = card(frame.arguments[0]) {
        card.forget();
    }
}

/// After a call: keeps.
///
/// # Safety
/// The frame is a call of that function, which has returned.
pub(super) unsafe fn after(frame: &Frame, function: u32, replaced: bool) {
    let (cache, whole) = (fix(FIX_CACHE_APDU), fix(FIX_WHOLE_READ));
    if (cache.is_none() && whole.is_none()) || function != known::SCARD_TRANSMIT || replaced {
        return;
    }
    let Some(card) = card(frame.arguments[0]) else { return };
    // SAFETY: a call of that function.
    let Some(exchange) = (unsafe { capture::exchange(function, frame) }) else { return };
    if frame.result != 0 {
        card.forget();
        return;
    }
    // SAFETY: the exchange is over: the response is as long as it says.
    unsafe {
        if whole.is_some() && card.probe.sent != 0 && !card.probe_is_held {
            shorten(card, exchange);
            return;
        }
        if let Some(fix) = cache {
            keep(card, exchange, fix);
        }
    }
}

/// Answers from what is kept.
///
/// # Safety
/// The exchange is about to be made.
unsafe fn from_memory(card: &mut Card, command: &[u8], exchange: Exchange) -> bool {
    let goes_on = command.get(INS) == Some(&GET_RESPONSE);
    let range = if goes_on { card.next..card.next + 1 } else { 0..card.count };
    if goes_on && card.next == 0 {
        return false;
    }
    for at in range {
        let Some(kept) = card.kept.get(at).filter(|_| at < card.count) else { break };
        let is_it =
            kept.goes_on == goes_on && kept.command.get(..kept.sent.into()) == Some(command);
        // Half a unit would send its second half to a card that was not asked for the first.
        if is_it && (goes_on || card.has_whole(at)) {
            // A SELECT changes what the card would do next: only one that changes nothing is kept.
            // SAFETY: the response's buffer is as long as its length says.
            if unsafe { hand_out(exchange, kept.response.get(..kept.received.into())) } {
                card.next = at + 1;
                card.open = false;
                return true;
            }
        }
    }
    card.next = 0;
    false
}

/// # Safety
/// The exchange's response has the room that it says.
unsafe fn hand_out(exchange: Exchange, response: Option<&[u8]>) -> bool {
    let Some(response) = response else { return false };
    // SAFETY: the caller's promise.
    unsafe {
        if (*exchange.received as usize) < response.len() || exchange.response.is_null() {
            return false;
        }
        ptr::copy_nonoverlapping(response.as_ptr(), exchange.response, response.len());
        *exchange.received = response.len() as u64;
    }
    true
}

/// # Safety
/// The exchange is over.
unsafe fn keep(card: &mut Card, exchange: Exchange, fix: &Fix) {
    // SAFETY: as many bytes as both lengths say.
    let (command, response) = unsafe {
        let received = (*exchange.received as usize).min(1 << 17);
        (
            core::slice::from_raw_parts(exchange.command, exchange.sent),
            core::slice::from_raw_parts(exchange.response, received),
        )
    };
    let goes_on = command.get(INS) == Some(&GET_RESPONSE);
    let good = is_last(response) || matches!(response, [.., 0x61, _]);
    if command.get(INS) == Some(&SELECT) {
        // Another application, perhaps: what was read before is not what would be read now. The
        // SELECT itself goes to the card every time.
        card.forget();
        return;
    }
    let keeps = good && capture::reads(command) && (!goes_on || card.open);
    let fits = command.len() <= COMMAND && response.len() <= RESPONSE;
    card.open = false;
    card.next = 0;
    if !keeps {
        return;
    }
    match card.kept.get_mut(card.count).filter(|_| fits) {
        Some(kept) => {
            fill(kept, command, response, goes_on);
            card.count += 1;
            card.open = true;
        }
        None => fix.count_refused(),
    }
}

fn fill(kept: &mut Kept, command: &[u8], response: &[u8], goes_on: bool) {
    for (to, from) in kept.command.iter_mut().zip(command) {
        *to = *from;
    }
    for (to, from) in kept.response.iter_mut().zip(response) {
        *to = *from;
    }
    (kept.sent, kept.received) = (command.len() as u16, response.len() as u16);
    kept.goes_on = goes_on;
}

/// Where Le is in a short command with data (ISO 7816-4, 5.1: case 4), or without (case 2).
fn le_of(command: &[u8]) -> Option<usize> {
    match command {
        [_, _, _, _, _] => Some(4),
        [_, _, _, _, lc, ..] if *lc > 0 && command.len() == 6 + usize::from(*lc) => {
            Some(command.len() - 1)
        }
        _ => None,
    }
}

/// Makes a length probe ask for all there is. Returns whether it was one.
///
/// # Safety
/// The frame is a call of SCardTransmit with that command.
unsafe fn widen(card: &mut Card, frame: &mut Frame, command: &[u8]) -> bool {
    card.forget_probe();
    let reads_data = matches!(command.get(INS), Some(0xB0 | 0xCA | 0xCB));
    let Some(at) = le_of(command).filter(|_| reads_data) else { return false };
    let is_probe = command.get(at).is_some_and(|le| (1..=PROBE).contains(le));
    // SAFETY: the response's length, which the caller set to the room that there is.
    let room = unsafe { *(frame.stack.read() as *const u64) };
    if !is_probe || command.len() > COMMAND || (room as usize) < RESPONSE - 2 {
        return false;
    }
    fill(&mut card.probe, command, &[], false);
    if let Some(le) = card.probe.command.get_mut(at) {
        card.asked = core::mem::replace(le, 0);
    }
    // The program's own bytes stay as they are: the card gets a copy.
    frame.arguments[2] = card.probe.command.as_ptr() as u64;
    true
}

/// Keeps a widened probe's answer, and hands out as much of it as the program asked for, with the
/// status word that the card would have given: how much is left (ISO 7816-4, 5.3.4).
///
/// # Safety
/// The exchange is over.
unsafe fn shorten(card: &mut Card, exchange: Exchange) {
    // SAFETY: as many bytes as the length says; the program made room for more than that.
    unsafe {
        let received = (*exchange.received as usize).min(RESPONSE);
        let response = core::slice::from_raw_parts_mut(exchange.response, received);
        for (to, from) in card.probe.response.iter_mut().zip(&*response) {
            *to = *from;
        }
        card.probe.received = received as u16;
        let rest = match response {
            [.., 0x90, 0x00] => 0,
            // 256 bytes or more.
            [.., 0x61, 0] => 256,
            [.., 0x61, more] => usize::from(*more),
            _ => {
                card.forget_probe();
                return;
            }
        };
        card.probe_is_held = true;
        let (asked, data) = (usize::from(card.asked), received - 2);
        if data <= asked {
            return;
        }
        let left = data - asked + rest;
        response[asked] = 0x61;
        response[asked + 1] = if left < 256 { left as u8 } else { 0 };
        *exchange.received = asked as u64 + 2;
    }
}

/// Answers the whole read from the probe before it.
///
/// # Safety
/// The exchange is about to be made.
unsafe fn from_probe(card: &mut Card, command: &[u8], exchange: Exchange) -> bool {
    if !card.probe_is_held {
        return false;
    }
    let sent = usize::from(card.probe.sent);
    card.forget_probe();
    let Some(at) = le_of(command) else { return false };
    let (asked, held) = (command.get(..at), card.probe.command.get(..sent.saturating_sub(1)));
    if command.len() != sent || asked != held {
        return false;
    }
    // SAFETY: the response's buffer is as long as its length says.
    unsafe { hand_out(exchange, card.probe.response.get(..card.probe.received.into())) }
}
