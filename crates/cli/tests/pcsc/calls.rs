//! What is measured of each call.

use tapstone_measure::units::Nanos;
use tapstone_record::{Outcome, Record, ShareKind, StoppedBy, TargetKind};

use crate::support::{Card, Pcscd, Slot, Tapstone};

fn pcsc() -> Tapstone {
    Tapstone::at(Slot::First, "pcsc")
}

/// The calls that take nothing away from other programs, in the order in which a program makes
/// them, and whether a rate means something: nothing but the call is made then.
const HARMLESS: [(&str, bool); 17] = [
    ("establish", false),
    ("is_valid", true),
    ("list_readers", true),
    ("get_status_unaware", true),
    ("get_status_change", true),
    ("connect_shared", false),
    ("connect_exclusive", false),
    ("connect_direct", false),
    ("status", true),
    ("begin_transaction", false),
    ("end_transaction", false),
    ("transmit", true),
    ("control", true),
    ("cancel", true),
    ("reconnect", true),
    ("disconnect_leave", false),
    ("release", false),
];

#[test]
fn calls_alone() {
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::bench(&pcscd);
    every_harmless_call_has_a_row("--count 60");
    every_harmless_call_has_a_row("--seconds 0.1 --warm-up 0.05");
    the_historic_loop();
    two_questions_about_the_state();
    every_disposition();
}

fn every_harmless_call_has_a_row(load: &str) {
    let outcome = pcsc().args(load).run().exits(0);
    let record = outcome.record();
    about_the_virtual_card(&record);
    let expected: Vec<_> = HARMLESS.iter().map(|(name, _)| format!("pcsc.{name}")).collect();
    let operations: Vec<_> = record.results.iter().map(|row| row.operation.as_str()).collect();
    assert_eq!(operations, expected);
    for (row, has_rate) in record.results.iter().zip(HARMLESS.map(|(_, has_rate)| has_rate)) {
        let name = &row.operation;
        // vpcd has nothing behind SCardControl.
        if name == "pcsc.control" && row.status.outcome == Outcome::Unsupported {
            assert_eq!((row.completed, &row.latency_ns), (0, &None));
            continue;
        }
        assert_eq!(row.status.outcome, Outcome::Ok, "{name}: {:?}", row.status);
        assert!(row.failed.is_empty(), "{name}");
        let latency = row.latency_ns.as_ref().unwrap();
        assert!(latency.min > Nanos::ZERO && latency.min <= latency.max, "{name}: {latency:?}");
        assert!(latency.mean.is_some() && row.histogram.is_some(), "{name}");
        assert_eq!(row.throughput.is_some(), has_rate, "{name}");
        if load.starts_with("--count") {
            assert_eq!((row.completed, row.latencies_ns.len()), (60, 60), "{name}");
            assert_eq!(row.stopped_by, Some(StoppedBy::Count), "{name}");
            assert!(row.warm_up.is_none(), "{name}: the first call counts");
        } else {
            assert!(row.completed > 0 && row.warm_up.is_some(), "{name}");
            assert_eq!(row.stopped_by, Some(StoppedBy::Time), "{name}");
        }
    }
}

fn about_the_virtual_card(record: &Record) {
    assert_eq!(record.target.kind, TargetKind::Pcsc);
    assert_eq!(record.target.emulated.as_ref().unwrap().profile, "plain");
    assert_eq!(record.target.reader.as_ref().unwrap().name, Slot::First.reader());
    let card = record.target.card.as_ref().unwrap();
    assert_eq!((card.atr.as_str(), card.protocol.as_deref()), ("3B800181", Some("T=1")));
}

