//! Readers and the cards in them, as a worker sees them.

use std::ffi::CStr;

use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_firewall::{Declared, Firewall, Permissions};
use tapstone_names::pcsc::{PcscFailure, VIRTUAL_READER};

use crate::protocol::{Cards, Emulated, Reader};
use crate::scard::{Connection, Context, Pcsc, ReaderStateBits, ShareMode, reader_name};

/// The application on which Tapstone's virtual card answers what it plays.
const IDENTITY: [u8; 10] = *b"\xF0TAPSTONE\x00";

/// All readers, with the cards in those that are asked about: a question powers a card. One that
/// cannot be connected to is shown without its ATR.
pub(crate) fn readers(pcsc: &Pcsc, cards: &Cards) -> Result<Vec<Reader>, PcscFailure> {
    let context = pcsc.establish()?;
    let names = context.readers()?;
    names.into_iter().map(|name| reader(&context, name, cards)).collect()
}

fn reader(context: &Context, name: String, cards: &Cards) -> Result<Reader, PcscFailure> {
    let c_name = reader_name(&name);
    let look = context.status_change(&c_name, ReaderStateBits::UNAWARE)?;
    let mut reader = Reader {
        name,
        card_present: look.card_present,
        exclusive: look.exclusive,
        atr: None,
        protocol: None,
        driver_version: None,
        emulated: None,
    };
    let asked = match cards {
        Cards::None => false,
        Cards::In(name) => reader.name == *name,
        Cards::All => true,
    };
    if asked && look.card_present && !look.exclusive {
        describe(context, &c_name, &mut reader);
    }
    Ok(reader)
}

fn describe(context: &Context, name: &CStr, reader: &mut Reader) {
    let Ok(card) = context.connect(name, ShareMode::Shared) else { return };
    reader.atr = card.status().ok().map(|atr| atr.as_bytes().to_vec());
    reader.protocol = card.protocol().name().map(str::to_owned);
    reader.driver_version = card.driver_version();
    if reader.name.starts_with(VIRTUAL_READER) {
        reader.emulated = emulated(&card);
    }
}

/// What a virtual card plays. Any other card in such a reader refuses the question.
fn emulated(card: &Connection) -> Option<Emulated> {
    let mut memory = [0; 512];
    let select = CommandApdu::select(&IDENTITY).encode();
    let cleared = Firewall::new(Permissions::default()).clear(&select, Declared::Nothing).ok()?;
    card.begin().ok()?;
    let answer = card.transmit(cleared, &mut memory);
    let identity = answer.ok().and_then(|response| {
        let (data, status) = response.split_last_chunk::<2>()?;
        (u16::from_be_bytes(*status) == StatusWord::OK.0).then(|| parse(data)).flatten()
    });
    card.end().ok()?;
    identity
}

/// Tag 80: the profile's name. Tag 81: the SHA-256 of its file. Lengths are below 128.
fn parse(mut data: &[u8]) -> Option<Emulated> {
    let mut profile = None;
    let mut sha256 = None;
    while let [tag, length, rest @ ..] = data {
        let (value, more) = rest.split_at_checked(usize::from(*length))?;
        match tag {
            0x80 => profile = Some(String::from_utf8_lossy(value).into_owned()),
            0x81 => sha256 = Some(hex::encode(value)),
            _ => {}
        }
        data = more;
    }
    Some(Emulated { profile: profile?, sha256: sha256? })
}
