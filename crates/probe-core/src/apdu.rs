//! What may be kept of an APDU: of commands the header, and of data only what tells which object is
//! read; of responses the status word, the length and half of a hash.

use crate::wire::{CAPTURE_DATA, MOST_BYTES};

/// CLA INS P1 P2 and the length behind them.
const HEADER: usize = 5;
/// Of the data of commands that read: an AID or a tag list.
const NAMED: usize = 40;
/// An extended APDU has 65,544 bytes at most (ISO 7816-4, 5.1); what is said to be longer is none.
pub const LONGEST_APDU: usize = 1 << 17;

/// The instruction byte of a command.
pub(crate) const INS: usize = 1;
/// SELECT (ISO 7816-4, 11.2.2).
pub(crate) const SELECT: u8 = 0xA4;
/// GET RESPONSE (ISO 7816-4, 11.7.1).
pub(crate) const GET_RESPONSE: u8 = 0xC0;

/// SELECT, READ BINARY, READ RECORD, GET DATA, GET RESPONSE (ISO 7816-4) and what reads in other
/// applications: their data name what is read.
pub fn only_reads(command: &[u8]) -> bool {
    match command {
        [class, instruction, ..] => {
            is_plain_class(*class)
                && matches!(*instruction, SELECT | 0xB0..=0xB3 | 0xCA | 0xCB | GET_RESPONSE)
        }
        _ => false,
    }
}

/// Classes of ISO 7816-4 (5.4.1) and GlobalPlatform (11.1.4) without secure messaging and chaining.
/// In others the numbers of instructions mean something else.
fn is_plain_class(class: u8) -> bool {
    class & 0x7C == 0
}

/// Commands whose data can be a PIN, a key, or made from one: never kept, whatever is asked for.
fn may_hold_secret(command: &[u8]) -> bool {
    let [class, instruction, ..] = command else { return true };
    // GET STATUS of GlobalPlatform, and what reads on tokens of Yubico. Others import keys by
    // neighbours of these.
    let asks = matches!(instruction, 0x84 | 0x88 | 0x22 | 0xF2 | 0xF7..=0xF9 | 0xFD);
    let may_be_known = only_reads(command) || (asks && is_plain_class(*class));
    !may_be_known
}

/// The header, and of the data what may be known. `options` are those of the file's header: with
/// [`CAPTURE_DATA`] also the data of commands that carry no secret.
pub fn kept_of_command(command: &[u8], options: u32) -> &[u8] {
    let most = if only_reads(command) {
        HEADER + NAMED
    } else if options & CAPTURE_DATA != 0 && !may_hold_secret(command) {
        MOST_BYTES
    } else {
        HEADER
    };
    command.get(..most).unwrap_or(command)
}

/// A word for a response: the status word (16 bits), the length (16) and half of a hash (32).
pub fn response_word(response: &[u8]) -> u64 {
    let status = match response {
        [.., one, two] => u64::from(*one) << 8 | u64::from(*two),
        _ => 0,
    };
    status | (response.len() as u64 & 0xFFFF) << 16 | (fnv1a(response) >> 32) << 32
}

