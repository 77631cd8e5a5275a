//! Any record comes back from its text as it was, to the last bit, and satisfies the schema.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record::*;

use crate::complaints;

fn number() -> impl Strategy<Value = f64> {
    use prop::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE
}

fn nanos() -> impl Strategy<Value = Nanos> {
    any::<u64>().prop_map(Nanos)
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn estimate() -> impl Strategy<Value = Estimate> {
    (number(), number(), number()).prop_map(|(estimate, low, high)| Estimate {
        estimate,
        low,
        high,
    })
}

prop_compose! {
    fn latency()(
        (mean, p50, p90) in (of(estimate()), of(estimate()), of(estimate())),
        (p95, p99, p99_9) in (of(estimate()), of(estimate()), of(estimate())),
        (min, max) in (nanos(), nanos()),
    ) -> Latency {
        Latency { mean, p50, p90, p95, p99, p99_9, min, max }
    }
}

prop_compose! {
    fn series_point()(
        (start_ns, end_ns) in (nanos(), of(nanos())),
        (completed, failed) in any::<(u64, u64)>(),
        (p50_ns, p99_ns) in (of(nanos()), of(nanos())),
    ) -> SeriesPoint {
        SeriesPoint { start_ns, end_ns, completed, failed, p50_ns, p99_ns }
    }
}

fn status() -> impl Strategy<Value = Status> {
    let outcome = prop::sample::select(vec![
        Outcome::Ok,
        Outcome::Unsupported,
        Outcome::Partial,
        Outcome::Failed,
    ]);
    (outcome, of(text()), of(text())).prop_map(|(outcome, step, code)| Status {
        outcome,
        step,
        code,
    })
}

fn concurrency() -> impl Strategy<Value = Concurrency> {
    any::<(u32, u32, u32)>().prop_map(|(threads, processes, hosts)| Concurrency {
        threads,
        processes,
        hosts,
    })
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![Just(Load::CLOSED), number().prop_map(|rate| Load::open(PerSecond(rate)))]
}

fn key() -> impl Strategy<Value = Key> {
    let attributes = any::<(Option<bool>, Option<bool>, Option<bool>, u32)>();
    (attributes, of(text())).prop_map(|((token, sensitive, extractable, count), label)| Key {
        token,
        sensitive,
        extractable,
        count,
        label,
    })
}

prop_compose! {
    fn row()(
        (operation, status, concurrency, load) in (text(), status(), concurrency(), load()),
        (key, message_bytes, seed) in (of(key()), any::<Option<u64>>(), any::<Option<u64>>()),
        (completed, failed) in (any::<u64>(), prop::collection::btree_map(text(), any::<u64>(), 0..4)),
        throughput in of(estimate()),
        (latency_ns, busy, offered) in (of(latency()), of(number()), of(number())),
        (series, warnings) in (vec(series_point(), 0..5), vec(text(), 0..3)),
        first_ns in vec(nanos(), 0..=16),
    ) -> CaseResult {
        let mut row = CaseResult::new(operation, status, concurrency, load);
        row.key = key;
        row.message_bytes = message_bytes;
        row.seed = seed;
        row.completed = completed;
        row.failed = BTreeMap::from_iter(failed);
        row.throughput = throughput.map(|rate| Throughput::operations(rate, RateBasis::FirstToLast));
        row.latency_ns = latency_ns;
        row.busy_share = busy.map(Fraction);
        row.offered_rate = offered.map(PerSecond);
        row.series = series;
        row.warnings = warnings;
        row.warm_up = Some(WarmUp {
            operations: completed, seconds: Seconds(0.1), first_ns, ratio_to_median: busy,
        });
        row
    }
}

prop_compose! {
    fn call_path()(
        calls in any::<u64>(),
        sites in vec((text(), of(text()), of(text()), any::<u64>()), 0..4),
    ) -> CallPath {
        let site =
            |(module, function, source, offset)| CallSite { module, function, source, offset };
        CallPath { calls, sites: sites.into_iter().map(site).collect() }
    }
}

prop_compose! {
    fn finding()(
        (kind, place, layer) in (finding_kind(), text(), text()),
        (per_operation, count, time_ns) in (number(), any::<u64>(), nanos()),
        (evidence, saving) in (vec(text(), 0..3), of((number(), number()))),
        (trial, advice) in (of(text()), of(text())),
        callers in vec(call_path(), 0..3),
    ) -> Finding {
        let saving = saving.map(|(low, high)| Range { low, high });
        let share = Fraction(per_operation);
        Finding {
            kind, place, layer, per_operation, count, time_ns, share, evidence, saving, trial, advice,
            callers,
        }
    }
}

fn finding_kind() -> impl Strategy<Value = FindingKind> {
    prop_oneof![
        Just(FindingKind::BusyWait),
        Just(FindingKind::RepeatedLookup),
        "[a-z]{1,8}-from-the-future".prop_map(FindingKind::Other),
    ]
}

prop_compose! {
    fn record()(
        (version, command, cpu) in (text(), vec(text(), 0..4), text()),
        (cores, load, cost_ns, step_ns) in (of(any::<u32>()), of(number()), number(), nanos()),
        second in -62_135_596_800i64..253_402_207_200,
        (results, findings) in (vec(row(), 0..4), vec(finding(), 0..3)),
    ) -> Record {
        let environment = Environment {
            cpu: Some(cpu),
            cores,
            kernel: Some("Linux".into()),
            load: SystemLoad { average_1m: load, ..SystemLoad::default() },
            clock: load.map(|_| ClockPrecision { step_ns, cost_ns }),
            os: None,
            memory_bytes: None,
            cgroup_quota_cores: load,
            governor: None,
            virtualisation: None,
        };
        let tool = Tool { name: "tapstone".into(), version };
        let started_at = Timestamp::from_second(second).unwrap();
        let target = Target::new(TargetKind::Token);
        let mut record = Record::new(tool, started_at, environment, target);
        record.command = command;
        record.results = results;
        record.findings = findings;
        record
    }
}

proptest! {
    #[test]
    fn any_record_comes_back_as_it_was(record in record()) {
        let text = record.to_json().unwrap();
        prop_assert_eq!(complaints(&serde_json::from_str(&text).unwrap()), [""; 0]);
        prop_assert_eq!(Record::from_json(&text, "-").unwrap(), record);
    }

    #[test]
    fn any_text_is_refused_without_panic(text in ".{0,200}") {
        prop_assert!(Record::from_json(&text, "-").is_err());
    }
}
