//! The highest offered rate whose latency stays within a bound: `p99 <= 5ms`.
//!
//! A quantile stays within the bound as long as the share of arrivals beyond it is at most what the
//! quantile leaves: 1 % for p99. That share rises with the rate, so the rate at which it is reached
//! is looked for, in three stages:
//!
//! 1. **Bracket.** The rate doubles from the first one until a level lies beyond the bound or its
//!    backlog grows, or is halved until one does not, and the gap is halved. Short levels.
//! 2. **Approach.** A line through the logarithm of the share, from the level on either side, says
//!    where to look next. Longer levels.
//! 3. **Decide.** Two rates close to that place, on either side of it, in turns: low, high, high,
//!    low. A line through the two is read where it reaches the wanted share (Fieller's theorem
//!    gives the interval: Fieller, J. R. Stat. Soc. B 16, 1954). Only these levels make the figure:
//!    the earlier ones chose the place, and would draw the figure to where they erred.
//!
//! The line is drawn over the logarithm of the rate. Between the two rates the share of M/D/1 and
//! M/D/4 departs from it by less than 1 %, whatever the utilisation; over the rate itself, or over
//! the gap between arrivals, by several times that.
//!
//! Where the backlog begins to grow before the share is reached, as with a bound far above the
//! service time, the two rates between which it happens are the interval. A short level cannot show
//! that a backlog grows slowly; but levels at which it grew show what the device serves while
//! requests wait all the time, and no rate above that can be held.
//!
//! Everything here is pure: what measures a rate is the trait [`MeasuresRates`], so the search runs
//! in virtual time against queues of which the answer is known.

use crate::exceedance::{ArrivalBatch, GeneratorHealth, LogShare, RateLevel, capacity, log_share};
use crate::interval::{Estimate, student_t};
use crate::units::{Nanos, PerSecond};

/// Offers a rate and notes what came of it.
pub trait MeasuresRates {
    /// Why nothing could be measured.
    type Error;

    /// Offers `rate` for so many arrivals after a warm-up, in
    /// [`LEVEL_BATCHES`](crate::exceedance::LEVEL_BATCHES) batches. `None`: the user or a time limit
    /// ended the search.
    ///
    /// # Errors
    /// When the device or the generator failed.
    fn measure_rate(
        &mut self,
        rate: PerSecond,
        arrivals: u64,
    ) -> Result<Option<RateLevel>, Self::Error>;
}

/// What is looked for, and with how much effort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WithinPlan {
    /// The share that may lie beyond the bound: 0.01 for p99.
    pub share: f64,
    /// The bound on the latency.
    pub longest: Nanos,
    /// The mean latency of one worker alone.
    pub unloaded: Nanos,
    /// The rate that is offered first.
    pub first: PerSecond,
    /// No lower rate is offered.
    pub lowest: PerSecond,
    /// No higher rate is offered.
    pub highest: PerSecond,
    /// Arrivals of a level near the bound.
    pub arrivals: u64,
    /// Half the interval over the rate: more levels are measured until it is as narrow as this.
    pub precision: f64,
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LatencyLimit {
    /// The highest rate within the bound, per second, with its interval.
    Rate(Estimate),
    /// Even the lowest rate lies beyond the bound.
    NoRate,
    /// This rate lies within the bound; what is beyond it is not known.
    AtLeast(PerSecond, WithinEnd),
    /// Nothing can be said.
    Unknown(WithinEnd),
}

/// Why the search could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinEnd {
    /// The generator's own delay exceeded a tenth of the bound.
    GeneratorLate,
    /// The generator could not offer the rate.
    GeneratorExhausted,
    /// The highest rate that may be offered lies within the bound.
    RateCap,
    /// The user or a time limit ended it.
    Interrupted,
    /// So many levels did not narrow it down.
    LevelCap,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct WithinResult {
    /// The limit, or why it is not known.
    pub limit: LatencyLimit,
    /// Every level that was measured, in order.
    pub levels: Vec<RateLevel>,
}

/// A bracket is narrow enough to approach from here on.
const BRACKET: f64 = 1.3;

/// No level is offered to narrow a bracket further than this.
const NARROWEST: f64 = 1.01;

/// By so much a rate gives way at which the backlog grew.
const GIVES_WAY: f64 = 1.02;

/// Levels of the second stage.
const APPROACHES: usize = 3;

/// The two rates of the third stage lie where the share is this far from the wanted one, as a
/// logarithm: near enough that the line between them is straight.
const LOG_DISTANCE: f64 = 0.6;

/// From this share on, its logarithm flattens: no more than all arrivals can lie beyond.
const STRAIGHT: f64 = 0.5;

/// Rounds of low, high, high, low. A device that needs more is too noisy for the precision.
const MOST_ROUNDS: usize = 4;

/// So many places are tried, each with two rates.
const MOST_PLACES: usize = 3;

/// A place is too far from the limit when the limit is this many times farther away than the two
/// rates are.
const FAR_OFF: f64 = 2.0;

/// No search takes more levels.
const MOST_LEVELS: usize = 60;

/// A level that is over sooner, in bounds, says of no rate that it is within: a backlog that grows
/// by a tenth of the time needs ten bounds to reach one.
const LASTING: f64 = 10.0;

impl WithinPlan {
    /// Arrivals of a level that only has to tell one side from the other.
    fn coarse_arrivals(&self) -> u64 {
        ((50.0 / self.share) as u64).min(self.arrivals)
    }

    /// Arrivals of a level of the second stage.
    fn approach_arrivals(&self) -> u64 {
        (self.arrivals * 2 / 5).max(self.coarse_arrivals())
    }

    /// How long the search takes, roughly, if the limit is at this rate: seconds.
    #[must_use]
    pub fn expected_seconds(&self, limit: PerSecond) -> f64 {
        // Doubling halves the time of a level: all of them take twice that of the first.
        let doubling = 2.0 * self.coarse_arrivals() as f64 / self.first.0.min(limit.0);
        let coarse = 2.0 * self.coarse_arrivals() as f64;
        let near = self.approach_arrivals() as f64 * APPROACHES as f64 + 4.0 * self.arrivals as f64;
        doubling + (coarse + near) / limit.0
    }
}

/// Looks for the highest rate within the bound.
///
/// # Errors
/// What [`MeasuresRates::measure_rate`] fails with.
pub fn find_rate_within<M: MeasuresRates>(
    plan: WithinPlan,
    device: &mut M,
) -> Result<WithinResult, M::Error> {
    let mut search = Search { plan, device, levels: Vec::new() };
    let limit = match search.search()? {
        Ok(limit) => limit,
        Err(end) => search.known_so_far(end),
    };
    Ok(WithinResult { limit, levels: search.levels })
}

