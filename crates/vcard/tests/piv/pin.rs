//! PIN and PUK: the counters, the status words and the security status.

use tapstone_apdu::StatusWord;
use tapstone_vcard::piv::{PivApplet, work};

use crate::support::{PIN, PUK, WRONG, card, get_data, send, verified, verify};

const NEW: &[u8; 8] = b"11223344";

fn change(card: &mut PivApplet, reference: u8, old: &[u8], new: &[u8]) -> StatusWord {
    send(card, [0x00, 0x24, 0x00, reference], &[old, new].concat()).status
}

fn unblock(card: &mut PivApplet, puk: &[u8], new: &[u8]) -> StatusWord {
    send(card, [0x00, 0x2C, 0x00, 0x80], &[puk, new].concat()).status
}

fn is_open(card: &mut PivApplet) -> bool {
    get_data(card, &[0x5F, 0xC1, 0x09]).status == StatusWord::OK
}

#[test]
fn an_empty_verify_tells_the_state_and_changes_nothing() {
    let mut card = card();
    assert_eq!(verify(&mut card, &[]), StatusWord(0x63C3));
    assert_eq!(verify(&mut card, WRONG), StatusWord(0x63C2));
    assert_eq!(verify(&mut card, &[]), StatusWord(0x63C2));
    assert_eq!(verify(&mut card, PIN), StatusWord::OK);
    assert_eq!(verify(&mut card, &[]), StatusWord::OK);
    assert_eq!(verify(&mut card, WRONG), StatusWord(0x63C2));
    assert!(!is_open(&mut card), "a wrong PIN closes what was open");
}

#[test]
fn a_pin_is_blocked_after_three_wrong_ones_and_the_puk_opens_it() {
    let mut card = card();
    for status in [0x63C2, 0x63C1, 0x63C0, 0x6983, 0x6983] {
        assert_eq!(verify(&mut card, WRONG), StatusWord(status));
    }
    assert_eq!(verify(&mut card, PIN), StatusWord::BLOCKED);
    assert_eq!(verify(&mut card, &[]), StatusWord::BLOCKED);
    assert_eq!(change(&mut card, 0x80, PIN, NEW), StatusWord::BLOCKED);
    assert_eq!(unblock(&mut card, WRONG, NEW), StatusWord(0x63C2));
    assert_eq!(unblock(&mut card, PUK, b"12345\xFF\xFF\xFF"), StatusWord::WRONG_DATA);
    assert_eq!(unblock(&mut card, PUK, NEW), StatusWord::OK);
    assert!(!is_open(&mut card), "a new PIN is not a verified one");
    assert_eq!(verify(&mut card, NEW), StatusWord::OK);
}

#[test]
fn a_puk_is_blocked_too() {
    let mut card = card();
    for status in [0x63C2, 0x63C1, 0x63C0, 0x6983] {
        assert_eq!(unblock(&mut card, WRONG, NEW), StatusWord(status));
    }
    assert_eq!(unblock(&mut card, PUK, NEW), StatusWord::BLOCKED);
    assert_eq!(change(&mut card, 0x81, PUK, NEW), StatusWord::BLOCKED);
    assert_eq!(verify(&mut card, PIN), StatusWord::OK, "the PIN is not the PUK's business");
}

#[test]
fn pin_and_puk_are_changed_with_the_old_ones() {
    let mut card = card();
    assert_eq!(change(&mut card, 0x80, WRONG, NEW), StatusWord(0x63C2));
    assert_eq!(change(&mut card, 0x80, PIN, b"1234567a"), StatusWord::WRONG_DATA);
    assert_eq!(verify(&mut card, &[]), StatusWord(0x63C2), "a wrong new PIN costs no try");
    assert_eq!(change(&mut card, 0x80, PIN, NEW), StatusWord::OK);
    assert!(is_open(&mut card));
    assert_eq!(verify(&mut card, PIN), StatusWord(0x63C2));
    assert_eq!(change(&mut card, 0x81, PUK, b"anything"), StatusWord::OK);
    assert_eq!(unblock(&mut card, PUK, PIN), StatusWord(0x63C2));
    assert_eq!(unblock(&mut card, b"anything", PIN), StatusWord::OK);
    assert_eq!(verify(&mut card, PIN), StatusWord::OK);
}

