//! All calls of a timeline by module and function, and a case for each function.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tapstone_events::{FunctionId, SummedCalls};
use tapstone_measure::series::{Series, WindowSeries};
use tapstone_measure::slice::Slice;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_text::thousands;

use super::seen::OperationsSeen;
use crate::codes;
use crate::owners::{self, Owners};
use crate::timeline::{CalledFunction, End, Family, Span, Thread, Timeline};

/// One function of one module.
#[derive(Debug)]
struct FunctionTally {
    module: String,
    function: &'static str,
    layer: String,
    /// Something is known of its calls, if only that a file says so.
    is_called: bool,
    count: u64,
    failed: BTreeMap<String, u64>,
    total: Nanos,
    /// Of how many calls that is.
    timed: u64,
    own: Nanos,
    /// Calls that were only counted.
    summed: u64,
    /// What those failed with that were listed.
    listed_failures: BTreeMap<String, u64>,
    /// Those that were listed and have a time.
    seen: OperationsSeen,
    /// How many of those that were only counted and went well have one, ...
    summed_well: u64,
    /// ... and of most of them how long it was.
    summed_times: Slice,
    /// Those that asked what their thread had asked before.
    again: u64,
    time_again: Nanos,
}

/// The functions of a timeline, as its tables tell them apart: not by who called them, but for those
/// of libc.
struct Tallies<'a> {
    timeline: &'a Timeline,
    all: Vec<FunctionTally>,
    /// Which of them each function of the timeline is.
    places: Vec<usize>,
}

/// All calls by module and function, and the cases of those that were listed.
#[must_use]
pub fn calls(
    timeline: &Timeline,
    owners: &[Owners],
) -> (Vec<record::Call>, Vec<record::CaseResult>) {
    let mut tallies = Tallies::for_timeline(timeline);
    for (thread, owners) in timeline.threads.iter().zip(owners) {
        for (span, own) in thread.spans.iter().zip(owners.own.iter()) {
            tallies.count_span(thread, span, own);
        }
        for (leaf, own) in thread.leaves.iter().zip(owners.own_leaves.iter()) {
            let tally = tallies.of_function(leaf.call);
            tally.count += u64::from(leaf.count);
            tally.total += leaf.time;
            tally.timed += u64::from(leaf.count);
            tally.own += own;
        }
    }
    for summed in &timeline.summed {
        tallies.add_summed(summed);
    }
    tallies.tables()
}

impl<'a> Tallies<'a> {
    fn for_timeline(timeline: &'a Timeline) -> Self {
        let mut known: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
        let mut all = Vec::new();
        let place = |call: &CalledFunction| {
            let is_libc = matches!(call.family, Family::Libc(_));
            let module = if is_libc { of_libc(call) } else { call.module.clone() };
            *known.entry((module.clone(), call.function)).or_insert_with(|| {
                let owner = || owners::owner_of_call(call).name();
                all.push(FunctionTally {
                    module,
                    function: call.function,
                    layer: if is_libc { "libc".to_owned() } else { owner() },
                    is_called: false,
                    count: 0,
                    failed: BTreeMap::new(),
                    total: Nanos::ZERO,
                    timed: 0,
                    own: Nanos::ZERO,
                    summed: 0,
                    listed_failures: BTreeMap::new(),
                    seen: OperationsSeen::default(),
                    summed_well: 0,
                    summed_times: Slice::empty(),
                    again: 0,
                    time_again: Nanos::ZERO,
                });
                all.len() - 1
            })
        };
        let places = timeline.calls.iter().map(place).collect();
        Self { timeline, all, places }
    }

    fn place(&self, function: FunctionId) -> usize {
        self.places[function.0 as usize]
    }

    fn of_function(&mut self, function: FunctionId) -> &mut FunctionTally {
        let place = self.place(function);
        self.all[place].is_called = true;
        &mut self.all[place]
    }

    /// Whether a call has a time of its own. A function inside itself is not counted twice, whoever
    /// called the inner one.
    fn is_timed(&self, thread: &Thread, span: &Span) -> bool {
        let place = self.place(span.call);
        let inside_itself =
            || thread.path(span.parent).any(|outer| self.place(outer.call) == place);
        span.end_kind != End::Unseen && !inside_itself()
    }

    fn count_span(&mut self, thread: &Thread, span: &Span, own: Nanos) {
        let failure = codes::failure(self.timeline, span);
        let is_timed = self.is_timed(thread, span);
        let tally = self.of_function(span.call);
        tally.count += 1;
        tally.own += own;
        if is_timed {
            tally.total += span.time();
            tally.timed += 1;
            tally.seen.see(span.end, failure.is_none().then(|| span.time()));
        }
        if let Some(code) = failure {
            *tally.failed.entry(code.clone()).or_default() += 1;
            *tally.listed_failures.entry(code).or_default() += 1;
        }
    }

