//! Times made of known parts, taken apart again.

use super::*;
use crate::protocol::{Exchange, Ready};
use crate::suite::plan::PlannedCase;

/// What the made-up card takes, in nanoseconds.
const FIXED: f64 = 5_000_000.0;
const BYTE: f64 = 20_000.0;
const SET_UP: f64 = 300_000.0;
const OPERATION: f64 = 700_000.0;
const OPERATION_BYTE: f64 = 2_500.0;

fn points(bytes: &[u32], set_ups: &[u16], operations: &[u16]) -> Vec<Point> {
    let mut points = Vec::new();
    for &bytes in bytes {
        for &set_ups in set_ups {
            points.extend(operations.iter().map(|&operations| Point {
                bytes,
                set_ups,
                operations,
            }));
        }
    }
    points
}

fn plan(points: &[Point]) -> Plan {
    let case = |point: &Point| PlannedCase {
        test: "card.test".to_owned(),
        point: *point,
        ..PlannedCase::default()
    };
    Plan { cases: points.iter().map(case).collect(), ..Plan::default() }
}

/// One command of five bytes with its data, one status word, and what the card computes; `noise`
/// by round and case.
fn ran(points: &[Point], rounds: u64, noise: impl Fn(u64, u64) -> f64) -> CardRun {
    let lanes = points.len() as u64;
    let sample = |number: u64| {
        let round = number / lanes;
        let lane = number % lanes;
        let point = points[lane as usize];
        let sent = 5 + point.bytes;
        let received = 2;
        let operations = f64::from(point.operations);
        let time = FIXED
            + f64::from(sent + received) * BYTE
            + f64::from(point.set_ups) * SET_UP
            + operations * OPERATION
            + operations * f64::from(point.bytes) * OPERATION_BYTE
            + noise(round, lane);
        let latency = Nanos(time as u64);
        Sample {
            lane: lane as u16,
            number,
            start: Nanos(number),
            latency,
            fault: None,
            exchanges: vec![Exchange { step: 0, time: latency, sent, received, fetched: false }],
            output: Vec::new(),
        }
    };
    let ready = Ready { lanes: points.len() as u16, ..Ready::default() };
    CardRun {
        samples: vec![(0..rounds * lanes).map(sample).collect()],
        ready: vec![Some(ready)],
        done: vec![None],
        lost: None,
        interrupted: false,
        precise: false,
    }
}

#[track_caller]
fn holds(part: Option<&record::Estimate>, known: f64) {
    let part = part.expect("the cases differ in it");
    assert!(part.low <= known && known <= part.high, "{known} in {part:?}");
    assert!((part.estimate / known - 1.0).abs() < 0.02, "{known} for {part:?}");
}

/// A few microseconds one way or the other, without any pattern.
fn jitter(round: u64, lane: u64) -> f64 {
    let mixed = (round * 31 + lane * 17 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    (mixed % 8_001) as f64 - 4_000.0
}

#[test]
fn known_costs_come_back() {
    let points = points(&[16, 128, 240], &[1, 4], &[1, 4]);
    let all = costs(&ran(&points, 20, jitter), &plan(&points));
    let [cost] = &all[..] else { panic!("{all:?}") };
    assert_eq!((cost.operation.as_str(), cost.commands, cost.n), ("card.test", 1, 20 * 12));
    holds(Some(&cost.fixed_ns), FIXED);
    holds(cost.byte_ns.as_ref(), BYTE);
    holds(cost.set_up_ns.as_ref(), SET_UP);
    holds(cost.operation_ns.as_ref(), OPERATION);
    holds(cost.operation_byte_ns.as_ref(), OPERATION_BYTE);
    assert!(cost.worst_residual.0 < 0.001, "{:?}", cost.worst_residual);
}

#[test]
fn what_does_not_vary_is_in_the_fixed_part() {
    let points = points(&[100], &[1, 3], &[1, 3]);
    let cost = costs(&ran(&points, 20, jitter), &plan(&points)).remove(0);
    assert!(cost.byte_ns.is_none() && cost.operation_byte_ns.is_none(), "{cost:?}");
    holds(cost.set_up_ns.as_ref(), SET_UP);
    holds(cost.operation_ns.as_ref(), OPERATION + 100.0 * OPERATION_BYTE);
    holds(Some(&cost.fixed_ns), FIXED + 107.0 * BYTE);
}

#[test]
fn one_case_tells_nothing_apart() {
    let points = points(&[100], &[1], &[1]);
    assert!(costs(&ran(&points, 20, jitter), &plan(&points)).is_empty());
}

#[test]
fn a_round_in_which_a_case_failed_is_left_out() {
    let points = points(&[16, 128, 240], &[1], &[1, 4]);
    let mut ran = ran(&points, 10, jitter);
    // The failed one took absurdly long.
    let sample = &mut ran.samples[0][points.len() * 4 + 2];
    sample.latency = Nanos(1 << 40);
    sample.fault = Some(crate::protocol::Fault::Interrupted);
    let cost = costs(&ran, &plan(&points)).remove(0);
    assert_eq!(cost.n, 9 * 6);
    holds(cost.byte_ns.as_ref(), BYTE);
}

#[test]
fn a_time_that_is_no_sum_of_parts_shows_in_the_residual() {
    let points = points(&[16, 128, 240], &[1, 4], &[1, 4]);
    // Every command of 128 bytes takes twice as long.
    let bent = |_, lane: u64| if points[lane as usize].bytes == 128 { FIXED } else { 0.0 };
    let cost = costs(&ran(&points, 10, bent), &plan(&points)).remove(0);
    assert!(cost.worst_residual.0 > 0.1, "{:?}", cost.worst_residual);
}
