//! When a PIN is given, when a counter is asked, and when neither.

use super::*;

#[test]
fn an_environment_may_have_other_pins_under_the_same_numbers() {
    for (aid, is_lost) in [(FOREIGN, true), (PIV, false)] {
        let mut firewall = with_pin();
        passes(&mut firewall, &CommandApdu::select(aid).encode(), 0x9000);
        passes(&mut firewall, ASKS, 0x63C3);
        passes(&mut firewall, &bytes("00 22 41 B6 03 84 01 02"), 0x9000);
        match is_lost {
            true => assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), Why::Counter(None)),
            false => passes(&mut firewall, &verify(0x80, &PIN), 0x9000),
        }
    }
}

/// Some cards count an empty VERIFY as a wrong PIN.
#[test]
fn a_counter_that_goes_down_by_itself_is_not_asked_again() {
    let foreign = CommandApdu::select(FOREIGN).encode();
    let asked = |between: &[u8]| {
        let mut firewall = with_pin();
        passes(&mut firewall, &foreign, 0x9000);
        passes(&mut firewall, ASKS, 0x63C4);
        firewall.clear(between, Declared::Reads).unwrap();
        firewall.answered(StatusWord::OK, &[]);
        passes(&mut firewall, ASKS, 0x63C3);
        firewall
    };
    // Whatever was selected in between, if nobody knows it is not another application.
    for between in [&bytes("00 B0 00 00 00")[..], &foreign, &bytes("00 FD 00 00 00")] {
        let mut firewall = asked(between);
        assert_eq!(refused(&mut firewall, ASKS), Why::AskingCosts);
        firewall.reset();
        for other in ["00 20 00 81", "00 21 00 80", "01 20 00 80", "10 20 00 80"] {
            let why = firewall.clear(&bytes(other), Declared::Reads).unwrap_err().why;
            assert_eq!(why, Why::AskingCosts, "{other}");
        }
    }
    let mut firewall = with_pin();
    for word in [0x63C4, 0x63C3] {
        passes(&mut firewall, &bytes("00 A4 00 00 02 3F 00"), 0x9000);
        passes(&mut firewall, ASKS, word);
    }
    assert_eq!(refused(&mut firewall, ASKS), Why::AskingCosts);
    // After a try it may be less, and after a write that was allowed.
    let mut firewall = with_pin();
    passes(&mut firewall, ASKS, 0x63C3);
    passes(&mut firewall, &verify(0x80, &PIN), 0x63C2);
    for _ in 0..3 {
        passes(&mut firewall, ASKS, 0x63C2);
    }
    let mut firewall = Firewall::new(Permissions::default().with_pin(&PIN).with_writes());
    passes(&mut firewall, ASKS, 0x63C5);
    firewall.clear(&bytes("00 FA 03 03"), Declared::Writes).unwrap();
    firewall.answered(StatusWord::OK, &[]);
    for _ in 0..3 {
        passes(&mut firewall, ASKS, 0x63C3);
    }
}

#[test]
fn an_empty_verify_is_free_in_piv_and_openpgp_only() {
    for (aid, is_free) in [(PIV, true), (OPENPGP, true), (FOREIGN, false), (BENCHMARK, false)] {
        let mut firewall = Firewall::new(Permissions::default());
        passes(&mut firewall, &CommandApdu::select(aid).encode(), 0x9000);
        match is_free {
            true => passes(&mut firewall, ASKS, 0x63C1),
            false => assert_eq!(refused(&mut firewall, ASKS), Why::Asking),
        }
        // Where the counter does not come as the answer nobody said what it does.
        assert_eq!(refused(&mut firewall, &bytes("00 21 00 80")), Why::Asking);
        assert!(firewall.clear(&bytes("00 21 00 80"), Declared::Reads).is_ok());
    }
    let mut firewall = Firewall::new(Permissions::default());
    assert!(firewall.clear(ASKS, Declared::Reads).is_ok());
    firewall.answered(StatusWord(0x63C1), &[]);
    let again = firewall.clear(ASKS, Declared::Reads).unwrap_err().why;
    assert_eq!(again, Why::AskingMayBlock);
    // The PIN that was named is for one reference.
    let mut firewall = with_pin();
    passes(&mut firewall, &CommandApdu::select(FOREIGN).encode(), 0x9000);
    passes(&mut firewall, ASKS, 0x63C3);
    passes(&mut firewall, &verify(0x80, &PIN), 0x9000);
    passes(&mut firewall, ASKS, 0x9000);
    assert_eq!(refused(&mut firewall, &bytes("00 20 00 81")), Why::Asking);
}

