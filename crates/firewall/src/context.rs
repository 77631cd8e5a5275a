//! What a card knows when a command comes: what is selected on each logical channel, which chain is
//! open.

use tapstone_apdu::{Class, CommandApdu, StatusWord};
use tapstone_names::apdu::Application;
use zeroize::{Zeroize, Zeroizing};

use crate::effect::{Effect, Selection, Surroundings, effect};
use crate::refusal::Why;

const SELECT: u8 = 0xA4;
const SELECT_TLV: u8 = 0xA5;
const ENVELOPE: u8 = 0xC2;
const ENVELOPE_TLV: u8 = 0xC3;
const MANAGE_SECURITY_ENVIRONMENT: u8 = 0x22;
const MANAGE_CHANNEL: u8 = 0x70;

const ONLY_THE_BASIC_ONE: [bool; Class::CHANNELS as usize] = {
    let mut open = [false; Class::CHANNELS as usize];
    open[0] = true;
    open
};

/// What was selected where, as far as the answers told; what they did not is taken at its worst.
#[derive(Clone)]
pub struct CardContext {
    channels: [Surroundings; Class::CHANNELS as usize],
    chain: Option<Chain>,
    sent: Option<Sent>,
    /// The channels that the card has said it has.
    open: [bool; Class::CHANNELS as usize],
    /// How many selections nobody knows.
    unknown: u64,
}

/// Of a card of which nothing is known.
impl Default for CardContext {
    fn default() -> Self {
        let nothing = Surroundings { selected: None, name: Selection::Unknown(0), pace: false };
        let channels = [nothing; Class::CHANNELS as usize];
        let mut context =
            Self { channels, chain: None, sent: None, open: ONLY_THE_BASIC_ONE, unknown: 0 };
        context.lose(0..Class::CHANNELS.into());
        context
    }
}

/// Commands whose data belong together.
#[derive(Clone)]
struct Chain {
    /// CLA without the chaining bit, INS, P1, P2.
    header: [u8; 4],
    data: Zeroizing<Vec<u8>>,
}

/// A command that was judged and has no answer yet. Its data may be a PIN.
#[derive(Clone)]
struct Sent {
    command: CommandApdu,
    chained: bool,
    /// It belongs to a chain, perhaps as its last part.
    in_chain: bool,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.command.data.zeroize();
    }
}

/// A command with everything that belongs to it. Its data may be a PIN.
pub(crate) struct Judged {
    /// Its data are those of the whole chain so far, its class is without the chaining bit.
    pub(crate) command: CommandApdu,
    pub(crate) effect: Effect,
    /// It is a command by itself: in no chain, and in no envelope.
    pub(crate) plain: bool,
}

impl Drop for Judged {
    fn drop(&mut self) {
        self.command.data.zeroize();
    }
}

impl CardContext {
    /// What these bytes would do to the card as it is.
    ///
    /// # Errors
    /// Why they are never sent.
    pub fn effect(&self, bytes: &[u8]) -> Result<Effect, Why> {
        self.judge(bytes).map(|judged| judged.effect)
    }

    /// The same with the command, unwrapped.
    pub(crate) fn judge(&self, bytes: &[u8]) -> Result<Judged, Why> {
        let (command, chained) = self.whole(bytes)?;
        let in_chain = chained || self.chain.is_some();
        let judged = match command.ins {
            // Cards have it in proprietary classes too. A card may act upon a part of a chain as
            // soon as a whole command is there, so that no part of an envelope can be judged.
            ENVELOPE_TLV => return Err(Why::Envelope),
            ENVELOPE if in_chain || command.is_chained() => return Err(Why::Envelope),
            ENVELOPE => {
                let inside = opened(&command)?;
                let effect = effect(&inside, self.around(&inside))?;
                Judged { command: inside, effect, plain: false }
            }
            _ => {
                let effect = effect(&command, self.around(&command))?;
                Judged { command, effect, plain: !in_chain }
            }
        };
        Ok(judged)
    }

