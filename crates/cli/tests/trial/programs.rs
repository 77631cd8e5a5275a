//! Programs that need no card.

use tapstone_record::Change;

use crate::support::undisturbed;
use crate::{finding, fixtures, record, run, saved, trial, turn};

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
    let Some(tried) = undisturbed(0.0, trial) else { return };
    assert_eq!(tried.verdict, Change::Faster);
    let predicted = tried.predicted.unwrap();
    let ratio = saved(&tried) / f64::midpoint(predicted.low, predicted.high);
    assert!((0.85..1.15).contains(&ratio), "saved {ratio} times what was predicted: {tried:?}");
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
    let tried = trial("memoise:getprotobynumber", "--rounds 20", &[], &command);
    assert_eq!(tried.verdict, Change::Faster);
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
