//! Do the intervals keep their promise? Thousands of simulated windows on virtual time, of which
//! 95 % are to hold the truth, known from formulas and never from the runs themselves.
//!
//! One worker in a closed loop on a device that is steady, fast or slow; that stalls in bursts; or
//! that alternates between two speeds. The last two are why order statistics and plain standard
//! errors will not do.

use std::num::NonZeroU32;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, Gamma, Geometric};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{ContinuousCDF, Gamma as GammaLaw};

use tapstone_measure::interval::Estimate;
use tapstone_measure::series::Series;
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::{Conditions, Summary};
use tapstone_measure::units::Nanos;

const RUNS: u64 = 2_000;
const MILLISECOND: f64 = 1e6;

/// Latencies of one state of a device: gamma, by mean in ns and shape (1 / shape is the square of
/// the coefficient of variation).
#[derive(Clone, Copy)]
struct Service {
    mean: f64,
    shape: f64,
}

/// 25 % spread.
const NORMAL: Service = Service { mean: MILLISECOND, shape: 16.0 };
/// 25 % spread at half the speed.
const SLOW: Service = Service { mean: 2.0 * MILLISECOND, shape: 16.0 };
/// 25 % spread at a hundredth of the speed.
const GLACIAL: Service = Service { mean: 100.0 * MILLISECOND, shape: 16.0 };
/// Eight times as long, and anything from twice to twenty times.
const STALLED: Service = Service { mean: 8.0 * MILLISECOND, shape: 2.0 };

impl Service {
    fn sample(self, rng: &mut impl Rng) -> f64 {
        let gamma = Gamma::new(self.shape, self.mean / self.shape).expect("a model's shape");
        gamma.sample(rng)
    }

    fn cdf(self, latency: f64) -> f64 {
        let gamma = GammaLaw::new(self.shape, self.shape / self.mean).expect("a model's shape");
        gamma.cdf(latency)
    }

    /// Share of operations that end before an exponential time of this mean does: the Laplace
    /// transform of the latency.
    fn outlived_by(self, mean_time: f64) -> f64 {
        (1.0 + self.mean / self.shape / mean_time).powf(-self.shape)
    }
}

/// How a device leaves a state.
#[derive(Clone, Copy)]
enum Stay {
    Forever,
    /// Geometric, by the mean number of operations.
    Operations(f64),
    /// Exponential, by the mean in ns; the change shows from the next operation on.
    Time(f64),
}

/// A device that alternates between two states.
#[derive(Clone, Copy)]
struct Model {
    name: &'static str,
    states: [(Service, Stay); 2],
    window: Nanos,
    /// Changes of state that every run has at the least.
    changes: u64,
}

const STEADY: Model = Model {
    name: "steady",
    states: [(NORMAL, Stay::Forever), (NORMAL, Stay::Forever)],
    window: Nanos::from_secs(2),
    changes: 0,
};

/// A burst every 82 ms on average, 150 in a window.
const STALLS: Model = Model {
    name: "stalls",
    states: [(NORMAL, Stay::Operations(50.0)), (STALLED, Stay::Operations(4.0))],
    window: Nanos::from_millis(12_300),
    changes: 200,
};

/// A change every 51 ms on average, 150 in a window.
const TWO_SPEED: Model = Model {
    name: "two-speed",
    states: [(NORMAL, Stay::Time(50.0 * MILLISECOND)), (SLOW, Stay::Time(50.0 * MILLISECOND))],
    window: Nanos::from_millis(7_700),
    changes: 100,
};

/// Some 25 slow operations: too few for a count over the window's length.
const FEW: Model = Model {
    name: "few",
    states: [(GLACIAL, Stay::Forever), (GLACIAL, Stay::Forever)],
    window: Nanos::from_millis(2_500),
    changes: 0,
};

