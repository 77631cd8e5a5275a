use super::*;
use crate::contention::{Connections, MachineTimes, ThreadTimes, WaitSamples};
use crate::knee::AxisEnd;

/// A level whose threads run and are kept waiting for these shares of their time, while
/// programs use so many processors of two.
fn level(workers: u32, running: f64, runnable: f64, others: f64) -> LevelEvidence {
    let second = |share: f64| Nanos((share * 1e9) as u64);
    let used_cores = running * f64::from(workers);
    LevelEvidence {
        workers,
        cores: 2.0,
        used_cores,
        own_cores: 0.01,
        latency: Some(Nanos::from_millis(2)),
        contention: Contention {
            threads: Some(ThreadTimes {
                watched: second(1.0),
                running: second(running),
                runnable: second(runnable),
                ..ThreadTimes::default()
            }),
            waits: WaitSamples { sleep: 100, ..WaitSamples::default() },
            machine: Some(MachineTimes {
                watched: second(1.0),
                busy: second(used_cores + 0.01 + others),
                ..MachineTimes::default()
            }),
            connections: Connections::default(),
        },
    }
}

fn flat() -> AxisEnd {
    AxisEnd::Flat { gain: Estimate::around(1.0, 0.01) }
}

fn growing() -> AxisEnd {
    AxisEnd::Growing { gain: Estimate::around(1.9, 0.05), at: 8 }
}

/// A serial device: calls wait, and nothing more brings anything.
fn search(top: LevelEvidence) -> SearchEvidence {
    SearchEvidence {
        end: SearchEnd::Complete,
        threads: flat(),
        processes: flat(),
        hosts: None,
        top,
        most_threads: top,
        latency_alone: top.latency.map(|latency| Nanos(latency.0 / u64::from(top.workers))),
    }
}

fn cause(search: &SearchEvidence) -> LimitCause {
    attribute_search(search).cause
}

#[test]
fn the_device_needs_every_other_cause_excluded() {
    let idle = search(level(8, 0.01, 0.01, 0.05));
    let limit = attribute_search(&idle);
    assert_eq!(limit.cause, LimitCause::Device);
    assert_eq!(
        limit.why,
        "more threads bring ×1.00 [0.99, 1.01], more processes bring ×1.00 [0.99, 1.01], and \
         workers waited inside their calls for 98 % of the time"
    );
    let without = |change: fn(&mut SearchEvidence)| {
        let mut search = idle.clone();
        change(&mut search);
        cause(&search)
    };
    assert_eq!(without(|it| it.threads = AxisEnd::NotTried), LimitCause::Unknown);
    assert_eq!(without(|it| it.processes = AxisEnd::NotTried), LimitCause::Unknown);
    assert_eq!(without(|it| it.hosts = Some(AxisEnd::NotTried)), LimitCause::Unknown);
    assert_eq!(without(|it| it.hosts = Some(flat())), LimitCause::Device);
    let unclear = |it: &mut SearchEvidence| it.processes = AxisEnd::Unclear { gain: None };
    assert_eq!(without(unclear), LimitCause::Unknown);
    assert_eq!(without(|it| it.top.contention.threads = None), LimitCause::Unknown);
    for end in [SearchEnd::Time, SearchEnd::SessionCount, SearchEnd::Failed] {
        assert_eq!(cause(&SearchEvidence { end, ..idle.clone() }), LimitCause::Unknown);
    }
    let interrupted = SearchEvidence { end: SearchEnd::Interrupted, ..idle.clone() };
    assert_eq!(cause(&interrupted), LimitCause::Interruption);
}

#[test]
fn a_rate_that_still_grows_is_the_searchs_end() {
    for end in [SearchEnd::Complete, SearchEnd::Time, SearchEnd::SessionCount] {
        let search = SearchEvidence {
            end,
            threads: growing(),
            processes: AxisEnd::NotTried,
            ..search(level(8, 0.01, 0.01, 0.0))
        };
        let limit = attribute_search(&search);
        assert_eq!(limit.cause, LimitCause::SearchCap);
        let stopped = match end {
            SearchEnd::Time => "its time was up",
            SearchEnd::SessionCount => "the token gave out no more sessions (CKR_SESSION_COUNT)",
            _ => "--max-threads allowed no more",
        };
        assert!(limit.why.ends_with(stopped), "{}", limit.why);
        assert!(limit.why.contains("×1.90 [1.85, 1.95] with the last doubling to 8 threads"));
    }
    let more = SearchEvidence { processes: growing(), ..search(level(8, 0.01, 0.01, 0.0)) };
    assert!(attribute_search(&more).why.contains("--max-processes"));
}

