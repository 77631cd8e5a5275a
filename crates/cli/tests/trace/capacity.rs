//! How many devices carry a recorded load: predicted from replays on one, and measured on more.

use std::path::PathBuf;
use std::time::Duration;

use tapstone_measure::pace::SplitMix;
use tapstone_measure::units::Nanos;
use tapstone_record::{CaseResult, DeviceCapacity, RateWithin, RateWithinOutcome};
use tapstone_workload::{
    Workload, WorkloadCall, WorkloadLimits, WorkloadThread, read_workload, write_workload,
};

use crate::queue::Queue;
use crate::run::{Outcome, Tapstone, null_module};

/// A client that asks for so many signatures, on average so long after one another, at moments that
/// are independent of each other.
fn poisson_client(home: &Tapstone, signatures: usize, mean: f64) -> PathBuf {
    let path = home.path("load.parquet");
    let mut random = SplitMix(5);
    let call = |function| WorkloadCall {
        session: 1,
        duration: Nanos(1_000),
        ..WorkloadCall::named(function)
    };
    let begin = WorkloadCall { mechanism: Some(1), object: 1, ..call("C_SignInit") };
    let work = WorkloadCall { input_bytes: 32, output_bytes: 256, ..call("C_Sign") };
    let mut calls = Vec::new();
    for _ in 0..signatures {
        let waiting = Nanos((-random.uniform().ln() * mean) as u64);
        calls.extend([WorkloadCall { waiting, after_wait: true, ..begin }, work]);
    }
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    write_workload(&path, &Workload { threads, ..Workload::default() }).unwrap();
    path
}

/// Tokens with one server each, which takes 2 ms for a signature.
fn one_server(tokens: u32) -> Tapstone {
    let mut tapstone = Tapstone::new("token").arg("--module").arg(null_module::path());
    for slot in 0..tokens {
        tapstone = tapstone.arg("--slot").arg(slot.to_string());
    }
    tapstone
        .pin(null_module::PIN)
        .env("NULL_MODULE_SLOTS", tokens.to_string())
        .env("NULL_MODULE_SERVICE", "2ms")
        .env("NULL_MODULE_WAIT", "sleep")
        .env("NULL_MODULE_ENGINE", "shared")
}

fn search(load: &PathBuf, tokens: u32, bound: &str) -> Outcome {
    let tapstone = one_server(tokens).arg("--workload").arg(load).arg("--scale-until").arg(bound);
    tapstone.arg("--no-verify").start().wait_for(Duration::from_secs(3_600)).exits(0)
}

fn within(outcome: &Outcome) -> RateWithin {
    outcome.record().rate_within.unwrap()
}

/// How many times so many devices carry the load as predicted.
fn predicted(known: &DeviceCapacity, devices: u32) -> (u32, u32) {
    let found = known.predicted.iter().find(|it| it.devices == devices).unwrap();
    (found.scale, found.scale_at_most)
}

#[test]
fn what_more_devices_would_carry_is_said_with_how_that_is_known() {
    let home = Tapstone::new("token");
    let load = poisson_client(&home, 60, 20e6);
    let outcome = search(&load, 1, "p90 <= 30ms");
    let within = within(&outcome);
    let text = &outcome.stdout;
    println!("{text}{}", outcome.stderr);
    let Some(known) = &within.capacity else {
        // A machine that is busy with other work is no device that a queue explains.
        assert!(text.contains("how many devices carry more is not known: "), "{text}");
        return;
    };
    assert!(known.servers <= 1, "{text}");
    let (one, _) = predicted(known, 1);
    let (two, _) = predicted(known, 2);
    let (four, _) = predicted(known, 4);
    // 50 a second for each client, of 450 that are looked at.
    assert!((1..=9).contains(&one), "{text}");
    assert!((2 * one - 1..=2 * one + 3).contains(&two) && four >= 2 * two - 1, "{text}");
    assert!(
        text.contains("how many devices") && text.contains("2 such devices would carry"),
        "{text}"
    );
    assert!(
        known.predicted.iter().all(|it| it.utilisation.is_none_or(|used| used.0 <= 0.9)),
        "{text}"
    );
}

/// A load that two tokens share: each client keeps to one of them.
#[test]
fn a_load_on_two_tokens_is_dealt_to_both() {
    let home = Tapstone::new("token");
    let load = poisson_client(&home, 40, 10e6);
    let outcome = search(&load, 2, "p90 <= 40ms");
    let within = within(&outcome);
    assert_ne!(within.outcome, RateWithinOutcome::NoRate, "{}", outcome.stdout);
    // One of them serves 500 a second.
    let highest = within.levels.iter().map(|level| level.offered_rate.0).fold(0.0, f64::max);
    assert!(highest > 500.0, "{}", outcome.stdout);
    if let Some(known) = within.capacity {
        assert_eq!(known.measured_devices, 2);
    }
}

