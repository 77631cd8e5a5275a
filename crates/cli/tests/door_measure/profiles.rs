//! The five published contact cards: their totals, and what a strategy gains against what was
//! predicted. Only while the machine has nothing more urgent to do.

use std::path::Path;

use tapstone_measure::units::Nanos;
use tapstone_record::{Record, Trial};
use tapstone_testing::{Held, hold};
use tapstone_vcard::piv::{PivAlgorithm, Recipe};

use crate::people::{Holder, row};
use crate::support::{Outcome, Pcscd, Tapstone, undisturbed};

/// Of a published total, at most so much off.
const TOTAL: f64 = 0.005;

/// Of the time with a strategy, at most so much off when it is predicted.
const SAVING: f64 = 0.10;

/// All five ask for a CHUID of this length, and price no algorithm but RSA 2048.
fn holder() -> Holder {
    Holder::with(&Recipe {
        chuid_bytes: Some(2339),
        management: PivAlgorithm::Rsa2048,
        card: PivAlgorithm::Rsa2048,
        ..Recipe::default()
    })
}

fn median(values: &[Nanos]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2].as_secs_f64() * 1e3
}

#[test]
fn contact_sequences_take_the_published_times() {
    let holder = holder();
    let Some(pcscd) = Pcscd::start_urgently() else { return };
    let study = tapstone_reference::load("piv-door").unwrap();
    let mut totals = Vec::new();
    for number in 1..=5 {
        let profile = format!("piv-card-{number}");
        let _card = holder.insert(&pcscd, Path::new(&profile));
        // The first also validates the path. The median is one of the others, and not their worst.
        let measure =
            || holder.measure().args("--mechanism contact --rounds 3").pin("123456").run().exits(0);
        let total =
            |outcome: &Outcome| median(&row(&outcome.record(), "door.contact").latencies_ns);
        let published = study.number(&format!("contact_cards_ms.card_{number}")).unwrap();
        let within = |outcome: &Outcome| {
            let total = total(outcome);
            println!("{profile}: {total:.1} ms for {published} ms\n{}", outcome.stdout);
            let off = (total / published - 1.0).abs();
            hold(off <= TOTAL, format_args!("{profile}: {total} for {published}"))
        };
        let Some(outcome) = undisturbed(0.0, TOTAL, measure, within) else { return };
        totals.push(total(&outcome));
    }
    for (total, published) in totals[1..].iter().zip([94.0, 54.0, 66.0, 66.0]) {
        let excess = 100.0 * (total / totals[0] - 1.0);
        assert!((excess - published).abs() <= 1.0, "{excess} for {published}");
    }
}

#[test]
fn predictions_hold_on_every_profile() {
    let holder = holder();
    let Some(pcscd) = Pcscd::start_urgently() else { return };
    for number in 1..=5 {
        let profile = format!("piv-card-{number}");
        let _card = holder.insert(&pcscd, Path::new(&profile));
        let measure = || holder.measure().args("--rounds 3 --module-time 200ms").run().exits(0);
        let within = |outcome: &Outcome| {
            what_if_agrees(&holder, outcome, &profile)?;
            strategies_agree(outcome, &profile)
        };
        if undisturbed(0.2, SAVING, measure, within).is_none() {
            return;
        }
    }
}

/// The run itself predicts what each strategy brings.
fn strategies_agree(outcome: &Outcome, profile: &str) -> Held {
    let trials = outcome.record().trials;
    assert_eq!(trials.len(), 4);
    trials.iter().try_for_each(|trial| {
        let saved = trial.predicted.map(|of| f64::midpoint(of.low, of.high)).unwrap();
        agrees(outcome, trial, saved, &format!("{profile} {}", trial.fix))
    })
}

/// The time with a strategy is the one before it without what was to be `saved`.
fn agrees(outcome: &Outcome, executed: &Trial, saved: f64, what: &str) -> Held {
    let predicted = executed.before_ns.estimate - saved;
    let off = predicted / executed.after_ns.estimate - 1.0;
    println!("{what}: {:+.1} %", 100.0 * off);
    hold(off.abs() <= SAVING, format_args!("{what}: {off}\n{}", outcome.stdout))
}

/// A door of which nothing is known but the card, which is to be measured, and a module.
const DOOR: &str = r#"
title = "a measured card"
target_ms = 100

[[component]]
kind = "card"
from = "assumed"
work = [
    { step = "select", time_ms = 1 },
    { step = "read-certificate", time_ms = 1 },
    { step = "challenge", time_ms = 1 },
    { step = "read-chuid", time_ms = 1 },
]

[[component]]
kind = "module"
from = "assumed"
work = [{ step = "validate", time_ms = 200 }]
"#;

/// `door what-if` knows the baseline alone; the strategies were executed in the same run.
#[track_caller]
fn what_if_agrees(holder: &Holder, outcome: &Outcome, profile: &str) -> Held {
    let door = holder.file("door.toml", DOOR);
    let asked = Tapstone::new("door")
        .args("what-if")
        .arg(&door)
        .args("--card")
        .arg(outcome.record_path())
        .args("--format json")
        .without_record()
        .run();
    let record = Record::from_json(&asked.stdout, "a what-if").unwrap();
    let changes = record.what_if.unwrap().considered;
    let trials = outcome.record().trials;
    ["known-card", "overlap", "background-validation"].into_iter().try_for_each(|strategy| {
        let change = changes.iter().find(|change| change.change == strategy).unwrap();
        let executed = trials.iter().find(|trial| trial.fix == strategy).unwrap();
        agrees(outcome, executed, change.saves_ns, &format!("{profile} what-if {strategy}"))
    })
}
