//! OpenPGP application on ISO smart card operating systems, 3.4.1: chapter 7 (commands), 4.4 (data
//! objects).

use super::iso::{reference, tag_text};
use super::view::View;
use super::{Described, open, secret};

pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    let object = || {
        view.tag().map(|tag| {
            data_object(tag).map_or_else(|| format!("data object {}", tag_text(tag)), str::to_owned)
        })
    };
    Some(match view.instruction {
        0xCA => Described::from_name(open("GET DATA"), object()),
        0xCC => Described::from_name(open("GET NEXT DATA"), object()),
        0xDA => Described::from_name(secret("PUT DATA"), object()),
        // The only one of the odd instruction (4.4.3.12).
        0xDB => Described::from_name(secret("PUT DATA"), Some("private key import".to_owned())),
        0x20 => Described::from_name(secret("VERIFY"), Some(reference(view, &password(view.p2)))),
        0x24 => Described::from_name(secret("CHANGE REFERENCE DATA"), Some(password(view.p2))),
        0x2C => Described::from_name(secret("RESET RETRY COUNTER"), Some(password(view.p2))),
        0x47 => Described::from_name(open("GENERATE ASYMMETRIC KEY PAIR"), Some(generate(view))),
        _ => return None,
    })
}

fn password(reference: u8) -> String {
    let name = match reference {
        0x81 => "PW1 for signatures",
        0x82 => "PW1",
        0x83 => "PW3",
        other => return format!("reference {other:02X}"),
    };
    name.to_owned()
}

/// 7.2.14: P1 says whether a key is made or only its public part read; the data, which key.
fn generate(view: &View<'_>) -> String {
    let action = if view.p1 == 0x81 { "read public key" } else { "generate" };
    match view.data.first() {
        Some(0xB6) => format!("{action}, signature"),
        Some(0xB8) => format!("{action}, decryption"),
        Some(0xA4) => format!("{action}, authentication"),
        _ => action.to_owned(),
    }
}

const fn data_object(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0x4F => "application identifier",
        0x5B => "Name",
        0x5E => "Login data",
        0x65 => "Cardholder Related Data",
        0x6E => "Application Related Data",
        0x73 => "Discretionary data objects",
        0x7A => "Security support template",
        0x93 => "Digital signature counter",
        0xC0 => "Extended capabilities",
        0xC1 => "Algorithm attributes signature",
        0xC2 => "Algorithm attributes decryption",
        0xC3 => "Algorithm attributes authentication",
        0xC4 => "PW Status Bytes",
        0xC5 => "Fingerprints",
        0xC6 => "CA-Fingerprints",
        0xCD => "generation dates of key pairs",
        0xD3 => "Resetting Code",
        0xD5 => "AES key",
        0xD6..=0xD8 => "User Interaction Flag",
        0xDE => "Key Information",
        0xF9 => "KDF-DO",
        0xFA => "Algorithm Information",
        0x0101..=0x0104 => "private use",
        0x5F2D => "Language preferences",
        0x5F35 => "Sex",
        0x5F50 => "Uniform resource locator",
        0x5F52 => "Historical bytes",
        0x7F21 => "Cardholder certificate",
        0x7F66 => "Extended length information",
        0x7F74 => "General feature management",
        _ => return None,
    })
}
