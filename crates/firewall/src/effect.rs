//! What each command does, by its standard: one table for each class of commands.

use tapstone_apdu::{Class, CommandApdu, Expected};
use tapstone_names::apdu::Application;

use crate::refusal::Why;

/// What a command does to a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that outlasts the power: it reads, selects, or uses a key.
    Reads,
    /// It changes what is stored.
    Writes,
    /// A wrong one costs a try of a PIN or a key.
    SpendsTry,
    /// No table has the command: it may do anything.
    Unknown,
}

/// What surrounds a command on its logical channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// The application that was selected by its name; `None`: that is not known.
    pub(crate) selected: Option<Application>,
    /// Its name, so that a PIN is not taken for another application's.
    pub(crate) name: Selection,
    /// PACE was begun by MANAGE SECURITY ENVIRONMENT, or may have been; only the power ends that.
    pub(crate) pace: bool,
}

/// Tells one selection from another: whose retry counter is it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// There is one such application on a card.
    Only(Application),
    /// Selected by this name, in FF padded to the 16 bytes that a name has at most.
    Named([u8; 16]),
    /// Nobody knows what is selected; each time that happens, on each channel, has a number.
    Unknown(u64),
}

/// What a command does. Its data are all those of its chain.
pub(crate) fn effect(command: &CommandApdu, around: Surroundings) -> Result<Effect, Why> {
    if Class(command.cla).is_proprietary() {
        let own = match around.selected {
            Some(Application::Benchmark) if is_benchmark_class(command.cla) => benchmark(command),
            _ => None,
        };
        own.map_or_else(|| proprietary(command, around.selected), Ok)
    } else {
        let own = match around.selected {
            Some(Application::Piv) => piv(command)?,
            Some(Application::OpenPgp) => openpgp(command),
            Some(_) => None,
            // YubiKeys reset their PIV application by FB.
            None if command.ins == 0xFB => return Err(Why::Destroys),
            // What else they write with, in PIV and in OpenPGP.
            None if matches!(command.ins, 0xF2 | 0xF6 | 0xFA | 0xFF) => Some(Effect::Writes),
            None => None,
        };
        own.map_or_else(|| interindustry(command, around), Ok)
    }
}

/// Whether a wrong one costs a try, and a right one changes nothing.
fn comparing(command: &CommandApdu, without_data: Effect) -> Effect {
    if command.data.is_empty() { without_data } else { Effect::SpendsTry }
}

/// ISO 7816-4, -8 and -9, and what GlobalPlatform and TR-03110 add to them.
fn interindustry(command: &CommandApdu, around: Surroundings) -> Result<Effect, Why> {
    Ok(match command.ins {
        // VERIFY. One without data asks for the counter; under T=0 it is written with a zero, and
        // any other number there may be taken for the length of a PIN.
        0x20 | 0x21 => match command.expected {
            None | Some(Expected::SHORT) => comparing(command, Effect::Reads),
            Some(_) => Effect::SpendsTry,
        },
        // CHANGE REFERENCE DATA, RESET RETRY COUNTER; DISABLE, ENABLE VERIFICATION REQUIREMENT.
        0x24 | 0x25 | 0x2C | 0x2D | 0x26 | 0x28 => comparing(command, Effect::Writes),
        // PERFORM USER OPERATION, PERFORM BIOMETRIC OPERATION.
        0x14 | 0x2E | 0x2F => comparing(command, Effect::Writes),
        // COMPARE; EXTERNAL and MUTUAL AUTHENTICATE.
        0x33 | 0x82 | 0x83 => comparing(command, Effect::Reads),
        0x86 | 0x87 => general_authenticate(command, around),
        // MANAGE SECURITY ENVIRONMENT: SET and RESTORE are of this session; STORE and ERASE are not.
        0x22 => match command.p1 & 0x0F {
            0x01 | 0x03 => Effect::Reads,
            0x02 | 0x04 => Effect::Writes,
            _ => Effect::Unknown,
        },
        // SELECT, MANAGE CHANNEL, GET CHALLENGE, INTERNAL AUTHENTICATE, PERFORM SECURITY OPERATION,
        // GET ATTRIBUTE, SEARCH, SELECT DATA, READ BINARY, READ RECORD, GET RESPONSE, GET DATA, GET
        // NEXT DATA.
        0xA4
        | 0xA5
        | 0x34
        | 0x35
        | 0x70
        | 0x84
        | 0x88
        | 0x2A
        | 0x2B
        | 0xA0..=0xA2
        | 0xB0..=0xB3
        | 0xC0
        | 0xCA..=0xCD => Effect::Reads,
        // TERMINATE DF, TERMINATE EF, TERMINATE CARD USAGE.
        0xE6 | 0xE8 | 0xFE => return Err(Why::Destroys),
        // PERFORM SCQL and TRANSACTION OPERATION, APPLICATION MANAGEMENT REQUEST.
        0x10 | 0x12 | 0x40 | 0x41 => Effect::Writes,
        ins if changes_stored_data(ins) => Effect::Writes,
        _ => Effect::Unknown,
    })
}

