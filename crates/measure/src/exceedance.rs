//! How often the latency lies beyond a bound at one offered rate, and whether a backlog grows.
//!
//! Latencies of an open loop depend on their neighbours: one that waits long makes the next wait
//! long. So the share beyond the bound is taken over batches of consecutive arrivals, and its
//! spread is that of the batches.

use crate::interval::Estimate;
use crate::ratio::Ratio;
use crate::units::{Nanos, PerSecond};

/// Batches that a level is cut into.
pub const LEVEL_BATCHES: usize = 20;

/// A backlog grows when a line explains this share of the variance of the batches' mean latencies
/// and ends at this many times its start. Batches of a stable queue scatter around a level.
const TREND_EXPLAINS: f64 = 0.5;
const TREND_GROWS: f64 = 2.0;

/// Or when the line rises by this share of the time that it is over: then so much more is offered
/// than served (the latency of an arrival at time t is (offered / served - 1) t), also where the
/// backlog was there before the level began.
const TREND_RISES: f64 = 0.25;

/// Consecutive arrivals of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalBatch {
    /// Arrivals by their intended start.
    pub arrivals: u64,
    /// Those of them whose latency, from the intended start, lies beyond the bound. One that failed
    /// or never ended counts.
    pub beyond: u64,
    /// The mean latency of all arrivals, from the intended start.
    pub mean_latency: Nanos,
    /// The shortest of these latencies.
    pub shortest_latency: Nanos,
    /// How long the device took for them: from the last end of the batch before to their last end.
    /// `None` in the first batch, and where one of them had not ended.
    pub taken: Option<Nanos>,
}

/// An arrival that took this many times as long as a call of one worker alone had to wait.
const WAITED: u64 = 3;

/// What the load generator did at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorHealth {
    /// It offered the rate, and its own delay stays below a tenth of the bound.
    Sound,
    /// Its own scheduling delay exceeds a tenth of the bound.
    Late,
    /// All of its workers were busy, or it could not offer the rate.
    Exhausted,
}

/// One offered rate and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLevel {
    /// Arrivals per second that the generator offered.
    pub rate: PerSecond,
    /// The arrivals in their order, warm-up left out.
    pub batches: Vec<ArrivalBatch>,
    /// What the load generator did.
    pub generator: GeneratorHealth,
}

/// The logarithm of a share and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogShare {
    pub(crate) log: f64,
    pub(crate) standard_error: f64,
    /// Degrees of freedom of the standard error.
    pub(crate) degrees: usize,
}

impl RateLevel {
    /// Arrivals of all batches.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.batches.iter().map(|batch| batch.arrivals).sum()
    }

    /// How long the rate was offered, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.arrivals() as f64 / self.rate.0
    }

    /// The share of the arrivals whose latency lies beyond the bound.
    #[must_use]
    pub fn share_beyond(&self) -> f64 {
        let beyond: u64 = self.batches.iter().map(|batch| batch.beyond).sum();
        beyond as f64 / self.arrivals().max(1) as f64
    }

    /// The share's standard error over the batches; infinite where they are too few.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        standard_error(&self.batches)
    }

    /// The latency rises over the whole level as it does where arrivals outrun the device. A level
    /// too short to reach the bound shows it by this alone.
    #[must_use]
    pub fn backlog_grows(&self) -> bool {
        let means = self.batches.iter().map(|batch| batch.mean_latency.0 as f64);
        let means: Vec<f64> = means.collect();
        let n = means.len() as f64;
        if means.len() < LEVEL_BATCHES / 2 {
            return false;
        }
        let middle = (n - 1.0) / 2.0;
        let mean = means.iter().sum::<f64>() / n;
        let squares = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let products = means.iter().enumerate().map(|(at, value)| (at as f64 - middle) * value);
        let spread = (n * n - 1.0) * n / 12.0;
        let slope = products.sum::<f64>() / spread;
        let explained = slope * slope * spread / squares.max(f64::MIN_POSITIVE);
        let start = mean - slope * middle;
        let end = mean + slope * middle;
        let rises = end >= TREND_GROWS * start || end - start >= TREND_RISES * 1e9 * self.seconds();
        slope > 0.0 && explained >= TREND_EXPLAINS && rises
    }
}

