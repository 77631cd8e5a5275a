//! The highest rate within a latency, on modules of which it is known.

use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{GeneratorState, RateWithin, RateWithinOutcome, RateWithinStop};
use tapstone_testing::{figures, hold, skip};

use crate::queue::Queue;
use crate::support::{Outcome, Tapstone};

fn search(variables: &[(&str, &str)], arguments: &[&str]) -> Tapstone {
    let run = Tapstone::on(variables).args("--op rsa1024.sign --no-verify --find-limit --within");
    arguments.iter().fold(run, |run, argument| run.arg(argument))
}

fn within(outcome: &Outcome) -> RateWithin {
    let within = outcome.record().rate_within.unwrap();
    for level in &within.levels {
        eprintln!("{level:?}");
    }
    eprintln!("{:?} {:?} {:?}", within.outcome, within.rate, within.stopped_by);
    within
}

#[test]
fn what_is_no_bound_or_does_not_go_with_one_is_refused() {
    let refused = |run: Tapstone, words: &str| {
        let outcome = run.without_record().run().exits(2);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    };
    refused(search(&[], &["p99"]), "there is no <=");
    refused(search(&[], &["mean <= 5ms"]), "the mean is not a quantile");
    refused(search(&[], &["p99 <= 5"]), "not a time in ns, us, ms or s");
    for other in ["--rate 5", "--claim x>=5/s", "--seconds 1", "--max-processes 2"] {
        let option = other.split_once(' ').unwrap().0;
        refused(search(&[], &["p99 <= 5ms"]).args(other), option);
    }
    let alone = Tapstone::on(&[]).args("--op rsa1024.sign --within p99<=5ms");
    refused(alone, "--find-limit");
    refused(Tapstone::bare().args("--hosts 2 --find-limit --within p99<=5ms"), "--within");
}

#[test]
fn a_bound_below_the_latency_of_one_call_gives_no_rate() {
    let outcome = search(&[("SERVICE", "5ms"), ("WAIT", "sleep")], &["p99 <= 2ms"]).run();
    let within = within(&outcome);
    assert!(within.unloaded_ns.unwrap().0 >= 5_000_000);
    assert_eq!((within.rate, within.at_least), (None, None));
    // Withheld where other programs took the processor.
    if within.stopped_by == RateWithinStop::OtherPrograms {
        return skip("a machine that does nothing else");
    }
    assert_eq!(within.outcome, RateWithinOutcome::NoRate);
    assert!(outcome.stdout.contains("No rate has p99 <= 2.00 ms"), "{}", outcome.stdout);
    outcome.exits(0);
}

/// Two workers on a device that could do with any number of them.
#[test]
fn a_device_that_could_do_more_than_the_generator_gets_no_limit() {
    let model = [("SERVICE", "10ms"), ("WAIT", "sleep")];
    figures(|| {
        let bound = ["p50 <= 50ms", "--max-threads", "2", "--precision", "10%"];
        let within = within(&search(&model, &bound).quietly().run());
        assert_eq!(within.rate, None, "two workers are no limit of the device");
        let exhausted = within.stopped_by == RateWithinStop::GeneratorExhausted;
        hold(exhausted, format_args!("{:?}", within.stopped_by))?;
        let last = within.levels.last().unwrap();
        assert_eq!(last.generator, GeneratorState::Exhausted);
        let at_least = within.at_least.map_or(0.0, |rate| rate.0);
        hold((10.0..200.0).contains(&at_least), at_least)
    });
}

/// A bound so far that no level reaches it: the backlog counts.
#[test]
fn a_growing_backlog_is_never_within() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    figures(|| {
        let bound = ["p50 <= 1s", "--precision", "20%", "--max-time", "60"];
        let within = within(&search(&model, &bound).quietly().run());
        for level in within.levels.iter().filter(|level| level.offered_rate.0 > 300.0) {
            assert!(level.backlog_grows || level.beyond > 0, "{level:?}");
        }
        // The table of the levels says nothing else than the answer.
        let above = within.rate.map_or(f64::INFINITY, |rate| rate.high);
        for level in within.levels.iter().filter(|level| level.offered_rate.0 > 1.01 * above) {
            hold(level.backlog_grows, format_args!("{level:?}"))?;
        }
        let found = within.rate.map(|rate| rate.low).or(within.at_least.map(|rate| rate.0));
        hold(found.is_none_or(|rate| rate <= 205.0), format_args!("{found:?}"))
    });
}

#[test]
fn failures_give_no_rate() {
    let model = [("SERVICE", "2ms"), ("WAIT", "sleep"), ("FAIL", "CKR_FUNCTION_FAILED/100")];
    let outcome = search(&model, &["p99 <= 50ms"]).run().exits(2);
    let within = within(&outcome);
    assert_eq!(within.outcome, RateWithinOutcome::Unknown);
    assert_eq!(within.stopped_by, RateWithinStop::Failures);
    assert_eq!((within.rate, within.at_least), (None, None));
}

