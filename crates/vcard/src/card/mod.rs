//! The card: power, selection, and what ISO 7816-4 does with every command before and after an
//! application sees it. No socket and no clock: bytes in, bytes and their modelled time out.

mod chain;
mod outgoing;
#[cfg(test)]
mod tests;

use tapstone_apdu::{Command, Status};
use tapstone_measure::units::Nanos;

use self::chain::{Chain, Taken};
use self::outgoing::Outgoing;
pub use self::outgoing::Transmission;
use crate::applet::{Applet, Reply};

/// The longest answer to reset (ISO 7816-3, 8.2.1: TS and at most 32 characters).
const LONGEST_ATR: usize = 33;

/// An answer to reset for a card without a profile: direct convention, T=1 only, no historical
/// bytes (ISO 7816-3, 8.2). TD1 = 80 and TD2 = 01 say T=1; the last byte is the check byte.
const PLAIN_ATR: [u8; 5] = [0x3B, 0x80, 0x80, 0x01, 0x01];

/// A card with its applications.
pub struct Card {
    atr: Vec<u8>,
    applications: Vec<Application>,
    /// Which one is selected after a reset.
    default: Option<usize>,
    selected: Option<usize>,
    chain: Chain,
    outgoing: Outgoing,
}

/// An applet and the name that profiles know it by.
struct Application {
    name: &'static str,
    applet: Box<dyn Applet>,
}

/// What the card sends back for one command, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The response APDU: data, SW1, SW2.
    pub response: Vec<u8>,
    /// From the last byte of the command in to the last byte of the response out.
    pub modelled: Nanos,
}

impl Default for Card {
    fn default() -> Self {
        Self::new()
    }
}

impl Card {
    /// A card without applications that takes no time.
    #[must_use]
    pub fn new() -> Self {
        Self {
            atr: PLAIN_ATR.to_vec(),
            applications: Vec::new(),
            default: None,
            selected: None,
            chain: Chain::default(),
            outgoing: Outgoing::new(Transmission::T1),
        }
    }

    /// The same with this application, under the name that profiles know it by.
    #[must_use]
    pub fn with(mut self, name: &'static str, applet: Box<dyn Applet>) -> Self {
        self.applications.push(Application { name, applet });
        self
    }

    /// The same with this application, selected by itself after a reset (ISO 7816-4, 8.2.1.1).
    #[must_use]
    pub fn with_default(mut self, name: &'static str, applet: Box<dyn Applet>) -> Self {
        self.default = Some(self.applications.len());
        self = self.with(name, applet);
        self.start();
        self
    }

    /// The same with this answer to reset; one longer than 33 bytes is cut.
    #[must_use]
    pub fn with_atr(mut self, atr: &[u8]) -> Self {
        self.atr = atr[..atr.len().min(LONGEST_ATR)].to_vec();
        self
    }

    /// The answer to reset.
    #[must_use]
    pub fn atr(&self) -> &[u8] {
        &self.atr
    }

    /// Power off and on, or a reset: no selection stays but the default one, half-sent data is
    /// gone.
    pub fn reset(&mut self) {
        self.leave();
        self.chain.drop_it();
        self.outgoing.forget();
        self.start();
    }

    /// Answers one command APDU, whatever bytes it is.
    pub fn transmit(&mut self, bytes: &[u8]) -> Answer {
        let reply = self.reply(bytes);
        let mut response = reply.data;
        response.extend(reply.status.0.to_be_bytes());
        Answer { response, modelled: Nanos::ZERO }
    }

    fn reply(&mut self, bytes: &[u8]) -> Reply {
        let Ok((command, _)) = Command::parse(bytes) else {
            self.chain.drop_it();
            return Reply::refused(Status::WRONG_LENGTH);
        };
        if let Some(status) = refused_class(command.cla) {
            self.chain.drop_it();
            return Reply::refused(status);
        }
        if command.ins == GET_RESPONSE && command.cla & 0x80 == 0 {
            return self.outgoing.fetch(&command);
        }
        self.outgoing.forget();
        let expected = command.expected;
        let optional = is_select(&command);
        match self.chain.take(command) {
            Taken::More => Reply::ok([]),
            Taken::Refused(status) => Reply::refused(status),
            Taken::Whole(command) => {
                let had_data = !command.data.is_empty();
                let reply = self.carry_out(&command);
                self.outgoing.begin(reply, expected, had_data, optional)
            }
        }
    }

    fn carry_out(&mut self, command: &Command) -> Reply {
        if is_select(command) {
            return self.select(command);
        }
        match self.selected {
            Some(place) => self.applications[place].applet.answer(command),
            // Java Card RE 3.0.5, 4.6.2: without a selected applet.
            None => Reply::refused(NOTHING_SELECTED),
        }
    }

    /// SELECT by name: ISO 7816-4, 11.2.2. The name may be cut short on the right; P2 bits 1 and 2
    /// ask for the first or the next application that fits it.
    fn select(&mut self, command: &Command) -> Reply {
        let after = match command.p2 & 0x03 {
            0 => None,
            2 => self.selected,
            _ => return Reply::refused(Status::WRONG_PARAMETERS),
        };
        // Bits 3 and 4: FCI, FCP, FMD or nothing.
        if command.p2 & 0xF0 != 0 {
            return Reply::refused(Status::WRONG_PARAMETERS);
        }
        let first = after.map_or(0, |place| place + 1);
        let fits = |application: &Application| application.applet.aid().starts_with(&command.data);
        // No name at all would fit everything; no application here is the one to fall back on.
        let found = self.applications.iter().skip(first).position(fits);
        let Some(found) = found.filter(|_| !command.data.is_empty()) else {
            return Reply::refused(Status::NOT_FOUND);
        };
        let found = first + found;
        // The same again is no end of its selection: what SP 800-73-5 part 2, 3.1.1 asks for.
        if self.selected != Some(found) {
            self.leave();
        }
        self.selected = Some(found);
        let mut reply = self.applications[found].applet.select();
        if command.p2 & 0x0C == 0x0C {
            reply.data.clear();
        }
        reply
    }

    /// What is selected without a SELECT.
    fn start(&mut self) {
        self.selected = self.default;
        if let Some(place) = self.selected {
            // Nobody asked for its control information.
            self.applications[place].applet.select();
        }
    }

    /// The selected application, if any, ends its selection.
    fn leave(&mut self) {
        if let Some(place) = self.selected.take() {
            self.applications[place].applet.deselect();
        }
    }
}

const SELECT: u8 = 0xA4;
const GET_RESPONSE: u8 = 0xC0;
const NOTHING_SELECTED: Status = Status(0x6999);

fn is_select(command: &Command) -> bool {
    command.cla & 0xEF == 0 && command.ins == SELECT && command.p1 == 0x04
}

/// What ISO 7816-4, 5.4.1, table 2 says of a class byte that this card does not have. Proprietary
/// classes are the applications' business.
fn refused_class(cla: u8) -> Option<Status> {
    match cla {
        0xFF => Some(Status::UNKNOWN_CLASS),
        0x80..=0xFE => None,
        0x20..=0x3F => Some(Status::UNKNOWN_CLASS),
        // Channels 4 to 19, and 1 to 3.
        0x40..=0x7F => Some(Status(0x6881)),
        _ if cla & 0x03 != 0 => Some(Status(0x6881)),
        _ if cla & 0x0C != 0 => Some(Status(0x6882)),
        _ => None,
    }
}
