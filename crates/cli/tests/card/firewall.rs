//! What no suite can make Tapstone send, on a card that counts.

use std::sync::{Arc, Mutex};

use tapstone_card::suite::file::SuiteText;
use tapstone_card::suite::job::Secret;
use tapstone_card::suite::plan::{Plan, Wishes};
use tapstone_testing::{CountingCard, Manner, Random, random_suite};

use crate::support::{Pcscd, Played, Tapstone};

const PIN: &[u8; 8] = b"123456\xFF\xFF";

#[test]
fn the_firewall() {
    let Some(pcscd) = Pcscd::start() else { return };
    a_pin_in_the_suites_own_bytes_is_no_pin_that_was_named(&pcscd);
    a_verify_is_not_repeated_by_the_transport(&pcscd);
    a_card_says_what_the_next_command_is(&pcscd);
    a_pin_is_forgotten_when_the_run_ends(&pcscd);
    random_suites(&pcscd);
}

fn suite(steps: &str) -> String {
    format!(
        r#"
title = "an attack"
application = "A0 00 00 03 08 00 00 10 00 01 00"
pin_bytes = 8

[[test]]
name = "card.attack"
title = "an attack"
measure = [
{steps}
]
"#
    )
}

fn honest(pcscd: &Pcscd, tries: u8) -> (Played<'_>, Arc<Mutex<CountingCard>>) {
    Played::counting(pcscd, CountingCard::new(Manner::Honest { tries }, PIN, 1))
}

/// The suite that once blocked a card: a VERIFY with bytes of its own, plain and in a chain.
fn a_pin_in_the_suites_own_bytes_is_no_pin_that_was_named(pcscd: &Pcscd) {
    let (_played, card) = honest(pcscd, 3);
    for step in [
        r#"{ name = "VERIFY", apdu = "00 20 00 80", data = "3939393939393939", expect = [] },"#,
        r#"{ name = "VERIFY", apdu = "00 20 00 80", data = "3939393939393939", chain = true },"#,
        r#"{ name = "VERIFY", apdu = "10 20 00 80", data = "39393939", expect = [] },"#,
        r#"{ name = "ENVELOPE", apdu = "00 C2 00 00", data = "00 20 00 80 02 39 39" },"#,
    ] {
        for run in [Tapstone::suite(&suite(step)), Tapstone::suite(&suite(step)).pin("123456")] {
            let said = run.args("--rounds 3").run().refusal();
            assert!(said.contains("can cost a try of a PIN or a key"), "{said}");
        }
    }
    assert_eq!(card.lock().unwrap().presented, []);
}

/// 6Cxx after a VERIFY with data was once a second try.
fn a_verify_is_not_repeated_by_the_transport(pcscd: &Pcscd) {
    let steps = r#"{ name = "VERIFY", apdu = "00 20 00 80", data = "{pin}", expect = [] },"#;
    let (_played, card) = honest(pcscd, 3);
    for seed in 0..20 {
        *card.lock().unwrap() = CountingCard::new(Manner::Hostile, PIN, seed);
        let _ = Tapstone::suite(&suite(steps)).pin("123456").args("--rounds 3").run();
        let card = card.lock().unwrap();
        let wrong = card.presented.iter().filter(|it| it.status != [0x90, 0x00]);
        assert!(wrong.count() <= 1, "{:02X?}", card.presented);
    }
}

/// The instruction is a byte that the card brings.
fn a_card_says_what_the_next_command_is(pcscd: &Pcscd) {
    let steps = r#"
  { name = "GET DATA", apdu = "00 CB 3F FF", data = "5C 01 7E", save = "saved", expect = [] },
  { name = "SENT", apdu = "00 {saved} 00 80", data = "313233343536FFFF", expect = [] },"#;
    let mut refused = 0;
    let (_played, card) = honest(pcscd, 3);
    for seed in 0..20 {
        *card.lock().unwrap() = CountingCard::new(Manner::Hostile, PIN, seed);
        let outcome = Tapstone::suite(&suite(steps)).args("--rounds 3").run();
        refused += u32::from(outcome.stderr.contains("is not sent: "));
        let card = card.lock().unwrap();
        assert!(card.presented.is_empty() && card.written.is_empty(), "{:02X?}", card.presented);
    }
    assert!(refused > 0, "no card brought a dangerous byte");
}

/// A card that was given its PIN does for the next program what it does for its owner.
fn a_pin_is_forgotten_when_the_run_ends(pcscd: &Pcscd) {
    let steps = r#"{ name = "VERIFY", apdu = "00 20 00 80", data = "{pin}" },"#;
    let (_played, card) = honest(pcscd, 3);
    let off = || card.lock().unwrap().powered_off;
    let before = off();
    Tapstone::suite(&suite(steps)).pin("123456").args("--rounds 3").run().exits(0);
    assert!(off() > before, "the card still has its PIN");
}

/// Random suites that can be planned; `TAPSTONE_SUITES=300` for as many as that.
fn random_suites(pcscd: &Pcscd) {
    let wanted = std::env::var("TAPSTONE_SUITES").ok().and_then(|it| it.parse().ok());
    let mut refused = 0;
    let mut commands = 0;
    let mut presented = 0;
    let (_played, card) = honest(pcscd, 3);
    let seeds = (0..).filter(|seed| reaches_a_card(*seed)).take(wanted.unwrap_or(20));
    for seed in seeds {
        let (has_pin, allow_writes) = wishes(seed);
        *card.lock().unwrap() = CountingCard::new(Manner::Hostile, PIN, seed);
        let run = Tapstone::suite(&random_suite(seed)).args("--rounds 3");
        let run = if has_pin { run.pin("123456") } else { run };
        let run = if allow_writes { run.args("--allow-writes") } else { run };
        let outcome = run.run();
        assert!(matches!(outcome.exit, Some(0 | 2)), "{:?}: {}", outcome.exit, outcome.stderr);
        refused += u32::from(outcome.stderr.contains(" is not sent: "));
        let card = card.lock().unwrap();
        commands += card.commands;
        presented += card.presented.len();
        let padded = if random_suite(seed).contains("pin_bytes") { &PIN[..] } else { &PIN[..6] };
        let held = card.holds(has_pin.then_some(padded), allow_writes);
        held.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    println!("{commands} commands, {refused} suites refused, {presented} PINs given");
    assert!(refused > 0 && commands > 0);
}

/// Whether a PIN is named, and writing allowed.
fn wishes(seed: u64) -> (bool, bool) {
    let random = &mut Random::new(seed ^ 0xF00D);
    (random.chance(60), random.chance(50))
}

fn reaches_a_card(seed: u64) -> bool {
    let source = SuiteText { name: "random".to_owned(), text: random_suite(seed) };
    let (has_pin, allow_writes) = wishes(seed);
    let pin = has_pin.then(|| Secret::padded(b"123456", 0));
    let wishes = Wishes { pin, allow_writes, rounds: 3, ..Wishes::default() };
    let suite = source.parse().unwrap();
    Plan::from_suite(&source, &suite, &wishes).is_ok_and(|plan| !plan.cases.is_empty())
}
