//! How many times a recorded load keeps a latency: `--scale-until 'p99 <= 20ms'`.
//!
//! The scale doubles until the transactions lie beyond the bound, then the gap is halved, to two
//! neighbouring whole numbers where the evidence is enough. What is judged at a scale is the share
//! of its transactions beyond the bound, with a 95 % interval: over batches of consecutive ones,
//! because one that waits makes the next wait, and never narrower than that of independent ones
//! (Garwood 1936). A share that the interval leaves open is replayed once more, and then left open.
//!
//! Everything here is pure: what replays a scale is a closure, so the search runs against loads of
//! which the answer is known.

use tapstone_measure::exceedance::{ArrivalBatch, GeneratorHealth, LEVEL_BATCHES, RateLevel};
use tapstone_measure::interval::{poisson, student_t};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_workload::Transaction;

/// What the transactions of a replay say of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleVerdict {
    /// The quantile lies within the bound.
    Within,
    /// The quantile lies beyond the bound.
    Beyond,
    /// Too few transactions, a latency that rises to the end, or a replay that was late itself.
    Open,
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleLimit {
    /// This scale lies within the bound, and this one beyond it. What is between them is open.
    Between {
        /// The highest that lies within.
        within: u32,
        /// The lowest that lies beyond.
        beyond: u32,
    },
    /// Even the load as it was recorded lies beyond.
    NotOnce,
    /// This scale lies within; no higher one was replayed to a verdict.
    AtLeast(u32),
    /// This scale lies beyond; none lies within for certain.
    Below(u32),
    /// Nothing can be said.
    Unknown,
}

/// A scale, the level that it made, and what that says.
pub type ScaleLevel = (u32, RateLevel, ScaleVerdict);

/// Levels that are open though more than the share lies beyond: after so many, a higher scale is not
/// tried, which would only be a heavier load.
const MOST_SUSPECTS: usize = 2;

/// A search that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleSearch {
    /// Between which scales the limit lies.
    pub limit: ScaleLimit,
    /// Every scale that was replayed, in order, with what came of it.
    pub levels: Vec<ScaleLevel>,
    /// The user, or a failure, ended it.
    pub was_ended: bool,
}

/// Transactions in the order of their beginnings, as a level of the rate at which they were meant
/// to come.
#[must_use]
pub fn transactions_level(
    transactions: &[Transaction],
    bound: LatencyBound,
    rate: PerSecond,
    generator: GeneratorHealth,
) -> RateLevel {
    let batch = |part: &[Transaction]| {
        let times = || part.iter().map(|one| (one.end - one.start).0);
        ArrivalBatch {
            arrivals: part.len() as u64,
            beyond: times().filter(|time| *time > bound.longest.0).count() as u64,
            mean_latency: Nanos(times().sum::<u64>() / part.len() as u64),
            shortest_latency: Nanos(times().min().unwrap_or_default()),
            taken: None,
        }
    };
    // Batches of one length, the last up to twice as long.
    let length = transactions.len() / LEVEL_BATCHES;
    let batches = (0..LEVEL_BATCHES).filter(|_| length > 0).map(|place| {
        let rest = &transactions[place * length..];
        batch(if place + 1 == LEVEL_BATCHES { rest } else { &rest[..length] })
    });
    RateLevel { rate, batches: batches.collect(), generator }
}

/// Whether a share of `share` of the transactions lies beyond the bound, or less.
#[must_use]
pub fn judge_level(level: &RateLevel, share: f64) -> ScaleVerdict {
    if level.batches.is_empty() || level.generator != GeneratorHealth::Sound {
        return ScaleVerdict::Open;
    }
    let arrivals = level.arrivals() as f64;
    let beyond: u64 = level.batches.iter().map(|batch| batch.beyond).sum();
    let independent = poisson(beyond);
    let reach = student_t(level.batches.len() - 1) * level.standard_error();
    let low = (independent.low / arrivals).min(level.share_beyond() - reach);
    let high = (independent.high / arrivals).max(level.share_beyond() + reach);
    if low > share {
        ScaleVerdict::Beyond
    } else if high <= share && !level.backlog_grows() {
        ScaleVerdict::Within
    } else {
        ScaleVerdict::Open
    }
}

