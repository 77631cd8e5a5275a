//! Commands that a reader answers itself, of class FF: PC/SC part 3, 3.2.2.

use super::view::View;
use super::{Described, open, secret};

pub(super) fn describe(view: &View<'_>) -> Described {
    let name = match view.instruction {
        0x82 => secret("LOAD KEYS"),
        0x86 | 0x88 => secret("GENERAL AUTHENTICATE"),
        0x20 => secret("VERIFY"),
        0xB0 => open("READ BINARY"),
        0xC2 => secret("MANAGE SESSION"),
        0xCA => open("GET DATA"),
        0xD6 => secret("UPDATE BINARY"),
        _ => secret("command to the reader"),
    };
    let object = match (view.instruction, view.p1) {
        (0xCA, 0x00) => Some("UID".to_owned()),
        (0xCA, 0x01) => Some("historical bytes".to_owned()),
        _ => None,
    };
    Described::from_name(name, object)
}