struct Search<'a, M> {
    plan: WithinPlan,
    device: &'a mut M,
    levels: Vec<RateLevel>,
}

/// A rate and on which side of the bound it lies.
#[derive(Clone, Copy, Debug)]
struct Side {
    rate: f64,
    /// The logarithm of the share beyond the bound; `None`: the backlog grows.
    log: Option<f64>,
    beyond: bool,
}

/// The level on either side of the bound.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    low: Side,
    high: Side,
    /// A level outside of it agreed with it.
    confirmed: bool,
}

impl Bracket {
    fn ratio(&self) -> f64 {
        self.high.rate / self.low.rate
    }

    /// With a level between the two in the place of the one on its side; one outside of it may
    /// confirm it.
    fn narrowed(self, side: Side) -> Self {
        if (self.low.rate..self.high.rate).contains(&side.rate) {
            return if side.beyond {
                Self { high: side, ..self }
            } else {
                Self { low: side, ..self }
            };
        }
        let agrees = side.beyond == (side.rate >= self.high.rate);
        Self { confirmed: self.confirmed || agrees, ..self }
    }

    /// Where the limit probably is. A short level may have been on the wrong side by chance: the line
    /// over all levels may lead out of the bracket, until a level there says that it was right.
    fn place(&self, line: Option<Line>, wanted: f64) -> f64 {
        match line.map(|line| line.crossing) {
            Some(rate) if !self.confirmed || (self.low.rate..=self.high.rate).contains(&rate) => {
                self.nearly(rate)
            }
            _ => self.crossing(wanted),
        }
    }

    /// This rate, or the end that is nearer, of a range somewhat wider than the bracket.
    fn nearly(&self, rate: f64) -> f64 {
        rate.clamp(self.low.rate / BRACKET, self.high.rate * BRACKET)
    }

    /// Where the line through both sides reaches this logarithm, kept inside the bracket.
    fn crossing(&self, wanted: f64) -> f64 {
        let middle = (self.low.rate * self.high.rate).sqrt();
        let (Some(low), Some(high)) = (self.low.log, self.high.log) else { return middle };
        if high <= low {
            return middle;
        }
        let part = ((wanted - low) / (high - low)).clamp(0.1, 0.9);
        self.low.rate * self.ratio().powf(part)
    }
}

/// The line through the logarithms of share and rate, over the levels near the wanted share.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// By how much the logarithm of the share rises with that of the rate.
    slope: f64,
    /// The rate at which it reaches the wanted share.
    crossing: f64,
}

impl Line {
    /// By least squares, each level by how many of its arrivals lie beyond the bound: their number
    /// alone makes a share precise. `None`: there are no two rates near, or it does not rise.
    fn near(levels: &[RateLevel], share: f64) -> Option<Self> {
        /// So far from the wanted share, as a logarithm, the line is still straight enough.
        const NEAR: f64 = 2.5;
        let near = levels.iter().filter(|level| !level.backlog_grows());
        let points = near.filter_map(|level| {
            let beyond = level.share_beyond();
            let log = beyond.ln();
            let near = (log - share.ln()).abs() <= NEAR && beyond < STRAIGHT;
            near.then_some((level.rate.0.ln(), log, beyond * level.arrivals() as f64))
        });
        let points: Vec<(f64, f64, f64)> = points.collect();
        let total: f64 = points.iter().map(|(_, _, weight)| weight).sum();
        let mean_of = |value: fn(&(f64, f64, f64)) -> f64| {
            points.iter().map(|point| value(point) * point.2).sum::<f64>() / total
        };
        let middle = mean_of(|point| point.0);
        let height = mean_of(|point| point.1);
        let spread: f64 = points.iter().map(|(x, _, w)| w * (x - middle).powi(2)).sum();
        let products: f64 = points.iter().map(|(x, y, w)| w * (x - middle) * (y - height)).sum();
        let slope = products / spread;
        let rises = spread > 0.0 && slope > 0.0;
        rises.then(|| Self { slope, crossing: (middle + (share.ln() - height) / slope).exp() })
    }
}

type Step<T, E> = Result<Result<T, WithinEnd>, E>;

/// Goes on with what a step gave; what ended the search is passed on.
macro_rules! go_on {
    ($step:expr) => {
        match $step? {
            Ok(value) => value,
            Err(end) => return Ok(Err(end)),
        }
    };
}

