//! Whatever a record holds, it can be shown: without panic, within the width, without acting.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record::*;
use tapstone_report::html;
use tapstone_report::terminal::{Style, render};
use unicode_width::UnicodeWidthStr;

use crate::{support, trace};

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..1e9, Just(0.0), Just(f64::NAN), Just(f64::INFINITY)].boxed()
}

fn nanos() -> impl Strategy<Value = Nanos> {
    prop_oneof![any::<u64>(), 0u64..10_000_000_000].prop_map(Nanos)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(any::<char>(), 0..30).prop_map(String::from_iter),
        "[a-z0-9.-]{0,30}",
        Just("mix".to_owned()),
    ]
    .boxed()
}

fn estimate() -> impl Strategy<Value = Estimate> {
    (number(), number(), number()).prop_map(|(estimate, low, high)| Estimate {
        estimate,
        low,
        high,
    })
}

fn concurrency() -> impl Strategy<Value = Concurrency> {
    prop_oneof![
        Just(support::FOUR),
        any::<(u32, u32, u32)>().prop_map(|(threads, processes, hosts)| Concurrency {
            threads,
            processes,
            hosts
        })
    ]
}

fn status() -> impl Strategy<Value = Status> {
    use Outcome::{Failed, Ok, Partial, Unsupported};
    let outcome = prop::sample::select(vec![Ok, Unsupported, Partial, Failed]);
    (outcome, of(text()), of(text())).prop_map(|(outcome, step, code)| Status {
        outcome,
        step,
        code,
    })
}

prop_compose! {
    fn latency()(
        (mean, p50, p99, p99_9) in (of(estimate()), of(estimate()), of(estimate()), of(estimate())),
        (min, max) in (nanos(), nanos()),
    ) -> Latency {
        Latency { mean, p50, p90: p50, p95: p99, p99, p99_9, min, max }
    }
}

prop_compose! {
    fn slice()(
        (start_ns, end_ns, p50_ns) in (nanos(), of(nanos()), of(nanos())),
        (completed, failed) in any::<(u64, u64)>(),
    ) -> SeriesPoint {
        SeriesPoint { start_ns, end_ns, completed, failed, p50_ns, p99_ns: None }
    }
}

prop_compose! {
    /// A case in parts like that of the samples, in parts like none.
    fn row()(
        (operation, status, concurrency) in (text(), status(), concurrency()),
        (message_bytes, completed) in (any::<Option<u64>>(), any::<u64>()),
        failed in btree_map(text(), any::<u64>(), 0..3),
        (rate, latency_ns, offered) in (of(estimate()), of(latency().boxed()), of(number())),
        (series, warnings, names) in (vec(slice().boxed(), 0..70), vec(text(), 0..3), vec(text(), 0..3)),
        checked in of(any::<(u64, u64, u64)>()),
        spread in any::<bool>(),
    ) -> CaseResult {
        let mut row = support::single().results.remove(0);
        row.histogram = row.histogram.filter(|_| spread);
        row.load = offered.map_or(Load::CLOSED, |rate| Load::open(PerSecond(rate)));
        row.achieved_rate = rate.map(|rate| PerSecond(rate.estimate));
        row.throughput = rate.map(|Estimate { estimate, low, high }| Throughput {
            estimate, low, high, unit: RateUnit::default(), over: RateBasis::default(),
        });
        row.phases.extend(names.into_iter().map(|call| {
            Phase::new(call, offered.unwrap_or(0.0), Fraction(0.5))
        }));
        row.verification = checked.map(|(eligible, checked, wrong)| {
            Verification::new(eligible, checked, wrong, Verifier::Token)
        });
        row.failed = BTreeMap::from_iter(failed);
        CaseResult {
            operation, status, concurrency, message_bytes, completed, latency_ns, series, warnings,
            ..row
        }
    }
}

fn counts() -> impl Strategy<Value = BTreeMap<String, u64>> {
    btree_map(text(), any::<u64>(), 0..3).boxed()
}

prop_compose! {
    fn call()(
        (module, layer, function) in (text(), text(), text()),
        (count, per_operation, failed) in (any::<u64>(), of(number()), counts()),
        (total_ns, timed, self_ns) in (nanos(), of(any::<u64>()), nanos()),
        (p50_ns, p99_ns) in (of(nanos()), of(nanos())),
        (asked_again, asked_again_ns) in (of(any::<u64>()), of(nanos())),
    ) -> Call {
        Call {
            module, layer, function, count, per_operation, failed, total_ns, timed, self_ns, p50_ns,
            p99_ns, asked_again, asked_again_ns,
        }
    }
}

