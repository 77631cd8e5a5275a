//! Programs that need no card.

use std::path::Path;
use std::process::Command;

use tapstone_record::{BeforeAfter, Change, Estimate, Trial};
use tapstone_testing::{Held, hold};

use crate::support::{Tapstone, undisturbed};
use crate::{PREDICTED, as_predicted, finding, fixtures, record, run, trial, turn};

/// A stand-in of the PC/SC library that sleeps 5 ms in SCardEndTransaction, and a client of it.
#[test]
fn a_sleep_is_found_and_its_removal_brings_what_was_predicted() {
    let _turn = turn();
    let (Some(client), Some(library)) =
        (fixtures::built("linked-pcsc"), fixtures::built("pollster"))
    else {
        return;
    };
    let client = client.to_str().unwrap();
    let library = library.to_str().unwrap();
    let variables = [("LD_LIBRARY_PATH", library)];
    let traced = run("trace", "", &variables, &[client, "10"]).exits(0);
    let sleep = finding(&record(&traced).findings, "no-sleep:SCardEndTransaction");
    assert_eq!((sleep.place.as_str(), sleep.count), ("SCardEndTransaction", 10));
    assert!(sleep.time_ns.0 >= 50_000_000, "{sleep:?}");
    let command = [client, "10"];
    let trial = || trial("no-sleep", "--rounds 20", &variables, &command);
    undisturbed(0.0, PREDICTED, trial, as_predicted);
}

/// What goes past SCardTransmit can change the card as well: a pin pad verifies in SCardControl.
#[test]
fn what_was_read_is_forgotten_where_the_card_may_have_changed() {
    let _turn = turn();
    let cached = |call: &str| -> Option<Vec<String>> {
        let client = fixtures::built("linked-pcsc")?;
        let library = fixtures::built("pollster")?;
        let variables = [("LD_LIBRARY_PATH", library.to_str().unwrap())];
        let command = [client.to_str().unwrap(), "10", "--call", call];
        Some(trial("cache-apdu", "--rounds 3", &variables, &command).notes)
    };
    for (call, says) in [
        ("SCardTransmit", "cache-apdu changed 9.0 calls a run"),
        ("SCardControl", "cache-apdu never applied"),
        ("SCardSetAttrib", "cache-apdu never applied"),
        // Each has a handle of its own, and there is room for eight.
        ("SCardConnect", "2.0 calls a run went past cache-apdu"),
    ] {
        let Some(notes) = cached(call) else { return };
        assert!(notes.iter().any(|note| note.starts_with(says)), "{call}: {notes:?}");
    }
}

/// A card that minds what it is sent, and a program that prints what became of it.
#[test]
fn a_fix_in_the_place_of_a_card_gives_what_the_card_would() {
    let _turn = turn();
    let tried = |fix: &str, what: &str| -> Option<Trial> {
        let client = fixtures::built("picky-client")?;
        let library = fixtures::built("picky-pcsc")?;
        let variables = [("LD_LIBRARY_PATH", library.to_str().unwrap())];
        Some(trial(fix, "--rounds 3", &variables, &[client.to_str().unwrap(), what]))
    };
    // The memory ends in the middle of a unit: half of it is not answered from there.
    let Some(cached) = tried("cache-apdu", "units") else { return };
    assert!(cached.changed > Some(0), "{cached:?}");
    assert!(cached.notes.iter().any(|note| note.contains("went past cache-apdu")), "{cached:?}");
    // A probe that failed, and then another command.
    let probed = tried("whole-read", "probes").unwrap();
    assert!(probed.notes[0].starts_with("whole-read changed 1.0 calls"), "{probed:?}");
    // select(2) sets its time limit to zero, and still has waited.
    assert_eq!(tried("no-busy-wait", "waits").unwrap().changed, Some(0));
    // A socket that has it already.
    assert_eq!(tried("tcp-nodelay", "sends").unwrap().changed, Some(0));
}