#[test]
fn a_last_doubling_that_brought_little_is_no_growth_that_the_cap_ends() {
    let by = |gain| {
        let processes = AxisEnd::Growing { gain: Estimate::around(gain, 0.04), at: 2 };
        cause(&SearchEvidence { processes, ..search(level(8, 0.01, 0.01, 0.0)) })
    };
    assert_eq!([by(1.05), by(1.11)], [LimitCause::Unknown, LimitCause::SearchCap]);
}

#[test]
fn a_later_flat_doubling_is_beyond_an_earlier_growth() {
    // 64 threads were not enough, and twice as many in two processes bring nothing more.
    let search = SearchEvidence { threads: growing(), ..search(level(128, 0.001, 0.01, 0.05)) };
    let limit = attribute_search(&search);
    assert_eq!(limit.cause, LimitCause::Device);
    assert!(limit.why.starts_with("more processes bring ×1.00"), "{}", limit.why);
    // Where no process more was tried, it is the search's end.
    let capped = SearchEvidence { processes: AxisEnd::NotTried, ..search };
    assert_eq!(cause(&capped), LimitCause::SearchCap);
    // Four of its eight threads seemed enough: two processes of four say nothing of sixteen.
    let not_beyond =
        SearchEvidence { threads: growing(), ..self::search(level(8, 0.01, 0.01, 0.0)) };
    let limit = attribute_search(&not_beyond);
    assert_eq!(limit.cause, LimitCause::SearchCap);
    assert!(limit.why.ends_with("--max-threads allowed no more"), "{}", limit.why);
}

#[test]
fn the_device_is_not_named_where_nobody_saw_what_workers_waited_for() {
    let mut unseen = search(level(8, 0.01, 0.01, 0.0));
    unseen.top.contention.waits =
        WaitSamples { sleep: FEWEST_SAMPLES - 1, ..WaitSamples::default() };
    assert_eq!(cause(&unseen), LimitCause::Unknown);
    unseen.top.contention.waits.sleep += 1;
    assert_eq!(cause(&unseen), LimitCause::Device);
}

#[test]
fn who_has_the_processor_is_said_only_where_it_is_seen() {
    // Ready to run, without a processor, on a machine that is not full: a quota, perhaps.
    let throttled = level(8, 0.05, 0.5, 0.0);
    assert_eq!(attribute_case(&throttled).cause, LimitCause::Unknown);
    let limit = attribute_search(&search(throttled));
    assert_eq!(limit.cause, LimitCause::Unknown);
    assert!(limit.why.contains("50 % of the time, and who had it is not known"), "{}", limit.why);
    // More threads still brought more, and no processor was at its end.
    let growing = AxisEnd::Growing { gain: Estimate::around(1.3, 0.05), at: 8 };
    let capped =
        SearchEvidence { threads: growing, processes: AxisEnd::NotTried, ..search(throttled) };
    assert_eq!(cause(&capped), LimitCause::SearchCap);
    let mut unseen = level(8, 0.1, 0.8, 1.2);
    unseen.contention.machine = None;
    assert_eq!(attribute_case(&unseen).cause, LimitCause::Unknown);
}

#[test]
fn a_full_machine_is_the_limit_of_whoever_fills_it() {
    // Eight threads share two processors that nobody else wants.
    assert_eq!(cause(&search(level(8, 0.25, 0.7, 0.05))), LimitCause::Client);
    // What others take of them is a twentieth, and would bring no more than that.
    assert_eq!(cause(&search(level(8, 0.25, 0.7, 0.1))), LimitCause::Client);
    // Another program takes one of the two.
    let starved = search(level(8, 0.125, 0.8, 1.0));
    let limit = attribute_search(&starved);
    assert_eq!(limit.cause, LimitCause::OtherPrograms);
    assert_eq!(
        limit.why,
        "other programs used 1.0 of 2.0 processors, and workers that were ready to run waited \
         for one 80 % of the time"
    );
    // More threads then take a larger share, which is no property of the device.
    let gain = Estimate::around(1.3, 0.05);
    let larger_share = SearchEvidence {
        threads: AxisEnd::Growing { gain, at: 8 },
        processes: AxisEnd::NotTried,
        ..starved.clone()
    };
    assert_eq!(cause(&larger_share), LimitCause::OtherPrograms);
    // So they do where it nearly doubles, as long as they do nothing but compute.
    let capped = SearchEvidence { threads: growing(), processes: AxisEnd::NotTried, ..starved };
    assert_eq!(cause(&capped), LimitCause::OtherPrograms);
    // The rate of workers that wait for a device will go on doubling, whoever is busy beside.
    let waiting = level(8, 0.05, 0.2, 1.5);
    let waiting = SearchEvidence { top: waiting, most_threads: waiting, ..capped };
    assert_eq!(cause(&waiting), LimitCause::SearchCap);
    let filled = SearchEvidence {
        threads: growing(),
        processes: AxisEnd::NotTried,
        ..search(level(2, 0.99, 0.0, 0.0))
    };
    assert_eq!(cause(&filled), LimitCause::Client);
    // The hypervisor is another program, too.
    let mut stolen = search(level(8, 0.125, 0.8, 0.0));
    stolen.top.contention.machine.as_mut().unwrap().steal = Nanos::from_secs(1);
    assert_eq!(cause(&stolen), LimitCause::OtherPrograms);
    // Spinning threads need no processor that they lack.
    assert_eq!(cause(&search(level(2, 0.95, 0.0, 0.0))), LimitCause::Client);
    // One busy thread at the cap: a second one would help.
    let one = SearchEvidence {
        threads: growing_at_one(),
        processes: AxisEnd::NotTried,
        ..search(level(1, 0.99, 0.0, 0.0))
    };
    assert_eq!(cause(&one), LimitCause::SearchCap);
}

