//! `--scale-until 'p99 <= 20ms'`: how many times a recorded load keeps a latency.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use tapstone_measure::exceedance::{GeneratorHealth, RateLevel};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_record::{
    ArrivalKind, Fraction, GeneratorState, OfferedLevel, RateWithin, RateWithinOutcome,
    RateWithinStop, Seconds,
};
use tapstone_replay::{
    Due, ReplayOptions, ReplayPlan, ScaleLimit, ScaleSearch, ScaleVerdict, SteadyLoad, find_scale,
    judge_level, replayed_span, transactions_level,
};
use tapstone_text::{counted, thousands};
use tapstone_token::controller::TokenMeasureError;
use tapstone_workload::{Transaction, Workload};

use super::Went;
use super::capacity::{KeptReplays, capacity_text};
use super::text::quantile;
use crate::print::say;
use crate::workload::{aligned, duration_text};

/// A steady replay lasts so many times as long as the recording: all clients come, all are there,
/// all go.
const SPANS: u64 = 3;

/// What is said before anything runs.
pub(super) fn announcement(
    workload: &Workload,
    plan: &ReplayPlan,
    bound: LatencyBound,
    devices: u32,
) -> String {
    let most = tapstone_replay::most_scale(plan, devices);
    let time = duration_text(Nanos(replayed_span(workload).0.saturating_mul(SPANS)));
    format!(
        "looks for how many times the load keeps {bound}: each replay takes about {time}; about {} of \
         them, up to {}x",
        expected_replays(most),
        thousands(most.into())
    )
}

/// Doubling up to the highest scale, and halving the gap.
fn expected_replays(most: u32) -> u64 {
    u64::from(2 * most.max(1).ilog2() + 1)
}

/// A search to be run.
pub(super) struct Search<'a> {
    pub(super) workload: &'a Workload,
    /// The part of the recording that is replayed.
    pub(super) recorded: &'a Workload,
    pub(super) bound: LatencyBound,
    /// Results are judged in software, until this says to end; not where it is not there.
    pub(super) judging: Option<&'a AtomicBool>,
    pub(super) quiet: bool,
}

/// What a search found.
pub(super) struct FoundScale {
    bound: LatencyBound,
    search: ScaleSearch,
    pub(super) within: RateWithin,
    /// Why nothing is said of more devices.
    pub(super) no_capacity: Option<String>,
}

/// How late the replay itself was, at the bound's quantile.
#[derive(Clone, Copy)]
struct Lateness {
    delay: Nanos,
    health: GeneratorHealth,
}