impl<M: MeasuresRates> Search<'_, M> {
    fn search(&mut self) -> Step<LatencyLimit, M::Error> {
        let Some((low, high)) = go_on!(self.first_levels()) else {
            return Ok(Ok(LatencyLimit::NoRate));
        };
        let bracket = go_on!(self.bracket(low, high));
        let bracket = go_on!(self.approach(bracket));
        self.decide(bracket)
    }

    /// From the first rate down to one that lies within the bound, with the one above it; `None`:
    /// even the lowest lies beyond.
    fn first_levels(&mut self) -> Step<Option<(Side, Option<Side>)>, M::Error> {
        let lowest = self.plan.lowest.0;
        let mut rate = self.plan.first.0.max(lowest);
        let mut above = None;
        loop {
            let side = go_on!(self.level(rate, self.plan.coarse_arrivals()));
            if !side.beyond {
                return Ok(Ok(Some((side, above))));
            }
            if rate <= lowest {
                break;
            }
            above = Some(side);
            rate = (rate / 2.0).max(lowest);
        }
        // A few arrivals more than the share by chance are no verdict.
        let again = go_on!(self.level(lowest, self.plan.arrivals));
        Ok(Ok((!again.beyond).then_some((again, above))))
    }

    fn bracket(&mut self, low: Side, high: Option<Side>) -> Step<Bracket, M::Error> {
        let mut low = low;
        let mut bracket = loop {
            if let Some(high) = high {
                break Bracket { low, high, confirmed: false };
            }
            if low.rate >= self.plan.highest.0 {
                return Ok(Err(WithinEnd::RateCap));
            }
            let rate = (low.rate * 2.0).min(self.plan.highest.0);
            let next = go_on!(self.level(rate, self.plan.coarse_arrivals()));
            if next.beyond {
                break Bracket { low, high: next, confirmed: false };
            }
            low = next;
        };
        while bracket.ratio() > BRACKET {
            let middle = (bracket.low.rate * bracket.high.rate).sqrt();
            let side = go_on!(self.level(middle, self.plan.coarse_arrivals()));
            bracket = bracket.narrowed(side);
        }
        Ok(Ok(bracket))
    }

    fn approach(&mut self, bracket: Bracket) -> Step<Bracket, M::Error> {
        let wanted = self.plan.share.ln();
        let mut bracket = bracket;
        let mut taken = 0;
        // A side whose backlog grows says nothing of the slope: it has to go first.
        while (taken < APPROACHES || bracket.high.log.is_none()) && bracket.ratio() > NARROWEST {
            let line = Line::near(&self.levels, self.plan.share);
            let rate = bracket.place(line, wanted);
            let side = go_on!(self.level(rate, self.plan.approach_arrivals()));
            bracket = bracket.narrowed(side);
            taken += 1;
        }
        Ok(Ok(bracket))
    }

    fn decide(&mut self, bracket: Bracket) -> Step<LatencyLimit, M::Error> {
        let mut found = None;
        // What an earlier place pointed to, farther away than its two rates tell.
        let mut pointed_to: Option<f64> = None;
        for _ in 0..MOST_PLACES {
            let Some(line) = Line::near(&self.levels, self.plan.share) else {
                return self.confirm(bracket);
            };
            let place = bracket.place(Some(line), self.plan.share.ln());
            let centre = pointed_to.unwrap_or(place);
            let distance = (LOG_DISTANCE / line.slope).clamp(0.002, 0.1);
            let mut pair = Pair::new(centre, distance);
            for _ in 0..MOST_ROUNDS {
                if let Some(grows_at) = go_on!(self.round(&mut pair)) {
                    let high = Side { rate: grows_at, log: None, beyond: true };
                    let below = bracket.low.rate.min(grows_at / GIVES_WAY);
                    let low = Side { rate: below, ..bracket.low };
                    return self.confirm(Bracket { low, high, ..bracket });
                }
                found = pair.crossing(self.plan.share);
                let Some(limit) = found else { continue };
                if (limit.estimate / centre).ln().abs() / distance > FAR_OFF {
                    pointed_to = Some(limit.estimate.clamp(centre / BRACKET, centre * BRACKET));
                    // No line is straight for so long: its place holds, not its interval.
                    found = None;
                    break;
                }
                if limit.relative_half_width() <= self.plan.precision {
                    return Ok(Ok(LatencyLimit::Rate(limit)));
                }
            }
        }
        Ok(found.map(LatencyLimit::Rate).ok_or(WithinEnd::LevelCap))
    }

    /// Low, high, high, low; gives the rate at which the backlog grew, if it did.
    fn round(&mut self, pair: &mut Pair) -> Step<Option<f64>, M::Error> {
        for end in [PairEnd::Low, PairEnd::High, PairEnd::High, PairEnd::Low] {
            let level = go_on!(self.measured(pair.rate(end), self.plan.arrivals));
            if self.grows(&level) {
                return Ok(Ok(Some(level.rate.0)));
            }
            pair.add(&level, end);
        }
        Ok(Ok(None))
    }

    /// The limit lies where the backlog begins to grow. A level as long as those near a bound has
    /// to show that it does not at the lower rate, which gives way until one does. The higher rate
    /// may have been found to grow by chance: where the capacity is known, it stands in its place.
    fn confirm(&mut self, bracket: Bracket) -> Step<LatencyLimit, M::Error> {
        let mut bracket = bracket;
        loop {
            let low = go_on!(self.level(bracket.low.rate, self.plan.arrivals));
            if !low.beyond {
                let shown = between(low.rate, bracket.high.rate);
                return Ok(Ok(self.capacity().map_or(shown, |served| {
                    between(low.rate.min(served.low), low.rate.max(served.high))
                })));
            }
            let below = self.capacity().map_or(low.rate, |served| low.rate.min(served.high));
            let given_way = Side { rate: below / GIVES_WAY, ..low };
            bracket = Bracket { low: given_way, high: low, ..bracket };
        }
    }

    /// The backlog grows, or would have, had the level been longer.
    fn grows(&self, level: &RateLevel) -> bool {
        level.backlog_grows() || self.capacity().is_some_and(|most| level.rate.0 > most.high)
    }

    fn capacity(&self) -> Option<Estimate> {
        capacity(&self.levels, self.plan.unloaded)
    }

    fn level(&mut self, rate: f64, arrivals: u64) -> Step<Side, M::Error> {
        let mut level = go_on!(self.measured(rate, arrivals));
        if level.backlog_grows() && self.capacity().is_none() {
            // Short levels grow by chance now and then: where nobody had to wait for long, a longer
            // one decides.
            level = go_on!(self.measured(rate, self.plan.arrivals));
        }
        let grows = self.grows(&level);
        let share = level.share_beyond();
        // A share of nothing has no logarithm: half an arrival stands for it.
        let half = 0.5 / level.arrivals().max(1) as f64;
        let log = (!grows && share < STRAIGHT).then(|| share.max(half).ln());
        Ok(Ok(Side { rate, log, beyond: grows || share > self.plan.share }))
    }

    fn measured(&mut self, rate: f64, arrivals: u64) -> Step<RateLevel, M::Error> {
        if self.levels.len() >= MOST_LEVELS {
            return Ok(Err(WithinEnd::LevelCap));
        }
        let Some(level) = self.device.measure_rate(PerSecond(rate), arrivals)? else {
            return Ok(Err(WithinEnd::Interrupted));
        };
        self.levels.push(level.clone());
        Ok(match level.generator {
            GeneratorHealth::Sound => Ok(level),
            GeneratorHealth::Late => Err(WithinEnd::GeneratorLate),
            GeneratorHealth::Exhausted => Err(WithinEnd::GeneratorExhausted),
        })
    }

    /// The highest rate that lies within the bound for sure, where the search had to end.
    fn known_so_far(&self, end: WithinEnd) -> LatencyLimit {
        let within = |level: &&RateLevel| {
            let degrees = level.batches.len().saturating_sub(1).max(1);
            // Without two batches the standard error is infinite: that is within nothing.
            let reach = level.share_beyond() + student_t(degrees) * level.standard_error();
            level.generator == GeneratorHealth::Sound
                && level.seconds() >= LASTING * self.plan.longest.as_secs_f64()
                && !self.grows(level)
                && reach <= self.plan.share
        };
        // No rate is within that lies above one which was beyond, or was so at another time.
        let share = self.plan.share;
        let beyond = |level: &&RateLevel| self.grows(level) || level.share_beyond() > share;
        let lowest_beyond = self.levels.iter().filter(beyond).map(|level| level.rate.0);
        let lowest_beyond = lowest_beyond.fold(f64::INFINITY, f64::min);
        let rates = self.levels.iter().filter(within).map(|level| level.rate);
        let rates = rates.filter(|rate| rate.0 < lowest_beyond);
        match rates.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some(rate) => LatencyLimit::AtLeast(rate, end),
            None => LatencyLimit::Unknown(end),
        }
    }
}

