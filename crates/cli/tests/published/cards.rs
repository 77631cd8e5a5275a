//! The published cards: their profiles, measured through pcscd, give the published figures back.

use std::fmt;
use std::thread;

use tapstone_record::Outcome;

use tapstone_reference::{PublishedFigure, PublishedItem};
use tapstone_testing::hold;

use crate::support::{Card, Outcome as Left, Pcscd, Slot, Tapstone, undisturbed};

/// How far a figure measured is from the one published.
struct Deviation {
    what: String,
    measured: f64,
    published: f64,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, published } = self;
        write!(f, "{what}: {measured:.5} s for {published} s, {:.2} %", self.part() * 100.0)
    }
}

impl Deviation {
    fn part(&self) -> f64 {
        (self.measured / self.published - 1.0).abs()
    }

    fn seconds(&self) -> f64 {
        (self.measured - self.published).abs()
    }
}

/// Of a published time, at most so much off.
const PART: f64 = 0.03;

/// The middle one of three: a moment in which the machine did something else is not the card's.
#[track_caller]
fn median(outcome: &Left, operation: &str) -> f64 {
    let record = outcome.record();
    let row = record.results.iter().find(|row| row.operation == operation).unwrap();
    assert_eq!((row.status.outcome, row.completed), (Outcome::Ok, 3), "{operation}");
    if let Some(verification) = row.verification {
        assert_eq!((verification.checked, verification.wrong), (3, 0), "{operation}");
    }
    let mut values = row.latencies_ns.clone();
    values.sort_unstable();
    values[1].as_secs_f64()
}

/// What the suite calls the test that measures this operation.
fn test_of(operation: &str) -> &str {
    operation.strip_prefix("card.").unwrap()
}

/// `None`: never quiet.
fn jcop(
    pcscd: &Pcscd,
    slot: Slot,
    profile: &str,
    card: &PublishedItem,
) -> Option<(Left, Vec<Deviation>)> {
    let _card = Card::insert(pcscd, slot, &[profile]);
    let run = || {
        let run = Tapstone::at(slot, "card").args("--suite bench --allow-writes --rounds 3");
        let names = card.figures.iter().map(|figure| test_of(&figure.operation));
        names.fold(run, |run, name| run.args("--op").arg(name)).run().exits(0)
    };
    let deviations = |outcome: &Left| -> Vec<_> {
        let deviation = |figure: &PublishedFigure| Deviation {
            what: format!("{profile}: {}", test_of(&figure.operation)),
            measured: median(outcome, &figure.operation),
            published: figure.value.in_unit_of_quantity() / 1e9,
        };
        card.figures.iter().map(deviation).collect()
    };
    let within = |outcome: &Left| {
        deviations(outcome)
            .iter()
            .try_for_each(|figure| hold(figure.part() <= PART || figure.seconds() <= 0.002, figure))
    };
    let outcome = undisturbed(0.0, PART, run, within)?;
    assert_eq!(outcome.record().target.emulated.unwrap().profile, profile);
    let deviations = deviations(&outcome);
    Some((outcome, deviations))
}

#[test]
fn four_jcop_cards() {
    let Some(pcscd) = Pcscd::start() else { return };
    let cards = tapstone_reference::load("jcop-cards").unwrap().items();
    let card = |name: &str| cards.iter().find(|card| card.name == name).unwrap();
    // As long as the other three together.
    let jcop31 = || jcop(&pcscd, Slot::Second, "jcop31-v2.2", card("NXP JCOP31 v2.2"));
    let jcop41 = || {
        [
            ("jcop41-v2.2", "NXP JCOP41 v2.2/72k"),
            ("jcop41-v2.2.1", "NXP JCOP41 v2.2.1/72k"),
            ("jcop41-v2.2.1-usb", "NXP JCOP41 v2.2.1/72k USB token (ID-000)"),
        ]
        .map(|(profile, name)| jcop(&pcscd, Slot::First, profile, card(name)))
    };
    let (slow, fast) = thread::scope(|scope| {
        let slow = scope.spawn(jcop31);
        let fast = jcop41();
        (slow.join().unwrap(), fast)
    });
    let measured: Option<Vec<_>> = fast.into_iter().chain([slow]).collect();
    let Some(measured) = measured else { return };
    let [.., (jcop31, _)] = &measured[..] else { panic!("the last is the slow one") };
    beside_the_table(jcop31);
    let deviations: Vec<_> = measured.into_iter().flat_map(|(_, deviations)| deviations).collect();
    assert_eq!(deviations.len(), 44);
    let worst = deviations.iter().max_by(|one, other| one.part().total_cmp(&other.part()));
    println!("the worst of 44: {}", worst.unwrap());
}

/// `tapstone compare` shows the card beside the published ones, and itself as the nearest.
fn beside_the_table(jcop31: &Left) {
    let compare = |more: &str| {
        let run = Tapstone::new("compare").arg(jcop31.record_path()).args("reference:jcop-cards");
        run.args(more).without_record().run().exits(0)
    };
    let table = compare("").stdout;
    for shown in ["NXP JCOP31 v2.2", "NXP JCOP41 v2.2/72k", "vm_perf_bound_rsa", "emulated"] {
        assert!(table.contains(shown), "{shown}: {table}");
    }
    let record: serde_json::Value = serde_json::from_str(&compare("--format json").stdout).unwrap();
    let rows = record["comparison"]["cases"].as_array().unwrap();
    assert_eq!(rows.len(), 44);
    for row in rows.iter().filter(|row| row["item"] == "NXP JCOP31 v2.2") {
        let ratio = row["ratio"]["estimate"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&ratio), "{row}");
    }
}

#[test]
fn five_piv_cards() {
    let Some(pcscd) = Pcscd::start() else { return };
    let study = tapstone_reference::load("piv-door").unwrap();
    let published_ms = study.numbers("contact_cards_ms.*").unwrap();
    assert_eq!(published_ms.len(), 5);
    let folder = tempfile::tempdir().unwrap();
    // All five ask for the same objects and keys.
    let card_data = folder.path().join("card");
    for (number, published_ms) in (1..).zip(published_ms) {
        let profile = format!("piv-card-{number}");
        let arguments = [profile.as_ref(), "--card-data".as_ref(), card_data.as_os_str()];
        let _card = Card::insert(&pcscd, Slot::First, &arguments);
        let run = || {
            let run = Tapstone::at(Slot::First, "card").args("--suite piv-contact --rounds 3");
            run.pin("123456").run().exits(0)
        };
        let within = |outcome: &Left| {
            let figure = Deviation {
                what: profile.clone(),
                measured: median(outcome, "card.piv-contact"),
                published: published_ms / 1e3,
            };
            // With each call's share, for whoever looks into a failure.
            println!("{figure}\n{}", outcome.stdout);
            hold(figure.part() <= 0.005, &figure)
        };
        if undisturbed(0.0, 0.005, run, within).is_none() {
            return;
        }
    }
}
