//! What is read from a card and signed by it, in bytes, and the commands that carry it: SP 800-73-5
//! part 2, sections 3.1.2 and 3.2.4, over ISO/IEC 7816-4.

use std::collections::BTreeMap;

use crate::message::{Message, step};

/// What a card holds and signs, and how long its commands may be.
#[derive(Clone, Debug, PartialEq)]
pub struct CardContent {
    /// The bytes of the answer to SELECT, without the status word.
    pub select_bytes: u32,
    /// The key that answers the challenge.
    pub key: KeyKind,
    /// The certificate of that key.
    pub certificate: CertificateBytes,
    /// The bytes of the CHUID's object, where a door reads it.
    pub chuid_bytes: Option<u32>,
    /// How lengths are written in commands.
    pub lengths: LengthFields,
    /// Whether the certificate is stored compressed.
    pub is_gzip: bool,
    /// Whether the smaller certificate is issued.
    pub is_small: bool,
    /// Whether the key is registered, so that only an identifier is read.
    pub is_known: bool,
}

/// The key for card authentication (SP 800-78-5, table 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with a modulus of so many bytes.
    Rsa(u32),
    /// A curve over a field of so many bytes.
    Curve(u32),
}

/// A certificate's bytes in its forms. What is not known stays as it is when that form is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateBytes {
    /// DER, as it is issued today.
    pub plain: u32,
    /// The same under gzip.
    pub gzip: Option<u32>,
    /// A smaller certificate for the same key.
    pub small: Option<u32>,
    /// The smaller one compressed.
    pub small_gzip: Option<u32>,
}

/// How lengths are written in commands (ISO/IEC 7816-4, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthFields {
    /// At most 255 bytes in a command and 256 in a response: what is longer is chained.
    Short,
    /// A command and its response are whole.
    Extended,
}

/// The longest data field of a short command, and the longest data of its response.
const SHORT_DATA: u32 = 255;
const SHORT_RESPONSE: u32 = 256;
/// CLA, INS, P1, P2.
const HEADER: u32 = 4;
/// SW1 and SW2.
const STATUS: u32 = 2;
/// SELECT with the application's name of nine bytes, without its version: part 1, section 2.2.
const SELECT_BYTES: u32 = HEADER + 1 + 9;
/// The tag list of GET DATA: 5C, its length, a tag of three bytes.
const TAG_LIST: u32 = 5;
/// 71 01 and CertInfo, FE 00: part 1, appendix A.
const AROUND_CERTIFICATE: u32 = 3 + 2;
/// The start of a CHUID that holds the identifiers, as `tapstone door measure` reads it.
const CHUID_START: u32 = 65;
/// What ECDSA's `Ecdsa-Sig-Value` adds to two integers of the field's length: a sequence, two
/// headers, and half a byte of sign for each integer on average.
const SIGNATURE_HEADERS: u32 = 2 + 2 * 2 + 1;

impl KeyKind {
    /// As changes and scenarios name it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "rsa2048" => Some(Self::Rsa(256)),
            "rsa3072" => Some(Self::Rsa(384)),
            "ecc-p256" => Some(Self::Curve(32)),
            "ecc-p384" => Some(Self::Curve(48)),
            _ => None,
        }
    }

    /// The padded digest that RSA signs, or the digest.
    const fn challenge_bytes(self) -> u32 {
        match self {
            Self::Rsa(bytes) | Self::Curve(bytes) => bytes,
        }
    }

    const fn signature_bytes(self) -> u32 {
        match self {
            Self::Rsa(bytes) => bytes,
            Self::Curve(bytes) => 2 * bytes + SIGNATURE_HEADERS,
        }
    }
}

impl CertificateBytes {
    /// The bytes that are on the card: of an unknown form, those of the one before.
    fn stored(&self, is_gzip: bool, is_small: bool) -> u32 {
        let small = self.small.unwrap_or(self.plain);
        match (is_gzip, is_small) {
            (false, false) => self.plain,
            (true, false) => self.gzip.unwrap_or(self.plain),
            (false, true) => small,
            (true, true) => self.small_gzip.unwrap_or(small),
        }
    }
}

impl CardContent {
    /// The bytes of the certificate as it is stored.
    #[must_use]
    pub fn certificate_bytes(&self) -> u32 {
        self.certificate.stored(self.is_gzip, self.is_small)
    }