/// The limit lies between a rate within the bound and one whose backlog grows.
fn between(low: f64, high: f64) -> LatencyLimit {
    LatencyLimit::Rate(Estimate { estimate: (low * high).sqrt(), low, high })
}

/// One of the two rates of the third stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairEnd {
    Low,
    High,
}

/// The two rates of the third stage, with the batches of all their levels.
struct Pair {
    low: f64,
    high: f64,
    of_low: Vec<ArrivalBatch>,
    of_high: Vec<ArrivalBatch>,
}

impl Pair {
    fn new(centre: f64, distance: f64) -> Self {
        let low = centre * (-distance).exp();
        let high = centre * distance.exp();
        Self { low, high, of_low: Vec::new(), of_high: Vec::new() }
    }

    fn rate(&self, end: PairEnd) -> f64 {
        match end {
            PairEnd::Low => self.low,
            PairEnd::High => self.high,
        }
    }

    fn add(&mut self, level: &RateLevel, end: PairEnd) {
        let batches = match end {
            PairEnd::Low => &mut self.of_low,
            PairEnd::High => &mut self.of_high,
        };
        batches.extend(&level.batches);
    }

    /// The rate at which the share is reached; `None`: the two rates do not tell.
    fn crossing(&self, share: f64) -> Option<Estimate> {
        let low = log_share(&self.of_low)?;
        let high = log_share(&self.of_high)?;
        let place = fieller(low, high, share.ln())?;
        let ratio = (self.high / self.low).ln();
        Some(place.map(|place| self.low * (place * ratio).exp()))
    }
}

