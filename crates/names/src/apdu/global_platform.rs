//! GlobalPlatform Card Specification 2.3.1: chapter 11 (commands), appendices D and E (secure
//! channels), H (data objects).

use super::iso::tag_text;
use super::view::View;
use super::{Described, Name, open, secret};

/// A command of a proprietary class.
pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    let name = name(view.instruction)?;
    let object = match view.instruction {
        0xCA | 0xCB => return describe_data(view),
        0xF2 => status_of(view.p1).map(str::to_owned),
        0xE6 => install_for(view.p1),
        0xD8 => Some(format!("key version {:02X}", view.p1 & 0x7F)),
        _ => None,
    };
    Some(Described::from_name(name, object))
}

/// GET DATA of any class.
pub(super) fn describe_data(view: &View<'_>) -> Option<Described> {
    if !matches!(view.instruction, 0xCA | 0xCB) {
        return None;
    }
    let tag = view.tag();
    let object = tag.map(|tag| {
        data_object(tag).map_or_else(|| format!("data object {}", tag_text(tag)), str::to_owned)
    });
    Some(Described::from_name(open("GET DATA"), object))
}

fn name(instruction: u8) -> Option<Name> {
    Some(match instruction {
        0x50 => open("INITIALIZE UPDATE"),
        0x70 => open("MANAGE CHANNEL"),
        0x78 => open("END R-MAC SESSION"),
        0x7A => open("BEGIN R-MAC SESSION"),
        0x82 => secret("EXTERNAL AUTHENTICATE"),
        0x84 => open("GET CHALLENGE"),
        0x88 => open("INTERNAL AUTHENTICATE"),
        0xA4 => open("SELECT"),
        0xC0 => open("GET RESPONSE"),
        0xCA | 0xCB => open("GET DATA"),
        0xD8 => secret("PUT KEY"),
        0xE2 => secret("STORE DATA"),
        0xE4 => open("DELETE"),
        0xE6 => open("INSTALL"),
        0xE8 => secret("LOAD"),
        0xF0 => open("SET STATUS"),
        0xF2 => open("GET STATUS"),
        _ => return None,
    })
}

/// What GET STATUS lists, by its P1 (GlobalPlatform Card Specification 2.3.1, 11.4.2.1).
const fn status_of(p1: u8) -> Option<&'static str> {
    Some(match p1 {
        0x80 => "issuer security domain",
        0x40 => "applications and security domains",
        0x20 => "executable load files",
        0x10 => "executable load files and modules",
        _ => return None,
    })
}

/// 11.5.2.1: several may be asked for at once.
fn install_for(p1: u8) -> Option<String> {
    const PURPOSES: [(u8, &str); 6] = [
        (0x40, "registry update"),
        (0x20, "personalization"),
        (0x10, "extradition"),
        (0x08, "make selectable"),
        (0x04, "install"),
        (0x02, "load"),
    ];
    let asked = PURPOSES.iter().filter(|(bit, _)| p1 & bit != 0);
    let purposes: Vec<&str> = asked.map(|(_, purpose)| *purpose).collect();
    (!purposes.is_empty()).then(|| format!("for {}", purposes.join(", ")))
}

/// 11.3.3.1 and appendix H; 9F7F is of Visa's cards, and of most others since.
const fn data_object(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0x42 => "Issuer Identification Number",
        0x45 => "Card Image Number",
        0x66 => "Card Data",
        0x67 => "Card Capability Information",
        0xC1 => "sequence counter of the default key version",
        0xC2 => "confirmation counter",
        0xD3 => "current security level",
        0xE0 => "Key Information Template",
        0x2F00 => "list of applications",
        0x9F7F => "card production life cycle (CPLC)",
        0xFF21 => "extended card resources",
        _ => return None,
    })
}
