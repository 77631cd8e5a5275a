//! SELECT, GET DATA, and what every command is refused for.

use tapstone_apdu::StatusWord;
use tapstone_vcard::piv::work::OBJECT_READ;
use tapstone_vcard::{Applet, CardWork};

use crate::support::{card, get_data, other_card, send, verified};

const CHUID: [u8; 3] = [0x5F, 0xC1, 0x02];
const PRINTED_INFORMATION: [u8; 3] = [0x5F, 0xC1, 0x09];
const FINGERPRINTS: [u8; 3] = [0x5F, 0xC1, 0x03];

#[test]
fn select_answers_the_property_template() {
    let reply = card().select();
    assert_eq!(reply.status, StatusWord::OK);
    assert_eq!(reply.data[0], 0x61);
    assert_eq!(usize::from(reply.data[1]), reply.data.len() - 2);
    // The PIX with its version, then the allocation authority: NIST's RID.
    let name = [0x4F, 6, 0, 0, 0x10, 0, 1, 0, 0x79, 7, 0x4F, 5, 0xA0, 0, 0, 3, 8];
    assert_eq!(reply.data[2..19], name);
}

#[test]
fn mandatory_objects_are_there_and_say_their_work() {
    let mut card = card();
    for last in [0x01, 0x02, 0x05, 0x06, 0x07, 0x0A, 0x0B] {
        let reply = get_data(&mut card, &[0x5F, 0xC1, last]);
        assert_eq!(reply.status, StatusWord::OK, "5FC1{last:02X}");
        assert_eq!(reply.data[0], 0x53);
        assert_eq!(reply.work, [CardWork { name: OBJECT_READ, count: 1 }]);
    }
    // Byte by byte: the name, and a PIV PIN only.
    let discovery = "7E124F0BA0000003080000100001005F2F024000";
    assert_eq!(hex::encode_upper(get_data(&mut card, &[0x7E]).data), discovery);
}

#[test]
fn certificates_are_wrapped_and_say_that_they_are_not_compressed() {
    let der = std::fs::read(crate::support::folder().join("piv_authentication_9a.der")).unwrap();
    let object = get_data(&mut card(), &[0x5F, 0xC1, 0x05]).data;
    assert_eq!(object[4..6], [0x70, 0x82]);
    assert_eq!(object[8..8 + der.len()], der);
    assert_eq!(object[8 + der.len()..], [0x71, 1, 0, 0xFE, 0]);
}

#[test]
fn some_objects_need_the_pin_whether_they_are_there_or_not() {
    let mut card = card();
    for tag in [PRINTED_INFORMATION, FINGERPRINTS, [0x5F, 0xC1, 0x08], [0x5F, 0xC1, 0x21]] {
        let reply = get_data(&mut card, &tag);
        assert_eq!(reply.status, StatusWord::SECURITY_NOT_SATISFIED, "{tag:02X?}");
        assert!(reply.work.is_empty());
    }
    let mut card = verified(card);
    assert_eq!(get_data(&mut card, &PRINTED_INFORMATION).status, StatusWord::OK);
    assert_eq!(get_data(&mut card, &FINGERPRINTS).status, StatusWord::NOT_FOUND);
    card.deselect();
    let reply = get_data(&mut card, &PRINTED_INFORMATION);
    assert_eq!(reply.status, StatusWord::SECURITY_NOT_SATISFIED);
}

#[test]
fn what_is_not_there_is_not_found() {
    let mut card = card();
    let key_history = [0x5F, 0xC1, 0x0C];
    let absent: [&[u8]; 5] =
        [&key_history, &[0x5F, 0xC1, 0x0D], &[0x7F, 0x61], &[0x5F, 0xC1, 0x22], &[0x5F, 0xFF, 0]];
    for tag in absent {
        assert_eq!(get_data(&mut card, tag).status, StatusWord::NOT_FOUND, "{tag:02X?}");
    }
}

#[test]
fn a_wrong_command_is_refused_for_what_is_wrong_with_it() {
    let mut card = card();
    let list = [0x5C, 3, 0x5F, 0xC1, 0x02];
    for (header, data, status) in [
        ([0x00, 0xCB, 0x3F, 0x00], &list[..], StatusWord::WRONG_PARAMETERS),
        ([0x00, 0xCB, 0x3F, 0xFF], &list[..4], StatusWord::WRONG_DATA),
        ([0x00, 0xCB, 0x3F, 0xFF], &[], StatusWord::WRONG_DATA),
        ([0x00, 0xCB, 0x3F, 0xFF], &[0x5C, 0], StatusWord::WRONG_DATA),
        ([0x00, 0xF9, 0x9A, 0x00], &[], StatusWord::UNKNOWN_INSTRUCTION),
        ([0x00, 0x47, 0x00, 0x9A], &[0xAC, 3, 0x80, 1, 7], StatusWord::SECURITY_NOT_SATISFIED),
        ([0x00, 0xDB, 0x3F, 0xFF], &list[..], StatusWord::SECURITY_NOT_SATISFIED),
        ([0x0C, 0xCB, 0x3F, 0xFF], &list[..], StatusWord(0x6882)),
        ([0x01, 0xCB, 0x3F, 0xFF], &list[..], StatusWord(0x6881)),
        ([0x80, 0xCB, 0x3F, 0xFF], &list[..], StatusWord::UNKNOWN_CLASS),
    ] {
        assert_eq!(send(&mut card, header, data).status, status, "{header:02X?} {data:02X?}");
    }
}

#[test]
fn yubico_s_questions_are_answered() {
    let mut card = card();
    assert_eq!(send(&mut card, [0x00, 0xFD, 0x00, 0x00], &[]).data, [5, 4, 3]);
    let chuid = get_data(&mut card, &CHUID).data;
    let serial = send(&mut card, [0x00, 0xF8, 0x00, 0x00], &[]).data;
    // Tag and length of 53, FASC-N, tag and length of the GUID, the GUID.
    let guid = &chuid[4 + 2 + 25 + 2..][..16];
    assert_eq!(serial[0], guid[12] & 0x7F);
    assert_eq!(serial[1..], guid[13..]);
    assert_eq!(send(&mut card, [0x00, 0xF8, 0x01, 0x00], &[]).status, StatusWord::WRONG_PARAMETERS);
}

#[test]
fn a_chuid_has_the_length_that_was_asked_for() {
    let chuid = get_data(&mut other_card(), &CHUID).data;
    assert_eq!(chuid.len(), 4 + 2339);
    assert_eq!(chuid[..4], [0x53, 0x82, 0x09, 0x23]);
}