/// 100 pairs of begin and end, with only the end timed.
fn the_historic_loop() {
    let outcome = pcsc().args("--op end_transaction --count 100").run().exits(0);
    let row = outcome.row();
    assert_eq!((row.completed, row.latencies_ns.len()), (100, 100));
    let sum: u64 = row.latencies_ns.iter().map(|value| value.0).sum();
    let mean = row.latency_ns.unwrap().mean.unwrap();
    assert!((mean.estimate / (sum as f64 / 100.0) - 1.0).abs() < 1e-9, "{mean:?}");
    assert!(mean.low < mean.estimate && mean.estimate < mean.high, "{mean:?}");
    let said = &outcome.stdout;
    assert!(said.contains("operation 1 to 100, in order"), "{said}");
    let braille = |c: char| ('\u{2801}'..='\u{28FF}').contains(&c);
    assert!(said.chars().any(braille), "no plot: {said}");
    let first = said.lines().find(|line| line.trim_start().starts_with("first ")).unwrap();
    assert_eq!(first.split(',').count(), 8, "{first}");
    assert!(said.contains("emulated: plain"), "{said}");
}

/// Who knows nothing is answered at once. Who asks whether something has changed waits, on a
/// client library with the busy wait, for at least a millisecond: never shorter than the other.
fn two_questions_about_the_state() {
    let median = |operation: &str| {
        let row = pcsc().args("--count 40 --op").arg(operation).run().exits(0).row();
        assert_eq!((row.completed, row.failed.len()), (40, 0), "{operation}");
        let mut values = row.latencies_ns.clone();
        values.sort_unstable();
        values[20]
    };
    let unaware = median("get_status_unaware");
    let change = median("get_status_change");
    println!("unaware {unaware}, change {change}");
    // pcsc-lite to at least 2.3 looks, sleeps for a millisecond, and looks again.
    assert!(change >= Nanos(1_000_000), "it does not ask whether anything changed: {change}");
    assert!(unaware < change, "{unaware} {change}");
}

fn every_disposition() {
    for (disposition, resets) in
        [("leave", false), ("reset", true), ("unpower", true), ("eject", true)]
    {
        let operation = format!("disconnect_{disposition}");
        let outcome = pcsc().args("--count 5 --op").arg(&operation).run().exits(0);
        let row = outcome.row();
        assert_eq!((row.operation, row.completed), (format!("pcsc.{operation}"), 5));
        assert_eq!(outcome.stderr.contains("the card is reset"), resets, "{}", outcome.stderr);
    }
}

#[test]
fn calls_in_contention() {
    let Some(pcscd) = Pcscd::start() else { return };
    let _card = Card::bench(&pcscd);
    let load = "--op begin_transaction --processes 3 --hold 2ms --seconds 3";
    let outcome = pcsc().args(load).run().exits(0);
    let row = outcome.row();
    assert_eq!(row.concurrency.processes, 3);
    let names: Vec<_> = row.shares.iter().map(|share| share.name.as_str()).collect();
    assert_eq!(names, ["process 1", "process 2", "process 3"]);
    assert!(row.shares.iter().all(|share| share.kind == ShareKind::Process));
    let completed: Vec<_> = row.shares.iter().map(|share| share.completed).collect();
    assert_eq!(completed.iter().sum::<u64>(), row.completed, "{completed:?}");
    // Who has the card holds it for 2 ms, and so long at least the others wait: not one of three
    // can have done more than the time allows.
    let window = row.window.unwrap();
    let most = (window.end_ns - window.start_ns).0 / 2_000_000 + 3;
    assert!(row.completed > 0 && row.completed <= most, "{} in {window:?}", row.completed);
    let longest = row.shares.iter().filter_map(|share| share.longest_ns).max().unwrap();
    assert!(longest >= Nanos::from_millis(2), "{longest:?}");
    assert_eq!(row.latency_ns.unwrap().max, longest);
}

#[test]
fn operations_are_listed_without_pcscd() {
    let listed = Tapstone::new("pcsc").args("--list-operations").without_record().run().exits(0);
    for (name, _) in HARMLESS {
        let named = |line: &str| line.split_whitespace().next() == Some(name);
        assert!(listed.stdout.lines().any(named), "{name}: {}", listed.stdout);
    }
}
