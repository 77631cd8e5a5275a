//! Which commands change what is on a card, by what their standards say of them.

use super::job::{Piece, Step};

/// Instructions of ISO 7816-4 and 7816-8 that change what is on a card: deactivate, change and
/// reset reference data, activate, generate, create, write, update, erase, put, delete, terminate.
const WRITING: [u8; 22] = [
    0x04, 0x0E, 0x0F, 0x24, 0x2C, 0x44, 0x46, 0x47, 0xD0, 0xD1, 0xD2, 0xD6, 0xD7, 0xDA, 0xDB, 0xDC,
    0xDD, 0xE0, 0xE2, 0xE4, 0xE6, 0xFE,
];

/// The same of GlobalPlatform's classes: put key, store data, delete, install, load, set status.
const WRITING_GLOBAL_PLATFORM: [u8; 6] = [0xD8, 0xE2, 0xE4, 0xE6, 0xE8, 0xF0];

/// Whether a command changes the card by what its standard says. Of a proprietary command only its
/// author knows.
pub(super) fn writes(step: &Step) -> bool {
    let Some(Piece::Bytes(bytes)) = step.header.first() else { return false };
    match bytes[..] {
        [cla, ins, ..] if cla < 0x80 => WRITING.contains(&ins),
        [_, ins, ..] => WRITING_GLOBAL_PLATFORM.contains(&ins),
        _ => false,
    }
}
