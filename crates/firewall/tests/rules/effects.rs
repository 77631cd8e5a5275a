//! What a command would do, by the tables; what is never sent, and what takes a word.

use super::*;

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
