//! Ten thousand suites as nobody would write them, on cards that count what is tried and written.

use tapstone_firewall::Cleared;
use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};
use tapstone_testing::{CountingCard, Manner, Random, random_suite};

use super::file::SuiteText;
use super::job::Secret;
use super::plan::{Plan, Wishes};
use super::port::CardPort;
use super::run::SuiteRun;
use crate::scard::{CardProtocol, Disposition};
use crate::worker::Work;

const PIN: [u8; 8] = *b"123456\xFF\xFF";

/// A counting card as a reader would hold it.
struct Port<'a> {
    card: &'a mut CountingCard,
    connected: bool,
    protocol: CardProtocol,
    /// From then on no transaction begins.
    fails_to_begin: bool,
}

impl CardPort for Port<'_> {
    fn protocol(&self) -> CardProtocol {
        self.protocol
    }

    fn is_connected(&self) -> bool {
        self.connected
    }

    fn connect(&mut self) -> Result<(), PcscFailure> {
        self.connected = true;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), PcscFailure> {
        if self.fails_to_begin && self.card.powered_off > 0 {
            return Err(PcscFailure {
                call: PcscFunction::BeginTransaction,
                code: PcscCode::RESET_CARD,
            });
        }
        Ok(())
    }

    fn transmit<'a>(
        &mut self,
        command: Cleared<'_>,
        response: &'a mut [u8],
    ) -> Result<&'a [u8], PcscFailure> {
        let answer = self.card.answer(command.into_bytes());
        response[..answer.len()].copy_from_slice(&answer);
        Ok(&response[..answer.len()])
    }

    fn end(&mut self) -> Result<(), PcscFailure> {
        Ok(())
    }

    fn disconnect(&mut self, disposition: Disposition) -> Result<(), PcscFailure> {
        self.connected = false;
        if disposition != Disposition::Leave {
            self.card.power_off();
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        false
    }
}

/// What became of all suites together.
#[derive(Debug, Default)]
struct Totals {
    refused_before: u64,
    refused_in_run: u64,
    ran: u64,
    commands: u64,
    presented: u64,
    written: u64,
}

fn one(seed: u64, totals: &mut Totals) {
    let random = &mut Random::new(seed ^ 0x5EED);
    let manner = match random.below(4) {
        0 => Manner::Honest { tries: random.below(4) as u8 },
        _ => Manner::Hostile,
    };
    // The PIN that the user names is right in half of the cases.
    let pin = random.chance(60).then(|| Secret::padded(&PIN, 8));
    let right = if random.chance(50) { PIN } else { *b"98765432" };
    let allow_writes = random.chance(50);
    let mut card = CountingCard::new(manner, &right, seed);
    let source = SuiteText { name: "random".to_owned(), text: random_suite(seed) };
    let suite = source.parse().unwrap_or_else(|error| panic!("{error}\n{}", source.text));
    let wishes = Wishes { pin: pin.clone(), allow_writes, rounds: 3, ..Wishes::default() };
    let Ok(plan) = Plan::from_suite(&source, &suite, &wishes) else {
        totals.refused_before += 1;
        return;
    };
    let protocol = *random.one(&[CardProtocol::T0, CardProtocol::T1]);
    let port = Port { card: &mut card, connected: true, protocol, fails_to_begin: false };
    match SuiteRun::new(&plan.job, port, &mut || false) {
        Err(_) => totals.refused_in_run += 1,
        Ok(mut run) => {
            totals.ran += 1;
            for number in 0..3 * run.lanes() {
                let went = run.prepare(number).and_then(|()| run.perform());
                let undone = run.undo(went.is_err());
                let faults = [went.err(), undone.err()];
                if faults.iter().flatten().any(|fault| fault.is_final()) {
                    break;
                }
            }
            // What is left on a card that says what it likes is not asked here.
            let _ = run.end();
        }
    }
    totals.commands += card.commands;
    totals.presented += card.presented.len() as u64;
    totals.written += card.written.len() as u64;
    let pin = pin.as_ref().map(Secret::expose);
    card.holds(pin, allow_writes).unwrap_or_else(|what| panic!("{what}\n{}", source.text));
}

#[test]
fn ten_thousand_suites_cost_nobody_a_card() {
    let mut totals = Totals::default();
    for seed in 0..10_000 {
        one(seed, &mut totals);
    }
    println!("{totals:?}");
    // They come far enough to mean something.
    assert!(totals.ran > 4000 && totals.refused_in_run > 500, "{totals:?}");
    assert!(totals.commands > 10_000, "{totals:?}");
    assert!(totals.presented > 300 && totals.written > 80, "{totals:?}");
}

/// What was selected is not, from the moment on that the power goes: after an error too.
#[test]
fn a_card_that_lost_its_power_has_nothing_selected() {
    let text = r#"
title = "cold"
[values]
byte = "24"
[[prepare]]
name = "selected"
steps = [{ name = "SELECT", apdu = "00 A4 04 00", data = "F0 54 41 50 53 54 4F 4E 45 01", expect = [] }]
clean_up = [{ name = "WRITE", apdu = "80 {byte} 00 00", data = "31", expect = [] }]
[[test]]
name = "card.cold"
title = "cold"
needs = ["selected"]
cold = true
measure = [{ name = "READ", apdu = "00 B0 00 00", expect = [] }]
"#;
    let source = SuiteText { name: "cold".to_owned(), text: text.to_owned() };
    let suite = source.parse().unwrap();
    let plan = Plan::from_suite(&source, &suite, &Wishes::default()).unwrap();
    let mut card = CountingCard::new(Manner::Honest { tries: 3 }, &PIN, 1);
    let port =
        Port { card: &mut card, connected: true, protocol: CardProtocol::T1, fails_to_begin: true };
    assert!(SuiteRun::new(&plan.job, port, &mut || false).is_err());
    assert_eq!(card.powered_off, 1);
    assert_eq!(card.presented, []);
}