prop_compose! {
    fn apdu()(
        (name, object, header, status) in (text(), of(text()), text(), counts()),
        (count, repeats, time_ns, bytes) in (any::<u64>(), any::<u64>(), nanos(), any::<u64>()),
    ) -> Apdu {
        Apdu {
            name, object, header, count, repeats, status, time_ns,
            sent_bytes: bytes, received_bytes: bytes,
        }
    }
}

prop_compose! {
    fn system_call()(
        (call, object, stack, failed) in (text(), of(text()), vec(text(), 0..3), counts()),
        origin in of((text(), text(), of(text()))),
        (count, time_ns) in (any::<u64>(), nanos()),
    ) -> SystemCall {
        let origin =
            origin.map(|(function, module, caller)| Origin { function, module, caller });
        SystemCall { call, object, origin, stack, count, failed, time_ns }
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
        (name, place, layer) in (text(), text(), text()),
        (per_operation, count, time_ns) in (number(), any::<u64>(), nanos()),
        (evidence, saving) in (vec(text(), 0..3), of((number(), number()))),
        (trial, advice) in (of(text()), of(text())),
        callers in vec(call_path(), 0..3),
    ) -> Finding {
        let saving = saving.map(|(low, high)| Range { low, high });
        let kind = FindingKind::Other(name);
        let share = Fraction(per_operation);
        Finding {
            kind, place, layer, per_operation, count, time_ns, share, evidence, saving, trial, advice,
            callers,
        }
    }
}

prop_compose! {
    fn trial()(
        (fix, unstable_places, differences, notes) in
            (text(), any::<u64>(), vec(text(), 0..8), vec(text(), 0..3)),
        (before_ns, after_ns, speedup, unobserved_ns) in
            (estimate(), estimate(), estimate(), of(estimate())),
        times in of(((estimate(), estimate()), of((estimate(), estimate())))),
        (predicted, rounds) in (of((number(), number())), any::<u32>()),
        changed in of(any::<u64>()),
        verdict in prop::sample::select(vec![Change::Faster, Change::Slower, Change::Inconclusive]),
        behaviour in prop::sample::select(
            vec![Behaviour::Same, Behaviour::Differs, Behaviour::NotComparable],
        ),
    ) -> Trial {
        let predicted = predicted.map(|(low, high)| Range { low, high });
        let both = |(before, after)| BeforeAfter { before, after };
        let processor_ns = times.map(|(sum, _)| both(sum));
        let user_ns = times.and_then(|(_, part)| part).map(both);
        Trial {
            processor_ns, user_ns, system_ns: user_ns, fix, before_ns, after_ns, speedup, predicted, rounds, verdict, changed, unobserved_ns, behaviour,
            unstable_places, differences, notes, seed: Some(1),
        }
    }
}

prop_compose! {
    fn traced()(
        base in prop::sample::select(vec![trace::traced(), trace::tried()]),
        (calls, apdus) in (vec(call().boxed(), 0..20), vec(apdu().boxed(), 0..20)),
        system_calls in vec(system_call().boxed(), 0..20),
        (findings, trials) in (vec(finding().boxed(), 0..4), vec(trial().boxed(), 0..4)),
        (layers, dropped) in (vec((text(), nanos(), number(), any::<bool>()), 0..9), any::<u64>()),
        command in vec(text(), 0..6),
    ) -> Record {
        let mut record = base;
        record.layers.extend(layers.into_iter().map(|(layer, time_ns, share, main)| Layer {
            process: 4211, thread: if main { 4211 } else { 9 }, layer, time_ns,
            share: Fraction(share),
        }));
        record.calls.extend(calls);
        record.apdus.extend(apdus);
        record.system_calls.extend(system_calls);
        record.findings.extend(findings);
        record.trials.extend(trials);
        record.dropped = Some(dropped);
        record.command.extend(command);
        record
    }
}

