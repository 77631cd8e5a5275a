//! Cases made of operations whose times are given.

use super::*;
use crate::protocol::Word;

fn sample(lane: u16, start: u64, latency: u64) -> Sample {
    let start = Nanos(start);
    let latency = Nanos(latency);
    let exchanges = Vec::new();
    let output = Vec::new();
    Sample { lane, number: 0, start, latency, fault: None, exchanges, output }
}

fn failed(start: u64, latency: u64, status: u16) -> Sample {
    let fault = Fault::Status { step: "STEP".to_owned(), status: Word(status) };
    Sample { fault: Some(fault), ..sample(0, start, latency) }
}

fn ran(samples: Vec<Vec<Sample>>) -> CardRun {
    let count = samples.len();
    CardRun {
        samples,
        ready: vec![None; count],
        done: vec![None; count],
        lost: None,
        interrupted: false,
        precise: false,
    }
}

#[test]
fn cases_are_told_apart_and_those_without_operations_are_not_there() {
    let of = vec![sample(3, 100, 10), sample(0, 200, 20), sample(3, 300, 30)];
    let cases = lanes(&ran(vec![of]));
    let seen: Vec<_> = cases.iter().map(|case| (case.lane, case.total.completed)).collect();
    assert_eq!(seen, [(0, 1), (3, 2)]);
    assert_eq!(cases[1].window, (Nanos(100), Nanos(330)));
}

#[test]
fn the_window_reaches_from_the_first_start_to_the_last_end_of_all_workers() {
    let cases = lanes(&ran(vec![
        vec![sample(0, 1_000, 500), sample(0, 2_000, 500)],
        // Waits for the other one from the start, and ends last.
        vec![sample(0, 1_000, 9_000)],
    ]));
    let [case] = &cases[..] else { panic!("{cases:?}") };
    assert_eq!(case.window, (Nanos(1_000), Nanos(10_000)));
    assert_eq!(case.total.completed, 3);
    let mean =
        |completed, mean_ns, longest| WorkerPart { completed, mean_ns, longest: Nanos(longest) };
    assert_eq!(case.parts, [mean(2, 500.0, 500), mean(1, 9_000.0, 9_000)]);
    let of_series: u64 = case.series.slices().iter().map(|slice| slice.completed).sum();
    assert_eq!(of_series, 3, "what ends with the window is in it");
}

#[test]
fn failures_are_in_no_figure_and_counted_by_code() {
    let cases = lanes(&ran(vec![vec![
        sample(0, 0, 100),
        failed(1_000, 5_000, 0x6F00),
        failed(7_000, 1, 0x6982),
        failed(8_000, 1, 0x6F00),
        sample(0, 9_000, 100),
    ]]));
    let case = &cases[0];
    assert_eq!((case.total.completed, case.total.failed), (2, 3));
    assert_eq!(case.failed, BTreeMap::from([("6982".into(), 1), ("6F00".into(), 2)]));
    assert_eq!(case.last_fault.as_ref().unwrap().code(), "6F00");
    assert_eq!(case.parts[0], WorkerPart { completed: 2, mean_ns: 100.0, longest: Nanos(100) });
}

#[test]
fn the_mean_is_that_of_the_operations() {
    let samples = (0..1_000).map(|n| sample(0, n * 1_000, 400 + n % 7)).collect();
    let cases = lanes(&ran(vec![samples]));
    let expected = (0..1_000).map(|n| 400 + n % 7).sum::<u64>() as f64 / 1_000.0;
    let mean = cases[0].summary.mean.unwrap();
    assert!((mean.estimate - expected).abs() < 1e-6, "{mean:?}");
    assert!(mean.low <= expected && expected <= mean.high, "{mean:?}");
}

#[test]
fn the_spread_is_that_of_operations_however_they_lie_in_time() {
    // Another process had the card for a minute before the second one.
    let first = sample(0, 0, 5_000_000);
    let later = (0..81).map(|n| {
        sample(0, 60_000_000_000 + n * 40_000_000, 4_400_000 + (n * 37 % 81) * 25_600_000 / 80)
    });
    let rows = lanes(&ran(vec![[first].into_iter().chain(later).collect()]));
    let mean = rows[0].summary.mean.unwrap();
    assert!(mean.high - mean.low > 1_600_000.0, "{mean:?}");
    assert!(rows[0].summary.reliable, "{:?}", rows[0].summary);
    assert!(!rows[0].rate_reliable, "a rate over that window means nothing");
}