    /// The command with the data of its chain, without the chaining bit; whether the chain goes on.
    fn whole(&self, bytes: &[u8]) -> Result<(CommandApdu, bool), Why> {
        let (mut command, _) = CommandApdu::parse(bytes).map_err(Why::Malformed)?;
        admissible(&command)?;
        // Of a proprietary class nobody knows what the bit means; it is judged as it stands.
        let chained = command.is_chained() && !Class(command.cla).is_proprietary();
        if chained {
            command.cla &= !0x10;
        }
        if let Some(chain) = &self.chain {
            if chain.header != header(&command) {
                return Err(Why::OpenChain);
            }
            command.data.splice(0..0, chain.data.iter().copied());
        }
        Ok((command, chained))
    }

    fn around(&self, command: &CommandApdu) -> Surroundings {
        self.channels[usize::from(Class(command.cla).channel())]
    }

    /// The application that is selected on a command's logical channel, if that is known.
    pub(crate) fn selected(&self, class: Class) -> Option<Application> {
        self.channels[usize::from(class.channel())].selected
    }

    /// The same, told from any other.
    pub(crate) fn selection(&self, class: Class) -> Selection {
        self.channels[usize::from(class.channel())].name
    }

    /// On these channels nobody knows any more what is selected.
    fn lose(&mut self, channels: impl IntoIterator<Item = usize>) {
        for channel in channels {
            self.unknown += 1;
            let channel = &mut self.channels[channel];
            channel.selected = None;
            channel.name = Selection::Unknown(self.unknown);
        }
    }

    /// The command is on its way.
    pub fn sent(&mut self, bytes: &[u8]) {
        self.settle();
        let Ok((command, chained)) = self.whole(bytes) else { return };
        let in_chain = chained || self.chain.is_some();
        self.sent = Some(Sent { command, chained, in_chain });
    }

    /// If a command never got its answer, nobody knows what it did.
    pub(crate) fn settle(&mut self) {
        if self.sent.take().is_some() {
            self.chain = None;
            self.forget();
        }
    }

    /// What the card said to it.
    pub fn answered(&mut self, status: StatusWord) {
        let Some(sent) = self.sent.take() else { return };
        let command = &sent.command;
        // After another answer than 9000 a chain is over (ISO 7816-4, 5.3.3).
        let goes_on = sent.chained && status == StatusWord::OK;
        self.chain = goes_on
            .then(|| Chain { header: header(command), data: Zeroizing::new(command.data.clone()) });
        let class = Class(command.cla);
        let number = usize::from(class.channel());
        match command.ins {
            // Whatever it was, it may have selected something, or begun PACE, on any channel.
            ENVELOPE | ENVELOPE_TLV => self.forget(),
            SELECT => self.selects(&sent, number, status),
            // Of OpenPGP cards it is SELECT DATA, elsewhere perhaps another SELECT.
            SELECT_TLV if self.channels[number].selected != Some(Application::OpenPgp) => {
                self.selects(&sent, number, status);
            }
            MANAGE_SECURITY_ENVIRONMENT if !class.is_proprietary() => {
                self.environment(command, number);
            }
            MANAGE_CHANNEL => self.manages_channels(command, status),
            _ => {}
        }
    }

    /// A SELECT was answered. A card that has one channel only takes every class for that one.
    fn selects(&mut self, sent: &Sent, number: usize, status: StatusWord) {
        self.lose(self.perhaps_same(number).filter(|other| *other != number));
        let is_plain = sent.command.ins == SELECT
            && !sent.in_chain
            && !Class(sent.command.cla).is_proprietary();
        match selected(&sent.command, status).filter(|_| is_plain) {
            Some((application, name)) => {
                let channel = &mut self.channels[number];
                channel.selected = Some(application);
                channel.name = name;
            }
            None => self.lose([number]),
        }
    }

    /// SET of a template for PACE begins it, RESTORE may; both may bring other PINs under the same
    /// numbers. Those of PIV and OpenPGP are fixed.
    fn environment(&mut self, command: &CommandApdu, number: usize) {
        let sets_pace = command.p2 == 0xA4 && command.p1 & 0xC0 == 0xC0;
        if sets_pace || command.p1 & 0x0F == 0x03 {
            for other in self.perhaps_same(number) {
                self.channels[other].pace = true;
            }
        }
        if !matches!(self.channels[number].name, Selection::Only(_)) {
            self.unknown += 1;
            self.channels[number].name = Selection::Unknown(self.unknown);
        }
    }