/// Where the line from `low` (at 0) to `high` (at 1) reaches `wanted`, by Fieller's theorem: all
/// places at which the line's own interval holds `wanted`. `None`: they do not end.
fn fieller(low: LogShare, high: LogShare, wanted: f64) -> Option<Estimate> {
    let t = student_t(low.degrees.min(high.degrees));
    let variance_low = (t * low.standard_error).powi(2);
    let variance_high = (t * high.standard_error).powi(2);
    let rise = high.log - low.log;
    let missing = wanted - low.log;
    // (missing - x rise)² <= (1 - x)² variance_low + x² variance_high, a quadratic in x.
    let a = rise * rise - variance_low - variance_high;
    let b = missing * rise - variance_low;
    let c = missing * missing - variance_low;
    if a <= 0.0 || rise <= 0.0 {
        return None;
    }
    // The estimate is always such a place, so there are two ends: what is below 0 is rounding.
    let root = (b * b - a * c).max(0.0).sqrt();
    Some(Estimate { estimate: missing / rise, low: (b - root) / a, high: (b + root) / a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fieller_is_the_line_read_backwards() {
        let at = |log, standard_error| LogShare { log, standard_error, degrees: 1_000_000 };
        let exact = fieller(at(-5.0, 0.0), at(-4.0, 0.0), -4.6).unwrap();
        assert!((exact.estimate - 0.4).abs() < 1e-12 && exact.high - exact.low < 1e-9);
        // At one end only that end's own spread counts, over the slope.
        let end = fieller(at(-5.0, 0.01), at(-4.0, 0.0), -5.0).unwrap();
        assert!((end.high - 1.96 * 0.01).abs() < 1e-3, "{end:?}");
        assert_eq!(fieller(at(-5.0, 0.6), at(-4.9, 0.6), -4.95), None, "no slope, no end");
        assert_eq!(fieller(at(-4.0, 0.01), at(-5.0, 0.01), -4.5), None, "it falls");
    }

    #[test]
    fn an_exact_line_has_its_place_whatever_the_rounding() {
        // Without spread the interval is the place itself. Its square root is of nothing, or of a
        // rounding error of either sign.
        let at = |log| LogShare { log, standard_error: 0.0, degrees: 19 };
        for step in 1..200 {
            let log = -7.0 + f64::from(step) / 61.0;
            let found = fieller(at(-7.1), at(-3.3), log).unwrap_or_else(|| panic!("{log}"));
            let place = (log + 7.1) / 3.8;
            assert!((found.estimate - place).abs() < 1e-9, "{log}: {found:?}");
            assert!((found.low - place).abs() < 1e-6, "{log}: {found:?}");
            assert!((found.high - place).abs() < 1e-6, "{log}: {found:?}");
        }
    }

    #[test]
    fn the_ends_of_fieller_lie_where_the_line_just_holds_the_share() {
        let low = LogShare { log: -5.2, standard_error: 0.11, degrees: 5 };
        let high = LogShare { log: -3.9, standard_error: 0.07, degrees: 9 };
        for (low, high) in [(low, high), (low, LogShare { degrees: 5, ..high })] {
            let found = fieller(low, high, -4.4).unwrap();
            assert!((found.estimate - 0.8 / 1.3).abs() < 1e-12, "{found:?}");
            for place in [found.low, found.high] {
                // How far the line lies from the share there, and its own standard error there.
                let missed = -4.4 - (-5.2 + 1.3 * place);
                let error = (0.11 * (1.0 - place)).hypot(0.07 * place);
                // Student's t at 97.5 % with 5 degrees of freedom, the fewer of the two.
                assert!((missed.abs() - 2.570_582 * error).abs() < 1e-6, "{found:?} {place}");
            }
            assert!(found.low < found.estimate && found.estimate < found.high, "{found:?}");
        }
    }

    const PLAN: WithinPlan = WithinPlan {
        share: 0.01,
        longest: Nanos::from_millis(5),
        unloaded: Nanos::from_millis(1),
        first: PerSecond(10.0),
        lowest: PerSecond(10.0),
        highest: PerSecond(10_000.0),
        arrivals: 1_000_000,
        precision: 0.03,
    };

    /// Twenty equal batches with this share beyond the bound, rounded to whole arrivals.
    fn steady(rate: f64, arrivals: u64, share: f64) -> RateLevel {
        let each = arrivals / 20;
        let batch = ArrivalBatch {
            arrivals: each,
            beyond: (each as f64 * share).round() as u64,
            mean_latency: Nanos::from_millis(2),
            shortest_latency: Nanos::from_millis(1),
            taken: None,
        };
        RateLevel {
            rate: PerSecond(rate),
            batches: vec![batch; 20],
            generator: GeneratorHealth::Sound,
        }
    }

    /// The same with latencies that rise from batch to batch.
    fn growing(rate: f64, arrivals: u64, share: f64) -> RateLevel {
        let mut level = steady(rate, arrivals, share);
        for (batch, millis) in level.batches.iter_mut().zip(1..) {
            batch.mean_latency = Nanos::from_millis(millis);
        }
        level
    }

    /// Grows, and serves 100 arrivals per second while all wait.
    fn growing_at_capacity(rate: f64) -> RateLevel {
        let mut level = growing(rate, 2_000, 0.0);
        for batch in &mut level.batches {
            batch.shortest_latency = Nanos::from_millis(4);
            batch.taken = Some(Nanos::from_secs(1));
        }
        level
    }

    /// Answers each rate and number of arrivals by a function, and keeps what was asked.
    struct Scripted<F> {
        level: F,
        offered: Vec<(f64, u64)>,
    }

    impl<F: FnMut(f64, u64) -> Option<RateLevel>> MeasuresRates for Scripted<F> {
        type Error = std::convert::Infallible;

        fn measure_rate(
            &mut self,
            rate: PerSecond,
            arrivals: u64,
        ) -> Result<Option<RateLevel>, Self::Error> {
            self.offered.push((rate.0, arrivals));
            Ok((self.level)(rate.0, arrivals))
        }
    }

    /// What a search finds, and the rates and arrivals that it offered.
    fn searched(
        plan: WithinPlan,
        level: impl FnMut(f64, u64) -> Option<RateLevel>,
    ) -> (LatencyLimit, Vec<(f64, u64)>) {
        let mut device = Scripted { level, offered: Vec::new() };
        let found = find_rate_within(plan, &mut device);
        let limit = found.unwrap_or_else(|never| match never {}).limit;
        (limit, device.offered)
    }

    fn assert_offered(offered: &[(f64, u64)], expected: &[(f64, u64)]) {
        let alike = |(one, other): (&(f64, u64), &(f64, u64))| {
            (one.0 / other.0 - 1.0).abs() < 1e-9 && one.1 == other.1
        };
        let all = offered.len() == expected.len() && offered.iter().zip(expected).all(alike);
        assert!(all, "offered {offered:?}\nexpected {expected:?}");
    }

    #[test]
    fn levels_have_the_arrivals_that_their_stage_needs() {
        // 50 beyond the bound tell one side from the other; 0.01 of 5,000 are 50.
        assert_eq!((PLAN.coarse_arrivals(), PLAN.approach_arrivals()), (5_000, 400_000));
        let with = |arrivals| WithinPlan { arrivals, ..PLAN };
        assert_eq!(with(3_000).coarse_arrivals(), 3_000);
        assert_eq!(with(10_000).approach_arrivals(), 5_000, "two fifths would be too few");
        assert_eq!(with(20_000).approach_arrivals(), 8_000);
        assert_eq!(WithinPlan { share: 0.3, ..PLAN }.coarse_arrivals(), 166);
    }

    #[test]
    fn the_expected_time_is_that_of_all_levels() {
        // 10,000 arrivals while it doubles, 10,000 while the gap is halved, three times 20,000
        // nearby and four times 50,000 at the end.
        let plan = WithinPlan { arrivals: 50_000, first: PerSecond(50.0), ..PLAN };
        let seconds = |limit| plan.expected_seconds(PerSecond(limit));
        assert!((seconds(500.0) - (10_000.0 / 50.0 + 270_000.0 / 500.0)).abs() < 1e-9);
        assert!((seconds(20.0) - 280_000.0 / 20.0).abs() < 1e-9, "it begins above the limit");
    }

    fn side(rate: f64, log: Option<f64>, beyond: bool) -> Side {
        Side { rate, log, beyond }
    }

    fn bracket_of(low: Side, high: Side) -> Bracket {
        Bracket { low, high, confirmed: false }
    }

    #[test]
    fn a_bracket_is_crossed_on_the_logarithms_of_rate_and_share() {
        let bracket = |low, high| bracket_of(side(100.0, low, false), side(400.0, high, true));
        let known = bracket(Some(-6.0), Some(-4.0));
        assert!((known.ratio() - 4.0).abs() < 1e-12);
        let is = |wanted: f64, rate: f64| {
            let found = known.crossing(wanted);
            assert!((found / rate - 1.0).abs() < 1e-9, "{wanted}: {found}");
        };
        is(-5.0, 200.0);
        is(-5.5, 100.0 * 2f64.sqrt());
        // Never nearer to a side than a tenth of the way.
        is(-7.0, 100.0 * 4f64.powf(0.1));
        is(-1.0, 100.0 * 4f64.powf(0.9));
        for unknown in [
            bracket(None, Some(-4.0)),
            bracket(Some(-6.0), None),
            bracket(Some(-4.0), Some(-4.0)),
            bracket(Some(-4.0), Some(-6.0)),
        ] {
            assert!((unknown.crossing(-5.9) - 200.0).abs() < 1e-9, "{unknown:?}");
        }
    }

    #[test]
    fn a_narrowed_bracket_keeps_its_other_side() {
        let bracket = bracket_of(side(100.0, Some(-6.0), false), side(400.0, Some(-4.0), true));
        let beyond = bracket.narrowed(side(200.0, Some(-4.2), true));
        assert_eq!((beyond.low.rate, beyond.high.rate), (100.0, 200.0));
        let within = bracket.narrowed(side(200.0, Some(-5.0), false));
        assert_eq!((within.low.rate, within.high.rate), (200.0, 400.0));
        assert!(!within.confirmed && !beyond.confirmed);
        // A level outside changes no side, and may agree with them.
        for (rate, is_beyond, agrees) in
            [(90.0, false, true), (90.0, true, false), (400.0, true, true), (400.0, false, false)]
        {
            let outside = bracket.narrowed(side(rate, None, is_beyond));
            assert_eq!((outside.low.rate, outside.high.rate), (100.0, 400.0));
            assert_eq!(outside.confirmed, agrees, "{rate} {is_beyond}");
        }
        let still = Bracket { confirmed: true, ..bracket }.narrowed(side(90.0, None, true));
        assert!(still.confirmed);
        // A rate outside may be up to 1.3 times away.
        let near = [50.0, 80.0, 300.0, 510.0, 600.0].map(|rate| bracket.nearly(rate));
        assert_eq!(near, [100.0 / 1.3, 80.0, 300.0, 510.0, 400.0 * 1.3]);
    }

    #[test]
    fn a_line_leads_out_of_a_bracket_until_a_level_there_agrees_with_it() {
        let bracket = bracket_of(side(100.0, Some(-6.0), false), side(400.0, Some(-4.0), true));
        let confirmed = Bracket { confirmed: true, ..bracket };
        let line = |crossing| Some(Line { slope: 1.0, crossing });
        let is =
            |found: f64, rate: f64| assert!((found / rate - 1.0).abs() < 1e-9, "{found} {rate}");
        is(bracket.place(line(90.0), -5.0), 90.0);
        is(bracket.place(line(50.0), -5.0), 100.0 / 1.3);
        is(bracket.place(None, -5.0), 200.0);
        for outside in [90.0, 50.0, 401.0] {
            is(confirmed.place(line(outside), -5.0), 200.0);
        }
        for inside in [100.0, 300.0, 400.0] {
            is(confirmed.place(line(inside), -5.0), inside);
        }
    }

    #[test]
    fn a_line_weighs_each_level_by_its_arrivals_beyond() {
        // Twenty and forty arrivals at 100/s lie beyond, eighty at 200/s.
        let levels = [
            steady(100.0, 2_000, 0.01),
            steady(100.0, 2_000, 0.02),
            steady(200.0, 2_000, 0.04),
            // Too far from the wanted share by more than e to the 2.5, or of a growing backlog.
            steady(300.0, 2_000, 0.4),
            steady(30.0, 2_000, 0.0),
            growing(90.0, 2_000, 0.04),
        ];
        // Through the weighted mean at 100/s, which is 0.01 times 2 to the 2/3, and 0.04 at 200/s.
        let slope = 2.0 - 2.0 / 3.0;
        let up = (3f64.ln() - 2.0 / 3.0 * 2f64.ln()) / slope;
        let line = Line::near(&levels, 0.03).unwrap();
        assert!((line.slope - slope).abs() < 1e-9, "{line:?}");
        assert!((line.crossing / (100.0 * up.exp()) - 1.0).abs() < 1e-9, "{line:?}");
        assert!(Line::near(&levels[..2], 0.03).is_none(), "one rate");
        assert!(Line::near(&[], 0.03).is_none());
        let falling = [steady(100.0, 2_000, 0.04), steady(200.0, 2_000, 0.01)];
        assert!(Line::near(&falling, 0.03).is_none());
        // Half of all is no point of a straight line, however near the wanted share.
        let flattened = [(100.0, 0.05), (200.0, 0.2), (250.0, 0.5)];
        let flattened = flattened.map(|(rate, share)| steady(rate, 2_000, share));
        let line = Line::near(&flattened, 0.1).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-9, "{line:?}");
        assert!((line.crossing / (100.0 * 2f64.sqrt()) - 1.0).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn a_pair_is_read_where_its_line_reaches_the_share() {
        let mut pair = Pair::new(200.0, 0.3);
        let rates = [pair.rate(PairEnd::Low), pair.rate(PairEnd::High)];
        assert_eq!(rates, [200.0 * (-0.3f64).exp(), 200.0 * 0.3f64.exp()]);
        assert_eq!(pair.crossing(0.01), None, "nothing was measured");
        pair.add(&steady(rates[0], 40_000, 0.005), PairEnd::Low);
        assert_eq!(pair.crossing(0.01), None, "one rate alone");
        pair.add(&steady(rates[1], 40_000, 0.04), PairEnd::High);
        assert_eq!((pair.of_low.len(), pair.of_high.len()), (20, 20));
        // From 0.005 to 0.04 is a factor of eight: a third of its logarithm leads to 0.01.
        let found = pair.crossing(0.01).unwrap();
        assert!((found.estimate / (200.0 * (-0.1f64).exp()) - 1.0).abs() < 1e-9, "{found:?}");
        // Both levels of a rate count.
        pair.add(&steady(rates[0], 40_000, 0.015), PairEnd::Low);
        let found = pair.crossing(0.02).unwrap();
        assert!((found.estimate - 200.0).abs() < 1e-6, "{found:?}");
    }

    /// The share rises with the 20th power of the rate and is the wanted one at 200/s.
    #[test]
    fn a_search_doubles_halves_and_looks_nearby_before_it_decides() {
        let share = |rate: f64| (0.01 * (rate / 200.0).powi(20)).min(0.9);
        let (limit, offered) =
            searched(PLAN, |rate, arrivals| Some(steady(rate, arrivals, share(rate))));
        let high = (160.0 * 320.0_f64).sqrt();
        let low = (160.0 * high).sqrt();
        let coarse = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, high, low].map(|rate| (rate, 5_000));
        assert_offered(&offered[..8], &coarse);
        // One of 250 lies beyond at the lower rate, and 30 at the higher one.
        let part = 2.5_f64.ln() / 30_f64.ln();
        assert_offered(&offered[8..9], &[(low * (high / low).powf(part), 400_000)]);
        let near = |(rate, arrivals): &(f64, u64)| {
            *arrivals == 400_000 && (rate / 200.0 - 1.0).abs() < 0.005
        };
        assert!(offered[9..11].iter().all(near), "{offered:?}");
        // Low, high, high, low: 0.6 on the logarithm of the share to either side.
        let [a, b, c, d] = offered[11..] else { panic!("{offered:?}") };
        assert!((a, b) == (d, c) && a.1 == 1_000_000 && b.1 == 1_000_000, "{offered:?}");
        assert!(((b.0 / a.0).ln() - 2.0 * 0.6 / 20.0).abs() < 0.002, "{offered:?}");
        assert!(((a.0 * b.0).sqrt() / 200.0 - 1.0).abs() < 0.002, "{offered:?}");
        let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
        assert!((found.estimate / 200.0 - 1.0).abs() < 1e-3, "{found:?}");
    }

    /// A short level just below the limit has the share of a far higher rate. The line through it
    /// leads far below.
    #[test]
    fn a_level_that_was_held_up_once_does_not_keep_the_search_far_below_the_limit() {
        let plan = WithinPlan { share: 0.1, arrivals: 5_000, first: PerSecond(60.0), ..PLAN };
        let mut spoilt = 0;
        let (limit, offered) = searched(plan, |rate, arrivals| {
            let held_up = spoilt == 0 && (750.0..839.0).contains(&rate);
            spoilt += u32::from(held_up);
            let share = if held_up { 0.41 } else { (0.1 * (rate / 839.0).powi(11)).min(0.97) };
            Some(steady(rate, arrivals, share))
        });
        assert_eq!(spoilt, 1);
        let LatencyLimit::Rate(found) = limit else { panic!("{limit:?} {offered:?}") };
        assert!((found.estimate / 839.0 - 1.0).abs() < 0.01, "{found:?}");
        let [.., low, high, _, _] = offered[..] else { panic!("{offered:?}") };
        assert!((low.0..high.0).contains(&839.0), "{offered:?}");
    }

    #[test]
    fn a_figure_far_from_where_it_was_measured_is_not_given() {
        // Short levels have their limit at 300/s. Longer ones point far beyond wherever they are.
        let (limit, offered) = searched(PLAN, |rate, arrivals| {
            let share = match arrivals == PLAN.coarse_arrivals() {
                true => 0.01 * (rate / 300.0).powi(10),
                false => 0.0015 * (rate / 300.0).powf(1.2),
            };
            Some(steady(rate, arrivals, share.min(0.9)))
        });
        assert!(!matches!(limit, LatencyLimit::Rate(_)), "{limit:?} {offered:?}");
    }

    #[test]
    fn where_the_backlog_grows_the_gap_is_halved_to_a_hundredth() {
        let level = |rate: f64, arrivals| {
            Some(if rate < 250.0 {
                steady(rate, arrivals, 0.0)
            } else {
                growing(rate, arrivals, 0.0)
            })
        };
        let (limit, offered) = searched(PLAN, level);
        // A level that grows is measured again, and longer, before that is believed.
        let mut expected: Vec<(f64, u64)> =
            [10.0, 20.0, 40.0, 80.0, 160.0, 320.0].map(|rate| (rate, 5_000)).into();
        expected.push((320.0, 1_000_000));
        let mut low: f64 = 160.0;
        let mut high: f64 = 320.0;
        while high / low > 1.01 {
            let arrivals = if high / low > 1.3 { 5_000 } else { 400_000 };
            let middle = (low * high).sqrt();
            expected.push((middle, arrivals));
            if middle < 250.0 {
                low = middle;
            } else {
                expected.push((middle, 1_000_000));
                high = middle;
            }
        }
        expected.push((low, 1_000_000));
        assert_offered(&offered, &expected);
        let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
        assert!((found.low / low - 1.0).abs() < 1e-9 && (found.high / high - 1.0).abs() < 1e-9);
        assert!((found.estimate / (low * high).sqrt() - 1.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_lower_rate_gives_way_until_a_long_level_is_within() {
        // Long levels are beyond from 240/s on; short ones, which show it by no share, from 250/s.
        let level = |rate: f64, arrivals| {
            let beyond = rate >= 240.0 && arrivals == PLAN.arrivals;
            let share = if beyond { 0.6 } else { 0.0 };
            Some(if rate < 250.0 {
                steady(rate, arrivals, share)
            } else {
                growing(rate, arrivals, share)
            })
        };
        let (limit, offered) = searched(PLAN, level);
        let last: Vec<f64> = offered.iter().rev().take(3).map(|(rate, _)| *rate).collect();
        assert!((last[1] / last[0] - 1.02).abs() < 1e-9 && (last[2] / last[1] - 1.02).abs() < 1e-9);
        assert!(last[0] < 240.0 && last[1] >= 240.0, "{offered:?}");
        let between =
            Estimate { estimate: (last[0] * last[1]).sqrt(), low: last[0], high: last[1] };
        assert_eq!(limit, LatencyLimit::Rate(between));
    }

    #[test]
    fn rates_are_halved_down_to_the_lowest_which_has_a_second_try() {
        let plan = WithinPlan { first: PerSecond(100.0), ..PLAN };
        let down = [100.0, 50.0, 25.0, 12.5, 10.0].map(|rate| (rate, 5_000));
        let (limit, offered) = searched(plan, |rate, arrivals| Some(steady(rate, arrivals, 0.03)));
        assert_eq!(limit, LatencyLimit::NoRate);
        assert_offered(&offered[..5], &down);
        assert_offered(&offered[5..], &[(10.0, 1_000_000)]);
        // By chance the short level at the lowest was beyond: the longer one is within, and it
        // goes on from there. The limit is 11/s.
        let (limit, _) = searched(plan, |rate, arrivals| {
            let by_chance = rate < 10.1 && arrivals == 5_000;
            let share = if by_chance { 0.03 } else { 0.01 * (rate / 11.0).powi(20) };
            Some(steady(rate, arrivals, share.min(0.9)))
        });
        let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
        assert!((found.estimate / 11.0 - 1.0).abs() < 0.01, "{found:?}");
        // A first rate below the lowest is not offered.
        let low = WithinPlan { first: PerSecond(1.0), ..PLAN };
        let (_, offered) = searched(low, |_, _| None);
        assert_offered(&offered, &[(10.0, 5_000)]);
    }

    #[test]
    fn no_rate_above_the_highest_is_offered() {
        let plan = WithinPlan { highest: PerSecond(70.0), ..PLAN };
        let (limit, offered) = searched(plan, |rate, arrivals| Some(steady(rate, arrivals, 0.0)));
        assert_eq!(limit, LatencyLimit::AtLeast(PerSecond(70.0), WithinEnd::RateCap));
        assert_offered(&offered, &[10.0, 20.0, 40.0, 70.0].map(|rate| (rate, 5_000)));
    }

    #[test]
    fn a_search_ends_where_its_device_or_its_generator_does() {
        let ended = |health: Option<GeneratorHealth>| {
            searched(PLAN, |rate, arrivals| {
                let level = steady(rate, arrivals, 0.0);
                if rate < 40.0 {
                    return Some(level);
                }
                health.map(|generator| RateLevel { generator, ..level })
            })
        };
        for (health, end) in [
            (None, WithinEnd::Interrupted),
            (Some(GeneratorHealth::Late), WithinEnd::GeneratorLate),
            (Some(GeneratorHealth::Exhausted), WithinEnd::GeneratorExhausted),
        ] {
            let (limit, offered) = ended(health);
            assert_eq!(limit, LatencyLimit::AtLeast(PerSecond(20.0), end));
            assert_eq!(offered.len(), 3);
        }
    }

    #[test]
    fn no_search_takes_more_than_sixty_levels() {
        // The side depends on how often the rate was offered: nothing is ever narrowed down.
        let mut beyond = false;
        let plan = WithinPlan { precision: 0.0, ..PLAN };
        let (limit, offered) = searched(plan, |rate, arrivals| {
            beyond = !beyond;
            let share = if rate < 100.0 {
                0.0
            } else if beyond {
                0.009
            } else {
                0.011
            };
            let mut level = steady(rate, arrivals, share);
            for batch in level.batches.iter_mut().step_by(2) {
                batch.beyond *= 2;
            }
            Some(level)
        });
        assert!(offered.len() <= 60, "{} {limit:?}", offered.len());
    }

    fn at<F>(device: &mut Scripted<F>, levels: Vec<RateLevel>) -> Search<'_, Scripted<F>> {
        Search { plan: PLAN, device, levels }
    }

    #[test]
    fn a_side_is_beyond_from_the_first_arrival_more() {
        let of = |share: f64| {
            let level = move |rate, arrivals| Some(steady(rate, arrivals, share));
            let mut device = Scripted { level, offered: Vec::new() };
            let side = at(&mut device, Vec::new()).level(100.0, 5_000);
            side.unwrap_or_else(|never| match never {}).unwrap()
        };
        // 2.5 of 250 are rounded to 3, and 2 stay 2.
        assert_eq!((of(0.008).beyond, of(0.012).beyond), (false, true));
        assert_eq!(of(0.012).log, Some(0.012_f64.ln()));
        // A share of nothing has half an arrival of 5,000.
        assert!((of(0.0).log.unwrap() - 1e-4_f64.ln()).abs() < 1e-12);
        assert_eq!((of(0.5).log, of(0.5).beyond), (None, true));
        assert!(of(0.496).log.is_some());
        let just = |rate, _| Some(steady(rate, 2_000, 0.01));
        let mut device = Scripted { level: just, offered: Vec::new() };
        let side = at(&mut device, Vec::new()).level(100.0, 2_000);
        assert!(!side.unwrap_or_else(|never| match never {}).unwrap().beyond, "just the share");
    }

    #[test]
    fn no_rate_above_the_capacity_is_held() {
        let mut device = Scripted { level: |_, _| None, offered: Vec::new() };
        let search = at(&mut device, vec![growing_at_capacity(150.0)]);
        let capacity = search.capacity().unwrap();
        assert_eq!((capacity.low, capacity.high), (100.0, 100.0));
        let grows = |rate| search.grows(&steady(rate, 2_000, 0.0));
        assert_eq!([99.0, 100.0, 101.0].map(grows), [false, false, true]);
        assert!(search.grows(&growing(10.0, 2_000, 0.0)));
        let unknown = at(&mut device, Vec::new());
        assert!(!unknown.grows(&steady(1e6, 2_000, 0.0)));
    }

    #[test]
    fn the_limit_reaches_to_the_capacity_where_that_is_known() {
        let level = |rate: f64, arrivals| {
            Some(if rate <= 100.0 {
                steady(rate, arrivals, 0.0)
            } else {
                growing_at_capacity(rate)
            })
        };
        let (limit, offered) = searched(PLAN, level);
        // No level is repeated: that it grows is known from how long its arrivals waited.
        assert_offered(&offered[..5], &[10.0, 20.0, 40.0, 80.0, 160.0].map(|rate| (rate, 5_000)));
        assert!(offered[5].0 < 160.0, "{offered:?}");
        let LatencyLimit::Rate(found) = limit else { panic!("{limit:?}") };
        let low = offered[offered.len() - 1].0;
        assert!(low > 99.0 && low <= 100.0, "{offered:?}");
        assert_eq!(found, Estimate { estimate: (low * 100.0).sqrt(), low, high: 100.0 });
    }

    /// What is known of levels that a search had measured when it ended.
    fn known(levels: &[RateLevel]) -> LatencyLimit {
        let mut device = Scripted { level: |_, _| None, offered: Vec::new() };
        at(&mut device, levels.to_vec()).known_so_far(WithinEnd::Interrupted)
    }

    fn at_least(rate: f64) -> LatencyLimit {
        LatencyLimit::AtLeast(PerSecond(rate), WithinEnd::Interrupted)
    }

    #[test]
    fn a_rate_is_within_where_its_whole_interval_is() {
        let unknown = LatencyLimit::Unknown(WithinEnd::Interrupted);
        assert_eq!(known(&[]), unknown);
        let steady_at = |rate| steady(rate, 20_000, 0.005);
        assert_eq!(known(&[steady_at(2_000.0)]), at_least(2_000.0));
        let uneven = |rate: f64, beyond: [u64; 2]| {
            let mut level = steady(rate, 20_000, 0.0);
            for (place, batch) in level.batches.iter_mut().enumerate() {
                batch.beyond = beyond[place % 2];
            }
            level
        };
        // Of 1,000 each 9 lie beyond on average, with a standard error of 5 over the root of 19:
        // times 2.09 it reaches to 11.4. Of 5 with 1 it reaches to 5.5.
        assert_eq!(known(&[steady_at(2_000.0), uneven(3_000.0, [4, 14])]), at_least(2_000.0));
        assert_eq!(known(&[steady_at(2_000.0), uneven(3_000.0, [4, 6])]), at_least(3_000.0));
        let exhausted =
            RateLevel { generator: GeneratorHealth::Exhausted, ..steady(3_000.0, 20_000, 0.0) };
        assert_eq!(known(&[steady_at(2_000.0), exhausted]), at_least(2_000.0));
        // The share itself is within, and not beyond.
        assert_eq!(known(&[steady(2_000.0, 20_000, 0.01)]), at_least(2_000.0));
        assert_eq!(known(&[steady(1_000.0, 20_000, 0.01), steady_at(2_000.0)]), at_least(2_000.0));
        let one = RateLevel { batches: vec![steady_at(1.0).batches[0]], ..steady_at(2_000.0) };
        assert_eq!(known(&[one]), unknown, "one batch has no spread");
    }

    #[test]
    fn a_level_that_was_soon_over_says_of_no_rate_that_it_is_within() {
        // Ten bounds of 5 ms are 50 ms: 20 arrivals at 400/s.
        assert_eq!(known(&[steady(400.0, 20, 0.0)]), at_least(400.0));
        assert_eq!(known(&[steady(401.0, 20, 0.0)]), LatencyLimit::Unknown(WithinEnd::Interrupted));
    }

    #[test]
    fn no_rate_is_within_above_one_that_was_beyond() {
        let levels = |other: RateLevel| {
            [100.0, 200.0, 300.0].map(|rate| steady(rate, 20_000, 0.0)).into_iter().chain([other])
        };
        let known_with = |other| known(&levels(other).collect::<Vec<_>>());
        assert_eq!(known_with(steady(250.0, 20_000, 0.02)), at_least(200.0));
        assert_eq!(known_with(growing(250.0, 20_000, 0.0)), at_least(200.0));
        assert_eq!(known_with(growing(200.0, 20_000, 0.0)), at_least(100.0));
        assert_eq!(known_with(steady(50.0, 20_000, 0.0)), at_least(300.0));
    }
}
