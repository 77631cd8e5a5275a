//! What users read: names of steps and strategies, reasons of refusals, whose card it is.

use tapstone_piv::{CardIdentity, Denial, DialogueStep, Strategy};

#[test]
fn steps() {
    let names = [
        (DialogueStep::Connect, "connect"),
        (DialogueStep::Select, "select"),
        (DialogueStep::ReadCertificate, "read-certificate"),
        (DialogueStep::ReadChuid, "read-chuid"),
        (DialogueStep::Pin, "pin"),
        (DialogueStep::Challenge, "challenge"),
        (DialogueStep::Validate, "validate"),
    ];
    for (step, name) in names {
        assert_eq!((step.name(), step.to_string().as_str()), (name, name));
    }
}

#[test]
fn strategies() {
    let names = Strategy::ALL.map(Strategy::name);
    assert_eq!(names, ["plain", "no-chuid", "known-card", "overlap", "background-validation"]);
    for strategy in Strategy::ALL.into_iter().chain(Strategy::COMBINATIONS) {
        assert_eq!(strategy.to_string(), strategy.name());
        // The name of a combination is that of its parts, and so is what it asks for.
        let condition = strategy.condition();
        match strategy.name().split('+').collect::<Vec<_>>()[..] {
            [_] => assert!(condition.starts_with("safe") || strategy == Strategy::Plain),
            [one, ..] => assert!(condition.contains(one), "{condition}"),
            [] => unreachable!("a name has parts"),
        }
    }
    assert!(Strategy::Plain.condition().contains("the yardstick"));
}

#[test]
fn status_words() {
    let refused = Denial::Pin { status: 0x6983 }.to_string();
    assert!(refused.contains("6983") && refused.contains("blocked"), "{refused}");
    let refused = Denial::Status { command: "SELECT".to_owned(), status: 0x6A82 }.to_string();
    assert!(refused.starts_with("SELECT: the card answers 6A82, "), "{refused}");
    assert!(refused.contains("not found"), "{refused}");
}

/// RFC 9562, section 4, with its example.
#[test]
fn identities() {
    let uuid = 0xF81D_4FAE_7DEC_11D0_A765_00A0_C91E_6BF6_u128.to_be_bytes();
    let fasc_n = Some([&[0xD1, 0x38][..], &[0; 23]].concat());
    let said = |fasc_n, uuid| CardIdentity { fasc_n, uuid }.to_string();
    let both = said(fasc_n.clone(), Some(uuid));
    assert_eq!(both, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6");
    assert_eq!(said(fasc_n, None), format!("FASC-N D138{}", "00".repeat(23)));
    assert_eq!(said(None, None), "nobody");
}
