//! The names that profiles use: applets, their commands, their work.

use crate::{bench, piv};

/// Name of the benchmark applet in a profile.
pub(super) const BENCH: &str = "bench";
/// Name of the PIV applet in a profile.
pub(super) const PIV: &str = "piv";

/// What every card does by itself (ISO 7816-4, 11.2.2 and 11.7.1).
const OF_THE_CARD: [(&str, u8); 2] = [("SELECT", 0xA4), ("GET RESPONSE", 0xC0)];

/// SP 800-73-5 part 2, table 2, and Yubico's two.
const OF_PIV: [(&str, u8); 7] = [
    ("GET DATA", 0xCB),
    ("VERIFY", 0x20),
    ("CHANGE REFERENCE DATA", 0x24),
    ("RESET RETRY COUNTER", 0x2C),
    ("GENERAL AUTHENTICATE", 0x87),
    ("GET VERSION", 0xFD),
    ("GET SERIAL", 0xF8),
];

/// Names and INS of the commands of this applet, those of the card included.
pub(super) fn commands(applet: &str) -> impl Iterator<Item = (&'static str, u8)> {
    let own: &[(&str, u8)] = match applet {
        BENCH => &bench::COMMANDS,
        PIV => &OF_PIV,
        _ => &[],
    };
    OF_THE_CARD.into_iter().chain(own.iter().copied())
}

/// The names of the work of this applet.
pub(super) fn work(applet: &str) -> &'static [&'static str] {
    match applet {
        BENCH => &bench::work::NAMES,
        PIV => &OF_PIV_WORK,
        _ => &[],
    }
}

const OF_PIV_WORK: [&str; 10] = [
    piv::work::OBJECT_READ,
    piv::work::PIN_VERIFY,
    piv::work::PIN_WRITE,
    piv::work::RSA2048_PRIVATE,
    piv::work::RSA3072_PRIVATE,
    piv::work::P256_SIGN,
    piv::work::P384_SIGN,
    piv::work::P256_ECDH,
    piv::work::P384_ECDH,
    piv::work::RANDOM,
];

/// Whether this work is what somebody measures by this command: cryptography, and whatever REPEAT
/// repeats, but for its loop.
pub(super) fn is_measured(applet: &str, ins: u8, work: &str) -> bool {
    let by_the_way = [
        piv::work::OBJECT_READ,
        piv::work::PIN_VERIFY,
        piv::work::PIN_WRITE,
        piv::work::RANDOM,
        bench::work::RAM_BYTE,
        bench::work::EEPROM_BYTE,
        bench::work::RANDOM_BYTE,
        bench::work::DECRYPT_BYTE,
        bench::work::SHA1_BLOCK,
        bench::work::VM_LOAD_BYTE,
        bench::work::VM_INSTRUCTION,
        bench::work::VM_OUTPUT_BYTE,
    ];
    let repeats = applet == BENCH && ins == bench::REPEAT;
    work != bench::work::LOOP && (repeats || !by_the_way.contains(&work))
}