impl Model {
    /// Mean number of operations in one stay in a state.
    fn operations(&self, state: usize) -> f64 {
        let (service, stay) = self.states[state];
        match stay {
            Stay::Forever => 1.0,
            Stay::Operations(mean) => mean,
            // Each operation ends the stay with the same probability, since an exponential time
            // has no memory: a geometric number.
            Stay::Time(mean) => 1.0 / (1.0 - service.outlived_by(mean)),
        }
    }

    /// Share of all operations that each state serves.
    fn shares(&self) -> [f64; 2] {
        let operations = [self.operations(0), self.operations(1)];
        operations.map(|own| own / (operations[0] + operations[1]))
    }

    fn mean(&self) -> f64 {
        let [first, second] = self.shares();
        first * self.states[0].0.mean + second * self.states[1].0.mean
    }

    fn quantile(&self, share: f64) -> f64 {
        let [first, second] = self.shares();
        let cdf = |q| first * self.states[0].0.cdf(q) + second * self.states[1].0.cdf(q);
        let mut low = 0.0;
        let mut high = 1_000.0 * MILLISECOND;
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if cdf(middle) < share { low = middle } else { high = middle }
        }
        (low + high) / 2.0
    }
}

/// A device at work, in virtual time.
struct Device {
    model: Model,
    rng: Pcg64Mcg,
    state: usize,
    /// Operations or nanoseconds until the state changes.
    left: f64,
    changes: u64,
}

impl Device {
    fn new(model: Model, seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let state = usize::from(rng.random_bool(model.shares()[1]));
        let mut device = Self { model, rng, state, left: 0.0, changes: 0 };
        device.left = device.stay();
        device
    }

    fn stay(&mut self) -> f64 {
        match self.model.states[self.state].1 {
            Stay::Forever => f64::INFINITY,
            Stay::Operations(mean) => {
                let failures = Geometric::new(1.0 / mean).expect("a model's stay");
                failures.sample(&mut self.rng) as f64 + 1.0
            }
            Stay::Time(mean) => {
                let time = Exp::new(1.0 / mean).expect("a model's stay");
                time.sample(&mut self.rng)
            }
        }
    }

    fn latency(&mut self) -> Nanos {
        let (service, stay) = self.model.states[self.state];
        let latency = service.sample(&mut self.rng);
        self.left -= if matches!(stay, Stay::Time(_)) { latency } else { 1.0 };
        if self.left <= 0.0 {
            self.state = 1 - self.state;
            self.changes += 1;
            self.left = self.stay();
        }
        Nanos(latency.round() as u64)
    }
}

/// A window that one worker fills; it can be looked at while it grows.
struct Run {
    device: Device,
    series: Series,
    /// What the last slice collects, before it joins the series.
    slice: Slice,
    /// Completion of the operation under way, and its latency.
    next: (Nanos, Nanos),
    first: Option<Nanos>,
    last: Nanos,
}

const SLICE: Nanos = Nanos::from_millis(4);

impl Run {
    fn new(model: Model, seed: u64) -> Self {
        let mut device = Device::new(model, seed);
        let latency = device.latency();
        let slice = Slice { length: SLICE, ..Slice::empty() };
        let series = Series::new(SLICE);
        Self { device, series, slice, next: (latency, latency), first: None, last: Nanos::ZERO }
    }

    fn until(&mut self, window: Nanos) -> Summary {
        while self.next.0 < window {
            let (now, latency) = self.next;
            if now >= self.slice.start + SLICE {
                self.flush(now);
            }
            self.slice.count(latency);
            self.first.get_or_insert(now);
            self.last = now;
            let latency = self.device.latency();
            self.next = (now + latency, latency);
        }
        self.flush(window);
        self.series.extend_to(window);
        let conditions = Conditions {
            window,
            workers: NonZeroU32::MIN,
            first_and_last: self.first.map(|first| (first, self.last)),
            clock_step: Nanos(1),
        };
        Summary::from_series(&self.series, &conditions)
    }

    fn flush(&mut self, now: Nanos) {
        let start = Nanos(now.0 - now.0 % SLICE.0);
        let next = Slice { start, length: SLICE, ..Slice::empty() };
        self.series.add(&std::mem::replace(&mut self.slice, next));
    }
}

