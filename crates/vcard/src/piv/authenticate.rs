//! GENERAL AUTHENTICATE: SP 800-73-5 part 2, 3.2.4 and appendix A.

use rsa::rand_core::{OsRng, RngCore};
use tapstone_apdu::{CommandApdu, StatusWord};

use super::{PivApplet, tlv, work};
use crate::applet::Reply;

/// Key references: part 1, table 4.
const DIGITAL_SIGNATURE: u8 = 0x9C;
const KEY_MANAGEMENT: u8 = 0x9D;
const CARD_AUTHENTICATION: u8 = 0x9E;
const CARD_MANAGEMENT: u8 = 0x9B;

const DYNAMIC_AUTHENTICATION_TEMPLATE: u8 = 0x7C;
const CHALLENGE: u8 = 0x81;
const RESPONSE: u8 = 0x82;
const EXPONENTIATION: u8 = 0x85;

impl PivApplet {
    pub(super) fn general_authenticate(
        &self,
        command: &CommandApdu,
        just_verified: bool,
    ) -> Result<Reply, StatusWord> {
        if command.p2 == CARD_MANAGEMENT {
            return card_management(command);
        }
        let key = self.card_data.key(command.p2).ok_or(StatusWord::WRONG_PARAMETERS)?;
        let algorithm = key.algorithm();
        if command.p1 != algorithm.identifier() {
            return Err(StatusWord::WRONG_PARAMETERS);
        }
        let allowed = match command.p2 {
            CARD_AUTHENTICATION => true,
            DIGITAL_SIGNATURE => self.verified && just_verified,
            _ => self.verified,
        };
        if !allowed {
            return Err(StatusWord::SECURITY_NOT_SATISFIED);
        }
        let (response, work) = match template(command)?[..] {
            [(RESPONSE, []), (EXPONENTIATION, point)]
            | [(EXPONENTIATION, point), (RESPONSE, [])]
                if command.p2 == KEY_MANAGEMENT =>
            {
                (key.agree(point), algorithm.agreement_work())
            }
            // A curve key for key management agrees and does not sign.
            [(RESPONSE, []), (CHALLENGE, challenge)] | [(CHALLENGE, challenge), (RESPONSE, [])]
                if command.p2 != KEY_MANAGEMENT || algorithm.is_rsa() =>
            {
                (key.respond(challenge), Some(algorithm.response_work()))
            }
            _ => (None, None),
        };
        let (response, work) = response.zip(work).ok_or(StatusWord::WRONG_DATA)?;
        Ok(answer(RESPONSE, &response).after(work, 1))
    }
}

/// The card management key. A challenge can be had, as hosts do that want random bytes; but nobody
/// holds the key, so no answer to it is right.
fn card_management(command: &CommandApdu) -> Result<Reply, StatusWord> {
    // The block's length: three-key Triple DES (00 and 03) or AES (SP 800-78-5, section 6).
    let block = match command.p1 {
        0x00 | 0x03 => 8,
        0x08 | 0x0A | 0x0C => 16,
        _ => return Err(StatusWord::WRONG_PARAMETERS),
    };
    match template(command)?[..] {
        [(CHALLENGE, [])] => {
            let mut challenge = vec![0; block];
            OsRng.fill_bytes(&mut challenge);
            Ok(answer(CHALLENGE, &challenge).after(work::RANDOM, 1))
        }
        [(RESPONSE, cryptogram)] if cryptogram.len() == block => {
            Err(StatusWord::SECURITY_NOT_SATISFIED)
        }
        _ => Err(StatusWord::WRONG_DATA),
    }
}

fn template(command: &CommandApdu) -> Result<Vec<(u8, &[u8])>, StatusWord> {
    tlv::only(DYNAMIC_AUTHENTICATION_TEMPLATE, &command.data)
        .and_then(tlv::elements)
        .ok_or(StatusWord::WRONG_DATA)
}

fn answer(tag: u8, value: &[u8]) -> Reply {
    Reply::ok(tlv::element(DYNAMIC_AUTHENTICATION_TEMPLATE, &tlv::element(tag, value)))
}
