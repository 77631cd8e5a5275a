//! Predictions against queues that are known, and against queueing theory.

use std::collections::BTreeMap;

use tapstone_measure::pace::SplitMix;
use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

use super::device_model::ServiceTimes;
use super::*;
use crate::measured::{ReplayedThread, recorded_part};
use crate::plan::ReplayPlan;

const SERVICE: f64 = 2e6;

fn exponential(random: &mut SplitMix, mean: f64) -> u64 {
    (-random.uniform().ln() * mean) as u64
}

/// A client that comes some 20 times a second, at moments of its own.
fn recording(transactions: usize) -> Workload {
    let mut random = SplitMix(7);
    let begin = WorkloadCall {
        session: 1,
        mechanism: Some(1),
        object: 1,
        duration: Nanos(1_000),
        after_wait: true,
        ..WorkloadCall::named("C_SignInit")
    };
    let work = WorkloadCall {
        session: 1,
        input_bytes: 32,
        output_bytes: 256,
        duration: Nanos(SERVICE as u64),
        ..WorkloadCall::named("C_Sign")
    };
    let mut calls = Vec::new();
    for _ in 0..transactions {
        let waiting = Nanos(exponential(&mut random, 50e6 - SERVICE));
        calls.extend([WorkloadCall { waiting, ..begin }, work]);
    }
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    Workload { threads, ..Workload::default() }
}

fn plan(workload: &Workload, scale: u32, devices: u32, seed: u64) -> ReplayPlan {
    let options = ReplayOptions { scale, devices, seed, steady: true, ..ReplayOptions::default() };
    plan_replay(workload, &options).unwrap()
}

/// C_Sign waits for a server, and C_SignInit does not.
fn device(
    workload: &Workload,
    servers: u32,
    service: impl Fn(&mut SplitMix) -> u64,
) -> DeviceModel {
    let mut random = SplitMix(11);
    let one = plan(workload, 1, 1, 0);
    let kinds = PlannedCalls::new(&one.processes).kinds;
    let [begin, work] = &kinds[..] else { panic!("{kinds:?}") };
    let signed = (0..20_000).map(|_| Nanos(service(&mut random))).collect();
    let services = [
        (begin.clone(), ServiceTimes { measured: vec![Nanos(1_000)], is_served: false }),
        (work.clone(), ServiceTimes { measured: signed, is_served: true }),
    ];
    DeviceModel { servers, occupancy: 1.0, services: BTreeMap::from(services) }
}

type Replay = (ReplayPlan, Vec<Vec<ReplayedThread>>);

/// What a device would have done, at several scales.
fn replays(workload: &Workload, device: &DeviceModel, scales: &[u32]) -> Vec<Replay> {
    let one = |scale: &u32| {
        let plan = plan(workload, *scale, 1, 3);
        let window = (Nanos::ZERO, Nanos::ZERO);
        let replayed = device.simulate(workload, &PlannedCalls::new(&plan.processes), 99, window);
        (plan, replayed.threads)
    };
    scales.iter().map(one).collect()
}

fn fitted(workload: &Workload, replays: &[Replay]) -> Result<DeviceFit, NoDeviceModel> {
    let recorded = recorded_part(
        workload,
        &plan_replay(workload, &ReplayOptions::default()).unwrap().processes,
    );
    let load = SteadyLoad::new(workload, &recorded);
    let measured: Vec<MeasuredReplay<'_>> = replays
        .iter()
        .map(|(plan, threads)| MeasuredReplay { processes: &plan.processes, threads })
        .collect();
    fit_device(&load, 0.01, &measured)
}

fn predicted(workload: &Workload, fit: &DeviceFit, bound: &str, devices: u32) -> PredictedCapacity {
    let recorded = recorded_part(
        workload,
        &plan_replay(workload, &ReplayOptions::default()).unwrap().processes,
    );
    let load = SteadyLoad::new(workload, &recorded);
    let options = ReplayOptions::default();
    let question =
        CapacityQuestion { load: &load, options: &options, bound: bound.parse().unwrap() };
    question.predict(fit, devices)
}

