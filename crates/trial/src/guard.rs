//! What keeps a command from being run again: a PIN that was refused, and what it writes.
//!
//! Thirty rounds with a wrong PIN would block a card in the third, and thirty rounds of a command
//! that makes a key would leave thirty keys.

use tapstone_names::pkcs11::{Rv, changes_token, makes_object};

use tapstone_explain::timeline::{Exchange, Family, Span, Timeline};

/// A PIN that was refused, as a sentence; `None` when there was none.
#[must_use]
pub fn refused_pin(timeline: &Timeline) -> Option<String> {
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    spans.filter_map(|span| refused(timeline, span)).next()
}

fn refused(timeline: &Timeline, span: &Span) -> Option<String> {
    let call = timeline.call(span.call);
    match call.family {
        Family::Pkcs11 => {
            let rv = Rv(span.result);
            let login = matches!(call.function, "C_Login" | "C_LoginUser");
            let refused = rv.is_pin() || (login && span.result != 0 && !is_harmless(rv));
            refused.then(|| format!("{} returned {rv}", call.function))
        }
        Family::Pcsc | Family::Driver => {
            let exchange = timeline.exchange(span.exchange()?);
            let name = secret_command(exchange)?;
            // Without data it asks for the count of tries and changes nothing. With data, cards say
            // in many ways that it was wrong: 63Cx, 6300, 6983 (ISO 7816-4, 5.6), 6982 (OpenPGP),
            // 9804 (ETSI TS 102 221). 61xx and 6Cxx are about the length of the answer.
            let asks = exchange.sent <= 5;
            let accepted = matches!(exchange.status >> 8, 0x61 | 0x6C) || exchange.status == 0x9000;
            let answer = match exchange.status {
                0 => "was not answered".to_owned(),
                status => format!("was answered with {status:04X}"),
            };
            (!accepted && !asks).then(|| format!("{name} {answer}"))
        }
        Family::Libc(_) => None,
    }
}

/// C_Login that has nothing to do with the PIN.
fn is_harmless(rv: Rv) -> bool {
    rv.name() == Some("CKR_USER_ALREADY_LOGGED_IN")
}

/// Commands whose data are a PIN or prove a key, of which a card counts the wrong ones: ISO 7816-4
/// and, for 82, GlobalPlatform, whose cards end for good after some.
fn secret_command(exchange: &Exchange) -> Option<&'static str> {
    match exchange.command.get(1)? {
        0x20 | 0x21 => Some("VERIFY"),
        0x24 => Some("CHANGE REFERENCE DATA"),
        0x26 => Some("DISABLE VERIFICATION REQUIREMENT"),
        0x28 => Some("ENABLE VERIFICATION REQUIREMENT"),
        0x2C => Some("RESET RETRY COUNTER"),
        0x82 => Some("EXTERNAL AUTHENTICATE"),
        _ => None,
    }
}