fn growing_at_one() -> AxisEnd {
    AxisEnd::Growing { gain: Estimate::around(1.9, 0.05), at: 1 }
}

#[test]
fn neighbours_that_take_nothing_away_are_no_limit() {
    // Both processors are busy with others, but the workers wait for the device.
    let limit = cause(&search(level(16, 0.005, 0.05, 1.9)));
    assert_eq!(limit, LimitCause::Device);
    // At a share of a tenth of the cycle their absence would be worth it.
    let search = |runnable| search(level(16, 0.005, runnable, 1.9));
    assert_eq!(cause(&search(SHARE + 1e-6)), LimitCause::OtherPrograms);
    assert_eq!(cause(&search(SHARE - 1e-6)), LimitCause::Device);
}

#[test]
fn one_level_is_never_the_devices() {
    assert_eq!(attribute_case(&level(8, 0.01, 0.01, 0.0)).cause, LimitCause::Unknown);
    assert_eq!(attribute_case(&level(8, 0.25, 0.7, 0.0)).cause, LimitCause::Client);
    assert_eq!(attribute_case(&level(8, 0.1, 0.8, 1.2)).cause, LimitCause::OtherPrograms);
    assert_eq!(attribute_case(&LevelEvidence::default()).cause, LimitCause::Unknown);
}

#[test]
fn what_one_process_shares_is_told_by_samples() {
    let gain = Some(Estimate::around(1.98, 0.03));
    let shared = |lock, sleep| {
        let mut search = search(level(8, 0.01, 0.01, 0.0));
        search.most_threads.contention.waits =
            WaitSamples { lock, sleep, ..WaitSamples::default() };
        attribute_process(&search, gain).unwrap().cause
    };
    assert_eq!(shared(700, 100), LimitCause::ProcessLock);
    assert_eq!(shared(0, 800), LimitCause::ProcessConnection);
    assert_eq!(shared(200, 600), LimitCause::ProcessLockOrConnection);
    assert_eq!(shared(20, 5), LimitCause::ProcessLockOrConnection, "too few samples");
    let idle = search(level(8, 0.01, 0.01, 0.0));
    let no_gain = [None, Some(Estimate::around(1.0, 0.02)), Some(Estimate::around(1.2, 0.3))];
    assert!(no_gain.iter().all(|gain| attribute_process(&idle, *gain).is_none()));
    let growing = SearchEvidence { threads: growing(), ..idle };
    assert_eq!(attribute_process(&growing, gain), None, "more threads help as well");
    // Seven spin while one has the lock: nobody is found waiting for it.
    let mut spinning = search(level(8, 0.24, 0.6, 0.0));
    spinning.most_threads.contention.waits =
        WaitSamples { running: 700, sleep: 100, ..WaitSamples::default() };
    assert_eq!(attribute_process(&spinning, gain).unwrap().cause, LimitCause::Client);
}

#[test]
fn what_lies_behind_a_socket_is_not_the_device() {
    let with = |round_trip, local, input| {
        let mut search = search(level(8, 0.01, 0.01, 0.0));
        search.top.contention.waits = WaitSamples { input, sleep: 100, ..WaitSamples::default() };
        search.top.contention.connections = Connections { round_trip, local };
        cause(&search)
    };
    // A call takes 2 ms among eight workers, and 250 us alone.
    assert_eq!(with(Some(Nanos(20_000)), false, 300), LimitCause::Device);
    assert_eq!(with(Some(Nanos(25_000)), false, 300), LimitCause::Network);
    assert_eq!(with(None, true, 300), LimitCause::Unknown);
    assert_eq!(with(None, true, 50), LimitCause::Device, "they mostly wait for something else");
}