#[test]
fn a_pin_is_given_only_when_named_and_counted() {
    let mut none = Firewall::new(Permissions::default());
    assert_eq!(refused(&mut none, &verify(0x80, &PIN)), Why::NoPin);

    let counted = |word: u16| {
        let mut firewall = with_pin();
        passes(&mut firewall, &CommandApdu::select(PIV).encode(), 0x9000);
        passes(&mut firewall, ASKS, word);
        firewall
    };
    for word in [0x63C2, 0x63CF] {
        passes(&mut counted(word), &verify(0x80, &PIN), 0x9000);
    }
    assert_eq!(refused(&mut counted(0x63C1), &verify(0x80, &PIN)), Why::LastTry);
    for word in [0x63C0, 0x6983] {
        assert_eq!(refused(&mut counted(word), &verify(0x80, &PIN)), Why::Blocked);
    }
    for word in [0x9000, 0x6300, 0x6A88, 0x6D00, 0x6100] {
        let said = Why::Counter(Some(StatusWord(word)));
        assert_eq!(refused(&mut counted(word), &verify(0x80, &PIN)), said);
    }
    let mut firewall = counted(0x63C3);
    assert_eq!(refused(&mut firewall, &verify(0x80, b"12345678")), Why::NotThePin);
    assert_eq!(refused(&mut firewall, &verify(0x00, &PIN)), Why::Counter(None));
    for reference in [0x81, 0x96, 0x98] {
        let why = refused(&mut firewall, &verify(reference, &PIN));
        assert_eq!(why, Why::OtherReference(reference));
    }
    // With a response expected, in a chain, in an envelope: no plain VERIFY.
    let with_le = [&verify(0x80, &PIN)[..], &[0]].concat();
    let mut chained = verify(0x80, &PIN);
    chained[0] = 0x10;
    let enveloped = CommandApdu::new(0, 0xC2, 0, 0).with_data(&verify(0x80, &PIN)).encode();
    for command in [&with_le, &chained, &enveloped] {
        assert_eq!(refused(&mut firewall, command), Why::OtherTry);
    }
    passes(&mut firewall, &verify(0x80, &PIN), 0x9000);
    assert_eq!(refused(&mut firewall, &verify(0x00, &PIN)), Why::OtherReference(0));
}

#[test]
fn after_any_answer_but_9000_nothing_is_tried_again() {
    for word in [0x63C2, 0x6983, 0x6100, 0x6C08, 0x6700, 0x9001] {
        let mut firewall = with_pin();
        passes(&mut firewall, ASKS, 0x63C3);
        passes(&mut firewall, &verify(0x80, &PIN), word);
        passes(&mut firewall, ASKS, 0x63C9);
        firewall.reset();
        let said = Why::Tried(Some(StatusWord(word)));
        assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), said);
    }
    // No answer at all is no 9000.
    let mut firewall = with_pin();
    passes(&mut firewall, ASKS, 0x63C3);
    firewall.clear(&verify(0x80, &PIN), Declared::Nothing).unwrap();
    assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), Why::Tried(None));
}

#[test]
fn the_counter_is_the_one_of_the_application_that_is_asked() {
    let mut firewall = with_pin();
    passes(&mut firewall, &CommandApdu::select(PIV).encode(), 0x9000);
    passes(&mut firewall, ASKS, 0x63C3);
    // The same number in another application is another PIN.
    passes(&mut firewall, &CommandApdu::select(FOREIGN).encode(), 0x9000);
    assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), Why::Counter(None));
    passes(&mut firewall, ASKS, 0x63C3);
    passes(&mut firewall, &CommandApdu::select(b"\xF0OTHER").encode(), 0x9000);
    assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), Why::Counter(None));
    // Where nobody knows what is selected, a change is enough.
    firewall.reset();
    passes(&mut firewall, ASKS, 0x63C3);
    passes(&mut firewall, &CommandApdu::select(PIV).encode(), 0x6A82);
    assert_eq!(refused(&mut firewall, &verify(0x80, &PIN)), Why::Counter(None));
    // Another channel may have another application.
    firewall.reset();
    passes(&mut firewall, ASKS, 0x63C3);
    let mut elsewhere = verify(0x80, &PIN);
    elsewhere[0] = 0x01;
    assert_eq!(refused(&mut firewall, &elsewhere), Why::Counter(None));
    // Back where it was counted it is known, also after the power was gone.
    firewall.reset();
    passes(&mut firewall, &CommandApdu::select(PIV).encode(), 0x9000);
    passes(&mut firewall, &verify(0x80, &PIN), 0x9000);
    passes(&mut firewall, ASKS, 0x9000);
    passes(&mut firewall, &verify(0x80, &PIN), 0x9000);
}

#[test]
fn an_openpgp_card_is_asked_for_its_password_status() {
    let mut firewall = with_pin();
    passes(&mut firewall, &CommandApdu::select(OPENPGP).encode(), 0x9000);
    let asks = firewall.asks_for_counter([0, 0x20, 0, 0x82]).encode();
    assert_eq!(asks, [0, 0xCA, 0, 0xC4, 0]);
    for (tries, why) in [(1, Some(Why::LastTry)), (0, Some(Why::Blocked)), (3, None)] {
        firewall.clear(&asks, Declared::Nothing).unwrap();
        firewall.answered(StatusWord::OK, &[0, 32, 32, 32, tries, 0, 3]);
        match why {
            Some(why) => assert_eq!(refused(&mut firewall, &verify(0x82, &PIN)), why),
            None => passes(&mut firewall, &verify(0x82, &PIN), 0x9000),
        }
    }
    // 81 and 82 are one PIN; 83 is the administrator's.
    passes(&mut firewall, &verify(0x81, &PIN), 0x9000);
    assert_eq!(refused(&mut firewall, &verify(0x83, &PIN)), Why::OtherReference(0x83));
}