    /// Every command and its response, in their order.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages = vec![message(step::SELECT, SELECT_BYTES, self.select_bytes + STATUS)];
        if self.is_known {
            let le = Self::le(LengthFields::Short);
            let command = HEADER + 1 + TAG_LIST + le;
            messages.push(message(step::READ_CERTIFICATE, command, CHUID_START + STATUS));
        } else {
            let der = element(self.certificate_bytes());
            let object = element(der + AROUND_CERTIFICATE);
            messages.extend(self.exchange(step::READ_CERTIFICATE, TAG_LIST, object));
        }
        // 7C, in it 82 without a value and 81 with the challenge; back 7C, in it 82.
        let challenge = element(2 + element(self.key.challenge_bytes()));
        let signature = element(element(self.key.signature_bytes()));
        messages.extend(self.exchange(step::CHALLENGE, challenge, signature));
        if let Some(chuid) = self.chuid_bytes.filter(|_| !self.is_known) {
            messages.extend(self.exchange(step::READ_CHUID, TAG_LIST, element(chuid)));
        }
        messages
    }

    /// How many commands each step has.
    pub(crate) fn commands(&self) -> BTreeMap<String, f64> {
        let mut counts = BTreeMap::new();
        for message in self.messages() {
            *counts.entry(message.step).or_default() += f64::from(message.count);
        }
        counts
    }

    /// A command with this data and a response with that: in one, or chained and fetched.
    fn exchange(&self, step: &str, data: u32, response: u32) -> Vec<Message> {
        let le = Self::le(self.lengths);
        if self.lengths == LengthFields::Extended {
            // Lc and Le of two bytes each, after one zero.
            return vec![message(step, HEADER + 3 + data + le, response + STATUS)];
        }
        let mut messages = Vec::new();
        let mut left = data;
        while left > SHORT_DATA {
            messages.push(message(step, HEADER + 1 + SHORT_DATA, STATUS));
            left -= SHORT_DATA;
        }
        let mut fetched = response.min(SHORT_RESPONSE);
        messages.push(message(step, HEADER + 1 + left + le, fetched + STATUS));
        while fetched < response {
            let more = (response - fetched).min(SHORT_RESPONSE);
            messages.push(message(step, HEADER + le, more + STATUS));
            fetched += more;
        }
        messages
    }

    /// The bytes of Le, behind an Lc field.
    const fn le(lengths: LengthFields) -> u32 {
        match lengths {
            LengthFields::Short => 1,
            LengthFields::Extended => 2,
        }
    }
}

fn message(step: &str, command_bytes: u32, response_bytes: u32) -> Message {
    Message { step: step.to_owned(), count: 1, command_bytes, response_bytes }
}

/// A BER-TLV element with a tag of one byte and a value of this length.
const fn element(value: u32) -> u32 {
    let length = match value {
        0..=127 => 1,
        128..=255 => 2,
        256..=65_535 => 3,
        _ => 4,
    };
    1 + length + value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The GSA's test cards 46 and 37: their certificates for card authentication.
    fn gsa(key: KeyKind, plain: u32, gzip: u32) -> CardContent {
        CardContent {
            select_bytes: 63,
            key,
            certificate: CertificateBytes {
                plain,
                gzip: Some(gzip),
                small: None,
                small_gzip: None,
            },
            chuid_bytes: None,
            lengths: LengthFields::Short,
            is_gzip: false,
            is_small: false,
            is_known: false,
        }
    }

    /// All bytes of commands and responses.
    fn bytes(content: &CardContent) -> u32 {
        let all = content.messages();
        all.iter().map(|it| it.count * (it.command_bytes + it.response_bytes)).sum()
    }

    fn rsa() -> CardContent {
        gsa(KeyKind::Rsa(256), 1517, 1303)
    }

    fn curve() -> CardContent {
        gsa(KeyKind::Curve(32), 1314, 1101)
    }

    #[test]
    fn the_gsas_rsa_card_sends_what_the_source_counted() {
        // The source of reference/piv-door.toml: 10 commands and 2209 bytes.
        assert_eq!((rsa().messages().len(), bytes(&rsa())), (10, 2209));
    }

    #[test]
    fn the_certificate_of_a_curve_has_thirteen_percent_fewer_bytes() {
        let fewer = 1.0 - f64::from(curve().certificate_bytes()) / 1517.0;
        assert!((fewer - 0.134).abs() < 0.001, "{fewer}");
        // 203 of the certificate; the rest is the challenge, the signature, and two commands.
        assert_eq!((curve().messages().len(), bytes(&curve())), (8, 1575));
    }

    #[test]
    fn extended_commands_are_whole() {
        let extended = CardContent { lengths: LengthFields::Extended, ..rsa() };
        assert_eq!(extended.messages().len(), 3);
        assert_eq!(extended.commands()[step::READ_CERTIFICATE], 1.0);
        // 1530 bytes of the certificate's object in one response.
        assert_eq!(extended.messages()[1].response_bytes, 1532);
    }

    #[test]
    fn other_forms_of_a_certificate_are_read_as_they_are_stored() {
        let forms =
            CertificateBytes { small: Some(900), small_gzip: Some(800), ..rsa().certificate };
        let stored = |is_gzip, is_small| {
            CardContent { certificate: forms, is_gzip, is_small, ..rsa() }.certificate_bytes()
        };
        assert_eq!([stored(false, false), stored(true, false)], [1517, 1303]);
        assert_eq!([stored(false, true), stored(true, true)], [900, 800]);
        // Nobody said how small it could be: it stays.
        assert_eq!(CardContent { is_small: true, ..rsa() }.certificate_bytes(), 1517);
    }

    #[test]
    fn a_known_card_gives_the_start_of_its_chuid() {
        let known = CardContent { is_known: true, chuid_bytes: Some(3000), ..rsa() };
        let read: Vec<_> =
            known.messages().into_iter().filter(|it| it.step != step::CHALLENGE).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[1].command_bytes, read[1].response_bytes), (11, 67));
    }

    #[test]
    fn lengths_grow_with_what_they_are_of() {
        assert_eq!([element(0), element(127), element(128)], [2, 129, 131]);
        assert_eq!([element(255), element(256), element(65_536)], [258, 260, 65_541]);
    }
}