#[test]
fn the_number_of_servers_and_their_time_are_found() {
    let workload = recording(100);
    for (servers, scales) in [(1, [1, 8, 16, 32]), (3, [1, 24, 48, 96])] {
        for constant in [true, false] {
            let truth = device(&workload, servers, |random| match constant {
                true => SERVICE as u64,
                false => exponential(random, SERVICE),
            });
            let fit = fitted(&workload, &replays(&workload, &truth, &scales)).unwrap();
            let found: Vec<u32> = fit.models.iter().map(DeviceModel::servers).collect();
            assert!(found.contains(&servers), "{servers}: {found:?}");
            assert!(found.iter().all(|it| it.abs_diff(servers) <= servers / 4), "{found:?}");
        }
    }
}

/// On a network a call takes longer than it holds a server.
#[test]
fn the_way_there_and_back_is_no_servers_time() {
    let workload = recording(100);
    let truth = device(&workload, 2, |_| SERVICE as u64);
    let truth = DeviceModel { occupancy: 0.7, ..truth };
    let fit = fitted(&workload, &replays(&workload, &truth, &[1, 16, 32, 64, 96])).unwrap();
    let of_two = fit.models.iter().filter(|model| model.servers == 2);
    assert!(of_two.into_iter().any(|model| (model.occupancy - 0.7).abs() < 0.05), "{fit:?}");
    assert!(fit.error < 0.1, "{}", fit.error);
}

#[test]
fn without_calls_that_wait_nothing_is_known() {
    let workload = recording(100);
    let truth = device(&workload, 8, |random| exponential(random, SERVICE));
    let found = fitted(&workload, &replays(&workload, &truth, &[1, 2, 4]));
    assert_eq!(found, Err(NoDeviceModel::NothingWaited));
    assert_eq!(fitted(&workload, &[]), Err(NoDeviceModel::NoReplays));
}

/// A device that slows down under load is no such queue.
#[test]
fn a_device_that_is_no_queue_is_not_explained() {
    let workload = recording(100);
    let mut all = Vec::new();
    for (scale, slower) in [(1, 1.0), (8, 1.5), (16, 3.0), (24, 6.0)] {
        let truth = device(&workload, 4, |_| (SERVICE * slower) as u64);
        all.extend(replays(&workload, &truth, &[scale]));
    }
    let found = fitted(&workload, &all).unwrap_err();
    assert!(matches!(found, NoDeviceModel::NoneExplains { error, .. } if error > 0.1), "{found}");
}

/// Of Poisson arrivals at one server with exponential times, the time in system is exponential with
/// the mean 1 / (μ - λ) (M/M/1, Jain 1991, section 31.2). Many clients with starts of their own make
/// such arrivals.
#[test]
fn capacities_are_those_of_theory() {
    let workload = recording(500);
    let truth = device(&workload, 1, |random| exponential(random, SERVICE));
    let fit = fitted(&workload, &replays(&workload, &truth, &[1, 8, 16, 32])).unwrap();
    let bound = "p99 <= 20ms";
    let rate_of_one = 20.0;
    let most = (1e9 / SERVICE) - 100f64.ln() / 20e-3;
    for devices in [1, 2, 4] {
        let found = predicted(&workload, &fit, bound, devices);
        let theory = most * f64::from(devices) / rate_of_one;
        let share = f64::from(found.fewest) / theory;
        assert!((0.85..1.05).contains(&share), "{found:?}, {theory}");
        let load = found.load.unwrap();
        let each = load.rate.0 / f64::from(devices);
        let expected = 100f64.ln() / (1e9 / SERVICE - each) * 1e9;
        let share = load.latency.estimate / expected;
        assert!((0.9..1.1).contains(&share), "{devices}: {load:?}, {expected}");
        assert!((load.utilisation - each * SERVICE / 1e9).abs() < 0.03, "{load:?}");
    }
}

#[test]
fn nothing_is_said_of_servers_that_are_busier_than_nine_tenths() {
    let workload = recording(100);
    let truth = device(&workload, 1, |_| SERVICE as u64);
    let fit = fitted(&workload, &replays(&workload, &truth, &[1, 8, 16, 32])).unwrap();
    let found = predicted(&workload, &fit, "p90 <= 10s", 1);
    let used = found.load.unwrap().utilisation;
    assert!((0.8..=MOST_UTILISATION).contains(&used), "{found:?}");
    // A service takes longer than that.
    let never = predicted(&workload, &fit, "p50 <= 1ms", 3);
    assert_eq!((never.fewest, never.most, never.load), (0, 0, None));
}
