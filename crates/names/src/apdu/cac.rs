//! Common Access Card: the virtual machine card edge of GSC-IS 2.1 (NISTIR 6887, 5.3.4).

use super::view::View;
use super::{Described, open, secret};

pub(super) fn describe(view: &View<'_>) -> Option<Described> {
    let name = match view.instruction {
        0x36 => open("GET CERTIFICATE"),
        0x42 => secret("PRIVATE SIGN/DECRYPT"),
        0x4C => open("GET ACR"),
        0x52 => open("READ BUFFER"),
        0x56 => open("GET PROPERTIES"),
        0x58 => secret("UPDATE BUFFER"),
        _ => return None,
    };
    Some(Described::from_name(name, None))
}