    /// Adds calls that are in no thread.
    fn add_summed(&mut self, summed: &SummedCalls) {
        let call = self.timeline.call(summed.function);
        let is_libc = matches!(call.family, Family::Libc(_));
        let tally = self.of_function(summed.function);
        // The file that they are from may be anybody's.
        tally.count = tally.count.saturating_add(summed.count);
        tally.summed = tally.summed.saturating_add(summed.count);
        tally.timed = tally.timed.saturating_add(summed.timed);
        tally.total += summed.time;
        tally.own += summed.own;
        let failures = summed.failed.iter().filter(|(code, _)| code.is_some());
        let failures = failures.fold(summed.other_failures, |all, it| all.saturating_add(it.1));
        let well = summed.timed.saturating_sub(failures);
        tally.summed_well = tally.summed_well.saturating_add(well);
        let details = &summed.details;
        for (time, count) in &details.times {
            tally.summed_times.count_alike(*time, *count);
        }
        tally.again = tally.again.saturating_add(details.again);
        tally.time_again += details.time_again;
        let name = |code: &Option<u64>| match code {
            Some(code) => codes::name(call, *code),
            None => codes::LEFT.to_owned(),
        };
        let known = summed.failed.iter().map(|(code, count)| (name(code), *count));
        let others = ("other codes".to_owned(), summed.other_failures);
        let unfinished = (codes::NEVER.to_owned(), if is_libc { 0 } else { summed.unfinished });
        for (code, count) in known.chain([others, unfinished]).filter(|(_, count)| *count > 0) {
            let failed = tally.failed.entry(code).or_default();
            *failed = failed.saturating_add(count);
        }
    }

    /// The calls, those that took longest first, and their cases.
    fn tables(self) -> (Vec<record::Call>, Vec<record::CaseResult>) {
        let mut series: Vec<_> = self.all.iter().map(|tally| tally.seen.series()).collect();
        for thread in &self.timeline.threads {
            for span in thread.spans.iter().filter(|span| self.is_timed(thread, span)) {
                if let Some(series) = &mut series[self.place(span.call)] {
                    let went_well = codes::failure(self.timeline, span).is_none();
                    series.add(span.end, went_well.then(|| span.time()));
                }
            }
        }
        let called = self.all.into_iter().zip(series).filter(|(tally, _)| tally.is_called);
        let mut called: Vec<_> = called.collect();
        called.sort_by(|(one, _), (other, _)| {
            let name = |tally: &'_ FunctionTally| (tally.module.clone(), tally.function);
            Reverse(one.total).cmp(&Reverse(other.total)).then_with(|| name(one).cmp(&name(other)))
        });
        let mut calls = Vec::new();
        let mut cases = Vec::new();
        for (tally, series) in called {
            let series = series.map(WindowSeries::finish);
            let call = call(&tally, series.as_ref());
            if let Some(series) = series {
                let mut case = call_case(&call, &tally);
                tally.seen.set_figures(&mut case, &series);
                cases.push(case);
            }
            calls.push(call);
        }
        (calls, cases)
    }
}

/// A function of libc belongs to whoever calls it.
fn of_libc(call: &CalledFunction) -> String {
    debug_assert!(matches!(call.family, Family::Libc(_)));
    match call.caller.as_str() {
        "" => "libc, called by the program".to_owned(),
        caller => format!("libc, called by {caller}"),
    }
}

fn call(tally: &FunctionTally, listed: Option<&Series>) -> record::Call {
    let mut well = listed.map_or_else(Slice::empty, Series::total);
    let all = well.completed.saturating_add(tally.summed_well);
    well.absorb(&tally.summed_times);
    // Some failures have no time, and are taken for such as have.
    let all = all.max(well.completed);
    let quantile = |share: f64| quantile(&well, all, share);
    record::Call {
        module: tally.module.clone(),
        layer: tally.layer.clone(),
        function: tally.function.to_owned(),
        count: tally.count,
        per_operation: None,
        failed: tally.failed.clone(),
        total_ns: tally.total,
        timed: Some(tally.timed).filter(|timed| *timed < tally.count),
        self_ns: tally.own,
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99).filter(|_| well.completed >= 100),
        asked_again: Some(tally.again).filter(|again| *again > 0),
        asked_again_ns: Some(tally.time_again).filter(|_| tally.again > 0),
    }
}

