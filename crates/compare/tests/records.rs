//! Two records against one another: which figures meet, and what is said of them.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

use serde_json::{Value, json};
use tapstone_compare::{
    CompareError, NamedRecord, compare_records, compare_with_reference, side_by_side,
};
use tapstone_measure::compare::Percent;
use tapstone_record::{Change, Comparison, Judgement, Quantity, Record};
use tapstone_reference::{load, names};

/// A case in a closed loop of one worker, with a rate and its interval of this part to both sides.
fn case(operation: &str, rate: f64, part: f64) -> Value {
    json!({
        "operation": operation, "status": {"outcome": "ok"},
        "concurrency": {"threads": 1, "processes": 1, "hosts": 1}, "load": {"kind": "closed"},
        "completed": 1000,
        "throughput": {
            "estimate": rate, "low": rate * (1.0 - part), "high": rate * (1.0 + part),
            "unit": "operations/s",
        },
        "latency_ns": {
            "mean": {
                "estimate": 1e9 / rate,
                "low": 1e9 / rate * (1.0 - part), "high": 1e9 / rate * (1.0 + part),
            },
            "min": 1, "max": 1_000_000_000,
        },
    })
}

/// The same with some fields in another way.
fn with(mut case: Value, fields: Value) -> Value {
    case.as_object_mut().unwrap().append(&mut fields.as_object().unwrap().clone());
    case
}

fn record(kind: &str, cases: &[Value]) -> Record {
    let record = json!({
        "schema": "tapstone.record/1", "tool": {"name": "tapstone", "version": "0.1.0"},
        "command": [], "started_at": "2026-01-15T09:30:00Z", "environment": {"load": {}},
        "target": {"kind": kind}, "results": cases,
    });
    Record::from_json(&record.to_string(), "a test").unwrap()
}

fn named<'a>(record: &'a Record, path: &'a str) -> NamedRecord<'a> {
    NamedRecord { record, path, sha256: "00" }
}

fn compared(
    baseline: &Record,
    candidate: &Record,
    fail_above: Option<f64>,
) -> Result<Comparison, CompareError> {
    let baseline = named(baseline, "old.json");
    compare_records(baseline, named(candidate, "new.json"), fail_above.map(Percent))
}

/// A token whose rate was 100/s against one with this rate, both within 1 %.
fn token(rate: f64, fail_above: Option<f64>) -> Comparison {
    let baseline = record("token", &[case("rsa2048.sign", 100.0, 0.01)]);
    let candidate = record("token", &[case("rsa2048.sign", rate, 0.01)]);
    compared(&baseline, &candidate, fail_above).unwrap()
}

#[test]
fn tokens_are_compared_by_their_rate() {
    let faster = token(120.0, None);
    let [row] = &faster.rows[..] else { panic!("{faster:?}") };
    assert_eq!((row.quantity, row.verdict), (Quantity::Throughput, Change::Faster));
    assert_eq!((row.baseline.estimate, row.candidate.estimate), (100.0, 120.0));
    assert!((row.ratio.estimate - 1.2).abs() < 1e-12, "{:?}", row.ratio);
    assert_eq!((row.threshold, row.more_samples, faster.threshold), (None, None, None));
    assert_eq!(token(90.0, None).rows[0].verdict, Change::Slower);
    let open = token(100.5, None);
    assert_eq!(open.rows[0].verdict, Change::Inconclusive);
    // The interval reaches 1.42 % down, and the estimate is 0.5 % above 1: some eight times the
    // samples would do.
    assert!((6_000..9_000).contains(&open.rows[0].more_samples.unwrap()), "{open:?}");
}

#[test]
fn cards_and_programs_are_compared_by_their_time() {
    for kind in ["card", "pcsc", "command"] {
        let baseline = record(kind, &[case("x", 100.0, 0.01)]);
        let comparison = compared(&baseline, &record(kind, &[case("x", 50.0, 0.01)]), None);
        let row = &comparison.unwrap().rows[0];
        assert_eq!((row.quantity, row.verdict), (Quantity::Latency, Change::Slower), "{kind}");
        assert!((row.ratio.estimate - 2.0).abs() < 1e-12, "{:?}", row.ratio);
    }
}

#[test]
fn an_open_loop_s_rate_says_nothing_of_the_device() {
    let open = |rate| {
        let load = json!({"load": {"kind": "open", "rate_per_second": 10.0}});
        record("token", &[with(case("x", rate, 0.01), load)])
    };
    let comparison = compared(&open(100.0), &open(50.0), None).unwrap();
    assert_eq!(comparison.rows[0].quantity, Quantity::Latency);
    // Another rate, or a closed loop, is other work.
    let closed = record("token", &[case("x", 100.0, 0.01)]);
    assert!(compared(&open(100.0), &closed, None).is_err());
}

#[test]
fn a_threshold_is_exceeded_by_one_row() {
    let judged = |rate| {
        let comparison = token(rate, Some(5.0));
        let threshold = comparison.threshold.unwrap();
        assert_eq!(threshold.fail_above.0, 0.05);
        (comparison.rows[0].threshold.unwrap(), threshold.exceeded)
    };
    assert_eq!(judged(100.0), (Judgement::Held, false));
    assert_eq!(judged(90.0), (Judgement::Exceeded, true));
    assert_eq!(judged(95.5), (Judgement::Undecided, false));
    // What is decided needs no more samples, whatever its direction.
    assert_eq!(token(100.0, Some(5.0)).rows[0].more_samples, None);
    assert!(token(95.5, Some(5.0)).rows[0].more_samples.is_some());
}

