//! Tapstone's benchmark applet: applet/COMMANDS.md.

use super::view::View;
use super::{Described, open, secret};

pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    let name = match view.instruction {
        0x12 => open("VERSION"),
        0x20 => open("ALLOCATE"),
        0x21 => open("RELEASE"),
        0x22 => open("LENGTH"),
        0x23 => open("READ"),
        0x24 => open("WRITE"),
        0x26 => open("FLUSH"),
        0x30 => secret("PUT KEY PART"),
        0x31 => open("CLEAR KEY"),
        0x40 => open("DECRYPT"),
        0x50 => open("LOAD"),
        0x51 => open("RUN"),
        0x52 => open("UNBIND"),
        0x60 => open("REPEAT"),
        _ => return None,
    };
    let object = match view.instruction {
        0x30 | 0x31 => Some(format!("key {:02X}", view.p1)),
        0x40 => Some(format!("key {:02X}", view.p2)),
        0x60 => Some(format!("algorithm {:02X}", view.p1)),
        _ => None,
    };
    Some(Described::from_name(name, object))
}
