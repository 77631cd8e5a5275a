//! Whatever a terminal sends: the card answers, and opens for nothing but its PIN.

use std::sync::Mutex;

use proptest::prelude::*;
use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_vcard::Applet;

use crate::support::{PIN, card, get_data};

/// Commands of which many have something right.
fn commands() -> impl Strategy<Value = CommandApdu> {
    const INSTRUCTIONS: [u8; 9] = [0x20, 0x24, 0x2C, 0x47, 0x87, 0xCB, 0xDB, 0xF8, 0xFD];
    let class = prop_oneof![9 => Just(0x00), 1 => any::<u8>()];
    let instruction = prop_oneof![9 => prop::sample::select(&INSTRUCTIONS[..]), 1 => any::<u8>()];
    let first = prop_oneof![
        prop::sample::select(&[0x00, 0x05, 0x07, 0x11, 0x14, 0x3F, 0xFF][..]),
        any::<u8>()
    ];
    let second = prop_oneof![
        prop::sample::select(&[0x80, 0x81, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0xFF][..]),
        any::<u8>()
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let data = prop_oneof![
        bytes.clone(),
        // Tag list, template, digits: right at the start.
        bytes.clone().prop_map(|rest| [&[0x5C, 3, 0x5F, 0xC1], &rest[..]].concat()),
        bytes.prop_map(|rest| [&[0x7C, rest.len() as u8 + 2, 0x82, 0], &rest[..]].concat()),
        prop::collection::vec(b'0'..=b'9', 0..17),
    ];
    (class, instruction, first, second, data)
        .prop_map(|(cla, ins, p1, p2, data)| CommandApdu::new(cla, ins, p1, p2).with_data(&data))
        .prop_filter("the right PIN", |command| !command.data.starts_with(PIN))
}

#[test]
fn nothing_but_the_pin_opens_the_card() {
    let card = Mutex::new(card());
    proptest!(|(commands in prop::collection::vec(commands(), 1..20))| {
        let mut card = card.lock().unwrap();
        card.deselect();
        for command in commands {
            let reply = card.answer(&command);
            prop_assert!(reply.data.is_empty() || reply.status == StatusWord::OK, "{command:?}");
            prop_assert!(reply.work.len() <= 2, "{command:?}");
        }
        let printed = get_data(&mut card, &[0x5F, 0xC1, 0x09]);
        prop_assert_eq!(printed.status, StatusWord::SECURITY_NOT_SATISFIED);
    });
}