/// How often intervals held the truth, and how wide they were.
#[derive(Default)]
struct Coverage {
    asked: u64,
    held: u64,
    width: f64,
}

impl Coverage {
    fn ask(&mut self, estimate: Option<Estimate>, truth: f64) {
        let Some(estimate) = estimate else { return };
        self.asked += 1;
        self.held += u64::from(estimate.holds(truth));
        self.width += estimate.relative_half_width();
    }

    fn percent(&self) -> f64 {
        100.0 * self.held as f64 / self.asked as f64
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.asked == 0 {
            return f.write_str("never");
        }
        let width = 100.0 * self.width / self.asked as f64;
        write!(f, "{:.1} % (±{width:.2} %, {})", self.percent(), self.asked)
    }
}

/// Prints the coverage of every figure over the summaries and returns that of the rate, the mean
/// and the median.
fn covered(model: Model, summaries: impl Iterator<Item = Summary>) -> [Coverage; 3] {
    let mean = model.mean();
    let quantiles = [0.5, 0.9, 0.99].map(|share| model.quantile(share));
    let mut coverages: [Coverage; 5] = Default::default();
    let mut batches = 0;
    let mut reliable = 0;
    let mut runs = 0;
    for summary in summaries {
        let [rate, of_mean, p50, p90, p99] = &mut coverages;
        rate.ask(Some(summary.rate), 1e9 / mean);
        of_mean.ask(summary.mean, mean);
        p50.ask(summary.p50, quantiles[0]);
        p90.ask(summary.p90, quantiles[1]);
        p99.ask(summary.p99, quantiles[2]);
        batches += summary.batches;
        reliable += u32::from(summary.reliable);
        runs += 1;
    }
    let [rate, of_mean, p50, p90, p99] = coverages;
    println!(
        "{}: rate {rate}, mean {of_mean}, p50 {p50}, p90 {p90}, p99 {p99}; {:.1} batches, {:.1} % \
         reliable",
        model.name,
        batches as f64 / f64::from(runs),
        100.0 * f64::from(reliable) / f64::from(runs),
    );
    [rate, of_mean, p50]
}

fn fixed_windows(model: Model) {
    let summaries = (0..RUNS).map(|seed| {
        let mut run = Run::new(model, seed);
        let summary = run.until(model.window);
        assert!(run.device.changes >= model.changes, "{}: run {seed} is too short", model.name);
        summary
    });
    for coverage in covered(model, summaries) {
        assert_eq!(coverage.asked, RUNS);
        assert!((92.0..=98.0).contains(&coverage.percent()), "{}: {coverage}", model.name);
    }
}

#[test]
fn steady_windows_hold_the_truth() {
    fixed_windows(STEADY);
}

#[test]
fn windows_with_few_operations_hold_the_truth() {
    fixed_windows(FEW);
}

#[test]
fn windows_with_stalls_hold_the_truth() {
    fixed_windows(STALLS);
}

#[test]
fn windows_of_a_device_with_two_speeds_hold_the_truth() {
    fixed_windows(TWO_SPEED);
}

/// Stopping because the interval looks narrow favours the intervals that are too narrow. How much
/// is to be known, not to be promised.
#[test]
#[ignore = "prints coverage under the stop rule; nothing is asserted, and it takes minutes"]
fn coverage_when_the_precision_ends_the_run() {
    for model in [STEADY, STALLS, TWO_SPEED] {
        let mut seconds = 0;
        let summaries = (0..500).map(|seed| {
            let mut run = Run::new(model, seed);
            let mut window = 2;
            loop {
                let summary = run.until(Nanos::from_secs(window));
                if summary.rate.relative_half_width() <= 0.01 || window == 1024 {
                    seconds += window;
                    return summary;
                }
                window *= 2;
            }
        });
        covered(model, summaries.collect::<Vec<_>>().into_iter());
        println!("{}: stopped after {:.1} s on average", model.name, seconds as f64 / 500.0);
    }
}
