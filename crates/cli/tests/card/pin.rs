//! The PIN of a PIV card: given to it only when that is safe, and seen by nobody.

use std::fs;
use std::path::Path;

use rustix::process::Pid;
use tapstone_record::{Outcome, Verifier};
use tapstone_testing::{CountingCard, Manner};
use tapstone_vcard::piv::{CardData, Recipe};

use crate::support::{Card, Outcome as Left, Pcscd, Played, Slot, Tapstone, tries};

/// Long enough not to turn up among the digits of a record by chance.
const PIN: &str = "73519428";
const WRONG: &str = "26840915";

/// Signatures that need the PIN, by the keys of a generated card.
const SIGNED: [&str; 3] =
    ["card.piv.9a.rsa2048.sign", "card.piv.9c.rsa2048.sign", "card.piv.9e.p256.sign"];

#[test]
fn the_pin() {
    let Some(pcscd) = Pcscd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let card_data = folder.path().join("card");
    CardData::open_or_generate(&card_data, &Recipe::default()).unwrap();
    fs::write(card_data.join("pin"), PIN).unwrap();
    the_right_one(&pcscd, &card_data);
    none(&pcscd, &card_data);
    a_wrong_one(&pcscd, &card_data);
    a_blocked_one(&pcscd);
    nobody_sees_it(&pcscd, &card_data);
}

fn insert<'a>(pcscd: &'a Pcscd, card_data: &Path) -> Card<'a> {
    let arguments = ["piv".as_ref(), "--card-data".as_ref(), card_data.as_os_str()];
    Card::insert(pcscd, Slot::First, &arguments)
}

fn piv() -> Tapstone {
    Tapstone::at(Slot::First, "card").args("--suite piv --rounds 3")
}

/// The card answers an empty VERIFY with this status word.
#[track_caller]
fn the_counter_is(word: &str) {
    let outcome = Tapstone::suite(&tries(word)).args("--rounds 3 --op card.tries").run();
    assert_eq!(outcome.exit, Some(0), "not {word}: {}\n{}", outcome.stderr, outcome.stdout);
}

/// Neither PIN is in anything that was left behind, as text or in hexadecimal.
#[track_caller]
fn keeps_the_secret(outcome: &Left) {
    let record = outcome.record_text().unwrap_or_default();
    for text in [&outcome.stdout, &outcome.stderr, &record] {
        for pin in [PIN, WRONG] {
            let hex: String = pin.bytes().map(|byte| format!("{byte:02x}")).collect();
            let text = text.to_lowercase();
            assert!(!text.contains(pin) && !text.contains(&hex), "the PIN is no secret:\n{text}");
        }
    }
}

fn the_right_one(pcscd: &Pcscd, card_data: &Path) {
    let _card = insert(pcscd, card_data);
    the_counter_is("63C3");
    let outcome = piv().pin(PIN).run().exits(0);
    keeps_the_secret(&outcome);
    let record = outcome.record();
    for name in SIGNED {
        let row = record.results.iter().find(|row| row.operation == name);
        let row = row.unwrap_or_else(|| panic!("{name} is there: {}", outcome.stdout));
        assert_eq!((row.status.outcome, row.completed), (Outcome::Ok, 3), "{name}");
        let verification = row.verification.unwrap();
        assert_eq!(verification.by, Verifier::Software);
        assert_eq!((verification.eligible, verification.checked, verification.wrong), (3, 3, 0));
    }
    assert!(
        record.results.iter().all(|row| row.status.outcome == Outcome::Ok),
        "{}",
        outcome.stdout
    );
    assert!(!record.warnings.iter().any(|it| it.contains("left out")), "{:?}", record.warnings);
}

fn none(pcscd: &Pcscd, card_data: &Path) {
    let _card = insert(pcscd, card_data);
    let outcome = piv().run().exits(0);
    let record = outcome.record();
    let operations: Vec<_> = record.results.iter().map(|row| row.operation.as_str()).collect();
    // Card authentication needs no PIN.
    assert!(operations.contains(&SIGNED[2]), "{operations:?}");
    for name in ["card.piv.verify", SIGNED[0], SIGNED[1]] {
        assert!(!operations.contains(&name), "{operations:?}");
        let said = format!("{name} is left out: it needs the PIN: name one with --pin-file");
        assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
        let kept = format!("{name} was left out: it needs the PIN");
        assert!(record.warnings.iter().any(|it| it.starts_with(&kept)), "{:?}", record.warnings);
    }
    the_counter_is("63C3");
}

/// Each run costs one try and no more, until one is left; that one Tapstone does not touch.
fn a_wrong_one(pcscd: &Pcscd, card_data: &Path) {
    let _card = insert(pcscd, card_data);
    for left in ["63C2", "63C1"] {
        let outcome = piv().pin(WRONG).run();
        keeps_the_secret(&outcome);
        let said = outcome.refusal();
        assert!(said.contains(left) && said.contains("VERIFY"), "{said}");
        the_counter_is(left);
    }
    // Not even if it is the right one: nobody can know.
    for pin in [WRONG, PIN] {
        let outcome = piv().pin(pin).run();
        keeps_the_secret(&outcome);
        insta::assert_snapshot!("one_try_left", outcome.refusal());
        the_counter_is("63C1");
    }
}

fn a_blocked_one(pcscd: &Pcscd) {
    let card = CountingCard::new(Manner::Honest { tries: 0 }, PIN.as_bytes(), 1);
    let (_played, card) = Played::counting(pcscd, card);
    let outcome = piv().pin(PIN).run();
    keeps_the_secret(&outcome);
    insta::assert_snapshot!("blocked", outcome.refusal());
    assert_eq!(card.lock().unwrap().presented, []);
}

/// What every user of the machine, or every process of this user, can read of a process.
fn shown(process: Pid) -> String {
    // A process may have ended meanwhile; then it shows nothing.
    let read =
        |file| fs::read(format!("/proc/{}/{file}", process.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&[read("cmdline"), b" ".to_vec(), read("environ")].concat())
        .into_owned()
}

fn nobody_sees_it(pcscd: &Pcscd, card_data: &Path) {
    let _card = insert(pcscd, card_data);
    let long = || Tapstone::at(Slot::First, "card").args("--suite piv --rounds 100000");
    let long = || long().args("--op card.piv.verify");
    // The tool's own environment is its user's; its workers get none of it.
    for (run, and_own) in
        [(long().pin(PIN), true), (long().env("THE_PIN", PIN).args("--pin-env THE_PIN"), false)]
    {
        let run = run.start();
        run.wait_until_it_measures();
        let workers = run.workers();
        assert_eq!(workers.len(), 1);
        let own = and_own.then(|| run.pid());
        for process in workers.into_iter().chain(own) {
            let shown = shown(process);
            assert!(shown.contains("tapstone"), "{shown}");
            assert!(!shown.contains(PIN), "{shown}");
        }
        run.signal(rustix::process::Signal::INT);
        let outcome = run.wait().exits(2);
        assert!(outcome.row().completed > 0);
        keeps_the_secret(&outcome);
    }
}
