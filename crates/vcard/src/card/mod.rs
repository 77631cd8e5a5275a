//! The card: power, selection, and what ISO 7816-4 does with every command before and after an
//! application sees it. No socket and no clock: bytes in, bytes and their modelled time out.

mod chain;
mod outgoing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_measure::units::Nanos;

use self::chain::{Chain, Taken};
use self::outgoing::PendingResponse;
use crate::applet::{Applet, CardWork, Reply};
use crate::fault::{FaultKind, Gone, InjectedFault};
use crate::profile::timing::{Charge, Timing};
use crate::transmission::{LONGEST_ATR, Transmission};

/// An answer to reset for a card without a profile: direct convention, T=1 only, no historical
/// bytes (ISO 7816-3, 8.2). T0 = 80 announces TD1 = 01, which says T=1; then the check byte.
const PLAIN_ATR: [u8; 4] = [0x3B, 0x80, 0x01, 0x81];

/// A card with its applications.
pub struct VirtualCard {
    atr: Vec<u8>,
    applications: Vec<InstalledApplication>,
    /// Which one is selected after a reset.
    default: Option<usize>,
    selected: Option<usize>,
    chain: Chain,
    outgoing: PendingResponse,
    timing: Timing,
    /// In the order of their commands; those to come.
    faults: VecDeque<InjectedFault>,
    /// How many commands have come, over resets.
    commands: u64,
    /// How many times as long everything takes by now.
    slowed: f64,
    gone: Option<Gone>,
}

/// An applet and the name that profiles know it by.
struct InstalledApplication {
    name: &'static str,
    applet: Box<dyn Applet>,
}

/// What the card sends back for one command, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardAnswer {
    /// The response APDU: data, SW1, SW2.
    pub response: Vec<u8>,
    /// From the last byte of the command in to the last byte of the response out.
    pub modelled: Nanos,
    /// What the application computed for it.
    pub work: Vec<CardWork>,
}

impl Default for VirtualCard {
    fn default() -> Self {
        Self::new()
    }
}

impl VirtualCard {
    /// A card without applications that takes no time.
    #[must_use]
    pub fn new() -> Self {
        Self {
            atr: PLAIN_ATR.to_vec(),
            applications: Vec::new(),
            default: None,
            selected: None,
            chain: Chain::default(),
            outgoing: PendingResponse::new(Transmission::T1),
            timing: Timing::default(),
            faults: VecDeque::new(),
            commands: 0,
            slowed: 1.0,
            gone: None,
        }
    }