#[test]
fn round_trips_that_overlap_are_not_the_limit_for_certain() {
    let mut overlapping = search(level(8, 0.01, 0.01, 0.0));
    overlapping.top.contention.waits.input = 300;
    overlapping.top.contention.connections.round_trip = Some(Nanos(900_000));
    // Eight at once take no more than twice as long as one.
    overlapping.latency_alone = Some(Nanos::from_millis(1));
    let limit = attribute_search(&overlapping);
    assert_eq!(limit.cause, LimitCause::Unknown);
    assert!(limit.why.contains("900 µs of the 1.00 ms of a call"), "{}", limit.why);
    overlapping.latency_alone = None;
    assert_eq!(cause(&overlapping), LimitCause::Unknown);
}

#[test]
fn other_programs_used_what_the_measuring_ones_did_not() {
    let mut level = level(1, 0.5, 0.0, 0.3);
    level.own_cores = 0.1;
    // 0.5 + 0.01 + 0.3 processors were busy; 0.5 and 0.1 of them are Tapstone's.
    assert!((level.other_cores().unwrap() - 0.21).abs() < 1e-6, "{level:?}");
    let machine = level.contention.machine.as_mut().unwrap();
    machine.steal = Nanos::from_millis(400);
    assert!((level.other_cores().unwrap() - 0.61).abs() < 1e-6, "and what the hypervisor took");
}

#[test]
fn a_machine_is_full_from_nine_tenths_on() {
    let full = |others| level(1, 0.5, 0.0, others).is_machine_full();
    assert_eq!([0.5, 1.29, 1.31].map(full), [false, false, true], "0.5 more of 2 are its own");
}

#[test]
fn of_threads_that_queue_for_a_lock_all_but_its_holder_wait() {
    let cause = |workers, lock| {
        let mut level = level(workers, 0.1, 0.0, 0.0);
        level.contention.waits =
            WaitSamples { lock, sleep: 1_000 - lock, ..WaitSamples::default() };
        level.shared_in_process(Estimate::around(1.9, 0.05)).cause
    };
    // Half of two wait in such a queue, and three quarters of four: half of that has to be seen.
    assert_eq!(cause(2, 250), LimitCause::ProcessLock);
    assert_eq!(cause(2, 249), LimitCause::ProcessLockOrConnection);
    assert_eq!(cause(4, 375), LimitCause::ProcessLock);
    assert_eq!(cause(4, 374), LimitCause::ProcessLockOrConnection);
    assert_eq!(cause(4, 100), LimitCause::ProcessConnection);
    assert_eq!(cause(4, 101), LimitCause::ProcessLockOrConnection);
    assert_eq!(cause(1, 250), LimitCause::ProcessLock, "one alone queues for nothing");
}

#[test]
fn a_process_is_the_limit_only_where_a_second_one_surely_helps() {
    let search = search(level(4, 0.1, 0.0, 0.0));
    let helps = |estimate, low| {
        attribute_process(&search, Some(Estimate { estimate, low, high: 2.0 })).is_some()
    };
    assert!(helps(1.2, 1.01));
    assert!(!helps(1.2, 1.0), "it may help by nothing");
    assert!(helps(WORTH, 1.01) && !helps(1.09, 1.01));
    assert_eq!(attribute_process(&search, None), None);
}

#[test]
fn a_later_flat_doubling_counts_where_it_began_at_the_growth() {
    let end = |workers| {
        let search = SearchEvidence {
            threads: AxisEnd::Growing { gain: Estimate::around(1.9, 0.05), at: 8 },
            ..search(level(workers, 0.01, 0.01, 0.0))
        };
        cause(&search)
    };
    // Eight threads in each of two processes are sixteen.
    let grows = LimitCause::SearchCap;
    assert_eq!([12, 15, 16].map(end), [grows, grows, LimitCause::Device]);
}

#[test]
fn a_growth_just_worth_naming_is_named() {
    let cause = |estimate| {
        let gain = Estimate { estimate, low: 1.06, high: 1.2 };
        let threads = AxisEnd::Growing { gain, at: 8 };
        cause(&SearchEvidence { threads, ..search(level(8, 0.01, 0.01, 0.0)) })
    };
    assert_eq!(cause(WORTH), LimitCause::SearchCap);
    assert_eq!(cause(1.099), LimitCause::Unknown);
}

#[test]
fn calls_are_served_one_by_one_where_they_take_as_long_as_all_alone_together() {
    let cause = |top_millis| {
        let mut top = level(8, 0.01, 0.01, 0.0);
        top.latency = Some(Nanos::from_millis(top_millis));
        top.contention.connections.round_trip = Some(Nanos::from_millis(1));
        let search = SearchEvidence { latency_alone: Some(Nanos::from_millis(2)), ..search(top) };
        cause(&search)
    };
    // Eight calls of 2 ms take 16 ms, and a tenth more than 14.6 ms is more than that.
    assert_eq!((cause(15), cause(14)), (LimitCause::Network, LimitCause::Unknown));
}
