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

mod bracket;
mod pair;

use self::bracket::{Bracket, Line, Side};
use self::pair::{Pair, PairEnd};
use crate::exceedance::{GeneratorHealth, RateLevel, capacity};
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
    /// One that was beyond by its share has to be so in a long level, too.
    fn confirm(&mut self, bracket: Bracket) -> Step<LatencyLimit, M::Error> {
        if bracket.high.log.is_some()
            && !go_on!(self.level(bracket.high.rate, self.plan.arrivals)).beyond
        {
            return Ok(Err(WithinEnd::LevelCap));
        }
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

#[cfg(test)]
mod levels;
#[cfg(test)]
mod tests;
