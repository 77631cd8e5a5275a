//! Every rule, with its near miss that has to pass.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use tapstone_apdu::{CommandApdu, StatusWord};
use tapstone_firewall::{Context, Declared, Effect, Firewall, Permissions, Why};
use tapstone_names::apdu::{Application, describe};

const PIN: [u8; 8] = *b"123456\xFF\xFF";
const PIV: &[u8] = b"\xA0\x00\x00\x03\x08\x00\x00\x10\x00\x01\x00";
const OPENPGP: &[u8] = b"\xD2\x76\x00\x01\x24\x01";
const BENCHMARK: &[u8] = b"\xF0TAPSTONE\x01";
const FOREIGN: &[u8] = b"\xF0SOMETHING";

/// A context in which an application was selected.
fn within(aid: &[u8]) -> Context {
    let mut context = Context::default();
    if !aid.is_empty() {
        context.sent(&CommandApdu::select(aid).encode());
        context.answered(StatusWord::OK);
    }
    context
}

fn effect(context: &Context, hex: &str) -> Result<Effect, Why> {
    context.effect(&bytes(hex))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

#[track_caller]
fn all(aid: &[u8], expected: Effect, commands: &[&str]) {
    let context = within(aid);
    for command in commands {
        assert_eq!(effect(&context, command), Ok(expected), "{command}");
    }
}

#[track_caller]
fn never(aid: &[u8], expected: Why, commands: &[&str]) {
    let context = within(aid);
    for command in commands {
        assert_eq!(effect(&context, command), Err(expected), "{command}");
    }
}

#[test]
fn what_can_cost_a_try_is_known_whatever_is_selected() {
    for aid in [&[][..], PIV, OPENPGP, FOREIGN] {
        all(
            aid,
            Effect::SpendsTry,
            &[
                "00 20 00 80 01 31",
                "00 21 00 80 01 31",
                "10 20 00 80 01 31",
                "03 20 00 80 01 31",
                "4F 20 00 80 01 31",
                "00 20 00 80 08",
                "00 20 00 80 00 00 01 31",
                "00 24 00 80 01 31",
                "00 25 00 80 01 31",
                "00 2C 00 80 01 31",
                "00 2D 00 80 01 31",
                "00 26 00 80 01 31",
                "00 28 00 80 01 31",
                "00 82 00 00 01 31",
                "00 83 00 00 01 31",
                "00 86 03 9B 01 31",
                "00 87 03 9B 01 31",
                "80 50 00 00 01 31",
                "80 82 00 00 01 31",
                "80 20 00 80 01 31",
                "A0 20 00 01 01 31",
                "B0 42 00 00 01 31",
                "00 C2 00 00 06 00 20 00 80 01 31",
                // An envelope under T=0 may go on in the next.
                "00 C2 00 00 04 00 20 00 80",
            ],
        );
        all(aid, Effect::Reads, &["00 20 00 80", "00 20 00 80 00", "00 82 00 00", "00 21 00 80"]);
    }
    // What begins PACE may have been missed where nothing is known.
    all(&[], Effect::SpendsTry, &["00 86 00 00 02 7C 00"]);
    all(FOREIGN, Effect::SpendsTry, &["00 86 00 00 02 7C 00", "00 87 00 01 02 7C 00"]);
    all(PIV, Effect::Unknown, &["00 86 00 00 02 7C 00"]);
}

#[test]
fn pace_makes_every_general_authenticate_a_try() {
    let mut context = within(FOREIGN);
    exchanged(&mut context, "00 70 00 01", 0x9000);
    context.sent(&bytes("00 22 C1 A4 01 80"));
    // Whatever the card says: it may have begun.
    context.answered(StatusWord::WRONG_DATA);
    assert_eq!(effect(&context, "00 86 00 00 02 7C 00"), Ok(Effect::SpendsTry));
    assert_eq!(effect(&context, "00 87 07 9A 02 7C 00"), Ok(Effect::SpendsTry));
    // On another channel that was opened it was not.
    assert_eq!(effect(&context, "01 87 07 9A 02 7C 00"), Ok(Effect::Reads));
}

/// However it was begun, and whatever was selected since, only the power ends it.
#[test]
fn pace_is_not_forgotten() {
    let begins = [
        "00 22 C1 A4 01 80",
        "00 C2 00 00 06 00 22 C1 A4 01 80",
        // A part of it, and an environment that the card keeps.
        "10 22 C1 A4 01 80",
        "00 22 F3 01",
    ];
    for begin in begins {
        for (then, said) in [
            ("00 A4 04 00 05 A0 00 00 00 01", StatusWord::NOT_FOUND),
            ("00 A4 00 00 02 3F 00", StatusWord::OK),
            ("00 70 80 01", StatusWord::OK),
            ("00 C2 00 00 04 00 A4 04 00", StatusWord::OK),
        ] {
            let mut context = within(PIV);
            // A chain ends with another answer than 9000.
            let chained = begin.starts_with("10");
            let begun = if chained { StatusWord::WRONG_DATA } else { StatusWord::OK };
            for (command, status) in [(begin, begun), (then, said)] {
                context.sent(&bytes(command));
                context.answered(status);
            }
            let sign = "00 87 07 9A 02 7C 00";
            assert_eq!(effect(&context, sign), Ok(Effect::SpendsTry), "{begin}, {then}");
            context.reset();
            assert_eq!(effect(&context, sign), Ok(Effect::Reads));
        }
    }
}

#[test]
fn what_is_known_of_an_applet_is_not_known_of_its_card() {
    // The security domain of the card answers through it.
    all(BENCHMARK, Effect::SpendsTry, &["80 82 00 00 01 31"]);
    all(BENCHMARK, Effect::Writes, &["80 D8 00 00 01 31", "80 E2 00 00 01 31"]);
    never(BENCHMARK, Why::Destroys, &["80 F0 80 7F"]);
}

#[test]
fn what_writes_is_known() {
    for aid in [&[][..], PIV, OPENPGP, FOREIGN] {
        all(
            aid,
            Effect::Writes,
            &[
                "00 D6 00 00 01 31",
                "00 DB 3F FF 01 31",
                "00 DA 00 C4 01 31",
                "00 47 80 00 01 31",
                "00 E4 00 00",
                "00 44 00 00",
                "00 26 00 80",
                "00 2C 03 80",
                "00 22 F2 01",
                "80 D8 00 00 01 31",
                "80 E2 00 00 01 31",
                "80 E8 00 00 01 31",
                "80 F0 40 07 01 31",
                "00 C2 00 00 06 00 D6 00 00 01 31",
            ],
        );
        all(
            aid,
            Effect::Reads,
            &[
                "00 A4 04 00 01 31",
                "00 B0 00 00 00",
                "00 CB 3F FF 03 5C 01 7E",
                "00 84 00 00 08",
                "00 88 00 00 01 31",
                "00 2A 9E 9A 01 31",
                "00 22 41 B6 01 31",
                "00 C0 00 00 00",
                "80 CA 9F 7F 00",
            ],
        );
    }
    all(OPENPGP, Effect::Reads, &["00 47 81 00 02 B6 00"]);
    all(PIV, Effect::Writes, &["00 47 81 00 02 B6 00", "00 FE 07 9A 01 31", "00 FA 03 03"]);
    all(
        BENCHMARK,
        Effect::Writes,
        &["80 30 01 00 01 31", "80 31 01 00", "80 60 0D 00", "80 60 10 00"],
    );
    all(
        BENCHMARK,
        Effect::Reads,
        &["80 24 00 00 01 31", "80 20 00 08", "80 50 00 00", "80 60 01 00"],
    );
    // The applet itself has no such commands; what else is on the card may.
    all(BENCHMARK, Effect::SpendsTry, &["80 50 00 00 01 31", "80 20 00 80 01 31"]);
}

#[test]
fn what_no_standard_knows_is_unknown() {
    all(PIV, Effect::Unknown, &["00 FD 00 00 00", "00 F7 00 9A 00", "80 12 00 00"]);
    all(
        FOREIGN,
        Effect::Unknown,
        &["80 F2 00 00", "00 FB 00 00", "90 5A 00 00 01 31", "80 50 00 00"],
    );
    all(&[], Effect::Reads, &["80 F2 80 00"]);
}

#[test]
fn what_is_never_sent_says_why() {
    let ended = Why::Destroys;
    never(&[], ended, &["00 FB 00 00", "00 FE 00 00", "00 E6 00 00", "80 F0 80 7F", "80 F0 80 FF"]);
    never(PIV, ended, &["00 FB 00 00", "10 FB 00 00"]);
    never(OPENPGP, ended, &["00 E6 00 00"]);
    never(
        &[],
        Why::ReservedClass,
        &["FF CA 00 00 00", "FF 20 00 80 01 31", "20 20 00 80", "3F A4 00 00"],
    );
    let hidden = Why::SecureMessaging;
    never(PIV, hidden, &["0C 20 00 80 01 31", "04 B0 00 00", "60 B0 00 00", "84 82 00 00 01 31"]);
    let envelopes =
        ["00 C2 00 00", "00 C3 00 00 01 31", "00 C2 00 00 02 00 20", "00 C2 00 00 04 10 20 00 80"];
    never(&[], Why::Envelope, &envelopes);
    never(&[], hidden, &["00 C2 00 00 04 0C 20 00 80"]);
    assert!(matches!(effect(&within(&[]), "00 20 00"), Err(Why::Malformed(_))));
    assert!(matches!(effect(&within(&[]), "00 20 00 80 08 31"), Err(Why::Malformed(_))));
}

#[test]
fn a_failed_or_partial_select_leaves_nothing_known() {
    let mut context = within(BENCHMARK);
    let write = "80 24 00 00 01 31";
    assert_eq!(effect(&context, write), Ok(Effect::Reads));
    // On another channel nothing was selected.
    assert_eq!(effect(&context, "81 24 00 00 01 31"), Ok(Effect::SpendsTry));
    context.sent(&CommandApdu::select(PIV).encode());
    context.answered(StatusWord::NOT_FOUND);
    assert_eq!(effect(&context, write), Ok(Effect::SpendsTry));
    for partial in [&BENCHMARK[..9], &BENCHMARK[..5]] {
        assert_eq!(effect(&within(partial), write), Ok(Effect::SpendsTry));
    }
    let mut context = within(BENCHMARK);
    context.reset();
    assert_eq!(effect(&context, write), Ok(Effect::SpendsTry));
}

/// A card may act upon the first part already: a whole VERIFY is in it.
#[test]
fn a_part_of_an_envelope_is_never_sent() {
    let mut firewall = with_pin();
    passes(&mut firewall, &CommandApdu::select(PIV).encode(), 0x9000);
    let whole = "C2 00 00 0D 00 20 00 80 08 39 39 39 39 39 39 39 39";
    for class in ["10", "90", "B0", "50"] {
        assert_eq!(refused(&mut firewall, &bytes(&format!("{class} {whole}"))), Why::Envelope);
    }
    never(PIV, Why::Envelope, &["10 C2 00 00 03 00 20 00", "10 C3 00 00 03 00 20 00"]);
}

#[test]
fn an_envelope_is_opened_in_every_class() {
    for aid in [&[][..], PIV, FOREIGN, BENCHMARK] {
        all(
            aid,
            Effect::SpendsTry,
            &["80 C2 00 00 06 00 20 00 80 01 31", "A0 C2 00 00 06 00 20 00 80 01 31"],
        );
        all(aid, Effect::Writes, &["80 C2 00 00 06 00 D6 00 00 01 31"]);
        all(aid, Effect::Reads, &["80 C2 00 00 06 00 A4 00 00 01 31"]);
        never(aid, Why::Envelope, &["80 C3 00 00 01 31", "A0 C3 00 00 01 31"]);
    }
    let mut context = within(PIV);
    exchanged(&mut context, "80 C2 00 00 07 00 A4 00 00 02 3F 00", 0x9000);
    assert_eq!(effect(&context, "00 87 07 9A 02 7C 00"), Ok(Effect::SpendsTry));
}

#[test]
fn an_envelope_is_for_the_channel_of_its_command() {
    never(PIV, Why::Envelope, &["00 C2 00 00 05 01 B0 00 00 00", "02 C2 00 00 05 01 B0 00 00 00"]);
    all(PIV, Effect::Reads, &["01 C2 00 00 05 01 B0 00 00 00"]);
}

/// No word of a suite stands above a standard.
#[test]
fn every_command_with_a_name_of_iso_is_in_a_table() {
    for aid in [&[][..], FOREIGN, OPENPGP] {
        for ins in 0..=u8::MAX {
            // The other parameters of MANAGE SECURITY ENVIRONMENT are no command of ISO's.
            let p1 = if ins == 0x22 { 0x41 } else { 0 };
            if describe(&[0, ins, p1, 0], Some(Application::Other)).name == "unknown command" {
                continue;
            }
            for command in [vec![0, ins, p1, 0], vec![0, ins, p1, 0, 1, 0x31]] {
                let known = within(aid).effect(&command);
                assert_ne!(known, Ok(Effect::Unknown), "{command:02X?}");
            }
        }
    }
    all(
        FOREIGN,
        Effect::SpendsTry,
        &["00 2E 00 00 01 31", "00 14 00 00 01 31", "00 33 00 00 01 31"],
    );
    all(
        FOREIGN,
        Effect::Writes,
        &["00 EE 00 00", "00 DE 00 00 01 31", "00 D8 00 00 01 31", "00 EC 00 00", "00 10 00 80"],
    );
    all(OPENPGP, Effect::Reads, &["00 A5 00 04 01 31", "00 34 00 00"]);
}

#[test]
fn what_a_yubikey_writes_is_known_where_nothing_is_selected() {
    all(&[], Effect::Writes, &["00 F6 00 9A", "00 FA 03 03", "00 FF FF FF 01 31", "00 F2 00 00"]);
    all(OPENPGP, Effect::Writes, &["00 F2 00 00 03 03 03 03"]);
    all(FOREIGN, Effect::Unknown, &["00 F6 00 9A", "00 FA 03 03", "00 FF FF FF 01 31"]);
}

#[test]
fn the_benchmark_applet_has_its_own_classes_only() {
    all(BENCHMARK, Effect::Reads, &["80 22 01 00", "80 24 00 00 01 31", "80 60 01 00"]);
    for class in ["90", "A0", "B0", "F0"] {
        let context = within(BENCHMARK);
        let said = effect(&context, &format!("{class} 24 00 00 01 31"));
        assert!(matches!(said, Ok(Effect::SpendsTry) | Err(Why::SecureMessaging)), "{class}");
    }
}

/// Of a known selection the benchmark applet's WRITE is known, else it is CHANGE REFERENCE DATA.
fn knows(context: &Context, class: &str) -> bool {
    effect(context, &format!("{class} 24 00 00 01 31")) == Ok(Effect::Reads)
}

fn exchanged(context: &mut Context, hex: &str, status: u16) {
    context.sent(&bytes(hex));
    context.answered(StatusWord(status));
}

#[test]
fn a_command_without_an_answer_leaves_nothing_known() {
    let mut firewall = Firewall::new(Permissions::default());
    passes(&mut firewall, &CommandApdu::select(BENCHMARK).encode(), 0x9000);
    passes(&mut firewall, &bytes("80 24 00 00 01 31"), 0x9000);
    let select = CommandApdu::select(FOREIGN).encode();
    firewall.clear(&select, Declared::Nothing).unwrap();
    assert_eq!(refused(&mut firewall, &bytes("80 24 00 00 01 31")), Why::OtherTry);
    let mut context = within(BENCHMARK);
    context.sent(&bytes("10 CB 3F FF 01 31"));
    exchanged(&mut context, "00 B0 00 00", 0x9000);
    assert!(!knows(&context, "80"));
    // No chain is open, and PACE may have begun.
    assert_eq!(effect(&context, "00 87 07 9A 02 7C 00"), Ok(Effect::SpendsTry));
}

#[test]
fn whatever_may_select_loses_the_selection() {
    for (command, is_known) in [
        ("80 A4 00 00 02 3F 00", false),
        ("A0 A4 00 00 02 3F 00", false),
        ("00 A5 00 00 02 3F 00", false),
        ("80 70 00 00", false),
        ("00 70 40 00", false),
        ("00 70 01 00", false),
        ("10 A4 04 00 0A F0 54 41 50 53 54 4F 4E 45 01", false),
        ("00 70 00 01", true),
        ("00 70 80 01", true),
        ("00 B0 00 00", true),
    ] {
        let mut context = within(BENCHMARK);
        exchanged(&mut context, command, 0x9000);
        context.sent(&bytes("00 B0 00 00"));
        let mut plain = context.clone();
        plain.answered(StatusWord::OK);
        if command.starts_with("10") {
            // The part that ends a chain selects nothing that is certain.
            context.answered(StatusWord::OK);
            exchanged(&mut context, "00 A4 04 00", 0x9000);
            plain = context;
        }
        assert_eq!(knows(&plain, "80"), is_known, "{command}");
    }
}

/// Cards with one channel take every class for that one.
#[test]
fn a_select_on_a_channel_that_was_not_opened_loses_the_others() {
    let select = "01 A4 04 00 05 F0 53 4F 4D 45";
    for (opens, is_known) in [
        (None, false),
        (Some(("00 70 00 01", 0x9000)), true),
        (Some(("00 70 00 01", 0x6881)), false),
        (Some(("00 70 00 02", 0x9000)), false),
        (Some(("00 70 00 00 01", 0x9000)), false),
    ] {
        let mut context = within(BENCHMARK);
        if let Some((open, status)) = opens {
            exchanged(&mut context, open, status);
        }
        exchanged(&mut context, select, 0x9000);
        assert_eq!(knows(&context, "80"), is_known, "{opens:02X?}");
    }
    // So does one on the basic channel.
    let mut context = Context::default();
    exchanged(&mut context, "01 A4 04 00 0A F0 54 41 50 53 54 4F 4E 45 01", 0x9000);
    assert!(knows(&context, "81"));
    exchanged(&mut context, "00 A4 04 00 05 F0 53 4F 4D 45", 0x9000);
    assert!(!knows(&context, "81"));
}

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

fn with_pin() -> Firewall {
    Firewall::new(Permissions::default().with_pin(&PIN))
}

/// Sends a command that is expected to pass.
#[track_caller]
fn passes(firewall: &mut Firewall, command: &[u8], status: u16) {
    firewall.clear(command, Declared::Nothing).unwrap();
    firewall.answered(StatusWord(status), &[]);
}

#[track_caller]
fn refused(firewall: &mut Firewall, command: &[u8]) -> Why {
    firewall.clear(command, Declared::Nothing).unwrap_err().why
}

fn verify(reference: u8, pin: &[u8]) -> Vec<u8> {
    CommandApdu::new(0, 0x20, 0, reference).with_data(pin).encode()
}

const ASKS: &[u8] = &[0, 0x20, 0, 0x80];

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

#[test]
fn writing_takes_two_words_and_no_word_overrides_a_table() {
    let write = bytes("00 D6 00 00 01 31");
    let unknown = bytes("00 FD 00 00 00");
    let destroys = bytes("00 FE 00 00");
    let tries = bytes("00 24 00 80 01 31");
    let mut firewall = Firewall::new(Permissions::default());
    let mut why =
        |command: &[u8], declared| firewall.clear(command, declared).map(drop).map_err(|it| it.why);
    for declared in [Declared::Nothing, Declared::Reads] {
        assert_eq!(why(&write, declared), Err(Why::NotDeclared));
    }
    assert_eq!(why(&write, Declared::Writes), Err(Why::NotAllowed));
    assert_eq!(why(&unknown, Declared::Nothing), Err(Why::Unknown));
    assert_eq!(why(&unknown, Declared::Reads), Ok(()));
    assert_eq!(why(&unknown, Declared::Writes), Err(Why::NotAllowed));
    let mut allowed = Firewall::new(Permissions::default().with_writes());
    let mut why =
        |command: &[u8], declared| allowed.clear(command, declared).map(drop).map_err(|it| it.why);
    assert_eq!(why(&write, Declared::Writes), Ok(()));
    assert_eq!(why(&unknown, Declared::Writes), Ok(()));
    assert_eq!(why(&write, Declared::Nothing), Err(Why::NotDeclared));
    for declared in [Declared::Nothing, Declared::Reads, Declared::Writes] {
        assert_eq!(why(&destroys, declared), Err(Why::Destroys));
        assert_eq!(why(&tries, declared), Err(Why::OtherTry));
    }
}

#[test]
fn a_refusal_names_the_command_and_shows_no_data() {
    let mut firewall = with_pin();
    let refusal = firewall.clear(&verify(0x80, b"98765432"), Declared::Nothing).unwrap_err();
    let text = refusal.to_string();
    assert!(text.starts_with("VERIFY (00 20 00 80) is not sent: what it carries is not"), "{text}");
    assert!(
        text.contains("\nhint: ") && !text.contains("9876") && !text.contains("39 38"),
        "{text}"
    );
    passes(&mut firewall, ASKS, 0x63C3);
    let text = format!("{:?}", firewall.clear(&verify(0x80, &PIN), Declared::Nothing).unwrap());
    assert!(text.contains("[00, 20, 00, 80]") && !text.contains("31, 32"), "{text}");
    let text = firewall.clear(&[0xFF], Declared::Nothing).unwrap_err().to_string();
    assert!(text.contains("1 bytes are no command APDU"), "{text}");
}
