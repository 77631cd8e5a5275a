//! What is known of the selected application, and when it no longer is.

use super::*;

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
    let mut context = CardContext::default();
    exchanged(&mut context, "01 A4 04 00 0A F0 54 41 50 53 54 4F 4E 45 01", 0x9000);
    assert!(knows(&context, "81"));
    exchanged(&mut context, "00 A4 04 00 05 F0 53 4F 4D 45", 0x9000);
    assert!(!knows(&context, "81"));
}
