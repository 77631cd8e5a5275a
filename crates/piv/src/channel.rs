//! The conversation with the card, every command timed.

use tapstone_apdu::{Class, CommandApdu, Expected, StatusWord, tlv};
use tapstone_measure::clock::{Clock, Monotonic};
use tapstone_measure::units::Nanos;

use crate::card::{CardConnection, CardLost};
use crate::denial::Denial;
use crate::key::Challenge;
use crate::log::{ApduExchange, DialogueLog, DialogueStep};
use crate::object::{APPLICATION, DataObject};
use crate::pin::PivPin;
use crate::strategy::CommandLengths;

/// The longest data field of a command that every card takes.
const SHORT: usize = 255;

/// The longest data field of an extended command (ISO/IEC 7816-4, 5.2).
const EXTENDED: usize = 65_535;

/// CLA of a command whose chain goes on (ISO 7816-4, 5.3.3).
const CHAINED: u8 = 0x10;

/// Room for any response, so that nothing is allocated while a dialogue is timed.
const ROOM: usize = 65_538;

/// No PIV object has more pieces, so a card that always has more ends here.
const MOST_PIECES: usize = 512;

/// Why a dialogue ended before its end.
#[derive(Debug)]
pub(crate) enum DialogueEnd {
    Refused(Denial),
    Lost(CardLost),
}

impl From<Denial> for DialogueEnd {
    fn from(refusal: Denial) -> Self {
        Self::Refused(refusal)
    }
}

impl From<CardLost> for DialogueEnd {
    fn from(lost: CardLost) -> Self {
        Self::Lost(lost)
    }
}

/// How long an authentication may take. A card that answers slowly, in pieces without an end, would
/// otherwise be judged by a clock that was read long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Nanos);

impl Default for TimeLimit {
    /// Many times what the slowest published cards take.
    fn default() -> Self {
        Self(Nanos::from_millis(300_000))
    }
}

/// One dialogue with one card.
pub(crate) struct CardChannel<'a> {
    card: &'a mut dyn CardConnection,
    step: DialogueStep,
    response: Vec<u8>,
    begun: Nanos,
    limit: TimeLimit,
    pub(crate) lengths: CommandLengths,
    pub(crate) log: DialogueLog,
}

impl<'a> CardChannel<'a> {
    pub(crate) fn new(card: &'a mut dyn CardConnection, limit: TimeLimit) -> Self {
        Self {
            card,
            step: DialogueStep::Select,
            response: Vec::with_capacity(ROOM),
            begun: Monotonic.now(),
            limit,
            lengths: CommandLengths::default(),
            log: DialogueLog::with_room(),
        }
    }

    /// Something that belongs to a step, timed.
    pub(crate) fn step<T>(&mut self, step: DialogueStep, what: impl FnOnce(&mut Self) -> T) -> T {
        self.step = step;
        let start = Monotonic.now();
        let made = what(self);
        self.took(step, Monotonic.now() - start);
        made
    }

    pub(crate) fn took(&mut self, step: DialogueStep, time: Nanos) {
        self.log.steps.push((step, time));
    }

    /// SELECT of the PIV application.
    pub(crate) fn select(&mut self) -> Result<(), DialogueEnd> {
        self.step(DialogueStep::Select, |channel| {
            let (status, _) = channel.answer(&CommandApdu::select(&APPLICATION), usize::MAX)?;
            succeeded("SELECT", status)
        })
    }

    /// GET DATA; at most so many bytes of the object.
    pub(crate) fn get_data(
        &mut self,
        object: DataObject,
        most: usize,
    ) -> Result<Vec<u8>, DialogueEnd> {
        let limit = self.expected();
        let expected = Expected::bytes(most.min(limit.count()) as u32).unwrap_or(limit);
        let tag = tlv::element(0x5C, &object.tag);
        let command = CommandApdu::new(0, 0xCB, 0x3F, 0xFF).with_data(&tag).expecting(expected);
        let (status, data) = self.answer(&command, most)?;
        match status {
            StatusWord::NOT_FOUND => {
                Err(Denial::Missing { object: object.name.to_owned(), status: status.0 }.into())
            }
            status => succeeded("GET DATA", status).map(|()| data),
        }
    }