impl Search<'_> {
    /// Replays scales until the limit is found: the highest within the bound, or the last one, and
    /// what was found.
    pub(super) fn run(
        &self,
        options: &ReplayOptions,
        most: u32,
        one_replay: &mut dyn FnMut(&ReplayOptions) -> anyhow::Result<Went>,
    ) -> anyhow::Result<(Went, Option<FoundScale>)> {
        let share = self.bound.share_beyond();
        let load = SteadyLoad::new(self.workload, self.recorded);
        let mut shown: Option<Went> = None;
        let mut is_within = false;
        let mut stopped = RateWithinStop::Done;
        let mut offered = Vec::new();
        let mut kept = KeptReplays::default();
        let search = find_scale(most, share, |scale| {
            let options = ReplayOptions { scale, steady: true, ..options.clone() };
            let went = match one_replay(&options) {
                Err(error) if shown.is_some() && was_interrupted(&error) => {
                    stopped = RateWithinStop::Interrupted;
                    return Ok(None);
                }
                went => went?,
            };
            let replay = went.replay(self.workload, self.recorded, self.judging);
            let has_failed = replay.new_failures() > 0 || replay.wrong_results() > 0;
            if went.outcome.interrupted || !went.outcome.trouble.is_empty() || has_failed {
                stopped = match went.outcome.interrupted {
                    true => RateWithinStop::Interrupted,
                    false => RateWithinStop::Failures,
                };
                shown = Some(went);
                return Ok(None);
            }
            let times = load.steady_part(&went.plan.processes).transactions(&went.measured)?;
            let lateness = self.lateness(&went);
            let level = transactions_level(&times, self.bound, load.rate(scale), lateness.health);
            offered.push(self.offered(&times, &level, lateness));
            let verdict = judge_level(&level, share);
            if lateness.health == GeneratorHealth::Sound {
                kept.keep(&went);
            }
            if !self.quiet {
                say!("{scale}x: {}", said(verdict, &level));
            }
            if verdict == ScaleVerdict::Within || !is_within {
                is_within |= verdict == ScaleVerdict::Within;
                shown = Some(went);
            }
            Ok::<_, anyhow::Error>(Some(level))
        })?;
        let Some(shown) = shown else { anyhow::bail!("the search was interrupted") };
        let highest = search.levels.iter().map(|level| level.0).max();
        let has_end = matches!(search.limit, ScaleLimit::Between { .. } | ScaleLimit::NotOnce);
        if stopped == RateWithinStop::Done && !has_end {
            let is_cap = highest == Some(most);
            stopped = if is_cap { RateWithinStop::RateCap } else { RateWithinStop::LevelCap };
        }
        let mut within = self.record(&load, &search, offered, stopped, expected_replays(most));
        let capacity = match search.was_ended {
            true => Err("the search ended early".to_owned()),
            false => kept.capacity(&load, options, self.bound, search.limit),
        };
        within.capacity = capacity.as_ref().ok().cloned();
        let no_capacity = capacity.err();
        Ok((shown, Some(FoundScale { bound: self.bound, search, within, no_capacity })))
    }

    /// A call at a recorded moment, on a thread that had its last answer, begins then, or when what it
    /// waits for of other threads is done: what is later is this machine's.
    fn lateness(&self, went: &Went) -> Lateness {
        let mut delays = Vec::new();
        for (process, threads) in went.plan.processes.iter().zip(&went.outcome.threads) {
            for (planned, thread) in process.threads.iter().zip(threads) {
                let mut answered = Nanos::ZERO;
                for (step, time) in planned.steps.iter().zip(&thread.times) {
                    if matches!(step.due, Due::At(_)) {
                        let due = time.begin - time.late;
                        delays.push((time.begin - due.max(answered) - time.waited).0);
                    }
                    answered = Nanos(time.begin.0.saturating_add(time.duration.0));
                }
            }
        }
        delays.sort_unstable();
        let delay = quantile(&delays, 1.0 - self.bound.share_beyond());
        let is_late = delay.0 > self.bound.longest.0 / 10;
        Lateness {
            delay,
            health: if is_late { GeneratorHealth::Late } else { GeneratorHealth::Sound },
        }
    }

    fn offered(
        &self,
        times: &[Transaction],
        level: &RateLevel,
        lateness: Lateness,
    ) -> OfferedLevel {
        let mut sorted: Vec<u64> = times.iter().map(|one| (one.end - one.start).0).collect();
        sorted.sort_unstable();
        let latency = quantile(&sorted, 1.0 - self.bound.share_beyond());
        OfferedLevel {
            offered_rate: level.rate,
            arrivals: sorted.len() as u64,
            beyond: sorted.iter().filter(|time| **time > self.bound.longest.0).count() as u64,
            latency_ns: (!sorted.is_empty()).then_some(latency),
            backlog_grows: level.backlog_grows(),
            generator: match lateness.health {
                GeneratorHealth::Sound => GeneratorState::Sound,
                GeneratorHealth::Late => GeneratorState::Late,
                GeneratorHealth::Exhausted => GeneratorState::Exhausted,
            },
            generator_delay_ns: Some(lateness.delay),
        }
    }

    fn record(
        &self,
        load: &SteadyLoad<'_>,
        search: &ScaleSearch,
        levels: Vec<OfferedLevel>,
        stopped_by: RateWithinStop,
        replays: u64,
    ) -> RateWithin {
        let rate = |scale| load.rate(scale);
        let (outcome, found, at_least) = match search.limit {
            ScaleLimit::Between { within, beyond } => {
                let low = rate(within).0;
                let found = record::Estimate { estimate: low, low, high: rate(beyond).0 };
                (RateWithinOutcome::Rate, Some(found), None)
            }
            ScaleLimit::NotOnce => (RateWithinOutcome::NoRate, None, None),
            ScaleLimit::AtLeast(scale) => (RateWithinOutcome::AtLeast, None, Some(rate(scale))),
            ScaleLimit::Below(_) | ScaleLimit::Unknown => (RateWithinOutcome::Unknown, None, None),
        };
        let threads = self.recorded.threads.len() as u32;
        let highest = search.levels.iter().map(|level| level.0).max().unwrap_or(1);
        RateWithin {
            operation: "transaction".to_owned(),
            quantile: Fraction(1.0 - self.bound.share_beyond()),
            bound_ns: self.bound.longest,
            arrivals: ArrivalKind::Recorded,
            workers: threads.saturating_mul(highest),
            outcome,
            rate: found,
            at_least,
            stopped_by,
            capacity: None,
            unloaded_ns: None,
            expected_seconds: Seconds(
                replayed_span(self.workload).as_secs_f64() * (SPANS * replays) as f64,
            ),
            levels,
        }
    }
}

