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

use core::sync::atomic::{AtomicU64, Ordering};

use crate::apdu::{GET_RESPONSE, INS, SELECT, only_reads};
use crate::names::known;
use crate::wire::Fix;

/// Cards of a process at a time.
pub const CARDS: usize = 8;
/// Bytes of a command that is kept, at most.
const COMMAND: usize = 64;
/// Bytes of a response that is kept, at most: 256, two of status, and two to spare.
const RESPONSE: usize = 260;
/// Exchanges that are kept for a card: 128 of them hold 32 KiB of objects.
const KEPT: usize = 128;
/// A Le of at most so many bytes is a length probe: a tag and a length.
const PROBE: u8 = 16;
/// SCARD_LEAVE_CARD: a transaction ends and the card stays as it is.
const SCARD_LEAVE_CARD: u64 = 0;

/// What a call means for what is kept of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardCall {
    /// SCardTransmit: the command tells.
    Exchange,
    /// The card may be another, or in another state.
    Forget,
    /// A call that does nothing to a card.
    Other,
}

/// What a call of a PC/SC function means, by its number and its second argument.
pub fn card_call(function: u32, second: u64) -> CardCall {
    match function {
        known::SCARD_TRANSMIT => CardCall::Exchange,
        known::SCARD_RECONNECT
        | known::SCARD_DISCONNECT
        | known::SCARD_CONTROL
        | known::SCARD_SET_ATTRIB => CardCall::Forget,
        known::SCARD_END_TRANSACTION if second != SCARD_LEAVE_CARD => CardCall::Forget,
        _ => CardCall::Other,
    }
}

/// The fixes that are switched on.
#[derive(Clone, Copy, Debug)]
pub struct ApduFixes<'a> {
    /// The fix `cache-apdu`, if it is asked for.
    pub cache: Option<&'a Fix>,
    /// The fix `whole-read`, if it is asked for.
    pub whole: Option<&'a Fix>,
}