#[test]
fn an_interval_that_is_too_narrow_decides_nothing() {
    let interval =
        json!({"interval": {"n": 1000, "method": "m", "level": 0.95, "reliable": false}});
    let baseline = record("token", &[case("x", 100.0, 0.01)]);
    let candidate = record("token", &[with(case("x", 50.0, 0.01), interval)]);
    for (one, other) in [(&baseline, &candidate), (&candidate, &baseline)] {
        let comparison = compared(one, other, Some(5.0)).unwrap();
        let row = &comparison.rows[0];
        assert_eq!(row.verdict, Change::Inconclusive);
        assert_eq!(row.threshold, Some(Judgement::Undecided));
        assert_eq!(row.more_samples, None);
        let doubts = comparison.warnings.iter().filter(|it| it.starts_with("x: the intervals"));
        assert_eq!(doubts.count(), 1, "{:?}", comparison.warnings);
    }
}

#[test]
fn what_has_no_counterpart_is_named_once() {
    let baseline =
        record("token", &[case("both", 1.0, 0.1), case("old", 1.0, 0.1), case("old", 2.0, 0.1)]);
    let failed = with(case("failed", 1.0, 0.1), json!({"status": {"outcome": "failed"}}));
    let wrong =
        json!({"verification": {"eligible": 9, "checked": 9, "wrong": 1, "by": "software"}});
    let wrong = with(case("wrong", 1.0, 0.1), wrong);
    let candidate = [case("new", 1.0, 0.1), case("both", 1.0, 0.1), failed, wrong];
    let candidate = record("token", &candidate);
    let comparison = compared(&baseline, &candidate, None).unwrap();
    assert_eq!(comparison.rows.len(), 1);
    assert_eq!(comparison.only_in_baseline, ["old"]);
    assert_eq!(comparison.only_in_candidate, ["new"]);
    let nothing = record("token", &[case("other", 1.0, 0.1)]);
    let error = compared(&baseline, &nothing, None).unwrap_err().to_string();
    assert!(error.contains("\nhint: "), "{error}");
}

#[test]
fn messages_of_different_length_are_different_work() {
    let of_length =
        |bytes: u64| record("token", &[with(case("x", 1.0, 0.1), json!({"message_bytes": bytes}))]);
    assert!(compared(&of_length(1), &of_length(2), None).is_err());
    assert_eq!(
        compared(&of_length(2), &of_length(2), None).unwrap().rows[0].message_bytes,
        Some(2)
    );
    let untold = record("token", &[case("x", 1.0, 0.1)]);
    for (one, other) in [(&untold, &of_length(2)), (&of_length(2), &untold)] {
        assert_eq!(compared(one, other, None).unwrap().rows[0].message_bytes, None);
    }
}

#[test]
fn devices_side_by_side_are_slower_than_the_fastest() {
    let runs = [100.0, 50.0, 80.0].map(|rate| record("token", &[case("x", rate, 0.01)]));
    let other = record("token", &[case("y", 1.0, 0.01)]);
    let records =
        [named(&runs[0], "a"), named(&runs[1], "b"), named(&runs[2], "c"), named(&other, "d")];
    let table = side_by_side(&records).unwrap();
    assert_eq!(table.sides.len(), 4);
    let [row] = &table.rows[..] else { panic!("{:?}", table.rows) };
    let excess: Vec<_> = row.excess.iter().map(|part| part.map(|part| part.0)).collect();
    assert_eq!(excess, [Some(0.0), Some(1.0), Some(0.25), None]);
    assert_eq!(row.quantity, Quantity::Throughput);
    let cards = [100.0, 50.0].map(|rate| record("card", &[case("x", rate, 0.01)]));
    let row = &side_by_side(&[named(&cards[0], "a"), named(&cards[1], "b")]).unwrap().rows[0];
    assert_eq!(row.quantity, Quantity::Latency);
    assert_eq!(row.excess[1].unwrap().0, 1.0);
    let error = side_by_side(&[named(&runs[0], "a"), named(&other, "d")]).unwrap_err();
    assert!(matches!(error, CompareError::NothingShared { .. }), "{error}");
}

#[test]
fn items_of_a_reference_are_chosen_by_a_part_of_their_name() {
    let references = names().into_iter().map(|name| load(name).unwrap());
    let reference = references.into_iter().find(|it| !it.items().is_empty()).unwrap();
    let items = reference.items();
    let figure = &items[0].figures[0];
    let candidate = record("card", &[case(&figure.operation, 10.0, 0.01)]);
    let compared = |only: Option<&str>| {
        compare_with_reference(&reference, only, named(&candidate, "new.json"), None)
    };
    let all = compared(None).unwrap();
    assert!(all.rows.iter().all(|row| row.operation == figure.operation), "{:?}", all.rows);
    let only = compared(Some(&items[0].name.to_uppercase())).unwrap();
    assert!(only.rows.iter().any(|row| row.item.as_ref() == Some(&items[0].name)));
    let error = compared(Some("no such item")).unwrap_err();
    assert!(matches!(error, CompareError::NoSuchItem { .. }), "{error}");
}