    /// What is selected on a new channel is the card's affair.
    fn manages_channels(&mut self, command: &CommandApdu, status: StatusWord) {
        let is_iso = !Class(command.cla).is_proprietary();
        let number = usize::from(command.p2);
        match command.p1 {
            0x00 if is_iso => {
                self.lose(1..self.channels.len());
                if status == StatusWord::OK && (1..self.channels.len()).contains(&number) {
                    self.open[number] = true;
                }
            }
            0x80 if is_iso => {
                self.lose(1..self.channels.len());
                self.open = ONLY_THE_BASIC_ONE;
            }
            _ => self.forget(),
        }
    }

    /// The channels that the card may take for this one: all of which nobody knows that it has them.
    fn perhaps_same(&self, number: usize) -> impl Iterator<Item = usize> + use<> {
        let open = self.open;
        (0..open.len()).filter(move |other| *other == number || !(open[*other] && open[number]))
    }

    /// Anything may be selected, PACE may have begun, and any channel may be closed.
    fn forget(&mut self) {
        self.lose(0..self.channels.len());
        self.channels.iter_mut().for_each(|channel| channel.pace = true);
        self.open = ONLY_THE_BASIC_ONE;
    }

    /// The card was reset or powered: whatever was selected is not.
    pub fn reset(&mut self) {
        self.chain = None;
        self.sent = None;
        self.open = ONLY_THE_BASIC_ONE;
        self.lose(0..self.channels.len());
        self.channels.iter_mut().for_each(|channel| channel.pace = false);
    }
}

/// What a SELECT has selected, where that is certain: by its name, at its first occurrence, and
/// with a card that says so. A file says nothing of its application, and a SELECT that failed may
/// have ended the selection.
fn selected(command: &CommandApdu, status: StatusWord) -> Option<(Application, Selection)> {
    let is_done = status == StatusWord::OK || status.bytes_to_fetch().is_some();
    let aid = &command.data[..];
    if command.p1 != 0x04 || command.p2 & 0x03 != 0 || !is_done || !(5..=16).contains(&aid.len()) {
        return None;
    }
    match Application::by_aid(aid) {
        // Its commands have numbers that elsewhere are those of PINs, so its name has to be given
        // in full.
        Application::Benchmark if aid.len() < 10 => None,
        application @ (Application::Piv | Application::OpenPgp) => {
            Some((application, Selection::Only(application)))
        }
        application => {
            let mut name = [0xFF; 16];
            name[..aid.len()].copy_from_slice(aid);
            Some((application, Selection::Named(name)))
        }
    }
}

/// The command in an envelope.
fn opened(envelope: &CommandApdu) -> Result<CommandApdu, Why> {
    let (mut inside, _) = CommandApdu::parse(&envelope.data).map_err(|_| Why::Envelope)?;
    admissible(&inside)?;
    // Of two channels nobody knows which one the card takes.
    let is_elsewhere = Class(inside.cla).channel() != Class(envelope.cla).channel();
    if matches!(inside.ins, ENVELOPE | ENVELOPE_TLV) || inside.is_chained() || is_elsewhere {
        return Err(Why::Envelope);
    }
    // Under T=0 the data may follow in another envelope (ISO 7816-4, 11.10.1).
    if inside.data.is_empty() {
        inside.data.push(0);
    }
    Ok(inside)
}

fn header(command: &CommandApdu) -> [u8; 4] {
    [command.cla, command.ins, command.p1, command.p2]
}

fn admissible(command: &CommandApdu) -> Result<(), Why> {
    let class = Class(command.cla);
    if class.is_reserved() {
        return Err(Why::ReservedClass);
    }
    if class.is_secured() {
        return Err(Why::SecureMessaging);
    }
    Ok(())
}
