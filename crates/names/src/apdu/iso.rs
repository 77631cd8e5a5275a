//! Commands for all applications: ISO 7816-4, with those of parts 7, 8, 9 and 13.

use super::view::View;
use super::{Application, Described, Name, hex, open, secret};

pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    Some(Described::from_name(name(view.instruction)?, object(view)))
}

fn name(instruction: u8) -> Option<Name> {
    Some(match instruction {
        0x04 => open("DEACTIVATE FILE"),
        0x06 => open("DEACTIVATE RECORD"),
        0x08 => open("ACTIVATE RECORD"),
        0x0C => open("ERASE RECORD"),
        0x0E | 0x0F => open("ERASE BINARY"),
        0x10 => secret("PERFORM SCQL OPERATION"),
        0x12 => secret("PERFORM TRANSACTION OPERATION"),
        0x14 => secret("PERFORM USER OPERATION"),
        0x20 | 0x21 => secret("VERIFY"),
        0x22 => open("MANAGE SECURITY ENVIRONMENT"),
        0x24 | 0x25 => secret("CHANGE REFERENCE DATA"),
        0x26 => secret("DISABLE VERIFICATION REQUIREMENT"),
        0x28 => secret("ENABLE VERIFICATION REQUIREMENT"),
        0x2A | 0x2B => secret("PERFORM SECURITY OPERATION"),
        0x2C | 0x2D => secret("RESET RETRY COUNTER"),
        0x2E | 0x2F => secret("PERFORM BIOMETRIC OPERATION"),
        0x33 => secret("COMPARE"),
        0x34 | 0x35 => open("GET ATTRIBUTE"),
        0x40 | 0x41 => secret("APPLICATION MANAGEMENT REQUEST"),
        0x44 => open("ACTIVATE FILE"),
        0x46 | 0x47 => open("GENERATE ASYMMETRIC KEY PAIR"),
        0x70 => open("MANAGE CHANNEL"),
        0x82 => secret("EXTERNAL AUTHENTICATE"),
        0x84 => open("GET CHALLENGE"),
        0x86 | 0x87 => secret("GENERAL AUTHENTICATE"),
        0x88 => open("INTERNAL AUTHENTICATE"),
        0xA0 | 0xA1 => secret("SEARCH BINARY"),
        0xA2 => secret("SEARCH RECORD"),
        0xA4 => open("SELECT"),
        0xA5 => open("SELECT DATA"),
        0xB0 | 0xB1 => open("READ BINARY"),
        0xB2 | 0xB3 => open("READ RECORD"),
        0xC0 => open("GET RESPONSE"),
        0xC2 | 0xC3 => secret("ENVELOPE"),
        0xCA | 0xCB => open("GET DATA"),
        0xCC | 0xCD => open("GET NEXT DATA"),
        0xCF => secret("MANAGE DATA"),
        0xD0 | 0xD1 => secret("WRITE BINARY"),
        0xD2 => secret("WRITE RECORD"),
        0xD6 | 0xD7 => secret("UPDATE BINARY"),
        0xD8 | 0xD9 => secret("PUT NEXT DATA"),
        0xDA | 0xDB => secret("PUT DATA"),
        0xDC | 0xDD => secret("UPDATE RECORD"),
        0xDE | 0xDF => secret("UPDATE DATA"),
        0xE0 => secret("CREATE FILE"),
        0xE2 => secret("APPEND RECORD"),
        0xE4 => open("DELETE FILE"),
        0xE6 => open("TERMINATE DF"),
        0xE8 => open("TERMINATE EF"),
        0xEA | 0xEB => secret("LOAD APPLICATION"),
        0xEC | 0xED => secret("REMOVE APPLICATION"),
        0xEE => open("DELETE DATA"),
        0xFE => open("TERMINATE CARD USAGE"),
        _ => return None,
    })
}

fn object(view: &View<'_>) -> Option<String> {
    match view.instruction {
        0xA4 => selected(view),
        0x20 | 0x24 | 0x2C => Some(reference(view, &format!("reference {:02X}", view.p2))),
        0x2A => security_operation(view.parameters()).map(str::to_owned),
        0x22 => security_environment(view.p1),
        // Bits 8 to 6 of P1 are 100: bits 5 to 1 are a short file identifier.
        0xB0 | 0xD6 if view.p1 & 0xE0 == 0x80 => Some(short_file(view.p1 & 0x1F)),
        // So are bits 8 to 4 of P2, unless they are zero: the current file.
        0xB2 | 0xDC if view.p2 >> 3 != 0 => Some(short_file(view.p2 >> 3)),
        0xCA | 0xCB | 0xDA | 0xDB => view.tag().map(|tag| format!("data object {}", tag_text(tag))),
        _ => None,
    }
}

/// The PIN or key of VERIFY and the like. Without data VERIFY only asks whether it is needed.
pub(super) fn reference(view: &View<'_>, what: &str) -> String {
    let asks = view.instruction == 0x20 && view.p3 == 0;
    if asks { format!("{what}, state only") } else { what.to_owned() }
}

/// A tag as it stands in standards: `7E`, `5F50`.
pub(super) fn tag_text(tag: u32) -> String {
    match tag {
        0..=0xFF => format!("{tag:02X}"),
        0x100..=0xFFFF => format!("{tag:04X}"),
        _ => format!("{tag:06X}"),
    }
}

/// What SELECT selects, by P1.
fn selected(view: &View<'_>) -> Option<String> {
    match (view.p1, view.data) {
        (0x04, []) if view.p3 == 0 => Some("default application".to_owned()),
        (0x04, []) => None,
        (0x04, aid) => Some(format!("{} {}", Application::by_aid(aid).name(), hex(aid))),
        (0x00 | 0x08, [] | [0x3F, 0x00]) => Some("MF".to_owned()),
        (0x03, _) => Some("parent DF".to_owned()),
        (0x00..=0x02, id) if id.len() == 2 => Some(format!("file {}", hex(id))),
        (0x08 | 0x09, path) => Some(format!("file {}", hex(path))),
        _ => None,
    }
}

fn short_file(id: u8) -> String {
    format!("short file {id:02X}")
}

/// ISO 7816-8: what comes out, made from what goes in.
pub(super) const fn security_operation(parameters: u16) -> Option<&'static str> {
    Some(match parameters {
        0x9E9A | 0x9EAC | 0x9EBC => "COMPUTE DIGITAL SIGNATURE",
        0x8086 | 0x8084 | 0x8082 => "DECIPHER",
        0x8680 | 0x8480 | 0x8280 => "ENCIPHER",
        0x9080 | 0x90A0 => "HASH",
        0x8E80 => "COMPUTE CRYPTOGRAPHIC CHECKSUM",
        0x00A2 => "VERIFY CRYPTOGRAPHIC CHECKSUM",
        0x00A8 => "VERIFY DIGITAL SIGNATURE",
        0x00AE | 0x00BE => "VERIFY CERTIFICATE",
        _ => return None,
    })
}

/// MANAGE SECURITY ENVIRONMENT: the low half of P1 is what is done.
fn security_environment(p1: u8) -> Option<String> {
    let action = match p1 & 0x0F {
        1 => "SET",
        2 => "STORE",
        3 => "RESTORE",
        4 => "ERASE",
        _ => return None,
    };
    Some(action.to_owned())
}
