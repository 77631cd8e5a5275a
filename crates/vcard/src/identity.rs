//! The identity applet: lets whoever measures tell a virtual card from a real one.
//!
//! AID `F0 54 41 50 53 54 4F 4E 45 00` (proprietary, ISO 7816-5: "TAPSTONE", application 0). SELECT
//! answers two BER-TLV objects, always in this order; there are no commands.
//!
//! | tag | length | value |
//! | --- | --- | --- |
//! | `80` | 1 byte, 1 to 127 | the name of the card's profile, UTF-8; `plain` without a profile |
//! | `81` | `20` | SHA-256 of the profile's file; of nothing (`E3 B0 C4 42 …`) without a profile |
//!
//! For a profile called `x`: `80 01 78 81 20` and 32 bytes, then `90 00`.

use sha2::{Digest, Sha256};
use tapstone_apdu::{CommandApdu, StatusWord};

use crate::applet::{Applet, Reply};

/// The name of the identity applet.
pub const IDENTITY_AID: [u8; 10] = *b"\xF0TAPSTONE\x00";

/// What a card without a profile calls itself.
pub(crate) const PLAIN: &str = "plain";

/// The longest name whose length is one byte in BER.
pub(crate) const LONGEST_NAME: usize = 127;

/// The identity applet of one card: its profile's name and digest.
#[derive(Debug)]
pub struct IdentityApplet {
    answer: Vec<u8>,
}

impl IdentityApplet {
    /// Of the profile with this name and this text; a name of more than 127 bytes is cut.
    #[must_use]
    pub fn new(name: &str, file: &str) -> Self {
        let mut end = name.len().min(LONGEST_NAME);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        let digest = Sha256::digest(file);
        let mut answer = vec![0x80, name.len() as u8];
        answer.extend(name.bytes());
        answer.extend([0x81, digest.len() as u8]);
        answer.extend(digest);
        Self { answer }
    }

    /// Of a card without a profile.
    #[must_use]
    pub fn plain() -> Self {
        Self::new(PLAIN, "")
    }
}

impl Applet for IdentityApplet {
    fn aid(&self) -> &[u8] {
        &IDENTITY_AID
    }

    fn select(&mut self) -> Reply {
        Reply::ok(self.answer.clone())
    }

    fn answer(&mut self, command: &CommandApdu) -> Reply {
        Reply::refused(match command.cla {
            0x00 => StatusWord::UNKNOWN_INSTRUCTION,
            _ => StatusWord::UNKNOWN_CLASS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_answers_the_bytes_that_the_documentation_gives() {
        let reply = IdentityApplet::new("x", "abc").select();
        // SHA-256 of "abc" begins and ends so: FIPS 180-4, its first example.
        assert_eq!(reply.data[..7], [0x80, 1, b'x', 0x81, 32, 0xBA, 0x78]);
        assert_eq!(reply.data[35..], [0x15, 0xAD]);
        assert_eq!(IdentityApplet::plain().answer[..9], *b"\x80\x05plain\x81\x20");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let reply = IdentityApplet::new(&"ä".repeat(100), "").select();
        assert_eq!(reply.data[..2], [0x80, 126]);
    }
}
