//! What watching costs, and how true its figures are: measurements for a quiet machine, which print
//! and judge nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use tapstone_attach::{WatchPlan, Watched};
use tapstone_measure::units::Nanos;

use crate::client::{Running, attach, null_module, watched};
use crate::{MODULES, found_in_client, installed};

/// Calls one by one, or counts.
fn with_events(with_events: bool) -> WatchPlan {
    WatchPlan { with_events, most_events: 4 << 30, with_returns: true, ..WatchPlan::default() }
}

/// What C_Digest takes as the client has it: on average, and the median, in nanoseconds.
fn digest_times(
    mut running: Running,
    plan: Option<WatchPlan>,
) -> Option<(f64, u64, Option<Watched>)> {
    let (known, seen) = match plan {
        Some(plan) => watched(&mut running, plan).map(|(known, seen)| (known, Some(seen)))?,
        None => {
            running.go_on();
            (running.known(), None)
        }
    };
    let [_, well, refused, _, nanos, median] = known;
    Some((nanos as f64 / (well + refused) as f64, median, seen))
}

fn median_seen(seen: &Watched) -> Option<Nanos> {
    let times = seen.times.iter().find(|it| it.function == "C_Digest")?;
    times.series().total().quantile(0.5)
}

/// What watching costs a call of C_Digest: of the null module, whose functions mostly begin with an
/// instruction that has to be stepped through, and of one in C.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn cost_of_a_watched_call() {
    for is_null in [false, true] {
        let start = || match is_null {
            true => Running::start(&null_module(), &[1, 200_000]),
            false => Running::start_spinning(0, &[1, 200_000]),
        };
        let Some((alone, median, _)) = start().and_then(|it| digest_times(it, None)) else {
            return;
        };
        let module = if is_null { "null module" } else { "module in C" };
        eprintln!("{module}: C_Digest takes {alone:.0} ns, median {median} ns");
        for (events, as_pairs) in [(false, false), (true, false), (false, true), (true, true)] {
            let plan = WatchPlan { as_pairs, ..with_events(events) };
            let times = start().and_then(|it| digest_times(it, Some(plan)));
            let Some((time, own, Some(seen))) = times else { return };
            eprintln!(
                "  {} {}: {:.0} ns more, by medians {} ns; seen {:?}; {:?}; attach {:.1} ms, detach \
                 {:.1} ms",
                if events { "events" } else { "counts" },
                if as_pairs { "by pairs" } else { "by sessions" },
                time - alone,
                own as i64 - median as i64,
                median_seen(&seen),
                seen.cost,
                seen.attach_time.0 as f64 / 1e6,
                seen.detach_time.0 as f64 / 1e6,
            );
        }
    }
    let Some(mut running) = Running::start(&null_module(), &[1, 200_000]) else { return };
    let plan = WatchPlan { processes: vec![running.child.id()], ..WatchPlan::default() };
    let Some(watch) = attach(plan) else { return };
    running.go_on();
    let [.., median] = running.known();
    assert!(watch.detach().unwrap().has_unseen_returns);
    eprintln!("null module, entries only: C_Digest takes {median} ns (median)");
}

/// What it costs to count a call, by what the function begins with.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn cost_by_the_first_instruction() {
    for instruction in ["push", "endbr64", "cmp", "push", "endbr64", "cmp"] {
        let start = || Running::start_beginning_with(instruction, &[1, 200_000]);
        let alone = start().and_then(|it| digest_times(it, None));
        let watched = start().and_then(|it| digest_times(it, Some(with_events(false))));
        let Some(((.., alone, _), (.., watched, _))) = alone.zip(watched) else { return };
        eprintln!("{instruction}: {alone} ns alone, {} ns more (medians)", watched - alone);
    }
}

/// What it costs to count a call of each module that is installed, by function: those of refused.c,
/// which every module answers without a token.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn cost_of_a_counted_call_of_installed_modules() {
    const CALLS: u64 = 50_000;
    let called = |module: &Path, is_watched: bool| {
        let mut running = Running::start_refused(module, CALLS)?;
        let plan = WatchPlan { processes: vec![running.child.id()], ..with_events(false) };
        let watch = if is_watched { Some(attach(plan)?) } else { None };
        running.go_on();
        let known = running.refused();
        drop(watch);
        Some(known)
    };
    for (module, file) in installed(MODULES) {
        let Some(places) = found_in_client(module).map(|mut it| it.remove(file).unwrap()) else {
            return;
        };
        let Some((alone, watched)) = called(module, false).zip(called(module, true)) else {
            return;
        };
        eprintln!("{file}");
        for (alone, watched) in alone.iter().zip(&watched) {
            let place = places.iter().find(|it| it.name() == alone.function);
            let place = place.map(|it| it.counting_probe).unwrap_or_default();
            eprintln!(
                "  {}: {} ns alone, {} ns more{}{}",
                alone.function,
                alone.median,
                watched.median - alone.median,
                if place.behind > 0 { ", moved" } else { "" },
                if place.is_stepped { ", stepped" } else { "" },
            );
        }
    }
}

/// Medians that the kernel took, against what the same calls take when nobody watches.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn medians_after_calibration() {
    for service in [1_000, 20_000, 200_000] {
        for _ in 0..3 {
            let start = || Running::start_spinning(service, &[1, 10_000]);
            let Some((_, truth, _)) = start().and_then(|it| digest_times(it, None)) else { return };
            let plan = Some(with_events(false));
            let seen = start().and_then(|it| digest_times(it, plan)).and_then(|(.., seen)| seen);
            let Some(seen) = seen else { return };
            eprintln!("{service} ns: {truth} ns unwatched, {:?} watched", median_seen(&seen));
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
        let took = begin.elapsed();
        eprintln!(
            "{threads} threads: {calls} calls, {:.0} a second: {:?}",
            calls as f64 / took.as_secs_f64(),
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

/// A program that makes 2,000 operations of two calls a second, one after the other, watched and not
/// in turn.
#[test]
#[ignore = "a measurement, for a quiet machine"]
fn slowdown_at_two_thousand_operations_a_second() {
    let time = |is_watched: bool| {
        let mut running = Running::start_spinning(498_000, &[1, 3000])?;
        let plan = WatchPlan { processes: vec![running.child.id()], ..with_events(false) };
        let watch = if is_watched { Some(attach(plan)?) } else { None };
        let begin = Instant::now();
        running.go_on();
        running.known();
        let time = begin.elapsed().as_secs_f64();
        drop(watch);
        Some(time)
    };
    let mut ratios = Vec::new();
    for _ in 0..10 {
        let Some((alone, watched)) = time(false).zip(time(true)) else { return };
        eprintln!("{:.1} ms alone, {:.1} ms watched", alone * 1e3, watched * 1e3);
        ratios.push(watched / alone);
    }
    ratios.sort_by(f64::total_cmp);
    eprintln!("ratios: median {:.4}, from {:.4} to {:.4}", ratios[5], ratios[0], ratios[9]);
}