/// What a command was seen to write, as names of calls and commands, each once.
#[must_use]
pub fn writes(timeline: &Timeline) -> Vec<String> {
    let spans = timeline.threads.iter().flat_map(|thread| &thread.spans);
    let mut seen: Vec<String> = spans.filter_map(|span| written(timeline, span)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

fn written(timeline: &Timeline, span: &Span) -> Option<String> {
    let call = timeline.call(span.call);
    let name = match call.family {
        // Session objects are gone with the session; those with CKA_TOKEN stay.
        Family::Pkcs11 if makes_object(call.function) && !span.on_token => return None,
        Family::Pkcs11 if makes_object(call.function) || changes_token(call.function) => {
            call.function
        }
        Family::Pcsc | Family::Driver => return written_by(timeline.exchange(span.exchange()?)),
        _ => return None,
    };
    Some(name.to_owned())
}

/// A command that changes what is on a card, or that a card has carried out and nobody knows.
fn written_by(exchange: &Exchange) -> Option<String> {
    let [class, instruction, ..] = exchange.command[..] else { return None };
    if let Some(name) = write_command(&exchange.command) {
        return Some(name.to_owned());
    }
    // Of what a card refuses it keeps nothing (ISO 7816-4, 5.6), but for 65xx: its memory has
    // changed. What was not answered may have been carried out.
    let refused = matches!(exchange.status >> 8, 0x64 | 0x66..=0x6F);
    (!refused && !only_asks(class, instruction))
        .then(|| format!("CLA {class:02X} INS {instruction:02X}, which is not known to read only"))
}

/// Commands that leave a card as it is, but for what a reset takes back. Numbers mean what ISO 7816
/// says in its own classes only (7816-4, 5.4.1): CREATE APPLICATION of DESFire is 90 CA.
const fn only_asks(class: u8, instruction: u8) -> bool {
    match class {
        0x00..=0x7F => only_asks_of_iso(instruction),
        // GlobalPlatform (Card Specification 2.3.1, 11.1.4): INITIALIZE UPDATE, EXTERNAL
        // AUTHENTICATE, GET CHALLENGE, GET RESPONSE, GET DATA, GET STATUS.
        0x80..=0x8F | 0xC0..=0xCF | 0xE0..=0xEF => {
            matches!(instruction, 0x50 | 0x82 | 0x84 | 0xC0 | 0xCA | 0xCB | 0xF2)
        }
        // Not the card but its reader (PC/SC part 3, 3.2.2.1): GET DATA, READ BINARY.
        0xFF => matches!(instruction, 0xCA | 0xB0),
        _ => false,
    }
}

/// ISO 7816-4 and 7816-8, and tokens of Yubico.
const fn only_asks_of_iso(instruction: u8) -> bool {
    match instruction {
        // VERIFY, MANAGE SECURITY ENVIRONMENT, PERFORM SECURITY OPERATION, MANAGE CHANNEL.
        0x20..=0x22 | 0x2A | 0x70 => true,
        // EXTERNAL, GENERAL and INTERNAL AUTHENTICATE, GET CHALLENGE.
        0x82 | 0x84 | 0x86..=0x88 => true,
        // SEARCH, SELECT, READ, GET RESPONSE, GET DATA; access to the public key of a pair.
        0xA0..=0xA2 | 0xA4 | 0xB0..=0xB3 | 0xC0 | 0xCA | 0xCB | 0x46 | 0x47 => true,
        // GET METADATA, GET SERIAL, ATTEST, GET VERSION.
        0xF7..=0xF9 | 0xFD => true,
        _ => false,
    }
}

/// Commands that change what is on a card: ISO 7816-4, 7816-8, 7816-9 and GlobalPlatform.
fn write_command(command: &[u8]) -> Option<&'static str> {
    let class = command.first()?;
    let instruction = command.get(1)?;
    Some(match instruction {
        0x0E | 0x0F => "ERASE BINARY",
        0x24 => "CHANGE REFERENCE DATA",
        0x2C => "RESET RETRY COUNTER",
        0x26 | 0x28 => "ENABLE/DISABLE VERIFICATION REQUIREMENT",
        0x04 | 0x44 => "DEACTIVATE/ACTIVATE FILE",
        // P1 81: only the public key is asked for (OpenPGP card 3.4, 7.2.14).
        0x46 | 0x47 if command.get(2) != Some(&0x81) => "GENERATE ASYMMETRIC KEY PAIR",
        0xD0..=0xD2 => "WRITE",
        0xD6 | 0xD7 => "UPDATE BINARY",
        0xD8 => "PUT KEY",
        0xDA | 0xDB => "PUT DATA",
        0xDC | 0xDD => "UPDATE RECORD",
        0xE0 => "CREATE FILE",
        0xE2 if class & 0x80 != 0 => "STORE DATA",
        0xE2 => "APPEND RECORD",
        0xE4 => "DELETE",
        0xE6 => "INSTALL",
        0xE8 => "LOAD",
        0xF0 if class & 0x80 != 0 => "SET STATUS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use tapstone_measure::units::Nanos;

    use super::*;
    use tapstone_explain::synthetic::Story;

    const VERIFY: [u8; 9] = [0x00, 0x20, 0x00, 0x80, 0x04, 0x31, 0x32, 0x33, 0x34];

    fn sends(command: &[u8], answer: &[u8]) -> Timeline {
        let mut story = Story::new();
        story.thread(|told| {
            told.transmit(7, command, answer, Nanos::from_millis(1));
        });
        story.timeline()
    }

    #[test]
    fn a_secret_that_is_refused_is_told_in_whatever_way_the_card_says_so() {
        for status in [[0x63, 0xC2], [0x63, 0x00], [0x69, 0x83], [0x69, 0x82], [0x98, 0x04]] {
            let said = refused_pin(&sends(&VERIFY, &status)).unwrap();
            assert_eq!(
                said,
                format!("VERIFY was answered with {:02X}{:02X}", status[0], status[1])
            );
        }
        assert_eq!(refused_pin(&sends(&VERIFY, &[])).unwrap(), "VERIFY was not answered");
        for instruction in [0x21, 0x24, 0x26, 0x28, 0x2C, 0x82] {
            let mut command = VERIFY;
            command[1] = instruction;
            assert!(refused_pin(&sends(&command, &[0x63, 0x00])).is_some(), "{instruction:02X}");
        }
    }

    #[test]
    fn a_secret_that_is_accepted_is_not_nor_is_the_question_how_many_tries_are_left() {
        for status in [[0x90, 0x00], [0x61, 0x08], [0x6C, 0x08]] {
            assert_eq!(refused_pin(&sends(&VERIFY, &status)), None, "{status:02X?}");
        }
        assert_eq!(refused_pin(&sends(&[0x00, 0x20, 0x00, 0x80], &[0x63, 0xC3])), None);
        let reads = [0x00, 0xCB, 0x3F, 0xFF, 0x00];
        assert_eq!(refused_pin(&sends(&reads, &[0x69, 0x82])), None);
    }

    #[test]
    fn what_a_card_has_carried_out_and_nobody_knows_is_taken_for_a_write() {
        let written = |command: [u8; 5], answer: &[u8]| writes(&sends(&command, answer));
        // SET MANAGEMENT KEY of a YubiKey; TERMINATE CARD USAGE.
        let set_key = [0x00, 0xFF, 0xFF, 0xFF, 0x00];
        let said = "CLA 00 INS FF, which is not known to read only";
        assert_eq!(written(set_key, &[0x90, 0x00]), [said]);
        assert_eq!(written(set_key, &[0x6D, 0x00]), [""; 0]);
        // Its memory has changed, it says; it does not say.
        assert_eq!(written(set_key, &[0x65, 0x81]), [said]);
        assert_eq!(written(set_key, &[]), [said]);
        assert_eq!(written([0x00, 0xFE, 0, 0, 0], &[0x90, 0x00]).len(), 1);
        // What is known to write does so whatever is answered.
        assert_eq!(written([0x00, 0xD6, 0, 0, 0], &[0x69, 0x82]), ["UPDATE BINARY"]);
        for asks in [0x20, 0x22, 0x2A, 0x84, 0x87, 0xA4, 0xB0, 0xCA, 0xCB, 0xF7, 0xF9, 0xFD] {
            assert_eq!(written([0x00, asks, 0, 0, 0], &[0x90, 0x00]), [""; 0], "{asks:02X}");
        }
        // OpenPGP: P1 80 makes a key pair, 81 reads its public key.
        assert_eq!(written([0x00, 0x47, 0x80, 0, 0], &[0x90, 0x00]).len(), 1);
        assert_eq!(written([0x00, 0x47, 0x81, 0, 0], &[0x90, 0x00]), [""; 0]);
        // GET STATUS of GlobalPlatform, and what has the number in other applications.
        assert_eq!(written([0x80, 0xF2, 0, 0, 0], &[0x90, 0x00]), [""; 0]);
        assert_eq!(written([0x00, 0xF2, 0, 0, 0], &[0x90, 0x00]).len(), 1);
        // CREATE APPLICATION of DESFire; a reader's GET DATA, and its LOAD KEYS.
        assert_eq!(written([0x90, 0xCA, 0, 0, 0], &[0x91, 0x00]).len(), 1);
        assert_eq!(written([0xFF, 0xCA, 0, 0, 0], &[0x90, 0x00]), [""; 0]);
        assert_eq!(written([0xFF, 0x82, 0, 0, 0], &[0x90, 0x00]).len(), 1);
    }
}
