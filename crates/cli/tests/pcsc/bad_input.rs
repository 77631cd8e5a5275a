//! What cannot be measured as it was asked for: one clear error, advice, and nothing else.

use insta::assert_snapshot;

use crate::support::{Card, Pcscd, Slot, Tapstone};

#[test]
fn without_pcscd() {
    // A socket that nobody listens on, whether or not there is a pcscd on this machine.
    let no_service = |verb| Tapstone::new(verb).env("PCSCLITE_CSOCK_NAME", "nobody");
    assert_snapshot!("no_pcscd", no_service("pcsc").run().refusal());
    assert_snapshot!("no_pcscd", no_service("card").run().refusal());
    // One call that needs no reader.
    assert_snapshot!("no_pcscd", no_service("pcsc").args("--op is_valid").run().refusal());
    assert_snapshot!("no_pcscd", no_service("pcsc").args("--list-readers").run().refusal());
}

#[test]
fn unknown_operation() {
    assert_snapshot!(Tapstone::new("pcsc").args("--op end_transction").run().refusal());
}

#[test]
fn one_process_only() {
    let run = Tapstone::new("pcsc").args("--op connect_exclusive --processes 2");
    assert_snapshot!(run.run().refusal());
}

#[test]
fn readers() {
    let Some(pcscd) = Pcscd::start() else { return };
    assert_snapshot!("no_card", Tapstone::at(Slot::First, "pcsc").run().refusal());
    assert_snapshot!("no_card_anywhere", Tapstone::new("pcsc").run().refusal());
    let one = Card::insert(&pcscd, Slot::First, &["bench"]);
    assert_snapshot!(
        "unknown_reader",
        Tapstone::new("pcsc").args("--reader Gemalto").run().refusal()
    );
    assert_snapshot!(
        "part_of_two_names",
        Tapstone::new("pcsc").args("--reader 00").run().refusal()
    );
    // One card is no question.
    let chosen = Tapstone::new("pcsc").args("--op status --count 3").run().exits(0);
    assert_eq!(chosen.record().target.reader.unwrap().name, Slot::First.reader());
    // Nor is a part of one name only.
    let part = Tapstone::new("pcsc").args("--op status --count 3 --reader").arg("00 00");
    assert_eq!(part.run().exits(0).record().target.reader.unwrap().name, Slot::First.reader());
    let two = Card::insert(&pcscd, Slot::Second, &["bench"]);
    assert_snapshot!("two_cards", Tapstone::new("pcsc").run().refusal());
    drop((one, two));
}
