//! Programs that need no card.

use std::path::Path;

use tapstone_record::{BeforeAfter, Change, Estimate};

use crate::support::{Tapstone, undisturbed};
use crate::{PREDICTED, assert_predicted, finding, fixtures, record, run, trial, turn};

/// A stand-in of the PC/SC library that sleeps 5 ms in SCardEndTransaction, and a client of it.
#[test]
fn a_sleep_is_found_and_its_removal_brings_what_was_predicted() {
    let _turn = turn();
    let (Some(client), Some(library)) =
        (fixtures::built("linked-pcsc"), fixtures::built("pollster"))
    else {
        return;
    };
    let (client, library) = (client.to_str().unwrap(), library.to_str().unwrap());
    let variables = [("LD_LIBRARY_PATH", library)];
    let traced = run("trace", "", &variables, &[client, "10"]).exits(0);
    let sleep = finding(&record(&traced).findings, "no-sleep:SCardEndTransaction");
    assert_eq!((sleep.place.as_str(), sleep.count), ("SCardEndTransaction", 10));
    assert!(sleep.time_ns.0 >= 50_000_000, "{sleep:?}");
    let command = [client, "10"];
    let trial = || trial("no-sleep", "--rounds 20", &variables, &command);
    let Some(tried) = undisturbed(0.0, PREDICTED, trial) else { return };
    assert_predicted(&tried);
}

/// The case of user-mode ppp: a lookup for each packet, which nobody uses.
#[test]
fn a_lookup_for_every_packet_is_found_and_kept_in_memory() {
    let _turn = turn();
    let Some(program) = fixtures::built("packet-filter") else { return };
    let command = [program.to_str().unwrap(), "20000"];
    let traced = run("trace", "", &[], &command).exits(0);
    let lookup = finding(&record(&traced).findings, "memoise:getprotobynumber");
    // Four protocols: the first lookup of each is none too many.
    assert_eq!(lookup.count, 20_000 - 4, "{lookup:?}");
    // What the fixed program saves, and what the fix saves in the other.
    let fixed = fixtures::built("packet-filter-fixed").unwrap();
    let measured = undisturbed(0.0, 0.1, || {
        let tried = trial("memoise:getprotobynumber", "--rounds 20", &[], &command);
        (tried, saved_by(&program, &fixed))
    });
    let Some((tried, by_hand)) = measured else { return };
    assert_eq!(tried.verdict, Change::Faster);
    let BeforeAfter { before, after } = tried.processor_ns.unwrap();
    let by_trial = Saved::of(&before, &after);
    let part = by_trial.nanos / by_hand.nanos;
    let error = part * (by_trial.error / by_trial.nanos).hypot(by_hand.error / by_hand.nanos);
    println!("{part:.3} ± {error:.3} of the processor time that the fixed program saves");
    assert!(error < 0.2, "{part} ± {error} tells nothing");
    // Both are measured: what is surely less fails.
    assert!(part + error >= 0.9, "{part} ± {error} of what the fixed program saves: {tried:?}");
}

/// A difference of two measured times and half of its 95 % interval, in nanoseconds.
struct Saved {
    nanos: f64,
    error: f64,
}

impl Saved {
    fn of(before: &Estimate, after: &Estimate) -> Self {
        let half = |of: &Estimate| (of.high - of.low) / 2.0;
        Self { nanos: before.estimate - after.estimate, error: half(before).hypot(half(after)) }
    }
}

/// Processor time that the corrected program saves, by `tapstone ab`: what the source gives as
/// 38 %.
fn saved_by(program: &Path, fixed: &Path) -> Saved {
    let ab = Tapstone::new("ab").args("--rounds 20 --output record.json").without_record();
    let command = |program: &Path| format!("{} 20000", program.display());
    let outcome = ab.arg(command(program)).arg(command(fixed)).run().exits(0);
    let record = record(&outcome);
    let rows = record.comparison.unwrap().rows;
    let processor = rows.iter().find(|row| row.operation == "command.cpu").unwrap();
    Saved::of(&processor.baseline, &processor.candidate)
}

#[test]
fn a_fix_that_changes_nothing_says_so() {
    let _turn = turn();
    let Some(program) = fixtures::built("packet-filter-fixed") else { return };
    let command = [program.to_str().unwrap(), "100"];
    let tried = trial("memoise:getprotobynumber", "--rounds 3", &[], &command);
    assert!(tried.notes.iter().any(|note| note.contains("never applied")), "{:?}", tried.notes);
    assert_eq!((tried.verdict, tried.predicted), (Change::Inconclusive, None));
}

#[test]
fn what_cannot_be_repeated_is_not() {
    let _turn = turn();
    let failing = run("trial", "--fix no-sleep", &[], &["false"]).exits(2);
    assert!(failing.stderr.contains("`false` ended with exit code 1"), "{}", failing.stderr);
    let missing = run("trial", "--fix no-sleep", &[], &["no-such-program"]).exits(2);
    assert!(missing.stderr.contains("no-such-program"), "{}", missing.stderr);
    let unknown = run("trial", "--fix nosleep", &[], &["true"]).exits(2);
    assert!(unknown.stderr.contains("there is no fix"), "{}", unknown.stderr);
}