fn was_interrupted(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(TokenMeasureError::Interrupted))
}

/// What a level says, in words.
fn said(verdict: ScaleVerdict, level: &RateLevel) -> String {
    let beyond: u64 = level.batches.iter().map(|batch| batch.beyond).sum();
    let share = format!("{} of {} beyond", thousands(beyond), thousands(level.arrivals()));
    match verdict {
        ScaleVerdict::Within => format!("within ({share})"),
        ScaleVerdict::Beyond => format!("beyond ({share})"),
        ScaleVerdict::Open if level.batches.is_empty() => "open: too few to tell".to_owned(),
        ScaleVerdict::Open if level.generator != GeneratorHealth::Sound => {
            format!("open: this machine began calls late ({share})")
        }
        ScaleVerdict::Open if level.backlog_grows() => {
            format!("open: it rises to the end ({share})")
        }
        ScaleVerdict::Open => format!("open: too few to tell ({share})"),
    }
}

impl FoundScale {
    /// The scales, and what they mean.
    pub(super) fn text(&self) -> String {
        let bound = self.bound;
        let mut text = format!("how many times the load keeps {bound}\n");
        let heading =
            ["scale", "transactions", bound.quantile_name(), "verdict"].map(str::to_owned);
        let both = self.search.levels.iter().zip(&self.within.levels);
        let rows = both.map(|((scale, level, verdict), offered)| {
            [
                format!("{scale}x"),
                thousands(offered.arrivals),
                offered.latency_ns.map_or_else(|| "–".to_owned(), duration_text),
                said(*verdict, level),
            ]
        });
        text.push_str(&aligned(&std::iter::once(heading).chain(rows).collect::<Vec<_>>()));
        let times = |scale: u32| counted(scale.into(), "time", "times");
        let _ = writeln!(
            text,
            "  {}",
            match self.search.limit {
                ScaleLimit::Between { within, beyond } if beyond == within + 1 => format!(
                    "this token carries the load {}, and not {}: {bound} of transactions",
                    times(within),
                    times(beyond)
                ),
                ScaleLimit::Between { within, beyond } => format!(
                    "this token carries the load {}, and not {}; between them it is open: {bound} of \
                     transactions",
                    times(within),
                    times(beyond)
                ),
                ScaleLimit::NotOnce =>
                    format!("this token does not carry the load even once: {bound} of transactions"),
                ScaleLimit::AtLeast(scale) => format!(
                    "this token carries the load at least {}; no higher scale was judged: {bound} of \
                     transactions",
                    times(scale)
                ),
                ScaleLimit::Below(scale) => format!(
                    "this token does not carry the load {}; whether it does less often is open: \
                     {bound} of transactions",
                    times(scale)
                ),
                ScaleLimit::Unknown => format!("not known: nothing was judged against {bound}"),
            }
        );
        match (&self.within.capacity, &self.no_capacity) {
            (Some(known), _) => text.push_str(&capacity_text(&self.within, known)),
            (None, Some(why)) => {
                let _ = writeln!(text, "  how many devices carry more is not known: {why}");
            }
            (None, None) => {}
        }
        text
    }
}
