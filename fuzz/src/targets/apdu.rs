//! Commands and answers of a card, as names, the firewall and TLV read them.

use tapstone_apdu::{Class, CommandApdu, StatusWord, tlv};
use tapstone_firewall::{Declared, Firewall, Permissions};
use tapstone_names::apdu::{Interpreter, status_text};

use crate::FuzzTarget;
use crate::structure::{Structure, messages};

/// Messages are in turn a command and its answer. What is read is written again as it was, and
/// without permissions no command passes that spends a try.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "apdu",
    reads: "APDUs and TLV",
    structure: Structure::Messages,
    longest: 2048,
    check,
};

fn check(input: &[u8]) {
    let mut interpreter = Interpreter::new();
    let mut firewall = Firewall::new(Permissions::default());
    let mut messages = messages(input);
    while let Some(command) = messages.next() {
        let answer = messages.next().unwrap_or_default();
        let (data, status) = answer.split_last_chunk::<2>().unwrap_or((&[], &[0x90, 0x00]));
        let status = StatusWord(u16::from_be_bytes(*status));
        is_written_as_it_was(command);
        elements_are_written_again(command);
        elements_are_written_again(data);
        interpreter.exchange(command, status);
        let _ = status_text(status);
        if firewall.clear(command, Declared::Nothing).is_ok() {
            spends_no_try(command);
            firewall.answered(status, data);
        }
    }
}

fn is_written_as_it_was(bytes: &[u8]) {
    let Ok((command, form)) = CommandApdu::parse(bytes) else { return };
    assert_eq!(command.encode_as(form), bytes);
    let shortest = CommandApdu::parse(&command.encode());
    assert_eq!(shortest.expect("what was written can be read").0, command);
    assert_eq!(Class(command.cla).plain().channel(), Class(command.cla).channel());
}

fn elements_are_written_again(bytes: &[u8]) {
    let Some(elements) = tlv::elements(bytes) else { return };
    let write = |&(tag, value): &(u8, &[u8])| tlv::element(tag, value);
    let written: Vec<u8> = elements.iter().flat_map(write).collect();
    assert_eq!(tlv::elements(&written).as_ref(), Some(&elements));
    if let [(tag, value)] = elements[..] {
        assert_eq!(tlv::only(tag, bytes), Some(value), "both readers agree");
    }
}

/// By its bytes alone: VERIFY with data, in the two classes that ISO 7816-4 has for it.
fn spends_no_try(bytes: &[u8]) {
    if let [cla, 0x20 | 0x21, _, _, length, ..] = *bytes {
        let case_2 = bytes.len() == 5;
        assert!(cla & 0x80 != 0 || case_2 || length == 0, "a VERIFY with data was let through");
    }
}
