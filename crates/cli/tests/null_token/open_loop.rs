//! Latency under a schedule counts from the intended start.

use tapstone_record::{CaseResult, LoadKind};
use tapstone_testing::{figures, hold, skip, with_witnesses};

use crate::support::Tapstone;

/// A service of 0.2 ms, and 50 ms more every 500th time. At 1,000/s some 62 requests of those 500
/// wait behind the long one, the first of them almost 50 ms: p99, the sixth longest wait of 500,
/// is some 46 ms.
const STALLING: [(&str, &str); 2] = [("SERVICE", "200us"), ("STALL", "50ms/500")];

const TRIES: usize = 5;

fn measure(load: &str) -> CaseResult {
    let run = Tapstone::on(&STALLING).args("--op rsa1024.sign --no-verify");
    run.args(load).quietly().run().exits(0).row()
}

/// Of the time, sleepers may be woken late for so much: p99 is about a hundredth.
const LATE: f64 = 0.005;

/// A case whose p99, in milliseconds, is in the range. Whatever else the machine does adds to it,
/// and only ever for a while: a later try counts as well. `None`, which has been said then: the
/// machine stood still every time.
fn with_p99_in(range: std::ops::Range<f64>, load: &str) -> Option<CaseResult> {
    let mut judged = Vec::new();
    for _ in 0..TRIES {
        let (row, late) = with_witnesses(|| measure(load));
        let p99_ms = row.latency_ns.as_ref().unwrap().p99.map(|p99| p99.estimate / 1e6);
        eprintln!("{load}: p99 {p99_ms:?} ms, sleepers woke {:.3} % late", 100.0 * late);
        if p99_ms.is_some_and(|p99_ms| range.contains(&p99_ms)) {
            return Some(row);
        }
        if late <= LATE {
            judged.push(p99_ms);
        }
    }
    assert!(judged.is_empty(), "{load}: p99 {judged:?} ms, expected {range:?}");
    skip("a machine that does not stand still");
    None
}

#[test]
fn a_stall_is_charged_to_all_that_it_holds_up() {
    let load = "--rate 1000 --seconds 20";
    let Some(row) = with_p99_in(43.0..52.0, load) else { return };
    assert_eq!(row.load.kind, LoadKind::Open);
    assert_eq!(row.load.rate_per_second.unwrap().0, 1000.0);
    assert_eq!(row.offered_rate.unwrap().0, 1000.0);
    let achieved = row.achieved_rate.unwrap().0;
    assert!((990.0..=1010.0).contains(&achieved), "{achieved}");
    assert!(row.scheduling_delay_ns.is_some());
    assert_eq!(row.busy_share, None, "not a figure of an open loop");
}

#[test]
fn a_closed_loop_does_not_see_it() {
    with_p99_in(0.2..0.3, "--threads 1 --seconds 10");
}

fn at_random() -> CaseResult {
    let run = Tapstone::on(&[("SERVICE", "200us")]).args("--op rsa1024.sign --no-verify");
    let run = run.args("--rate 1000 --arrivals poisson --threads 2 --seconds 2");
    run.quietly().run().exits(0).row()
}

#[test]
fn requests_may_arrive_independently_of_each_other() {
    figures(|| {
        let row = at_random();
        assert_eq!(row.offered_rate.unwrap().0, 1000.0);
        // Of 2,000 arrivals at random: five standard deviations are 224.
        hold((1776..=2224).contains(&row.completed), row.completed)
    });
}

#[test]
fn chance_is_not_a_device_that_cannot_keep_up() {
    // A number of arrivals varies by its root, here 2 %: nobody waits at the end because of that.
    figures(|| {
        let row = at_random();
        let blamed = row.warnings.iter().any(|text| text.contains("still waiting at the end"));
        hold(!blamed, format_args!("{} of 2,000: {:?}", row.completed, row.warnings))
    });
}

#[test]
fn a_rate_that_is_not_reached_is_told() {
    let run = Tapstone::on(&[("SERVICE", "2ms"), ("WAIT", "sleep")]);
    let outcome = run.args("--op rsa1024.sign --no-verify --rate 5000 --seconds 1").run();
    let row = outcome.exits(0).row();
    assert!(row.achieved_rate.unwrap().0 < 500.0, "{:?}", row.achieved_rate);
    let told = row.warnings.iter().any(|text| text.contains("of the offered"));
    assert!(told, "{:?}", row.warnings);
}