#[test]
fn an_interrupted_search_claims_no_limit() {
    let model = [("SERVICE", "5ms"), ("WAIT", "sleep"), ("ENGINE", "shared")];
    let run = search(&model, &["p99 <= 50ms", "--token-keys"]).stored().start();
    run.wait_until_it_measures();
    std::thread::sleep(Duration::from_secs(5));
    assert!(run.said().contains("takes about"), "{}", run.said());
    run.signal(Signal::INT);
    let outcome = run.wait().exits(2);
    assert_eq!(outcome.objects(), [""; 0], "{}", outcome.stderr);
    let within = within(&outcome);
    assert_eq!(within.stopped_by, RateWithinStop::Interrupted);
    assert_eq!(within.rate, None);
}

/// A queue in real time: the module's settings, and what the bound is.
struct Device {
    servers: usize,
    service: &'static str,
    bound: &'static str,
    bound_seconds: f64,
}

const ONE_SERVER: Device =
    Device { servers: 1, service: "1ms", bound: "p90 <= 3ms", bound_seconds: 0.003 };
const FOUR_SERVERS: Device =
    Device { servers: 4, service: "4ms", bound: "p90 <= 10ms", bound_seconds: 0.010 };

impl Device {
    /// The module's settings, with an engine that takes requests in the order of their arrival.
    fn with_settings<T>(&self, then: impl FnOnce(&[(&str, &str)]) -> T) -> T {
        let servers = self.servers.to_string();
        let shared = [("SERVICE", self.service), ("WAIT", "sleep"), ("ENGINE", "shared")];
        then(&[&shared[..], &[("SERVERS", servers.as_str())]].concat())
    }

    /// The limit by queueing theory. The service time is that of the module's own log under full
    /// load; a caller is woken later than that, by the timer's slack and the machine, which a
    /// request that waits for no other shows, and which the bound has to hold as well.
    fn truth(&self) -> f64 {
        let full = self.measure("--threads 16 --seconds 4");
        let window = full.row().window.unwrap();
        let done = full.log().within(window).count();
        let service = self.servers as f64 * window.seconds.0 / done as f64;
        // Nine of ten of these arrivals find the device free.
        let rate = 0.1 * self.servers as f64 / service;
        let seldom =
            self.measure(&format!("--threads 16 --rate {rate:.0} --arrivals poisson --seconds 4"));
        let alone = seldom.row().latency_ns.unwrap().p50.unwrap().estimate / 1e9;
        let late = alone - service;
        let queue = Queue { servers: self.servers, service, bound: self.bound_seconds - late };
        let limit = queue.limit(0.1);
        eprintln!(
            "service {:.1} us by the log, woken {:.1} us late, limit {limit:.1}/s",
            1e6 * service,
            1e6 * late
        );
        assert!((queue.share_beyond(limit) - 0.1).abs() < 1e-6 && limit < queue.capacity());
        limit
    }

    fn measure(&self, arguments: &str) -> Outcome {
        self.with_settings(|settings| {
            let run = Tapstone::on(settings).logged().args("--op rsa1024.sign --no-verify");
            run.args(arguments).quietly().run().exits(0)
        })
    }

    fn search(&self, precision: &str, seed: u32) -> RateWithin {
        let seed = seed.to_string();
        let arguments = [self.bound, "--precision", precision, "--seed", &seed];
        let run = self.with_settings(|settings| search(settings, &arguments));
        within(&run.quietly().run())
    }
}

/// A short search, with few arrivals: its interval is wide, and holds the truth or nothing is said.
#[test]
fn a_short_search_comes_near_the_limit_of_a_queue() {
    figures(|| {
        let truth = ONE_SERVER.truth();
        let found = ONE_SERVER.search("15%", 1);
        match (found.outcome, found.rate, found.at_least) {
            (RateWithinOutcome::Rate, Some(rate), _) => {
                hold((rate.estimate / truth - 1.0).abs() < 0.15, format_args!("{rate:?}, {truth}"))
            }
            (RateWithinOutcome::AtLeast, _, Some(rate)) => hold(rate.0 < 1.15 * truth, rate),
            _ => hold(false, format_args!("{:?}", found.stopped_by)),
        }
    });
}

/// Searches in real time with intervals of at most 3 %: `make within-real`, `SEARCHES=10`. They are
/// long: `SEED=5` begins with the fifth, and `SERVERS=4` searches on one of the devices.
#[test]
#[ignore = "a minute or two for each search: make within-real"]
fn searches_in_real_time_hold_the_limit_of_queues() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let count: u32 = number("SEARCHES", 10);
    let first: u32 = number("SEED", 1);
    let servers = number("SERVERS", 0);
    let chosen = |device: &Device| servers == 0 || device.servers == servers as usize;
    let mut held = Vec::new();
    for device in [ONE_SERVER, FOUR_SERVERS].into_iter().filter(chosen) {
        let truth = device.truth();
        let mut holds = 0;
        for seed in first..first + count {
            let found = device.search("3%", seed);
            let rate =
                found.rate.filter(|rate| (rate.high - rate.low) / 2.0 <= 0.03 * rate.estimate);
            let right = rate.is_some_and(|rate| (rate.low..=rate.high).contains(&truth));
            holds += u32::from(right);
            println!(
                "M/D/{} {seed}: truth {truth:.1}, {right}: {rate:?} {:?}",
                device.servers, found.stopped_by
            );
        }
        held.push((device.servers, holds));
    }
    println!("of {count} searches each: {held:?}");
    assert!(held.iter().all(|(_, holds)| 10 * holds >= 8 * count), "{held:?}");
}