/// What is to be done instead of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Instead<'a> {
    /// Nothing: the command goes to the card.
    Exchange,
    /// The program gets this response, and the card no command.
    Answer(&'a [u8]),
    /// The card gets this command.
    Widen(&'a [u8]),
}

/// An exchange, and whether it goes on with the next one.
#[derive(Clone, Copy)]
#[repr(C)]
struct KeptExchange {
    command: [u8; COMMAND],
    response: [u8; RESPONSE],
    sent: u16,
    received: u16,
    /// Whether it is a GET RESPONSE that belongs to the exchange before.
    goes_on: bool,
}

impl KeptExchange {
    const EMPTY: Self = Self {
        command: [0; COMMAND],
        response: [0; RESPONSE],
        sent: 0,
        received: 0,
        goes_on: false,
    };

    fn command(&self) -> Option<&[u8]> {
        self.command.get(..self.sent.into())
    }

    fn response(&self) -> Option<&[u8]> {
        self.response.get(..self.received.into())
    }

    fn fill(&mut self, command: &[u8], response: &[u8]) {
        copy_bytes(&mut self.command, command);
        copy_bytes(&mut self.response, response);
        self.sent = command.len() as u16;
        self.received = response.len() as u16;
        self.goes_on = is_get_response(command);
    }
}

/// As many bytes as both have.
fn copy_bytes(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

fn is_get_response(command: &[u8]) -> bool {
    command.get(INS) == Some(&GET_RESPONSE)
}

/// The card has no more to say to this command.
fn is_last(response: &[u8]) -> bool {
    matches!(response, [.., 0x90, 0x00])
}

/// What is known of one card. Zeroed memory is a cache in which nothing is kept: the probe maps it.
#[repr(C)]
pub struct CardCache {
    count: usize,
    /// Where in a unit that is answered from memory the program is; 0: nowhere.
    next: usize,
    /// Whether the last command that went to the card was kept, so that GET RESPONSE continues it.
    open: bool,
    /// The probe that was widened: what the card answered, and how much of it was handed out.
    probe: KeptExchange,
    probe_is_held: bool,
    /// The Le that the program itself asked for.
    asked: u8,
    kept: [KeptExchange; KEPT],
}

impl CardCache {
    /// A cache in which nothing is kept.
    pub const fn new() -> Self {
        Self {
            count: 0,
            next: 0,
            open: false,
            probe: KeptExchange::EMPTY,
            probe_is_held: false,
            asked: 0,
            kept: [KeptExchange::EMPTY; KEPT],
        }
    }

    /// Forgets all that is kept.
    pub fn forget(&mut self) {
        self.count = 0;
        self.next = 0;
        self.open = false;
        self.forget_probe();
    }

    fn forget_probe(&mut self) {
        self.probe.sent = 0;
        self.probe_is_held = false;
    }

    /// What to do instead of an exchange of this command, whose response has `room` bytes. Forgets
    /// everything when the command does more than read.
    pub fn before_exchange(
        &mut self,
        fixes: ApduFixes<'_>,
        command: &[u8],
        room: usize,
    ) -> Instead<'_> {
        if !only_reads(command) {
            self.forget();
            return Instead::Exchange;
        }
        if let Some(fix) = fixes.cache
            && let Some(at) = self.find_kept(command, room)
        {
            fix.count_applied();
            return Instead::Answer(self.kept[at].response().unwrap_or_default());
        }
        let Some(fix) = fixes.whole else { return Instead::Exchange };
        if self.is_read_of_probe(command, room) {
            fix.count_applied();
            return Instead::Answer(self.probe.response().unwrap_or_default());
        }
        if self.widen(command, room) {
            fix.count_applied();
            return Instead::Widen(self.probe.command().unwrap_or_default());
        }
        Instead::Exchange
    }

    /// Finds an exchange of this command, and moves on to the one behind it.
    fn find_kept(&mut self, command: &[u8], room: usize) -> Option<usize> {
        let goes_on = is_get_response(command);
        let range = match goes_on {
            true if self.next == 0 => return None,
            true => self.next..self.next + 1,
            false => 0..self.count,
        };
        let found = range.take_while(|at| *at < self.count.min(KEPT)).find(|at| {
            let kept = &self.kept[*at];
            let fits = kept.response().is_some_and(|response| response.len() <= room);
            // Half a unit would send its second half to a card that was not asked for the first.
            kept.goes_on == goes_on
                && kept.command() == Some(command)
                && (goes_on || self.has_whole_unit(*at))
                && fits
        });
        self.next = found.map_or(0, |at| at + 1);
        self.open &= found.is_none();
        found
    }

    /// Whether all of a unit is kept: its last response says that no more is to come.
    fn has_whole_unit(&self, from: usize) -> bool {
        let kept = self.kept.get(from..self.count).unwrap_or_default();
        let unit = kept.iter().enumerate().take_while(|(at, part)| *at == 0 || part.goes_on);
        unit.last().is_some_and(|(_, part)| part.response().is_some_and(is_last))
    }

    /// Whether the exchange that is over was a length probe which asked for all there is.
    pub fn awaits_probe(&self) -> bool {
        self.probe.sent != 0 && !self.probe_is_held
    }

    /// An exchange went to the card, and this is its response. Keeps it, unless it changes what the
    /// card would say next.
    pub fn after_exchange(&mut self, fix: &Fix, command: &[u8], response: &[u8]) {
        if command.get(INS) == Some(&SELECT) {
            // Another application, perhaps: what was read before is not what would be read now. The
            // SELECT itself goes to the card every time.
            self.forget();
            return;
        }
        let is_good = is_last(response) || matches!(response, [.., 0x61, _]);
        let continues = !is_get_response(command) || self.open;
        let fits = command.len() <= COMMAND && response.len() <= RESPONSE;
        self.open = false;
        self.next = 0;
        if !(is_good && only_reads(command) && continues) {
            return;
        }
        match self.kept.get_mut(self.count).filter(|_| fits) {
            Some(kept) => {
                kept.fill(command, response);
                self.count += 1;
                self.open = true;
            }
            None => fix.count_refused(),
        }
    }

    /// Makes a length probe ask for all there is. Returns whether it was one.
    fn widen(&mut self, command: &[u8], room: usize) -> bool {
        self.forget_probe();
        let reads_data = matches!(command.get(INS), Some(0xB0 | 0xCA | 0xCB));
        let Some(at) = le_of(command).filter(|_| reads_data) else { return false };
        let le = command[at];
        if !(1..=PROBE).contains(&le) || command.len() > COMMAND || room < RESPONSE - 2 {
            return false;
        }
        self.probe.fill(command, &[]);
        self.probe.command[at] = 0;
        self.asked = le;
        true
    }

    /// Keeps a widened probe's answer, and leaves as much of it in `response` as the program asked
    /// for, with the status word that the card would have given: how much is left (ISO 7816-4,
    /// 5.3.4). Returns the length of that.
    pub fn shorten_probe(&mut self, response: &mut [u8]) -> usize {
        copy_bytes(&mut self.probe.response, response);
        self.probe.received = response.len().min(RESPONSE) as u16;
        let rest = match response {
            [.., 0x90, 0x00] => 0,
            // 256 bytes or more.
            [.., 0x61, 0] => 256,
            [.., 0x61, more] => usize::from(*more),
            _ => {
                self.forget_probe();
                return response.len();
            }
        };
        self.probe_is_held = true;
        let asked = usize::from(self.asked);
        let data = response.len() - 2;
        if data <= asked {
            return response.len();
        }
        let left = data - asked + rest;
        response[asked] = 0x61;
        response[asked + 1] = if left < 256 { left as u8 } else { 0 };
        asked + 2
    }

    /// Whether a command reads what the probe before it has read already: all of it, so that the
    /// card would answer the same. The probe is forgotten.
    fn is_read_of_probe(&mut self, command: &[u8], room: usize) -> bool {
        let sent = usize::from(self.probe.sent);
        let is_held = self.probe_is_held;
        self.forget_probe();
        let Some(at) = le_of(command).filter(|_| is_held) else { return false };
        let received = usize::from(self.probe.received);
        let reads_all = command[at] == 0 || usize::from(command[at]) >= received - 2;
        command.len() == sent
            && command.get(..at) == self.probe.command.get(..sent - 1)
            && reads_all
            && received <= room
    }
}

impl Default for CardCache {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for CardCache {
    /// Without what was read from the card.
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("CardCache").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Where Le is in a short command without data (ISO 7816-4, 5.1: case 2), or with (case 4).
fn le_of(command: &[u8]) -> Option<usize> {
    match command {
        [_, _, _, _, _] => Some(4),
        [_, _, _, _, lc, ..] if *lc > 0 && command.len() == 6 + usize::from(*lc) => {
            Some(command.len() - 1)
        }
        _ => None,
    }
}

/// The place of a card's handle, which takes the first that nobody has. `None`: all are taken.
pub fn place_of_card(handles: &[AtomicU64; CARDS], handle: u64) -> Option<usize> {
    let is_its = |place: &AtomicU64| match place.compare_exchange(
        0,
        handle,
        Ordering::Acquire,
        Ordering::Acquire,
    ) {
        Ok(_) => true,
        Err(has) => has == handle,
    };
    handles.iter().position(is_its)
}

#[cfg(test)]
mod tests;