/// The time that a share of so many calls did not exceed, some of which are `known`. `None` where it
/// may be another one, because the others were all longer or all shorter.
fn quantile(known: &Slice, all: u64, share: f64) -> Option<Nanos> {
    let unknown = all.saturating_sub(known.completed) as f64;
    let rank = share * all as f64;
    let at_rank = |rank: f64| known.quantile(rank.max(0.0) / known.completed as f64);
    let (low, high) = at_rank(rank - unknown).zip(at_rank(rank))?;
    (low == high).then_some(high)
}

/// Its failures are those of calls that were listed, as its figures will be.
fn call_case(call: &record::Call, tally: &FunctionTally) -> record::CaseResult {
    let listed = tally.count - tally.summed.min(tally.count);
    let failed: u64 = tally.listed_failures.values().sum();
    let status = if failed < listed {
        record::Status::OK
    } else {
        let code = tally.listed_failures.keys().next().cloned().unwrap_or_default();
        record::Status::at(record::Outcome::Failed, call.function.clone(), code)
    };
    let mut case = record::CaseResult::new(
        call.operation(),
        status,
        record::Concurrency::ONE,
        record::Load::CLOSED,
    );
    case.failed = tally.listed_failures.clone();
    if tally.summed > 0 {
        case.warnings.push(format!(
            "of the first {} of {} calls: the others are only counted",
            thousands(listed),
            thousands(tally.count)
        ));
    }
    case
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tapstone_events::SummedDetails;

    use super::*;
    use crate::synthetic::{Story, millis};
    use crate::timeline::On;

    /// Total and own time of each call, by its module and function.
    fn times(timeline: &Timeline) -> BTreeMap<String, (Nanos, Nanos)> {
        let owners = owners::of_threads(timeline);
        let (calls, _) = calls(timeline, &owners);
        calls.iter().map(|call| (call.operation(), (call.total_ns, call.self_ns))).collect()
    }

    #[test]
    fn a_nanosecond_is_one_calls_own() {
        let timeline = Story::new()
            .thread(|told| {
                told.leaf("nanosleep", millis(3)).enter("C_Sign").advance(millis(1));
                told.enter("SCardTransmit").leaf("recv", millis(7)).with(|leaf| {
                    leaf.on = On::Service;
                });
                told.exit().enter("SCardEndTransaction").leaf("nanosleep", millis(50)).exit();
                told.exit().advance(millis(2));
            })
            .timeline();
        let times = times(&timeline);
        let of = |call: &str| times[call];
        let client = "libpcsclite.so.1";
        // A sleep belongs to the call that made it, a wait to what it waits for.
        let end = of(&format!("SCardEndTransaction [{client}]"));
        assert_eq!(end, (millis(50), millis(50)));
        let sleep = of(&format!("nanosleep [libc, called by {client}]"));
        assert_eq!(sleep, (millis(50), Nanos::ZERO));
        assert_eq!(of(&format!("SCardTransmit [{client}]")), (millis(7), Nanos::ZERO));
        assert_eq!(of(&format!("recv [libc, called by {client}]")), (millis(7), millis(7)));
        assert_eq!(of("nanosleep [libc, called by the program]"), (millis(3), millis(3)));
        assert_eq!(of("C_Sign [module.so]"), (millis(58), millis(1)));
        let own: Nanos = times.values().map(|(_, own)| *own).sum();
        assert!(own <= timeline.threads[0].wall(), "{own}");
    }

    #[test]
    fn a_function_inside_itself_is_counted_once_whoever_calls_it() {
        let timeline = Story::new()
            .thread(|told| {
                // The outer one is the program's, the inner one the module's.
                told.enter("C_Sign").advance(millis(1)).enter("C_Sign").advance(millis(4));
            })
            .timeline();
        let callers: BTreeSet<&str> =
            timeline.calls.iter().map(|call| call.caller.as_str()).collect();
        assert_eq!(callers.len(), 2);
        assert_eq!(times(&timeline)["C_Sign [module.so]"], (millis(5), millis(5)));
        let (calls, _) = calls(&timeline, &owners::of_threads(&timeline));
        assert_eq!((calls[0].count, calls[0].timed), (2, Some(1)), "of which its mean is");
    }

    #[test]
    fn calls_that_were_counted_are_added_to_those_that_were_listed() {
        let mut timeline = Story::new()
            .thread(|told| {
                told.enter("C_Sign").advance(millis(1)).exit();
            })
            .timeline();
        let function = timeline.threads[0].spans[0].call;
        let summed = |failed: &[(Option<u64>, u64)], other_failures| SummedCalls {
            process: timeline.root,
            thread: timeline.root,
            function,
            count: 10,
            unfinished: other_failures,
            time: millis(20),
            timed: 7,
            own: millis(15),
            failed: failed.to_vec(),
            other_failures,
            details: SummedDetails::default(),
        };
        let most = SummedCalls { count: u64::MAX, ..summed(&[(None, u64::MAX)], 0) };
        timeline.summed = vec![summed(&[(Some(0x30), 3), (None, 1)], 2), summed(&[], 0)];
        let all = |timeline: &Timeline| {
            let owners = owners::of_threads(timeline);
            calls(timeline, &owners)
        };
        let (table, cases) = all(&timeline);
        assert_eq!(table.len(), 1);
        assert_eq!(
            (table[0].count, table[0].total_ns, table[0].self_ns),
            (21, millis(41), millis(31))
        );
        let failed = [
            ("CKR_DEVICE_ERROR", 3),
            ("left by an exception", 1),
            ("never returned", 2),
            ("other codes", 2),
        ];
        assert_eq!(table[0].failed, failed.map(|(code, count)| (code.to_owned(), count)).into());
        // A mean is of those whose time it is.
        assert_eq!(table[0].timed, Some(15));
        // Figures and failures of a case are those of calls that were listed, and it says so.
        assert_eq!((cases[0].completed, cases[0].failed.len()), (1, 0));
        assert_eq!(cases[0].status, record::Status::OK);
        let says = "of the first 1 of 21 calls: the others are only counted";
        assert_eq!(cases[0].warnings, [says]);
        // As a file says that nobody wrote in earnest.
        timeline.summed.push(most);
        assert_eq!(all(&timeline).0[0].count, u64::MAX);
    }

    #[test]
    fn quantiles_are_of_listed_and_counted_calls_if_the_others_make_no_difference() {
        let mut timeline = Story::new()
            .thread(|told| {
                for _ in 0..30 {
                    told.enter("C_Sign").advance(millis(1)).exit();
                }
            })
            .timeline();
        let quantiles = |timeline: &Timeline| {
            let (table, _) = calls(timeline, &owners::of_threads(timeline));
            (table[0].p50_ns, table[0].p99_ns)
        };
        let near = |time: Option<Nanos>, wanted: Nanos| {
            time.is_some_and(|time| time.0.abs_diff(wanted.0) * 1000 <= wanted.0)
        };
        let (p50, p99) = quantiles(&timeline);
        assert!(near(p50, millis(1)) && p99.is_none(), "30 have no 99th of a hundred");
        let summed = |times: &[(u64, u64)], failed: u64| SummedCalls {
            process: timeline.root,
            thread: timeline.root,
            function: timeline.threads[0].spans[0].call,
            count: 170,
            unfinished: 0,
            time: millis(600),
            timed: 170,
            own: millis(600),
            failed: vec![(Some(0x30), failed)],
            other_failures: 0,
            details: SummedDetails {
                times: times.iter().map(|(time, count)| (millis(*time), *count)).collect(),
                again: 40,
                time_again: millis(120),
            },
        };
        let some = summed(&[(3, 100), (9, 20)], 34);
        timeline.summed = vec![summed(&[(3, 100), (9, 20)], 50)];
        let (p50, p99) = quantiles(&timeline);
        assert!(near(p50, millis(3)) && near(p99, millis(9)), "all 150: {p50:?} {p99:?}");
        timeline.summed = vec![some.clone()];
        let (p50, p99) = quantiles(&timeline);
        assert!(near(p50, millis(3)) && p99.is_none(), "150 of 166: {p50:?} {p99:?}");
        timeline.summed = vec![summed(&[(3, 100), (9, 20)], 160)];
        let (p50, p99) = quantiles(&timeline);
        assert!(near(p50, millis(3)) && near(p99, millis(9)), "failures without a time: {p50:?}");
        timeline.summed = vec![summed(&[(3, 35), (9, 65)], 50)];
        assert_eq!(quantiles(&timeline).0, None, "20 unknown ones are all longer, or all shorter");
        timeline.summed = vec![some.clone(), some];
        timeline.summed[0].details.times.clear();
        assert_eq!(quantiles(&timeline), (None, None), "150 of 302");
        let (table, _) = calls(&timeline, &owners::of_threads(&timeline));
        assert_eq!((table[0].asked_again, table[0].asked_again_ns), (Some(80), Some(millis(240))));
    }
}
