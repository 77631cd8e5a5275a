//! The PIV card application of SP 800-73-5, parts 1 and 2, with the algorithms of SP 800-78-5.
//!
//! It holds a [`CardData`] and answers what a holder's card answers: SELECT, GET DATA, VERIFY,
//! CHANGE REFERENCE DATA, RESET RETRY COUNTER and GENERAL AUTHENTICATE, over the contact interface;
//! and Yubico's GET VERSION and GET SERIAL, without which yubico-piv-tool refuses a card. There is
//! no secure messaging, no comparison of biometrics on the card, and no administration: nobody
//! holds the card management key, so what needs it is refused as on a card after issuance.
//!
//! A changed PIN and used-up tries last as long as the value: the card data's files never change.

pub mod atr;
mod authenticate;
mod card_data;
mod key;
mod object;
mod pin;
mod verify;
pub mod work;

use tapstone_apdu::{CommandApdu, StatusWord, tlv};

pub use self::card_data::{CardData, CardDataError, CertificateStorage, Recipe};
pub use self::key::PivAlgorithm;
use self::object::Access;
use self::pin::PinReference;
use crate::applet::{Applet, Reply};

/// The application's full name (SP 800-73-5 part 1, 2.2): RID of NIST, PIX with version 1.0.
pub const AID: [u8; 11] = [0xA0, 0, 0, 3, 8, 0, 0, 0x10, 0, 1, 0];

/// The length of what GET SERIAL answers.
const YUBICO_SERIAL_BYTES: usize = 4;

/// How many wrong PINs or PUKs in a row block it. FIPS 201-3 leaves it to the issuer, at most 10.
const TRIES: u8 = 3;

/// What GET VERSION answers: the version from which yubico-piv-tool uses GET SERIAL (5.0 and
/// later) and asks for nothing that was added since.
const YUBICO_VERSION: [u8; 3] = [5, 4, 3];

const SECURE_MESSAGING_NOT_SUPPORTED: StatusWord = StatusWord(0x6882);
const LOGICAL_CHANNEL_NOT_SUPPORTED: StatusWord = StatusWord(0x6881);

/// The application on a card.
#[derive(Debug)]
pub struct PivApplet {
    card_data: CardData,
    pin: PinReference,
    puk: PinReference,
    /// The security status of the PIN.
    verified: bool,
    /// Whether the command before this one verified the PIN: what "PIN always" asks for.
    just_verified: bool,
}

impl PivApplet {
    /// With this card data, nothing verified, all tries left.
    #[must_use]
    pub fn new(card_data: CardData) -> Self {
        Self {
            pin: PinReference::new(card_data.pin.clone(), TRIES),
            puk: PinReference::new(card_data.puk.clone(), TRIES),
            card_data,
            verified: false,
            just_verified: false,
        }
    }

    /// GET DATA: part 2, 3.1.2.
    fn get_data(&self, command: &CommandApdu) -> Result<Reply, StatusWord> {
        if (command.p1, command.p2) != (0x3F, 0xFF) {
            return Err(StatusWord::WRONG_PARAMETERS);
        }
        let tag = tlv::only(0x5C, &command.data).ok_or(StatusWord::WRONG_DATA)?;
        if !(1..=3).contains(&tag.len()) {
            return Err(StatusWord::WRONG_DATA);
        }
        let tag = tag.iter().fold(0, |tag, byte| tag << 8 | u32::from(*byte));
        let object = object::by_tag(tag).ok_or(StatusWord::NOT_FOUND)?;
        // Before looking whether it is there: that too is nobody's business without the PIN.
        if object.access == Access::Pin && !self.verified {
            return Err(StatusWord::SECURITY_NOT_SATISFIED);
        }
        let found = self.card_data.response(tag).ok_or(StatusWord::NOT_FOUND)?;
        Ok(Reply::ok(found).after(work::OBJECT_READ, 1))
    }

    /// The application property template: part 2, 3.1.1, table 3.
    fn property_template(&self) -> Vec<u8> {
        let authority = tlv::element(0x79, &tlv::element(0x4F, &AID[..5]));
        let parts = [
            tlv::element(0x4F, &AID[5..]),
            authority,
            tlv::element(0x50, b"Tapstone PIV"),
            tlv::long_element(
                tlv::Tag::application(0x50),
                b"https://csrc.nist.gov/pubs/sp/800/73/pt1/5/final",
            ),
        ];
        tlv::element(0x61, &parts.concat())
    }
}

impl Applet for PivApplet {
    fn aid(&self) -> &[u8] {
        &AID
    }

    /// The security status stays: part 2, 3.1.1.
    fn select(&mut self) -> Reply {
        self.just_verified = false;
        Reply::ok(self.property_template())
    }

    fn deselect(&mut self) {
        self.verified = false;
        self.just_verified = false;
    }

    fn answer(&mut self, command: &CommandApdu) -> Reply {
        match command.cla {
            0x00 => {}
            0x01..=0x03 => return Reply::refused(LOGICAL_CHANNEL_NOT_SUPPORTED),
            0x04..=0x0F => return Reply::refused(SECURE_MESSAGING_NOT_SUPPORTED),
            _ => return Reply::refused(StatusWord::UNKNOWN_CLASS),
        }
        let just_verified = std::mem::take(&mut self.just_verified);
        let answered = match command.ins {
            0x20 => Ok(self.verify(command)),
            0x24 => Ok(self.change_reference_data(command)),
            0x2C => Ok(self.reset_retry_counter(command)),
            0x87 => self.general_authenticate(command, just_verified),
            0xCB => self.get_data(command),
            // PUT DATA and GENERATE ASYMMETRIC KEY PAIR need the card management key.
            0x47 | 0xDB => Err(StatusWord::SECURITY_NOT_SATISFIED),
            0xFD => yubico(command, &YUBICO_VERSION),
            0xF8 => yubico(command, &self.card_data.serial()),
            _ => Err(StatusWord::UNKNOWN_INSTRUCTION),
        };
        answered.unwrap_or_else(Reply::refused)
    }
}

/// Yubico's commands that ask: P1 and P2 are zero.
fn yubico(command: &CommandApdu, answer: &[u8]) -> Result<Reply, StatusWord> {
    match (command.p1, command.p2) {
        (0, 0) => Ok(Reply::ok(answer)),
        _ => Err(StatusWord::WRONG_PARAMETERS),
    }
}