    /// GENERAL AUTHENTICATE: the signature of a challenge by this key of the card.
    pub(crate) fn sign(&mut self, challenge: &Challenge, key: u8) -> Result<Vec<u8>, DialogueEnd> {
        const NAME: &str = "GENERAL AUTHENTICATE";
        let header = |cla| CommandApdu::new(cla, 0x87, challenge.algorithm, key);
        let longest = match self.lengths {
            CommandLengths::Short => SHORT,
            CommandLengths::Extended => EXTENDED,
        };
        let expected = self.expected();
        let mut parts = challenge.template.chunks(longest).peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                let status = self.exchange(&header(CHAINED).with_data(part))?;
                succeeded(NAME, status)?;
                continue;
            }
            let command = header(0).with_data(part).expecting(expected);
            let (status, data) = self.answer(&command, usize::MAX)?;
            succeeded(NAME, status)?;
            let signature = tlv::only(0x7C, &data).and_then(|inside| tlv::only(0x82, inside));
            return signature.map(<[u8]>::to_vec).ok_or_else(|| {
                let why = "the answer is no template with a response".to_owned();
                Denial::Malformed { what: "signature".to_owned(), why }.into()
            });
        }
        unreachable!("a template has bytes")
    }

    /// As much as one response may have.
    const fn expected(&self) -> Expected {
        match self.lengths {
            CommandLengths::Short => Expected::SHORT,
            CommandLengths::Extended => Expected::EXTENDED,
        }
    }

    /// How many tries of the PIN are left (SP 800-73-5 part 2, 3.2.1).
    pub(crate) fn tries(&mut self) -> Result<StatusWord, DialogueEnd> {
        self.exchange(&CommandApdu::new(0, 0x20, 0, 0x80))
    }

    /// VERIFY with the application PIN (SP 800-73-5 part 2, 3.2.1).
    pub(crate) fn verify(&mut self, pin: &PivPin) -> Result<StatusWord, DialogueEnd> {
        let mut command = CommandApdu::new(0, 0x20, 0, 0x80).with_data(pin.padded());
        let mut bytes = command.encode();
        let status = self.send(&bytes);
        zeroize::Zeroize::zeroize(&mut bytes);
        zeroize::Zeroize::zeroize(&mut command.data);
        status
    }

    /// A command and the whole response to it, fetched by GET RESPONSE up to `most` bytes, and
    /// asked for again where the card wants another Le of a command without data.
    fn answer(
        &mut self,
        command: &CommandApdu,
        most: usize,
    ) -> Result<(StatusWord, Vec<u8>), DialogueEnd> {
        let mut data = Vec::new();
        let mut next = command.clone();
        for _ in 0..MOST_PIECES {
            let mut status = self.exchange(&next)?;
            let again = status.exact_length().and_then(|length| next.again_with(length));
            if let Some(again) = again {
                status = self.exchange(&again)?;
            }
            data.extend_from_slice(&self.response[..self.response.len() - 2]);
            let room = most.saturating_sub(data.len());
            match status.bytes_to_fetch() {
                Some(left) if room > 0 => {
                    next = CommandApdu::get_response(Class(command.cla), left.min(room));
                }
                _ => return Ok((status, data)),
            }
        }
        let why = "it has no end".to_owned();
        Err(Denial::Malformed { what: "response".to_owned(), why }.into())
    }

    fn exchange(&mut self, command: &CommandApdu) -> Result<StatusWord, DialogueEnd> {
        self.send(&command.encode())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<StatusWord, DialogueEnd> {
        self.response.clear();
        let start = Monotonic.now();
        if start - self.begun > self.limit.0 {
            return Err(Denial::TooSlow { limit: self.limit.0 }.into());
        }
        let sent = self.card.transmit(bytes, &mut self.response);
        let time = Monotonic.now() - start;
        sent?;
        // Not the card's word: readers give such a thing when it is taken out in mid-command.
        let Some(&[sw1, sw2]) = self.response.last_chunk::<2>() else {
            let code = "no status word".to_owned();
            return Err(CardLost { call: "response".to_owned(), code }.into());
        };
        let status = StatusWord(u16::from_be_bytes([sw1, sw2]));
        self.log.exchanges.push(ApduExchange {
            step: self.step,
            header: [bytes[0], bytes[1], bytes[2], bytes[3]],
            sent: bytes.len() as u32,
            received: self.response.len() as u32,
            status: status.0,
            time,
        });
        Ok(status)
    }
}

fn succeeded(command: &str, status: StatusWord) -> Result<(), DialogueEnd> {
    match status.is_success() {
        true => Ok(()),
        false => Err(Denial::Status { command: command.to_owned(), status: status.0 }.into()),
    }
}