/// FNV-1a of 64 bits (draft-eastlake-fnv).
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Test vectors of draft-eastlake-fnv, appendix C.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn commands_that_only_read_are_those_of_iso_7816_4() {
        let reading = [0xA4, 0xB0, 0xB1, 0xB2, 0xB3, 0xCA, 0xCB, 0xC0];
        for instruction in 0..=255 {
            let command = [0x00, instruction, 0, 0];
            assert_eq!(only_reads(&command), reading.contains(&instruction), "{instruction:02X}");
        }
        assert!(!only_reads(&[0x00]));
        assert!(!only_reads(&[]));
    }

    #[test]
    fn other_classes_read_nothing_that_is_known() {
        // Channels 0 to 3, also of GlobalPlatform; not chained, not secured, not further channels.
        for class in [0x00, 0x03, 0x80, 0x83] {
            assert!(only_reads(&[class, 0xB0]), "{class:02X}");
        }
        for class in [0x04, 0x08, 0x0C, 0x10, 0x40, 0x84, 0xC0, 0xFF] {
            assert!(!only_reads(&[class, 0xB0]), "{class:02X}");
        }
    }

    #[test]
    fn a_pin_is_never_kept() {
        // VERIFY, CHANGE REFERENCE DATA, RESET RETRY COUNTER, GENERAL AUTHENTICATE, PUT DATA.
        for instruction in [0x20, 0x24, 0x2C, 0x87, 0xDB] {
            let command = [0, instruction, 0, 0x80, 8, 1, 2, 3, 4, 5, 6, 7, 8];
            for options in [0, CAPTURE_DATA, u32::MAX] {
                assert_eq!(kept_of_command(&command, options), &command[..HEADER]);
            }
        }
    }

    #[test]
    fn data_of_reading_commands_name_what_is_read() {
        let mut command = [7; 60];
        command[..HEADER].copy_from_slice(&[0x00, 0xCB, 0x3F, 0xFF, 55]);
        assert_eq!(kept_of_command(&command, 0), &command[..HEADER + NAMED]);
        assert_eq!(kept_of_command(&command, CAPTURE_DATA), &command[..HEADER + NAMED]);
        assert_eq!(kept_of_command(&command[..9], 0), &command[..9]);
    }

    #[test]
    fn data_of_harmless_commands_are_kept_on_request() {
        let mut command = [7; MOST_BYTES + 10];
        for instruction in [0x84, 0x88, 0x22, 0xF2, 0xF7, 0xF8, 0xF9, 0xFD] {
            command[..2].copy_from_slice(&[0x00, instruction]);
            assert_eq!(kept_of_command(&command, CAPTURE_DATA).len(), MOST_BYTES);
            assert_eq!(kept_of_command(&command, 0).len(), HEADER);
            // In another class the same number may import a key.
            command[0] = 0x0C;
            assert_eq!(kept_of_command(&command, CAPTURE_DATA).len(), HEADER);
        }
        assert_eq!(kept_of_command(&[0xF2], CAPTURE_DATA), [0xF2]);
    }

    #[test]
    fn what_is_too_short_to_be_a_command_may_be_anything() {
        assert!(may_hold_secret(&[]));
        assert!(may_hold_secret(&[0x00]));
        assert!(!may_hold_secret(&[0x00, 0xA4]));
        assert!(!may_hold_secret(&[0x00, 0x84]));
    }

    #[test]
    fn a_response_is_status_length_and_hash() {
        let response = [1, 2, 3, 0x61, 0x1F];
        let word = response_word(&response);
        assert_eq!(word & 0xFFFF, 0x611F);
        assert_eq!(word >> 16 & 0xFFFF, 5);
        assert_eq!(word >> 32, fnv1a(&response) >> 32);
        assert_eq!(response_word(&[0x90]) & 0xFFFF, 0);
        assert_eq!(response_word(&[0x90]) >> 16 & 0xFFFF, 1);
        assert_eq!(response_word(&[]) & 0xFFFF_FFFF, 0);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_prefix_with_the_header(
            command in prop::collection::vec(any::<u8>(), 0..600),
            options in any::<u32>(),
        ) {
            let kept = kept_of_command(&command, options);
            prop_assert!(command.starts_with(kept));
            prop_assert!(kept.len() >= command.len().min(HEADER));
            prop_assert!(kept.len() <= MOST_BYTES);
            if !only_reads(&command) && options & CAPTURE_DATA == 0 {
                prop_assert!(kept.len() <= HEADER);
            }
        }

        #[test]
        fn a_response_word_ends_with_the_status(
            data in prop::collection::vec(any::<u8>(), 0..300),
            status in any::<[u8; 2]>(),
        ) {
            let response = [data.as_slice(), &status].concat();
            let word = response_word(&response);
            prop_assert_eq!(word as u16, u16::from_be_bytes(status));
            prop_assert_eq!((word >> 16) as u16, response.len() as u16);
        }
    }
}