/// Lookups that end with `_r`: of a user, a group, and a name that nobody has.
#[test]
fn a_lookup_into_the_callers_own_room_is_kept() {
    const LOOKUPS: &str = "import pwd, grp\n\
                           for number in range(100):\n\
                           \tuser, group = pwd.getpwnam('daemon'), grp.getgrgid(4)\n\
                           \ttry: pwd.getpwnam('nobody has this name')\n\
                           \texcept KeyError as error: none = error\n\
                           print(user, group, none)";
    let _turn = turn();
    if Command::new("/usr/bin/python3").arg("--version").output().is_err() {
        return tapstone_testing::skip("python3");
    }
    let command = ["/usr/bin/python3", "-c", LOOKUPS];
    let without = run("trace", "", &[], &command).exits(0);
    // All but the first of each name.
    for (fix, changed) in [("memoise:getpwnam_r", 198), ("memoise:getgrgid_r", 99)] {
        let with = run("trace", &format!("--fix {fix}"), &[], &command).exits(0);
        assert_eq!(with.stdout, without.stdout, "{fix}");
        let said = format!("the fix {fix} was on and changed {changed} calls");
        let warnings = record(&with).warnings;
        assert!(warnings.contains(&said), "{warnings:#?}");
    }
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
    let mut rounds = 30;
    let both = || {
        let options = format!("--rounds {rounds}");
        // Where so many do not tell, twice as many may.
        rounds = 60;
        let tried = trial("memoise:getprotobynumber", &options, &[], &command);
        (tried, saved_by(&program, &fixed, &options))
    };
    undisturbed(0.0, 0.05, both, |(tried, by_hand)| saves_as_much_as_by_hand(tried, by_hand));
}

fn saves_as_much_as_by_hand(tried: &Trial, by_hand: &ByHand) -> Held {
    hold(tried.verdict == Change::Faster, format_args!("{tried:?}"))?;
    let (part, error) = part_of_repair(tried, by_hand);
    println!("{part:.3} ± {error:.3} of the processor time that the fixed program saves");
    hold(error < 0.1, format_args!("{part} ± {error} tells nothing"))?;
    hold(part >= 0.9, format_args!("{part} ± {error} of what the fixed program saves: {tried:?}"))
}

/// How much of the processor time that the fixed program saves the fix saves in the other, and half
/// of its 95 % interval.
fn part_of_repair(tried: &Trial, by_hand: &ByHand) -> (f64, f64) {
    let BeforeAfter { before, after } = tried.processor_ns.unwrap();
    let by_trial = Saved::of(&before, &after);
    // The machine may be faster in one of the two: the untouched program, which is in both, tells.
    let untouched = tried.unobserved_ns.unwrap();
    let there = by_hand.untouched;
    let part = by_trial.nanos / by_hand.saved.nanos * there.estimate / untouched.estimate;
    let of = |all: [f64; 4]| all.iter().map(|one| one * one).sum::<f64>().sqrt();
    let error = part
        * of([
            by_trial.error / by_trial.nanos,
            by_hand.saved.error / by_hand.saved.nanos,
            half(&there) / there.estimate,
            half(&untouched) / untouched.estimate,
        ]);
    (part, error)
}

/// A difference of two measured times and half of its 95 % interval, in nanoseconds.
struct Saved {
    nanos: f64,
    error: f64,
}

impl Saved {
    fn of(before: &Estimate, after: &Estimate) -> Self {
        Self { nanos: before.estimate - after.estimate, error: half(before).hypot(half(after)) }
    }
}

fn half(of: &Estimate) -> f64 {
    (of.high - of.low) / 2.0
}

/// What `tapstone ab` says of a program and its corrected form.
struct ByHand {
    /// The processor time that the corrected one saves: what the source gives as 38 %.
    saved: Saved,
    /// The wall time of the other.
    untouched: Estimate,
}

fn saved_by(program: &Path, fixed: &Path, options: &str) -> ByHand {
    let ab = Tapstone::new("ab").args(options).args("--output record.json").without_record();
    let command = |program: &Path| format!("{} 20000", program.display());
    let outcome = ab.arg(command(program)).arg(command(fixed)).run().exits(0);
    let record = record(&outcome);
    let rows = record.comparison.unwrap().cases;
    let row = |name: &str| rows.iter().find(|row| row.operation == name).unwrap();
    let processor = row("command.cpu");
    ByHand {
        saved: Saved::of(&processor.baseline, &processor.candidate),
        untouched: row("command.wall").baseline,
    }
}

#[test]
fn a_fix_that_changes_nothing_says_so() {
    let _turn = turn();
    let Some(program) = fixtures::built("packet-filter-fixed") else { return };
    let command = [program.to_str().unwrap(), "100"];
    let tried = trial("memoise:getprotobynumber", "--rounds 3", &[], &command);
    assert!(tried.notes.iter().any(|note| note.contains("never applied")), "{:?}", tried.notes);
    assert_eq!(tried.changed, Some(0));
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
