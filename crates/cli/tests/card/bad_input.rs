//! What cannot be measured as it was asked for: one clear error, advice, and nothing else.

use insta::assert_snapshot;
use tapstone_card::scard::{Pcsc, ShareMode, reader_name};
use tapstone_worker::Board;

use crate::support::{COUNTS, Card, Pcscd, Running, Slot, Tapstone, eventually};
use std::time::Duration;

#[test]
fn what_is_not_there() {
    assert_snapshot!("unknown_suite", Tapstone::new("card").args("--suite peev").run().refusal());
    let unknown = Tapstone::new("card").args("--suite generic --op card.atp");
    assert_snapshot!("unknown_test", unknown.run().refusal());
    let nowhere = Tapstone::new("card").args("--output no/such/folder/record.json");
    assert_snapshot!("unwritable_output", nowhere.without_record().run().refusal());
    let no_pin = Tapstone::new("card").args("--suite piv --pin-file pin");
    assert_snapshot!("no_pin_file", no_pin.run().refusal());
}

#[test]
fn on_a_card() {
    let Some(pcscd) = Pcscd::start() else { return };
    assert_snapshot!("no_card", Tapstone::at(Slot::First, "card").run().refusal());
    let _card = Card::bench(&pcscd);
    a_wrong_aid();
    a_status_word_that_was_not_expected();
    a_reader_that_another_program_has();
    a_card_that_another_program_has();
}

/// A user's suite for an application that this card does not have.
fn a_wrong_aid() {
    let suite = COUNTS.replace("F0 54 41 50", "F0 11 22 33");
    let suite = suite.replace("le = 256,", "le = 256, effect = \"read\",");
    assert_snapshot!("wrong_aid", Tapstone::suite(&suite).run().refusal());
}

/// The card answers a test with a status word that its suite does not expect: that test cannot be
/// measured, and the run goes on.
fn a_status_word_that_was_not_expected() {
    let more = r#"
[[test]]
name = "card.unknown"
title = "an instruction that no card has"
measure = [{ name = "NOTHING", apdu = "80 00 00 00", effect = "read" }]
"#;
    let outcome = Tapstone::suite(&format!("{COUNTS}{more}")).args("--rounds 3").run().exits(0);
    let rows = outcome.record().results;
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].operation.as_str(), rows[0].completed), ("card.version", 3));
    assert_eq!(rows[1].status.outcome, tapstone_record::Outcome::Unsupported);
    assert_eq!(rows[1].status.code.as_deref(), Some("6D00"));
    // Asked for by name it is an error.
    let suite = Tapstone::suite(&format!("{COUNTS}{more}")).args("--op card.unknown --rounds 3");
    let outcome = suite.run().exits(2);
    assert!(outcome.stderr.contains("6D00"), "{}", outcome.stderr);
}

fn says(run: &Running, words: &str) {
    let said = eventually(Duration::from_secs(20), || run.said().contains(words));
    assert!(said, "{words}: {}", run.said());
}

fn a_reader_that_another_program_has() {
    const WAITS: &str = "another program has the reader for itself: waiting for it";
    let board = Board::create().unwrap();
    let context = Pcsc::open(board.cell(0)).unwrap().establish().unwrap();
    let reader = reader_name(Slot::First.reader());
    let held = context.connect(&reader, ShareMode::Exclusive).unwrap();
    let too_long = Tapstone::suite(COUNTS).args("--wait 500ms --rounds 3").run().exits(2);
    assert_snapshot!("exclusive_for_too_long", too_long.stderr);
    let too_long = Tapstone::at(Slot::First, "pcsc").args("--op status --wait 500ms --count 3");
    assert_snapshot!("exclusive_for_too_long_pcsc", too_long.run().exits(2).stderr);
    let run = Tapstone::suite(COUNTS).args("--wait 60s --rounds 3").start();
    says(&run, WAITS);
    drop(held);
    let outcome = run.wait().exits(0);
    assert_eq!(outcome.row().completed, 3);
    assert_eq!(outcome.stderr.matches(WAITS).count(), 1, "{}", outcome.stderr);
}

fn a_card_that_another_program_has() {
    const WAITS: &str = "another program has a transaction with the card: waiting for its end";
    let board = Board::create().unwrap();
    let context = Pcsc::open(board.cell(0)).unwrap().establish().unwrap();
    let reader = reader_name(Slot::First.reader());
    let held = context.connect(&reader, ShareMode::Shared).unwrap();
    held.begin().unwrap();
    let too_long = Tapstone::suite(COUNTS).args("--wait 2s --rounds 3").run().exits(2);
    assert_snapshot!("transaction_for_too_long", too_long.stderr);
    let run = Tapstone::suite(COUNTS).args("--wait 60s --rounds 3").start();
    says(&run, WAITS);
    held.end().unwrap();
    let outcome = run.wait().exits(0);
    assert_eq!(outcome.row().completed, 3);
}
