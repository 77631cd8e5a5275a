//! One load from four machines is one honest measurement.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use tapstone_record::{HostState, KneeStop, LimitedBy, RateBasis, ShareKind};
use tapstone_testing::{figures, hold};

use crate::laboratory::{Agent, Away, Home, within};
use crate::run::{Tapstone, null_module};
use crate::support::{Nats, skip};

/// What the requirement allows the merged rate to be off by.
const TOLERANCE: f64 = 0.005;

/// Each direction; with what it takes to get there it is what a network across a country is.
const DELAY: Duration = Duration::from_millis(20);

/// A machine's clock is that far ahead of the coordinator's.
const AHEAD_SECONDS: [i64; 4] = [100_000, -60, 0, 7];

fn close(reported: f64, truth: f64, tolerance: f64) {
    assert!((reported - truth).abs() <= tolerance * truth, "{reported} is not {truth}");
}

#[test]
fn four_machines_far_away_are_one_measurement() {
    let Some(nats) = Nats::open() else { return };
    let model = [("SERVICE", "2ms"), ("WAIT", "sleep")];
    let mut away = Vec::new();
    for (number, ahead) in AHEAD_SECONDS.into_iter().enumerate() {
        let home = Home::new(&format!("client-{number}"), "");
        let Some(agent) = Away::start(home, &nats, ahead, DELAY, &model) else { return };
        away.push(agent);
    }
    let lab = Tapstone::on_hosts(4, &nats.url())
        .args("--op rsa1024.sign --no-verify --seconds 6 --threads 2 --warm-up 0.5");
    let samples = lab.path("samples.parquet");
    let running = lab.arg("--samples").arg(&samples).start();
    let ended = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        // Every second another connection breaks, whatever is going on.
        scope.spawn(|| {
            for agent in away.iter().cycle() {
                for _ in 0..10 {
                    thread::sleep(Duration::from_millis(100));
                    if ended.load(Relaxed) {
                        return;
                    }
                }
                agent.relay.break_connections();
            }
        });
        let outcome = running.wait();
        ended.store(true, Relaxed);
        outcome
    });
    let outcome = outcome.exits(0);
    let record = outcome.record();
    let row = outcome.row();
    let breaks: usize = away.iter().map(|agent| agent.relay.connections_ever() - 1).sum();
    assert!(breaks > 4, "{breaks} connections broke");

    // The clocks.
    for (host, agent) in record.hosts.iter().zip(&away) {
        let clock = host.clock.unwrap();
        let truth = agent.ahead_seconds * 1_000_000_000;
        let error = clock.offset_ns.abs_diff(truth);
        eprintln!(
            "{}: off by {error} ns, bound {} ns, round trip {} ns",
            host.name, clock.bound_ns.0, clock.round_trip_ns.0
        );
        assert!(error <= clock.bound_ns.0, "{clock:?} holds {truth}");
        assert!(clock.round_trip_ns.0 >= 40_000_000 && clock.bound_ns.0 < 40_000_000);
        assert_eq!(host.state, HostState::Done, "{host:?}");
        assert_eq!(host.window, row.window);
    }

    // The rate.
    let window = row.window.unwrap();
    let by_module =
        |agent: &Away| within(&agent.home.ends_ns(), window, agent.ahead_seconds * 1_000_000_000);
    let done: u64 = away.iter().map(by_module).sum();
    eprintln!("the modules did {done}, the record has {:+}", row.completed as i64 - done as i64);
    assert!(done > 4_000, "{done} are too few to compare");
    close(row.completed as f64, done as f64, TOLERANCE);
    let throughput = row.throughput.unwrap();
    assert_eq!(throughput.over, RateBasis::Window);
    close(throughput.estimate, done as f64 / window.seconds.0, TOLERANCE);
    let shares = || row.shares.iter().filter(|share| share.kind == ShareKind::Host);
    assert_eq!(shares().count(), 4);
    assert_eq!(shares().map(|share| share.completed).sum::<u64>(), row.completed);
    assert_eq!(row.concurrency.hosts, 4);
    assert_ne!(row.limited_by, LimitedBy::Device, "one level does not say that");

    // The latencies.
    let mut raw = durations(&samples);
    raw.sort_unstable();
    assert_eq!(raw.len() as u64, row.completed, "every operation is there, once");
    let merged = row.histogram.as_ref().unwrap().decode().unwrap();
    assert_eq!(merged.len(), row.completed);
    let latency = row.latency_ns.unwrap();
    let mut told = 0;
    for (quantile, reported) in [(0.5, latency.p50), (0.9, latency.p90), (0.99, latency.p99)] {
        let truth = raw[(raw.len() as f64 * quantile).ceil() as usize - 1];
        let of_merged = merged.value_at_quantile(quantile);
        assert!(merged.equivalent(of_merged, truth), "{quantile}: {of_merged} {truth}");
        // Withheld when the machine was so busy that nobody could tell.
        if let Some(reported) = reported.map(|reported| reported.estimate as u64) {
            let bucket = merged.lowest_equivalent(truth)..=merged.highest_equivalent(truth) + 1;
            assert!(bucket.contains(&reported), "{quantile}: {reported} is not in {bucket:?}");
            told += 1;
        }
    }
    assert!(told >= 2, "{latency:?}");
}

