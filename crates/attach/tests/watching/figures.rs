//! What watching costs, and how true its figures are: measurements for a quiet machine, which print
//! and judge nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tapstone_attach::{WatchPlan, Watched};

use crate::client::{Running, attach, null_module, watched};

/// Calls one by one, or counts.
fn with_events(with_events: bool) -> WatchPlan {
    WatchPlan { with_events, most_events: 4 << 30, with_returns: true, ..WatchPlan::default() }
}

/// What a call takes for the client, which reads a clock before and after, in nanoseconds.
fn digest_time(
    module: &Path,
    settings: &[(&str, &str)],
    plan: Option<WatchPlan>,
) -> Option<(f64, Option<Watched>)> {
    let rounds = if settings.is_empty() { 200_000 } else { 20_000 };
    let mut running = Running::start_with(module, &[1, rounds], settings)?;
    let (known, seen) = match plan {
        Some(plan) => watched(&mut running, plan).map(|(known, seen)| (known, Some(seen)))?,
        None => {
            running.go_on();
            (running.known(), None)
        }
    };
    let [_, well, refused, _, nanos] = known;
    Some((nanos as f64 / (well + refused) as f64, seen))
}

fn modules() -> Vec<PathBuf> {
    let others = [
        "/usr/lib/softhsm/libsofthsm2.so",
        "/usr/lib/x86_64-linux-gnu/pkcs11/opensc-pkcs11.so",
        "/usr/lib/x86_64-linux-gnu/libykcs11.so.2",
    ];
    let others = others.into_iter().map(PathBuf::from).filter(|it| it.exists());
    [null_module()].into_iter().chain(others).collect()
}

/// What watching costs a call of C_Digest.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn cost_of_a_watched_call() {
    for module in modules() {
        let Some((alone, _)) = digest_time(&module, &[], None) else { continue };
        eprintln!("{}: {alone:.0} ns a call of C_Digest unwatched", module.display());
        for (events, as_pairs) in [(false, false), (true, false), (false, true), (true, true)] {
            let plan = WatchPlan { as_pairs, ..with_events(events) };
            let Some((time, Some(seen))) = digest_time(&module, &[], Some(plan)) else { return };
            let median = seen.times.iter().find(|it| it.function == "C_Digest");
            let median = median.and_then(|it| it.series.total().quantile(0.5));
            eprintln!(
                "  {} {}: {:.0} ns more; median {median:?}; probes inside {:?}; attach {:.1} ms, \
                 detach {:.1} ms",
                if events { "events" } else { "counts" },
                if as_pairs { "by pairs" } else { "by sessions" },
                time - alone,
                seen.cost,
                seen.attach_time.0 as f64 / 1e6,
                seen.detach_time.0 as f64 / 1e6,
            );
        }
    }
    let mut running = Running::start(&null_module(), &[1, 200_000]).unwrap();
    let plan = WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() };
    let Some(watch) = attach(plan) else { return };
    running.go_on();
    let [_, well, refused, _, nanos] = running.known();
    assert!(watch.detach().unwrap().has_unseen_returns);
    eprintln!("null module, entries only: {:.0} ns a call", nanos as f64 / (well + refused) as f64);
}

/// Medians that the kernel took, against what the same calls take when nobody watches.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn medians_after_calibration() {
    for service in ["1us", "20us", "200us"] {
        let settings = [("NULL_MODULE_SERVICE", service)];
        for _ in 0..3 {
            let Some((truth, _)) = digest_time(&null_module(), &settings, None) else { return };
            let plan = Some(with_events(false));
            let seen = digest_time(&null_module(), &settings, plan).and_then(|(_, seen)| seen);
            let Some(seen) = seen else { return };
            let times = seen.times.iter().find(|it| it.function == "C_Digest").unwrap();
            let median = times.series.total().quantile(0.5).unwrap();
            eprintln!("{service}: {truth:.0} ns unwatched, median {median:?} watched");
        }
    }
}

/// Calls a second of threads that do nothing else, each handed over.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn calls_a_second_without_loss() {
    for threads in [1, 2] {
        let Some(mut running) = Running::start(&null_module(), &[threads, 1_000_000]) else {
            return;
        };
        let begin = Instant::now();
        let Some((known, seen)) = watched(&mut running, with_events(true)) else { return };
        let calls = known[..4].iter().sum::<u64>();
        eprintln!(
            "{threads} threads: {calls} calls, {:.0} a second: {:?}",
            calls as f64 / begin.elapsed().as_secs_f64(),
            seen.totals,
        );
    }
}

/// The longest pause of a program that calls without a break, from attaching to detaching.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn pauses_at_attach_and_detach() {
    let Some(mut running) = Running::start_pausing(&null_module()) else { return };
    let longest = |running: &mut Running| {
        running.go_on();
        running.line().trim().parse::<f64>().unwrap() / 1e3
    };
    for _ in 0..10 {
        longest(&mut running);
        std::thread::sleep(Duration::from_millis(300));
        let before = longest(&mut running);
        let plan = WatchPlan { processes: vec![running.child.id()], ..with_events(false) };
        let Some(watch) = attach(plan) else { return };
        let attaching = longest(&mut running);
        std::thread::sleep(Duration::from_millis(300));
        let watched = longest(&mut running);
        let seen = watch.detach().unwrap();
        let detaching = longest(&mut running);
        eprintln!(
            "{before:.0} µs before, {attaching:.0} µs attaching ({:.1} ms), {watched:.0} µs watched, \
             {detaching:.0} µs detaching ({:.1} ms)",
            seen.attach_time.0 as f64 / 1e6,
            seen.detach_time.0 as f64 / 1e6,
        );
    }
}

/// A program that makes 2,000 operations a second, one after the other, watched and not in turn.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn slowdown_at_two_thousand_operations_a_second() {
    let settings = [("NULL_MODULE_SERVICE", "495us")];
    let time = |plan: Option<WatchPlan>| {
        let mut running = Running::start_with(&null_module(), &[1, 3000], &settings)?;
        let begin = match plan {
            Some(plan) => {
                let plan = WatchPlan { processes: vec![running.child.id()], ..plan };
                let watch = attach(plan)?;
                running.go_on();
                let begin = Instant::now();
                running.known();
                let time = begin.elapsed();
                watch.detach().unwrap();
                return Some(time);
            }
            None => Instant::now(),
        };
        running.go_on();
        running.known();
        Some(begin.elapsed())
    };
    let mut ratios = Vec::new();
    for _ in 0..10 {
        let Some((alone, watched)) = time(None).zip(time(Some(with_events(false)))) else { return };
        eprintln!(
            "{:.1} ms alone, {:.1} ms watched",
            alone.as_secs_f64() * 1e3,
            watched.as_secs_f64() * 1e3
        );
        ratios.push(watched.as_secs_f64() / alone.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    eprintln!("median {:.4}, from {:.4} to {:.4}", ratios[5], ratios[0], ratios[9]);
}