    /// The same with this application, under the name that profiles know it by.
    #[must_use]
    pub fn with(mut self, name: &'static str, applet: Box<dyn Applet>) -> Self {
        self.applications.push(InstalledApplication { name, applet });
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

    /// The same with response lengths as this protocol has them.
    #[must_use]
    pub fn with_transmission(mut self, transmission: Transmission) -> Self {
        self.outgoing = PendingResponse::new(transmission);
        self
    }

    pub(crate) fn with_timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// The same with these faults, which are in the order of their commands.
    pub(crate) fn with_faults(mut self, faults: Vec<InjectedFault>) -> Self {
        self.faults = faults.into();
        self
    }

    /// From power on or reset to the answer to reset.
    #[must_use]
    pub fn power_on(&self) -> Nanos {
        self.timing.power_on()
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
    ///
    /// # Errors
    /// When a fault of the profile keeps the card from answering, now and ever after.
    pub fn transmit(&mut self, bytes: &[u8]) -> Result<CardAnswer, Gone> {
        if let Some(gone) = self.gone {
            return Err(gone);
        }
        self.commands += 1;
        let reply = self.reply(bytes);
        let modelled = self.charge(bytes, &reply);
        let mut answer = CardAnswer { response: reply.data, modelled, work: reply.work };
        answer.response.extend(reply.status.0.to_be_bytes());
        if self.faults.front().is_some_and(|fault| fault.at == self.commands)
            && let Some(fault) = self.faults.pop_front()
        {
            self.fail(fault.kind, &mut answer)?;
        }
        answer.modelled = scaled(answer.modelled, self.slowed);
        Ok(answer)
    }

    fn charge(&mut self, bytes: &[u8], reply: &Reply) -> Nanos {
        self.timing.time_of(&Charge {
            application: self.selected.map(|place| self.applications[place].name),
            ins: bytes.get(1).copied().unwrap_or_default(),
            command_bytes: bytes.len(),
            response_bytes: reply.data.len() + 2,
            work: &reply.work,
        })
    }

    fn fail(&mut self, kind: FaultKind, answer: &mut CardAnswer) -> Result<(), Gone> {
        let gone = match kind {
            FaultKind::Slow { times } => {
                self.slowed *= times;
                return Ok(());
            }
            FaultKind::WrongStatus(status) => {
                answer.response = status.0.to_be_bytes().to_vec();
                self.outgoing.forget();
                return Ok(());
            }
            FaultKind::WaitingTimeExtension { count } => {
                answer.modelled += self.timing.waiting_time_extensions(count);
                return Ok(());
            }
            FaultKind::Mute { closes_after } => Gone::Mute { closes_after },
            FaultKind::Removed => {
                Gone::Removed { after: scaled(answer.modelled, self.slowed / 2.0) }
            }
        };
        self.gone = Some(gone);
        Err(gone)
    }

    fn reply(&mut self, bytes: &[u8]) -> Reply {
        let Ok((command, _)) = CommandApdu::parse(bytes) else {
            self.chain.drop_it();
            return Reply::refused(StatusWord::WRONG_LENGTH);
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

    fn carry_out(&mut self, command: &CommandApdu) -> Reply {
        if is_select(command) {
            return self.select(command);
        }
        match self.selected {
            Some(place) => {
                let application = &mut self.applications[place];
                let reply = application.applet.answer(command);
                match self.timing.unpriced(application.name, command.ins, &reply.work) {
                    // As a card that does not have the algorithm.
                    Some(_) => Reply::refused(StatusWord::FUNCTION_NOT_SUPPORTED),
                    None => reply,
                }
            }
            // Java Card RE 3.0.5, 4.6.2: without a selected applet.
            None => Reply::refused(NOTHING_SELECTED),
        }
    }

    /// SELECT by name: ISO 7816-4, 11.2.2. The name may be cut short on the right; P2 bits 1 and 2
    /// ask for the first or the next application that fits it.
    fn select(&mut self, command: &CommandApdu) -> Reply {
        let after = match command.p2 & 0x03 {
            0 => None,
            2 => self.selected,
            _ => return Reply::refused(StatusWord::WRONG_PARAMETERS),
        };
        // Bits 3 and 4: FCI, FCP, FMD or nothing.
        if command.p2 & 0xF0 != 0 {
            return Reply::refused(StatusWord::WRONG_PARAMETERS);
        }
        let first = after.map_or(0, |place| place + 1);
        let fits = |application: &InstalledApplication| {
            application.applet.aid().starts_with(&command.data)
        };
        // No name at all would fit everything; no application here is the one to fall back on.
        let found = self.applications.iter().skip(first).position(fits);
        let Some(found) = found.filter(|_| !command.data.is_empty()) else {
            return Reply::refused(StatusWord::NOT_FOUND);
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

fn scaled(time: Nanos, times: f64) -> Nanos {
    Nanos((time.0 as f64 * times).round() as u64)
}

const SELECT: u8 = 0xA4;
const GET_RESPONSE: u8 = 0xC0;
const NOTHING_SELECTED: StatusWord = StatusWord(0x6999);

fn is_select(command: &CommandApdu) -> bool {
    command.cla & 0xEF == 0 && command.ins == SELECT && command.p1 == 0x04
}

/// What ISO 7816-4, 5.4.1, table 2 says of a class byte that this card does not have. Proprietary
/// classes are the applications' business.
fn refused_class(cla: u8) -> Option<StatusWord> {
    match cla {
        0xFF => Some(StatusWord::UNKNOWN_CLASS),
        0x80..=0xFE => None,
        0x20..=0x3F => Some(StatusWord::UNKNOWN_CLASS),
        // Channels 4 to 19, and 1 to 3.
        0x40..=0x7F => Some(StatusWord(0x6881)),
        _ if cla & 0x03 != 0 => Some(StatusWord(0x6881)),
        _ if cla & 0x0C != 0 => Some(StatusWord(0x6882)),
        _ => None,
    }
}