/// What the device serves while requests wait all the time: its capacity, per second. No higher
/// rate can be held, however short a level at it is. `unloaded` is the latency of one worker alone.
///
/// Taken from the levels whose backlog grows, over the batches in which every arrival had to wait
/// and which followed on such a batch. `None`: there are too few.
#[must_use]
pub fn capacity(levels: &[RateLevel], unloaded: Nanos) -> Option<Estimate> {
    let waited = |batch: &ArrivalBatch| batch.shortest_latency.0 > WAITED * unloaded.0;
    let growing = levels.iter().filter(|level| level.backlog_grows());
    let pairs = growing.flat_map(|level| level.batches.windows(2));
    let busy = pairs.filter(|pair| pair.iter().all(waited));
    let served = busy.filter_map(|pair| {
        let taken = pair[1].taken?;
        Some((pair[1].arrivals as f64, taken.as_secs_f64()))
    });
    let served: Vec<(f64, f64)> = served.collect();
    let enough = served.len() >= LEVEL_BATCHES / 2;
    Ratio::over(&served).filter(|_| enough).map(|served| served.estimate())
}

/// The logarithm of the share beyond the bound, over all these batches; `None` where no arrival, or
/// every one, lies beyond it.
pub(crate) fn log_share(batches: &[ArrivalBatch]) -> Option<LogShare> {
    let arrivals: u64 = batches.iter().map(|batch| batch.arrivals).sum();
    let beyond: u64 = batches.iter().map(|batch| batch.beyond).sum();
    if beyond == 0 || beyond == arrivals {
        return None;
    }
    let share = beyond as f64 / arrivals as f64;
    let standard_error = standard_error(batches) / share;
    Some(LogShare { log: share.ln(), standard_error, degrees: batches.len() - 1 })
}