/// Looks for the highest scale within the bound, up to `most`. `replay` gives what came of a scale;
/// `None`: the search is to end.
///
/// # Errors
/// Those of `replay`.
pub fn find_scale<E>(
    most: u32,
    share: f64,
    mut replay: impl FnMut(u32) -> Result<Option<RateLevel>, E>,
) -> Result<ScaleSearch, E> {
    let mut levels: Vec<ScaleLevel> = Vec::new();
    let mut was_ended = false;
    let mut try_once = |scale: u32, levels: &mut Vec<ScaleLevel>| -> Result<_, E> {
        let Some(level) = replay(scale)? else {
            was_ended = true;
            return Ok(None);
        };
        let verdict = judge_level(&level, share);
        levels.push((scale, level, verdict));
        Ok(Some(verdict))
    };
    let mut within = 0;
    let mut beyond = None;
    let mut scale = 1;
    loop {
        match try_once(scale, &mut levels)? {
            Some(ScaleVerdict::Within) => within = scale,
            Some(ScaleVerdict::Beyond) => beyond = Some(scale),
            Some(ScaleVerdict::Open) => {}
            None => break,
        }
        let is_suspect = |(_, level, verdict): &&ScaleLevel| {
            *verdict == ScaleVerdict::Open && level.share_beyond() > share
        };
        let suspects = levels.iter().filter(is_suspect).count();
        if beyond.is_some() || scale >= most || suspects >= MOST_SUSPECTS {
            break;
        }
        scale = scale.saturating_mul(2).min(most);
    }
    while let Some(above) = beyond {
        let middle = within + (above - within) / 2;
        if middle == within {
            break;
        }
        let mut verdict = try_once(middle, &mut levels)?;
        if verdict == Some(ScaleVerdict::Open) {
            verdict = try_once(middle, &mut levels)?;
        }
        match verdict {
            Some(ScaleVerdict::Within) => within = middle,
            Some(ScaleVerdict::Beyond) => beyond = Some(middle),
            Some(ScaleVerdict::Open) | None => break,
        }
    }
    let limit = match (within, beyond) {
        (0, None) => ScaleLimit::Unknown,
        (0, Some(1)) => ScaleLimit::NotOnce,
        (0, Some(beyond)) => ScaleLimit::Below(beyond),
        (within, None) => ScaleLimit::AtLeast(within),
        (within, Some(beyond)) => ScaleLimit::Between { within, beyond },
    };
    Ok(ScaleSearch { limit, levels, was_ended })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn bound() -> LatencyBound {
        "p90 <= 1us".parse().unwrap()
    }

    /// So many transactions, of which each `each`th takes longer than the bound.
    fn level(count: usize, each: usize) -> RateLevel {
        let one = |place: usize| {
            let time = if place % each == each - 1 { 2_000 } else { 500 };
            let start = Nanos(place as u64 * 10_000);
            Transaction {
                thread: 0,
                start,
                end: Nanos(start.0 + time),
                calls: 1,
                is_ended: true,
                fails_anew: false,
            }
        };
        let all: Vec<Transaction> = (0..count).map(one).collect();
        transactions_level(&all, bound(), PerSecond(1.0), GeneratorHealth::Sound)
    }

    fn search(most: u32, level_of: impl Fn(u32) -> Option<RateLevel>) -> ScaleSearch {
        find_scale(most, 0.1, |scale| Ok::<_, Infallible>(level_of(scale))).unwrap()
    }

    #[test]
    fn every_transaction_is_in_one_batch() {
        let of = level(459, 20);
        assert_eq!((of.batches.len(), of.arrivals()), (LEVEL_BATCHES, 459));
        assert_eq!((of.batches[0].arrivals, of.batches[19].arrivals), (22, 41));
        assert_eq!(of.batches.iter().map(|batch| batch.beyond).sum::<u64>(), 22);
        assert!(level(19, 20).batches.is_empty());
    }

    #[test]
    fn a_share_is_within_beyond_or_open_by_its_interval() {
        // 5 % and 20 % of 2,000, where 10 % are allowed: independent counts of 100 and 400 reach
        // from 81 to 122 and from 362 to 441 (Garwood); 200 would be the limit.
        assert_eq!(judge_level(&level(2_000, 20), 0.1), ScaleVerdict::Within);
        assert_eq!(judge_level(&level(2_000, 5), 0.1), ScaleVerdict::Beyond);
        assert_eq!(judge_level(&level(2_000, 10), 0.1), ScaleVerdict::Open);
        // None of 36 leaves 3.69 of 36 possible, none of 37 less than a tenth.
        assert_eq!(judge_level(&level(36, 1_000), 0.1), ScaleVerdict::Open);
        assert_eq!(judge_level(&level(37, 1_000), 0.1), ScaleVerdict::Within);
        assert_eq!(judge_level(&level(19, 1_000), 0.1), ScaleVerdict::Open);
    }

    #[test]
    fn a_replay_that_was_late_itself_and_a_latency_that_rises_say_of_nothing_that_it_is_within() {
        let late = RateLevel { generator: GeneratorHealth::Late, ..level(2_000, 20) };
        assert_eq!(judge_level(&late, 0.1), ScaleVerdict::Open);
        let mut rising = level(2_000, 1_000_000);
        for (place, batch) in rising.batches.iter_mut().enumerate() {
            batch.mean_latency = Nanos(50 + 40 * place as u64);
        }
        assert_eq!(judge_level(&rising, 0.1), ScaleVerdict::Open);
    }

    #[test]
    fn the_two_neighbours_around_every_limit_are_found() {
        for limit in 1..70 {
            let of = |scale| Some(level(2_000, if scale <= limit { 20 } else { 5 }));
            let found = search(1_000, of);
            let between = ScaleLimit::Between { within: limit, beyond: limit + 1 };
            assert_eq!(found.limit, between);
            assert!(found.levels.len() <= 14, "{limit}: {}", found.levels.len());
        }
        assert_eq!(search(1_000, |_| Some(level(2_000, 5))).limit, ScaleLimit::NotOnce);
        let capped = search(12, |_| Some(level(2_000, 20)));
        assert_eq!(capped.limit, ScaleLimit::AtLeast(12));
        let scales: Vec<u32> = capped.levels.iter().map(|level| level.0).collect();
        assert_eq!(scales, [1, 2, 4, 8, 12]);
    }

    #[test]
    fn what_is_open_stays_between_and_is_tried_twice() {
        let of = |scale: u32| match scale {
            0..=4 => Some(level(2_000, 20)),
            5..=7 => Some(level(2_000, 10)),
            _ => Some(level(2_000, 5)),
        };
        let found = search(1_000, of);
        assert_eq!(found.limit, ScaleLimit::Between { within: 4, beyond: 8 });
        let scales: Vec<u32> = found.levels.iter().map(|level| level.0).collect();
        assert_eq!(scales, [1, 2, 4, 8, 6, 6]);
        // Too few transactions at low scales (30, of which none may say that) do not keep it from
        // higher ones.
        let few = |scale: u32| Some(level(10 * scale as usize, if scale < 8 { 1_000 } else { 2 }));
        let found = search(1_000, few);
        assert_eq!(found.limit, ScaleLimit::Between { within: 7, beyond: 8 });
        assert_eq!(found.levels[1].2, ScaleVerdict::Open);
    }

    #[test]
    fn two_scales_that_seem_beyond_end_the_doubling() {
        // 5 of 40 and 10 of 80, where 4 and 8 are allowed.
        let found = search(1_000, |scale| Some(level(40 * scale as usize, 8)));
        assert_eq!((found.limit, found.levels.len()), (ScaleLimit::Unknown, 2));
    }

    #[test]
    fn a_search_that_is_ended_says_what_it_knows() {
        let until = |last: u32| move |scale| (scale <= last).then(|| level(2_000, 20));
        let found = search(1_000, until(4));
        assert_eq!((found.limit, found.was_ended), (ScaleLimit::AtLeast(4), true));
        let nothing = search(1_000, until(0));
        assert_eq!((nothing.limit, nothing.levels.len()), (ScaleLimit::Unknown, 0));
    }
}