/// ISO 7816-4, -8, -9 and -13: deactivate, activate, erase, generate, manage, write, update, put,
/// create, append, delete, load, remove.
const fn changes_stored_data(ins: u8) -> bool {
    matches!(
        ins,
        0x04 | 0x06
            | 0x08
            | 0x0C
            | 0x0E
            | 0x0F
            | 0x44
            | 0x46
            | 0x47
            | 0xCF
            | 0xD0..=0xD3
            | 0xD6..=0xDF
            | 0xE0
            | 0xE2
            | 0xE4
            | 0xEA..=0xEE
    )
}

/// SP 800-78-5, table 9: keys of PIV that sign, decrypt and agree; 04 is that of secure messaging.
const fn is_piv_key(reference: u8) -> bool {
    matches!(reference, 0x04 | 0x9A | 0x9C..=0x9E | 0x82..=0x95)
}

/// GENERAL AUTHENTICATE: with PIV's 9B it is the administrator's key that is tried, and after
/// PACE's MANAGE SECURITY ENVIRONMENT a password (TR-03110-3, B.1).
fn general_authenticate(command: &CommandApdu, around: Surroundings) -> Effect {
    match command.p2 {
        _ if command.data.is_empty() => Effect::Reads,
        _ if around.pace => Effect::SpendsTry,
        0x9B => Effect::SpendsTry,
        key if is_piv_key(key) => Effect::Reads,
        // Of PIV there is no other; elsewhere it is a key's or a password's, and what begins PACE
        // may not have been seen.
        _ if around.selected == Some(Application::Piv) => Effect::Unknown,
        _ => Effect::SpendsTry,
    }
}

/// What PIV has of its own, and what YubiKeys add to it.
fn piv(command: &CommandApdu) -> Result<Option<Effect>, Why> {
    match command.ins {
        // RESET of the application.
        0xFB => Err(Why::Destroys),
        // MOVE KEY, SET PIN RETRIES, IMPORT KEY, SET MANAGEMENT KEY.
        0xF6 | 0xFA | 0xFE | 0xFF => Ok(Some(Effect::Writes)),
        _ => Ok(None),
    }
}

/// OpenPGP card 3.4, 7.2.14: GENERATE ASYMMETRIC KEY PAIR with P1 = 81 reads the public key. YubiKeys
/// add SET PIN RETRIES.
const fn openpgp(command: &CommandApdu) -> Option<Effect> {
    match (command.ins, command.p1) {
        (0x47, 0x81) => Some(Effect::Reads),
        (0xF2, _) => Some(Effect::Writes),
        _ => None,
    }
}

/// Classes that applications use as they like. GlobalPlatform's commands reach a security domain
/// through any of them (Card Specification 2.3.1, 11 and appendix E), and older cards have commands
/// of ISO there: SIM cards in A0.
fn proprietary(command: &CommandApdu, selected: Option<Application>) -> Result<Effect, Why> {
    let of_the_issuer = matches!(selected, None | Some(Application::GlobalPlatform));
    Ok(match command.ins {
        // INITIALIZE UPDATE: cards count those that no EXTERNAL AUTHENTICATE follows.
        0x50 => comparing(command, Effect::Unknown),
        0x20 | 0x21 | 0x82 | 0x83 => comparing(command, Effect::Unknown),
        0x24 | 0x25 | 0x2C | 0x2D | 0x26 | 0x28 => comparing(command, Effect::Writes),
        // VERIFY, CHANGE and UNBLOCK PIN of the MUSCLE applet.
        0x42 | 0x44 | 0x46 if command.cla == 0xB0 => comparing(command, Effect::Unknown),
        // SET STATUS of the card to CARD_LOCKED or TERMINATED.
        0xF0 if command.p1 == 0x80 && matches!(command.p2, 0x7F | 0xFF) => {
            return Err(Why::Destroys);
        }
        // INSTALL, LOAD, SET STATUS; PUT KEY has the number of PUT NEXT DATA.
        0xE6 | 0xE8 | 0xF0 => Effect::Writes,
        ins if changes_stored_data(ins) => Effect::Writes,
        // GET DATA, GET RESPONSE; the card manager's GET STATUS and GET CHALLENGE.
        0xCA | 0xCB | 0xC0 => Effect::Reads,
        0xF2 | 0x84 if of_the_issuer => Effect::Reads,
        _ => Effect::Unknown,
    })
}

/// Without secure messaging and chaining: its own commands are in no other class.
const fn is_benchmark_class(cla: u8) -> bool {
    matches!(cla, 0x80..=0x83 | 0xC0..=0xCF)
}

/// Tapstone's benchmark applet (applet/COMMANDS.md). Its buffers are gone with the power, its keys
/// are not.
fn benchmark(command: &CommandApdu) -> Option<Effect> {
    Some(match (command.ins, command.p1) {
        // REPEAT of algorithms that generate a key pair, or write to EEPROM.
        (0x60, 0x0D | 0x10) => Effect::Writes,
        (0x24 | 0x60, _) => Effect::Reads,
        (0x12 | 0x20..=0x23 | 0x26 | 0x40 | 0x50..=0x52, _) => comparing(command, Effect::Reads),
        // PUT KEY PART, CLEAR KEY.
        (0x30 | 0x31, _) => Effect::Writes,
        _ => return None,
    })
}