prop_compose! {
    fn side_by_side()(
        names in vec((text(), text()), 2..15),
        rows in vec((text(), vec(of((estimate(), number())), 2..15), any::<bool>()), 0..5),
    ) -> SideBySide {
        let side = |(name, source)| Side { name, source, sha256: None, emulated: None, made_by: None };
        let row = |(operation, figures, rate): (String, Vec<Option<(Estimate, f64)>>, bool)| {
            SideBySideCase {
                operation,
                message_bytes: Some(figures.len() as u64),
                concurrency: Concurrency::ONE,
                quantity: if rate { Quantity::Throughput } else { Quantity::Latency },
                excess: figures.iter().map(|of| of.map(|(_, part)| Fraction(part))).collect(),
                provenance: figures.iter().map(|of| of.map(|_| Provenance::Emulated)).collect(),
                figures: figures.iter().map(|of| of.map(|(figure, _)| figure)).collect(),
            }
        };
        SideBySide {
            sides: names.into_iter().map(side).collect(),
            cases: rows.into_iter().map(row).collect(),
        }
    }
}

prop_compose! {
    fn record()(
        base in prop::sample::select(vec![support::knee(), support::hostile(), support::record()]),
        results in vec(row().boxed(), 0..4),
        levels in vec((concurrency(), estimate(), 1..9_u32), 0..5),
        (label, plateau, profile) in (text(), of(estimate()), of(text())),
        side_by_side in of(side_by_side().boxed()),
    ) -> Record {
        let mut record = base;
        record.side_by_side = side_by_side;
        record.results.extend(results);
        record.target.tokens.push(support::token(&label, &label));
        record.target.emulated =
            profile.map(|profile| Emulated { profile, sha256: String::new() });
        if let Some(knee) = &mut record.knee {
            knee.plateau = plateau;
            knee.levels.extend(levels.into_iter().map(|(at, rate, passes)| Level {
                threads: at.threads, processes: at.processes, hosts: at.hosts, rate: rate.into(),
                passes,
            }));
        }
        record
    }
}

/// The example of a door with any figures and texts in it.
fn door() -> impl Strategy<Value = Record> {
    const TEXT: &str = include_str!("../../../record/tests/examples/door.json");
    (text(), vec(number(), 6), any::<bool>()).prop_map(|(label, numbers, any)| {
        let mut record = Record::from_json(TEXT, std::path::Path::new("door.json")).unwrap();
        let mut numbers = numbers.into_iter().cycle();
        let mut next = || numbers.next().unwrap_or_default();
        let budget = record.budget.as_mut().unwrap();
        for part in &mut budget.parts {
            part.component.clone_from(&label);
            part.time_ns.estimate = next();
            part.share = Fraction(next());
            part.source = any.then(|| label.clone());
        }
        let what_if = record.what_if.as_mut().unwrap();
        what_if.base_ns = next();
        for step in what_if.sets.iter_mut().flat_map(|set| &mut set.waterfall) {
            step.saves_ns = next();
            step.left_ns = next();
            step.change.clone_from(&label);
        }
        if any {
            what_if.sets.clear();
            what_if.sets_found = 0;
        }
        let queue = record.queue.as_mut().unwrap();
        queue.overloaded = any;
        queue.throughput_per_minute.estimate = next();
        queue.capacity_per_minute = next();
        record
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn is_shown_within_the_width(
        record in prop_oneof![record().boxed(), traced().boxed(), door().boxed()], width in 20usize..200, unicode: bool, verbose: bool,
    ) {
        let text = render(&record, &Style { width, colour: false, unicode, verbose });
        for line in text.lines() {
            prop_assert!(line.width() <= width, "{} of {width}: {line}", line.width());
            prop_assert!(!line.contains(char::is_control), "{line:?}");
        }
        prop_assert!(unicode || text.is_ascii());
    }

    #[test]
    fn is_shown_in_colour_and_as_csv(
        record in prop_oneof![record().boxed(), traced().boxed(), door().boxed()],
    ) {
        let _ = render(&record, &Style { width: 80, colour: true, unicode: true, verbose: true });
        tapstone_report::csv::render(&record).unwrap();
    }

    #[test]
    fn is_a_page_in_which_nothing_acts(
        record in prop_oneof![record().boxed(), traced().boxed(), door().boxed()],
    ) {
        let page = html::render(&[html::PageEntry { name: "run.json", record: &record, timeline: None, note: None, again: None }]);
        prop_assert_eq!(page.matches("<script").count(), 1);
        prop_assert!(!page.contains("<img"));
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
        prop_assert!(!page.contains(acts), "control characters");
    }
}