/// Batches are long enough that neighbours hardly correlate. Only a correlation that stands out of
/// its own scatter (twice its standard error) is charged: charging each would widen every interval.
fn standard_error(batches: &[ArrivalBatch]) -> f64 {
    let parts: Vec<(f64, f64)> =
        batches.iter().map(|batch| (batch.beyond as f64, batch.arrivals as f64)).collect();
    let Some(ratio) = Ratio::over(&parts) else { return f64::INFINITY };
    let correlation = ratio.correlation().clamp(0.0, 0.9);
    let charged = ratio.standard_error();
    if correlation > 2.0 / (parts.len() as f64).sqrt() {
        charged
    } else {
        charged * ((1.0 - correlation) / (1.0 + correlation)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(mean_latencies: impl Iterator<Item = u64>) -> RateLevel {
        let batch = |mean| ArrivalBatch {
            arrivals: 100,
            beyond: 1,
            mean_latency: Nanos(mean),
            shortest_latency: Nanos(mean),
            taken: Some(Nanos::from_secs(1)),
        };
        RateLevel {
            rate: PerSecond(1.0),
            batches: mean_latencies.map(batch).collect(),
            generator: GeneratorHealth::Sound,
        }
    }

    #[test]
    fn a_rising_latency_is_a_growing_backlog_and_a_scattered_one_is_none() {
        assert!(level((1..=20).map(|at| at * 1000)).backlog_grows());
        assert!(!level((1..=20).map(|at| 100_000 + at * 1000)).backlog_grows());
        assert!(!level((1..=20).map(|at| 50_000 + at * 7919 % 20 * 1000)).backlog_grows());
        assert!(!level((1..=20).map(|at| (21 - at) * 1000)).backlog_grows());
    }

    #[test]
    fn a_backlog_that_was_there_before_still_grows_where_more_is_offered_than_served() {
        // 2,000 arrivals in 2,000 s, from 5,000 s of waiting on: half of that time more at the end.
        let rising = |by: u64| level((0..20).map(move |at| 5_000_000_000_000 + at * by));
        assert!(rising(1_000_000_000_000 / 19).backlog_grows());
        assert!(!rising(200_000_000_000 / 19).backlog_grows());
    }

    #[test]
    fn shares_are_sums_over_sums() {
        let level = level((0..20).map(|_| 5));
        assert_eq!((level.arrivals(), level.share_beyond()), (2000, 0.01));
        assert_eq!(level.standard_error(), 0.0);
        let log = log_share(&level.batches).unwrap();
        assert_eq!((log.log, log.degrees), (0.01_f64.ln(), 19));
        let none = ArrivalBatch { beyond: 0, ..level.batches[0] };
        assert_eq!(log_share(&[none; 20]), None);
    }

    #[test]
    fn the_capacity_is_what_is_served_while_all_wait_at_levels_that_grow() {
        let growing = level((1..=20).map(|at| at * 1000));
        let estimate = capacity(std::slice::from_ref(&growing), Nanos(1)).unwrap();
        assert_eq!((estimate.low, estimate.estimate, estimate.high), (100.0, 100.0, 100.0));
        // Up to three times the unloaded latency nobody is known to have waited: ten pairs of
        // batches are left, and one fewer is too few.
        assert!(capacity(std::slice::from_ref(&growing), Nanos(9_999 / 3)).is_some());
        assert_eq!(capacity(std::slice::from_ref(&growing), Nanos(10_000 / 3 + 1)), None);
        let steady = level((0..20).map(|_| 100_000));
        assert_eq!(capacity(&[steady], Nanos(1)), None);
        let not_ended = |batch: &ArrivalBatch| ArrivalBatch { taken: None, ..*batch };
        let batches = growing.batches.iter().map(not_ended).collect();
        assert_eq!(capacity(&[RateLevel { batches, ..growing }], Nanos(1)), None);
    }

    /// A level of so many arrivals in each batch, with these mean latencies.
    fn with_means(arrivals: u64, means: impl Iterator<Item = u64>) -> RateLevel {
        let mut level = level(means);
        level.batches.iter_mut().for_each(|batch| batch.arrivals = arrivals);
        level
    }

    #[test]
    fn a_backlog_grows_where_the_line_ends_at_twice_its_start() {
        // The line through the batches' means is those means: from 19 to 38, and from 20 to 39.
        assert!(level(19..39).backlog_grows());
        assert!(!level(20..40).backlog_grows());
        assert!(!level((0..20).map(|_| 5)).backlog_grows(), "a level line");
    }

    #[test]
    fn a_backlog_grows_where_the_line_explains_half_of_the_variance() {
        // The scatter has no mean and no slope: it adds 20 c² to the 665 · 10² of the line itself.
        let scattered = |c: u64| {
            level((0..20).map(move |at| {
                let on_line = 100 + 10 * at;
                if at % 4 == 0 || at % 4 == 3 { on_line + c } else { on_line - c }
            }))
        };
        // 20 times 57² is 64,980 and 20 times 58² is 67,280; the line has 66,500.
        assert!(scattered(57).backlog_grows());
        assert!(!scattered(58).backlog_grows());
    }

    #[test]
    fn a_backlog_grows_where_the_line_rises_by_a_quarter_of_its_time() {
        // 20 times 95 arrivals at 1/s are 1,900 s: a quarter of that is 19 times 25 s.
        let rising = |by: u64| with_means(95, (0..20).map(move |at| 10_000_000_000_000 + at * by));
        assert!(rising(25_000_000_000).backlog_grows());
        assert!(!rising(24_999_000_000).backlog_grows());
    }

    #[test]
    fn ten_batches_are_enough_for_a_trend() {
        assert!(level((1..=10).map(|at| at * 1000)).backlog_grows());
        assert!(!level((1..=9).map(|at| at * 1000)).backlog_grows());
    }

    /// Batches of 100 arrivals of which 6 or 4 lie beyond the bound.
    fn above_and_below(above: impl Fn(u64) -> bool) -> Vec<ArrivalBatch> {
        let level = level((0..20).map(|_| 5));
        let beyond = |place: u64| if above(place) { 6 } else { 4 };
        let batches = level.batches.iter().zip(0..);
        batches.map(|(batch, place)| ArrivalBatch { beyond: beyond(place), ..*batch }).collect()
    }

    #[test]
    fn only_a_correlation_that_stands_out_is_charged() {
        // Residuals of 1: the variance of the sum is 20 times 20/19, and the sum is 2,000.
        let independent = (20.0 * 20.0 / 19.0_f64).sqrt() / 2_000.0;
        // Of 19 neighbours 10 are alike and 9 are not: 1/20, less than 2 over the root of 20.
        let pairs = above_and_below(|place| place / 2 % 2 == 0);
        assert!((standard_error(&pairs) - independent).abs() < 1e-12, "{}", standard_error(&pairs));
        // 16 alike and 3 not: 13/20, which charges (1 + r) / (1 - r) to the variance.
        let runs = above_and_below(|place| place / 5 % 2 == 0);
        let charged = independent * (1.65 / 0.35_f64).sqrt();
        assert!((standard_error(&runs) - charged).abs() < 1e-12, "{}", standard_error(&runs));
        assert_eq!(standard_error(&runs[..2]), f64::INFINITY);
    }

    #[test]
    fn the_error_of_a_logarithm_is_relative() {
        let pairs = above_and_below(|place| place / 2 % 2 == 0);
        let found = log_share(&pairs).unwrap();
        assert!((found.log - 0.05_f64.ln()).abs() < 1e-12);
        assert!((found.standard_error - standard_error(&pairs) / 0.05).abs() < 1e-12);
        let all = ArrivalBatch { beyond: 100, ..pairs[0] };
        assert_eq!(log_share(&[all; 20]), None, "every arrival");
    }
}
