//! PIV: SP 800-73-5 part 1 (data objects, key references) and part 2 (commands), SP 800-78-5
//! (algorithm identifiers). With the commands that YubiKeys add.

use super::iso::{reference, tag_text};
use super::view::View;
use super::{Described, open, secret};

pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    let key = || format!("{} {:02X}", key_name(view.p2), view.p2);
    Some(match view.instruction {
        0xCB if view.parameters() == 0x3FFF => Described::from_name(open("GET DATA"), object(view)),
        0xDB if view.parameters() == 0x3FFF => {
            Described::from_name(secret("PUT DATA"), object(view))
        }
        0x20 => Described::from_name(secret("VERIFY"), Some(reference(view, &pin(view.p2)))),
        0x24 => Described::from_name(secret("CHANGE REFERENCE DATA"), Some(pin(view.p2))),
        0x2C => Described::from_name(secret("RESET RETRY COUNTER"), Some(pin(view.p2))),
        0x87 => {
            let object = format!("{}, {}", algorithm(view.p1), key());
            Described::from_name(secret("GENERAL AUTHENTICATE"), Some(object))
        }
        0x47 => Described::from_name(open("GENERATE ASYMMETRIC KEY PAIR"), Some(key())),
        // Yubico: commands of its PIV application.
        0xF6 => Described::from_name(open("MOVE KEY"), Some(key())),
        0xF7 => Described::from_name(open("GET METADATA"), Some(key())),
        0xF8 => Described::from_name(open("GET SERIAL"), None),
        0xF9 => Described::from_name(open("ATTEST"), Some(format!("key {:02X}", view.p1))),
        0xFA => Described::from_name(open("SET PIN RETRIES"), None),
        0xFB => Described::from_name(open("RESET"), None),
        0xFD => Described::from_name(open("GET VERSION"), None),
        0xFE => {
            let object = format!("{}, {}", algorithm(view.p1), key());
            Described::from_name(secret("IMPORT ASYMMETRIC KEY"), Some(object))
        }
        0xFF => Described::from_name(secret("SET MANAGEMENT KEY"), None),
        _ => return None,
    })
}

/// GET DATA of an object that only PIV has: it tells what is selected when no SELECT was seen.
pub(super) fn describe_data(view: &View<'_>) -> Option<Described> {
    let known = view.instruction == 0xCB && view.parameters() == 0x3FFF;
    let name = view.tag_in_data().filter(|_| known).and_then(object_name)?;
    Some(Described::from_name(open("GET DATA"), Some(name)))
}

fn object(view: &View<'_>) -> Option<String> {
    let tag = view.tag_in_data()?;
    Some(object_name(tag).unwrap_or_else(|| format!("data object {}", tag_text(tag))))
}

fn object_name(tag: u32) -> Option<String> {
    match tag {
        0x5F_C10D..=0x5F_C120 => {
            let number = tag - 0x5F_C10C;
            let key = 0x81 + number;
            Some(format!("X.509 Certificate for retired Key Management {number} ({key:02X})"))
        }
        tag => data_object(tag).map(str::to_owned),
    }
}

/// SP 800-73-5 part 1, table 3.
const fn data_object(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0x5F_C101 => "X.509 Certificate for Card Authentication (9E)",
        0x5F_C102 => "Card Holder Unique Identifier",
        0x5F_C103 => "Cardholder Fingerprints",
        0x5F_C105 => "X.509 Certificate for PIV Authentication (9A)",
        0x5F_C106 => "Security Object",
        0x5F_C107 => "Card Capability Container",
        0x5F_C108 => "Cardholder Facial Image",
        0x5F_C109 => "Printed Information",
        0x5F_C10A => "X.509 Certificate for Digital Signature (9C)",
        0x5F_C10B => "X.509 Certificate for Key Management (9D)",
        0x5F_C10C => "Key History Object",
        0x5F_C121 => "Cardholder Iris Images",
        0x5F_C122 => "Secure Messaging Certificate Signer",
        0x5F_C123 => "Pairing Code Reference Data Container",
        0x7E => "Discovery Object",
        0x7F61 => "Biometric Information Templates Group Template",
        // Yubico.
        0x5F_FF01 => "attestation certificate (F9)",
        _ => return None,
    })
}

/// What VERIFY and its relatives compare with.
fn pin(reference: u8) -> String {
    let name = match reference {
        0x00 => "Global PIN",
        0x80 => "PIV Card Application PIN",
        0x81 => "PIN Unblocking Key",
        0x96 => "Primary Finger OCC",
        0x97 => "Secondary Finger OCC",
        0x98 => "Pairing Code",
        other => return format!("reference {other:02X}"),
    };
    name.to_owned()
}

const fn key_name(reference: u8) -> &'static str {
    match reference {
        0x04 => "PIV Secure Messaging Key",
        0x82..=0x95 => "Retired Key Management Key",
        0x9A => "PIV Authentication Key",
        0x9B => "PIV Card Application Administration Key",
        0x9C => "Digital Signature Key",
        0x9D => "Key Management Key",
        0x9E => "Card Authentication Key",
        0xF9 => "attestation key",
        _ => "key",
    }
}

fn algorithm(identifier: u8) -> String {
    let name = match identifier {
        0x00 | 0x03 => "3TDEA",
        0x05 => "RSA 3072",
        0x06 => "RSA 1024",
        0x07 => "RSA 2048",
        0x08 => "AES-128",
        0x0A => "AES-192",
        0x0C => "AES-256",
        0x11 => "ECC P-256",
        0x14 => "ECC P-384",
        0x27 => "Cipher Suite 2",
        0x2E => "Cipher Suite 7",
        // Yubico.
        0x16 => "RSA 4096",
        0xE0 => "Ed25519",
        0xE1 => "X25519",
        other => return format!("algorithm {other:02X}"),
    };
    name.to_owned()
}