/// The durations of all operations in a file of raw samples.
fn durations(path: &Path) -> Vec<u64> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_long(1).unwrap() as u64).collect()
}

#[test]
fn the_limit_is_searched_over_hosts_after_processes() {
    let Some(nats) = Nats::open() else { return };
    // One engine in each process: threads bring nothing, processes and hosts do.
    let model = [("SERVICE", "20ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    let start = |name| Agent::start(Home::new(name, ""), &nats.url(), &model);
    let _agents = ["a", "b"].map(start);
    let search = "--op rsa1024.sign --no-verify --find-limit --seconds 0.5 --warm-up 0.05";
    let lab =
        Tapstone::on_hosts(2, &nats.url()).args(search).args("--max-threads 2 --max-processes 2");
    let record = lab.run().exits(0).record();
    let knee = record.knee.as_ref().unwrap();
    let levels: Vec<_> = knee
        .levels
        .iter()
        .map(|level| (level.processes, level.hosts, level.rate.estimate))
        .collect();
    eprintln!("{levels:?}");
    let rate = |processes, hosts| {
        let of_it = |(p, h, _): &&(u32, u32, f64)| (*p, *h) == (processes, hosts);
        levels.iter().find(of_it).unwrap().2
    };
    assert!(rate(2, 1) > 1.5 * rate(1, 1));
    assert!(rate(2, 2) > 1.5 * rate(2, 1));
    assert_eq!(knee.stopped_by, KneeStop::Limit);
    assert_eq!(knee.concurrency, None, "it was still growing");
    // A machine that is busy with others is named first.
    let limit = knee.limit.as_ref().unwrap();
    let expected = [LimitedBy::SearchCap, LimitedBy::OtherPrograms].contains(&limit.limited_by);
    assert!(expected, "{limit:?}");
    assert_eq!(record.results[0].concurrency.hosts, 2, "the case of the highest rate");
    assert!(record.hosts.iter().all(|host| host.window == record.results[0].window));
}

#[test]
fn a_host_that_is_its_own_limit_is_named() {
    let Some(nats) = Nats::open() else { return };
    let start = |name: &str, wait| {
        let model = [("SERVICE", "1ms"), ("WAIT", wait)];
        Agent::start(Home::new(name, ""), &nats.url(), &model)
    };
    let _agents = [start("busy", "spin"), start("waits", "sleep")];
    let run = || {
        let load = "--op rsa1024.sign --no-verify --seconds 1";
        let row = Tapstone::on_hosts(2, &nats.url()).args(load).run().exits(0).row();
        let used = |name: &str| {
            let share = row.shares.iter().find(|share| share.name == name).unwrap();
            share.client_utilisation.unwrap().0
        };
        let named = row.warnings.iter().any(|text| text.starts_with("busy used up its own"));
        assert_eq!(named, used("busy") >= 0.9, "{:?}", row.warnings);
        assert_ne!(row.limited_by, LimitedBy::Device);
        assert!(
            used("waits") < 0.5 && !row.warnings.iter().any(|text| text.contains("waits used"))
        );
        named
    };
    // Others may keep it from its processor, which it then cannot use up.
    if !(0..10).any(|_| run()) {
        skip("a processor that nobody else uses");
    }
}

#[test]
fn hosts_measure_what_local_processes_measure() {
    let Some(nats) = Nats::open() else { return };
    let directory = tempfile::tempdir().unwrap();
    // One device serves all of them, whoever they are.
    let engine = directory.path().join("engine").display().to_string();
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("ENGINE_FILE", &engine)];
    let start = |name| Agent::start(Home::new(name, ""), &nats.url(), &model);
    let _agents = ["a", "b", "c", "d"].map(start);
    figures(|| {
        let load = "--op rsa1024.sign --no-verify --seconds 4 --threads 2";
        let on_hosts = Tapstone::on_hosts(4, &nats.url()).args(load).run().exits(0).row();

        let here = Tapstone::new("token")
            .args(load)
            .args("--processes 4")
            .arg("--module")
            .arg(null_module::path());
        let here = here
            .env("NULL_MODULE_SERVICE", "1ms")
            .env("NULL_MODULE_WAIT", "sleep")
            .env("NULL_MODULE_ENGINE_FILE", &engine)
            .run()
            .exits(0)
            .row();
        let rate = |row: &tapstone_record::CaseResult| row.throughput.unwrap().estimate;
        eprintln!("hosts {}, processes {}", rate(&on_hosts), rate(&here));
        assert_eq!((on_hosts.concurrency.hosts, here.concurrency.processes), (4, 4));
        let apart = rate(&on_hosts) / rate(&here) - 1.0;
        hold(apart.abs() <= 0.02, format_args!("{apart} apart"))
    });
}