/// Such a token, measured in another way.
fn measured(arguments: &str) -> CaseResult {
    let run = one_server(1).args("--op rsa1024.sign --no-verify --seconds 8").args(arguments).run();
    run.exits(0).record().results.remove(0)
}

/// What a token of one server is by its own figures: its service time, and by how much a request takes
/// longer that waits for no other, in seconds.
fn known_server() -> (f64, f64) {
    let service = 1.0 / measured("--threads 8").throughput.unwrap().estimate;
    let alone = measured("--threads 8 --rate 50 --arrivals poisson");
    let late = alone.latency_ns.unwrap().p50.unwrap().estimate / 1e9 - service;
    println!("service {:.4} ms, late by {:.4} ms", 1e3 * service, 1e3 * late);
    (service, late)
}

/// The bound that this share of arrivals exceeds, in seconds.
fn quantile(service: f64, rate: f64, beyond: f64) -> f64 {
    let (mut low, mut high) = (service, 100.0 * service);
    for _ in 0..60 {
        let bound = (low + high) / 2.0;
        match (Queue { servers: 1, service, bound }).share_beyond(rate) > beyond {
            true => low = bound,
            false => high = bound,
        }
    }
    low
}

/// One client at independent moments on one server is M/D/1: what it waits for its own answer before
/// counts. `make capacity`, on a machine that does nothing else.
#[test]
#[ignore = "two minutes"]
fn latencies_of_a_replay_are_those_of_queueing_theory() {
    const RATE: f64 = 300.0;
    const SERVICE: f64 = 0.002;
    let home = Tapstone::new("token");
    let load = poisson_client(&home, 15_000, 1e9 / RATE);
    // What was drawn, not what was meant.
    let drawn = read_workload(&load, WorkloadLimits::default()).unwrap();
    let waits = drawn.threads[0].calls.iter().map(|call| call.waiting.as_secs_f64());
    let rate = 15_000.0 / waits.sum::<f64>();
    // Its service time is exact. One that sleeps is late, and a client that waits for it queues the longer.
    let exact = one_server(1).env("NULL_MODULE_WAIT", "both");
    let outcome = exact.arg("--workload").arg(load).arg("--no-verify").run().exits(0);
    let record = outcome.record();
    let found = record.results.iter().find(|case| case.operation == "transaction").unwrap();
    let latency = found.latency_ns.as_ref().unwrap();
    for (name, of, beyond) in [("p50", &latency.p50, 0.5), ("p99", &latency.p99, 0.01)] {
        let found = of.as_ref().unwrap();
        let truth = 1e9 * quantile(SERVICE, rate, beyond);
        println!("{name}: {:.3} of {:.3} ms by theory", found.estimate / 1e6, truth / 1e6);
        assert!((found.estimate / truth - 1.0).abs() < 0.1, "{name}: {found:?} beside {truth}");
    }
}

/// By the formula for equal services (M/D/1, Franx 2001), with the service that the module shows under full
/// load, and a bound that is shorter by what a request takes beyond it that waits for no other.
/// `make capacity`, on a machine that does nothing else.
#[test]
#[ignore = "half an hour"]
fn a_load_is_carried_as_often_as_queueing_theory_says() {
    const RATE: f64 = 10.0;
    let (service, late) = known_server();
    let limit = Queue { servers: 1, service, bound: 0.010 - late }.limit(0.1);
    println!("limit {limit:.1}/s");
    let home = Tapstone::new("token");
    let load = poisson_client(&home, 400, 1e9 / RATE);
    let outcome = search(&load, 1, "p90 <= 10ms");
    println!("{}", outcome.stdout);
    let found = within(&outcome).rate.expect("it has a limit");
    assert!((found.estimate / limit - 1.0).abs() < 0.05, "{found:?} beside {limit}");
    assert!((found.low..found.high).contains(&limit), "{found:?} beside {limit}");
}

/// `make capacity`, on a machine that does nothing else. A client is a small part of what a device
/// carries, and the bound is reached below the utilisation that predictions stop at.
#[test]
#[ignore = "an hour and a half"]
fn two_and_four_devices_carry_what_was_predicted_from_one() {
    let home = Tapstone::new("token");
    let load = poisson_client(&home, 400, 100e6);
    let mut from_one = None;
    let mut misses = Vec::new();
    for tokens in [1, 2, 4] {
        let outcome = search(&load, tokens, "p90 <= 10ms");
        println!("{tokens} tokens\n{}", outcome.stdout);
        let within = within(&outcome);
        let known = within.capacity.expect("a queue explains it");
        let measured = known.measured_scale.expect("it carries the load");
        let from_one = from_one.get_or_insert(known);
        let (fewest, most) = predicted(from_one, tokens);
        println!("{tokens} tokens: {measured}x measured, {fewest} to {most}x predicted from one");
        let is_far = |scale: u32| f64::from(scale.abs_diff(measured)) > 0.1 * f64::from(measured);
        if is_far(fewest) || is_far(most) {
            misses.push(tokens);
        }
    }
    assert!(misses.is_empty(), "{misses:?}");
}
