//! What a card knows when a command comes: what is selected on each logical channel, which chain is
//! open.

use tapstone_apdu::{Class, CommandApdu, StatusWord};
use tapstone_names::apdu::Application;
use zeroize::{Zeroize, Zeroizing};

use crate::effect::{Effect, Selection, Surroundings, effect};
use crate::refusal::Why;

const SELECT: u8 = 0xA4;
const ENVELOPE: u8 = 0xC2;
const ENVELOPE_TLV: u8 = 0xC3;
const MANAGE_SECURITY_ENVIRONMENT: u8 = 0x22;
const MANAGE_CHANNEL: u8 = 0x70;

/// What was selected where, as far as the answers told; what they did not is taken at its worst.
#[derive(Clone)]
pub struct Context {
    channels: [Surroundings; Class::CHANNELS as usize],
    chain: Option<Chain>,
    sent: Option<Sent>,
    /// How many selections nobody knows.
    unknown: u64,
}

/// Of a card of which nothing is known.
impl Default for Context {
    fn default() -> Self {
        let nothing = Surroundings { selected: None, name: Selection::Unknown(0), pace: false };
        let channels = [nothing; Class::CHANNELS as usize];
        let mut context = Self { channels, chain: None, sent: None, unknown: 0 };
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
    enveloped: bool,
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

impl Context {
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
        let class = Class(command.cla);
        let in_chain = chained || self.chain.is_some();
        let judged = match command.ins {
            ENVELOPE_TLV if !class.is_proprietary() => return Err(Why::Envelope),
            // A part of an envelope is judged with the last one, which is what a card acts upon.
            ENVELOPE if !class.is_proprietary() && chained => {
                Judged { command, effect: Effect::Reads, plain: false }
            }
            ENVELOPE if !class.is_proprietary() => {
                let (mut inside, _) =
                    CommandApdu::parse(&command.data).map_err(|_| Why::Envelope)?;
                admissible(&inside)?;
                if matches!(inside.ins, ENVELOPE | ENVELOPE_TLV) || inside.is_chained() {
                    return Err(Why::Envelope);
                }
                // Under T=0 the data may follow in another envelope (ISO 7816-4, 11.10.1).
                if inside.data.is_empty() {
                    inside.data.push(0);
                }
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
            (channel.selected, channel.name) = (None, Selection::Unknown(self.unknown));
        }
    }

    /// The command is on its way.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Ok((command, chained)) = self.whole(bytes) else { return };
        let envelope = command.ins == ENVELOPE && !Class(command.cla).is_proprietary();
        self.sent = Some(Sent { command, chained, enveloped: envelope && !chained });
    }

    /// What the card said to it.
    pub fn answered(&mut self, status: StatusWord) {
        let Some(sent) = self.sent.take() else { return };
        let Sent { command, chained, enveloped } = &sent;
        let chained = *chained;
        let enveloped = *enveloped;
        // After another answer than 9000 a chain is over (ISO 7816-4, 5.3.3). Of an envelope that is
        // not relied upon: what is in it would be judged without its beginning.
        let goes_on = chained && (status == StatusWord::OK || command.ins == ENVELOPE);
        self.chain = goes_on
            .then(|| Chain { header: header(command), data: Zeroizing::new(command.data.clone()) });
        let class = Class(command.cla);
        if chained || class.is_proprietary() {
            return;
        }
        let number = usize::from(class.channel());
        match command.ins {
            // Whatever it was, it may have selected something, or begun PACE, on any channel.
            _ if enveloped => {
                self.lose(0..self.channels.len());
                self.channels.iter_mut().for_each(|channel| channel.pace = true);
            }
            SELECT => match selected(command, status) {
                Some((application, name)) => {
                    let channel = &mut self.channels[number];
                    (channel.selected, channel.name) = (Some(application), name);
                }
                None => self.lose([number]),
            },
            MANAGE_SECURITY_ENVIRONMENT if command.p2 == 0xA4 && command.p1 & 0xC0 == 0xC0 => {
                self.channels[number].pace = true;
            }
            // What is selected on a new channel is the card's affair.
            MANAGE_CHANNEL => self.lose(1..self.channels.len()),
            _ => {}
        }
    }

    /// The card was reset or powered: whatever was selected is not.
    pub fn reset(&mut self) {
        self.chain = None;
        self.sent = None;
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
