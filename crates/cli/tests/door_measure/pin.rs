//! Mechanisms with a PIN: it is sent once when it is wrong, and nobody sees it.

use tapstone_record::Outcome;

use crate::people::{Holder, row};
use crate::support::{Pcscd, Tapstone, tries};

const WRONG: &str = "26840915";

#[test]
fn the_pin_is_given_to_the_card_with_care() {
    let Some(pcscd) = Pcscd::start() else { return };
    let holder = Holder::new();
    let _card = holder.insert_fast(&pcscd);
    for (mechanism, steps) in [("pki-auth", 6), ("contact", 5)] {
        let run = holder.measure().args("--rounds 2 --mechanism").arg(mechanism).pin("123456");
        let record = run.run().exits(0).record();
        let whole = row(&record, &format!("door.{mechanism}"));
        assert_eq!((whole.completed, whole.phases.len()), (2, steps), "{mechanism}");
    }
    let wrong = holder.measure().args("--rounds 3 --mechanism pki-auth").pin(WRONG);
    let outcome = wrong.run().exits(1);
    let row = row(&outcome.record(), "door.pki-auth");
    assert_eq!(row.status.outcome, Outcome::Failed);
    assert_eq!((row.failed["refused: pin"], row.failed["refused: pin-not-sent"]), (1, 2));
    for text in [&outcome.stdout, &outcome.stderr, &outcome.record_text().unwrap()] {
        assert!(!text.contains(WRONG));
    }
    let counter = Tapstone::suite(&tries("63C2")).args("--rounds 3 --op card.tries").run();
    counter.exits(0);
}