#[test]
fn a_malformed_pin_costs_no_try() {
    let mut card = card();
    for (data, status) in [
        (&b"123456"[..], StatusWord::WRONG_LENGTH),
        (b"123456\xFF\xFF\xFF", StatusWord::WRONG_LENGTH),
        (b"12345\xFF\xFF\xFF", StatusWord::WRONG_DATA),
        (b"123456\x00\x00", StatusWord::WRONG_DATA),
        (b"abcdef\xFF\xFF", StatusWord::WRONG_DATA),
    ] {
        assert_eq!(verify(&mut card, data), status, "{data:?}");
    }
    assert_eq!(change(&mut card, 0x80, PIN, b""), StatusWord::WRONG_LENGTH);
    assert_eq!(unblock(&mut card, PUK, b""), StatusWord::WRONG_LENGTH);
    assert_eq!(verify(&mut card, &[]), StatusWord(0x63C3));
}

#[test]
fn other_references_and_parameters_are_refused() {
    let mut card = verified(card());
    for reference in [0x00, 0x81, 0x96, 0x98] {
        let status = send(&mut card, [0x00, 0x20, 0x00, reference], PIN).status;
        assert_eq!(status, StatusWord::REFERENCE_NOT_FOUND, "{reference:02X}");
    }
    assert_eq!(change(&mut card, 0x00, PIN, NEW), StatusWord::REFERENCE_NOT_FOUND);
    let reset = [0x00, 0x2C, 0x00, 0x81];
    assert_eq!(send(&mut card, reset, &[0; 16]).status, StatusWord::REFERENCE_NOT_FOUND);
    let other = [0x00, 0x20, 0x01, 0x80];
    assert_eq!(send(&mut card, other, PIN).status, StatusWord::WRONG_PARAMETERS);
    // P1 = FF gives the verified PIN up, and takes no data.
    let give_up = [0x00, 0x20, 0xFF, 0x80];
    assert_eq!(send(&mut card, give_up, PIN).status, StatusWord::WRONG_DATA);
    assert!(is_open(&mut card));
    assert_eq!(send(&mut card, give_up, &[]).status, StatusWord::OK);
    assert!(!is_open(&mut card));
}

#[test]
fn a_selection_keeps_the_status_and_a_reset_does_not() {
    use tapstone_vcard::Applet;
    let mut card = verified(card());
    card.select();
    assert!(is_open(&mut card));
    card.deselect();
    assert!(!is_open(&mut card));
}

#[test]
fn only_what_is_compared_and_written_is_work() {
    let mut card = card();
    let verify = [0x00, 0x20, 0x00, 0x80];
    assert!(send(&mut card, verify, &[]).work.is_empty());
    assert!(send(&mut card, verify, b"1234").work.is_empty());
    assert_eq!(send(&mut card, verify, WRONG).work[0].name, work::PIN_VERIFY);
    let change = send(&mut card, [0x00, 0x24, 0x00, 0x80], &[*PIN, *NEW].concat());
    let names: Vec<_> = change.work.iter().map(|work| work.name).collect();
    assert_eq!(names, [work::PIN_VERIFY, work::PIN_WRITE]);
}

#[test]
fn nothing_of_pin_and_keys_is_printed() {
    let printed = format!("{:?}", card());
    // As text, and as the bytes that a derived Debug would show. Random serial numbers are printed
    // too, so nothing shorter is looked for.
    assert!(!printed.contains("123456"), "{printed}");
    assert!(!printed.contains("49, 50, 51, 52, 53, 54"), "{printed}");
    assert!(printed.contains("PrivateKey(rsa2048, …)"), "{printed}");
}
