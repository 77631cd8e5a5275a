//! The search for the highest rate within a latency, on a token: each level is an open loop of its
//! own on the same worker processes, and every arrival of its schedule is accounted for.

use std::time::{Duration, Instant};

use tapstone_measure::attribution::{LevelEvidence, LimitCause, attribute_case};
use tapstone_measure::claim::Statistic;
use tapstone_measure::exceedance::{GeneratorHealth, RateLevel, capacity};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::pace::SplitMix;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_measure::within::{
    LatencyLimit, MeasuresRates, WithinEnd, WithinPlan, find_rate_within,
};
use tapstone_names::pkcs11::Rv;
use tapstone_record as record;
use tapstone_record::{Fraction, Seconds};

use super::arrivals::{LevelArrivals, SampleStore};
use super::case_figures::CaseFigures;
use super::evidence::mean_evidence;
use super::judged::Judged;
use super::outcome::{self, CaseNotMeasured};
use super::plan::{CasePlan, CaseStop, Common, LoadPlan};
use super::prepare::Prepared;
use super::ran_case::RanCase;
use super::steering::{SearchPart, TimeLeft, TokenObserver};
use super::verify;
use super::{CaseOutcome, TokenController, figures};

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct WithinSearchPlan {
    /// The bound on the latency.
    pub bound: LatencyBound,
    /// Half the interval over the rate.
    pub precision: f64,
    /// Independent arrivals instead of equal gaps.
    pub poisson: bool,
    /// Requests that each process can have under way at once.
    pub threads: u32,
    /// When to stop looking; `None`: when it is done.
    pub time: Option<Duration>,
}

/// What came of a search for a rate within a latency.
#[derive(Debug)]
pub struct FoundWithin {
    /// For the record; `None` when nothing could be measured.
    pub within: Option<record::RateWithin>,
    /// The case of the highest rate that lay within the bound, or of what went wrong.
    pub outcome: CaseOutcome,
}

/// One worker alone is measured for so long, and for the longer time where that is too short.
const UNLOADED: [Nanos; 2] = [Nanos::from_secs(2), Nanos::from_secs(30)];

/// Fewer calls say nothing of the unloaded latency.
const FEWEST_UNLOADED: u64 = 20;

/// Arrivals beyond the bound that a level near it has to show: with so many, and a share of 1 %,
/// two rates in turns give an interval of 3 %.
const BEYOND_AT_3_PERCENT: f64 = 500.0;

/// A Poisson schedule repeats its gaps after 65,536: no level is longer, more of them are measured.
const MOST_ARRIVALS: f64 = 60_000.0;

/// Fewer make no batches: 20 in each.
const FEWEST_ARRIVALS: f64 = 400.0;

/// Arrivals that fill the queue before a level is judged, as a share of it, and at most.
const FILLING: u64 = 10;
const MOST_FILLING: u64 = 2_000;

/// So often a level is measured at which the generator is late.
const LATE_TRIES: usize = 3;

/// A device whose calls take this many times as long as those of one worker alone is busy: then
/// more workers would not have raised the rate.
const DEVICE_BUSY: f64 = 1.5;

impl TokenController {
    /// Looks for the highest rate whose latency stays within a bound, here and not on other hosts.
    pub fn find_rate_within(
        &mut self,
        plan: &CasePlan,
        search: WithinSearchPlan,
        observer: &mut dyn TokenObserver,
    ) -> FoundWithin {
        observer.stage(plan.name(), "preparing keys");
        let samples = Common { samples: true, ..plan.common.clone() };
        let plan = CasePlan { common: samples, ..plan.clone() };
        let prepared = match self.prepare(&plan, 1, plan.processes) {
            Ok(prepared) => prepared,
            Err(why) => {
                let outcome = outcome::without(&plan, why);
                let cleaned = self.clean_up_after_the_lost();
                return FoundWithin { within: None, outcome: outcome.with_trouble(cleaned.err()) };
            }
        };
        let levels = Levels {
            numbers: prepared.numbers(),
            controller: self,
            plan: &plan,
            search,
            prepared: &prepared,
            observer,
            threads: search.threads,
            begun: Instant::now(),
            unloaded: Nanos::ZERO,
            expected: None,
            levels: Vec::new(),
            rate_levels: Vec::new(),
            evidence: Vec::new(),
            shown: None,
            stopped: None,
        };
        let (within, outcome) = levels.find();
        let cleaned = self.finish(&prepared);
        FoundWithin { within, outcome: outcome.with_trouble(cleaned.err()) }
    }
}

/// A case that ran, with its plan.
struct Shown {
    plan: CasePlan,
    ran: RanCase,
    judged: Vec<Judged>,
    within: bool,
}

/// Why no further level can be measured.
enum NoLevel {
    /// Operations failed, results were wrong, or a worker was lost: no rate can be trusted.
    Failures,
    /// Nothing could be measured at all.
    Trouble(CaseNotMeasured),
}

struct Levels<'a> {
    controller: &'a mut TokenController,
    plan: &'a CasePlan,
    search: WithinSearchPlan,
    prepared: &'a Prepared,
    numbers: Vec<usize>,
    observer: &'a mut dyn TokenObserver,
    /// Fewer than were asked for where the token has no more sessions.
    threads: u32,
    begun: Instant,
    /// The mean latency of one worker alone.
    unloaded: Nanos,
    /// How long the search takes in all, once that is known.
    expected: Option<Duration>,
    levels: Vec<record::OfferedLevel>,
    /// The same, for the capacity that they show.
    rate_levels: Vec<RateLevel>,
    evidence: Vec<LevelEvidence>,
    shown: Option<Shown>,
    stopped: Option<record::RateWithinStop>,
}

impl Levels<'_> {
    fn find(mut self) -> (Option<record::RateWithin>, CaseOutcome) {
        let result = self.without_load();
        let alone = match result {
            Ok(alone) => alone,
            Err(NoLevel::Failures) => return self.end(Err(NoLevel::Failures), Seconds(0.0)),
            Err(NoLevel::Trouble(why)) => return (None, self.without(why)),
        };
        if alone == Alone::Interrupted {
            self.stopped = Some(record::RateWithinStop::Interrupted);
            let unknown = LatencyLimit::Unknown(WithinEnd::Interrupted);
            return self.end(Ok(unknown), Seconds(0.0));
        }
        if alone == Alone::Beyond {
            return self.end(Ok(LatencyLimit::NoRate), Seconds(0.0));
        }
        let plan = self.within_plan();
        let expected = self.say_how_long(plan);
        let found = find_rate_within(plan, &mut self).map(|result| result.limit);
        self.end(found, expected)
    }

    /// One worker alone, one call after the other.
    fn without_load(&mut self) -> Result<Alone, NoLevel> {
        self.tell_part("one worker alone".to_owned());
        for length in UNLOADED {
            let plan = CasePlan {
                load: LoadPlan::Closed,
                stop: CaseStop::Seconds(length),
                threads: 1,
                processes: 1,
                ..self.plan.clone()
            };
            let numbers = [self.numbers[0]];
            let (ran, judged, _) = self.pass(&plan, &numbers)?;
            self.note_evidence(&plan, &ran);
            let gathered = &ran.gathered;
            let total = gathered.combined().total();
            let step = plan.common.clock_step;
            let summary = gathered.summary(&gathered.combined(), None, 1, step);
            self.unloaded = Nanos(total.busy.0 / total.completed.max(1));
            let interrupted = ran.interrupted;
            let failed = is_failed(&ran, &judged);
            self.shown = Some(Shown { plan, ran, judged, within: false });
            if interrupted {
                return Ok(Alone::Interrupted);
            }
            if failed {
                return Err(NoLevel::Failures);
            }
            if total.completed < FEWEST_UNLOADED && length != UNLOADED[1] {
                continue;
            }
            let bound = self.search.bound;
            let quantile: Option<Statistic> = bound.quantile_name().parse().ok();
            // A higher quantile lies beyond whatever the median lies beyond.
            let known = [quantile, Some(Statistic::P50)].into_iter().flatten();
            let mut lowest = known.filter_map(|known| Some(known.figure_in(&summary)?.low));
            let beyond = lowest.any(|low| low > bound.longest.0 as f64);
            return Ok(if beyond { Alone::Beyond } else { Alone::Within });
        }
        Ok(Alone::Within)
    }

    fn within_plan(&self) -> WithinPlan {
        let share = self.search.bound.share_beyond();
        let alone = 1.0 / self.unloaded.as_secs_f64().max(1e-9);
        let workers = f64::from(self.threads) * self.numbers.len() as f64;
        let arrivals = BEYOND_AT_3_PERCENT / share * (0.03 / self.search.precision).powi(2);
        WithinPlan {
            share,
            longest: self.search.bound.longest,
            unloaded: self.unloaded,
            first: PerSecond(alone / 4.0),
            // So few arrivals find the device busy that the share cannot be reached by waiting.
            lowest: PerSecond(alone * (share / 2.0).min(0.125)),
            // Beyond what all workers can have under way.
            highest: PerSecond(4.0 * alone * workers),
            arrivals: arrivals.clamp(FEWEST_ARRIVALS.max(10.0 / share), MOST_ARRIVALS) as u64,
            precision: self.search.precision,
        }
    }

    fn say_how_long(&mut self, plan: WithinPlan) -> Seconds {
        let alone = PerSecond(1.0 / self.unloaded.as_secs_f64().max(1e-9));
        let seconds = plan.expected_seconds(alone);
        let length = Nanos((seconds * 1e9) as u64);
        self.expected = Some(self.begun.elapsed() + Duration::from(length));
        self.observer.notice(&format!(
            "{}: the search for the highest rate with {} takes about {length} if the limit is near \
             {alone}, the rate of one worker alone; less where the device does more at once, more \
             where the bound is close to the {} of one call",
            self.plan.name(),
            self.search.bound,
            self.unloaded,
        ));
        Seconds(seconds)
    }

    /// Says what is measured now, and when the search will be over as far as that is known.
    fn tell_part(&mut self, name: String) {
        let elapsed = self.begun.elapsed();
        let expected = self.expected.and_then(|whole| whole.checked_sub(elapsed));
        let allowed = self.search.time.map(|time| time.saturating_sub(elapsed));
        let left = match (expected, allowed) {
            (Some(expected), Some(allowed)) if allowed < expected => TimeLeft::UpTo(allowed),
            (Some(expected), _) => TimeLeft::About(expected),
            (None, Some(allowed)) => TimeLeft::UpTo(allowed),
            (None, None) => TimeLeft::Unknown,
        };
        self.observer.begin_part(&SearchPart { name, left });
    }

    /// One pass over a case, with its samples.
    fn pass(
        &mut self,
        plan: &CasePlan,
        numbers: &[usize],
    ) -> Result<(RanCase, Vec<Judged>, SampleStore), NoLevel> {
        let mut samples = SampleStore::default();
        let ran = self.controller.run_case(
            plan,
            self.prepared,
            numbers,
            plan.threads,
            self.observer,
            Some(&mut samples),
        );
        let mut ran = ran.map_err(NoLevel::Trouble)?;
        let judged = verify::judge(self.controller, plan, self.prepared, &mut ran);
        Ok((ran, judged, samples))
    }

    fn note_evidence(&mut self, plan: &CasePlan, ran: &RanCase) {
        let prepared = self.prepared;
        let maker = CaseFigures { controller: self.controller, plan, prepared, ran };
        self.evidence.push(maker.evidence());
    }

    /// A level, with fewer workers where the token has no more sessions.
    fn level(&mut self, plan: &CasePlan) -> Result<(RanCase, Vec<Judged>, SampleStore), NoLevel> {
        let numbers = self.numbers.clone();
        loop {
            let plan = CasePlan { threads: self.threads, ..plan.clone() };
            match self.pass(&plan, &numbers) {
                Err(NoLevel::Trouble(CaseNotMeasured::Refused(failure)))
                    if failure.code == SESSION_COUNT && self.threads > 1 =>
                {
                    self.threads /= 2;
                }
                result => return result,
            }
        }
    }

    /// A level of so many arrivals after those that fill the queue.
    fn plan_of(&self, rate: PerSecond, arrivals: u64, filling: u64) -> CasePlan {
        let length = (arrivals + filling) as f64 / rate.0;
        let window = Nanos((length * 1e9) as u64) + self.search.bound.longest;
        let mut random = SplitMix(self.plan.common.seed.wrapping_add(self.levels.len() as u64));
        CasePlan {
            load: LoadPlan::Open { rate, poisson: self.search.poisson },
            stop: CaseStop::Seconds(window),
            threads: self.threads,
            // Each level has arrivals of its own: the same ones again would err alike.
            common: Common { seed: random.bits(), ..self.plan.common.clone() },
            ..self.plan.clone()
        }
    }

    /// What the generator did at a level that was to have `wanted` arrivals and had `seen`.
    fn generator(&self, ran: &RanCase, wanted: u64, seen: u64) -> (GeneratorHealth, Option<Nanos>) {
        let bound = self.search.bound;
        let total = ran.gathered.combined().total();
        let on_time = ran.gathered.lateness.total();
        let delay = match on_time.completed {
            0 => None,
            _ => Some(on_time.quantile(1.0 - bound.share_beyond()).unwrap_or(on_time.max)),
        };
        if delay.is_some_and(|delay| delay.0 > bound.longest.0 / 10) {
            return (GeneratorHealth::Late, delay);
        }
        let done = total.completed + total.failed;
        let held_up = done.saturating_sub(on_time.completed) as f64 / done.max(1) as f64;
        let call = total.busy.0 as f64 / total.completed.max(1) as f64;
        let busy = call >= DEVICE_BUSY * self.unloaded.0 as f64;
        let dropped = ran.gathered.done.iter().flatten().any(|done| done.samples_dropped > 0);
        if (held_up > bound.share_beyond() && !busy) || seen < wanted / 2 || dropped {
            return (GeneratorHealth::Exhausted, delay);
        }
        (GeneratorHealth::Sound, delay)
    }

    fn end(
        mut self,
        found: Result<LatencyLimit, NoLevel>,
        expected: Seconds,
    ) -> (Option<record::RateWithin>, CaseOutcome) {
        use record::{RateWithinOutcome as Outcome, RateWithinStop as Stop};
        let limit = match found {
            Ok(limit) => self.undisturbed(limit),
            Err(NoLevel::Failures) => {
                self.stopped = Some(Stop::Failures);
                LatencyLimit::Unknown(WithinEnd::Interrupted)
            }
            Err(NoLevel::Trouble(why)) => return (None, self.without(why)),
        };
        let (outcome, rate, at_least, end) = match limit {
            LatencyLimit::Rate(rate) => (Outcome::Rate, Some(rate.into()), None, Stop::Done),
            LatencyLimit::NoRate => (Outcome::NoRate, None, None, Stop::Done),
            LatencyLimit::AtLeast(rate, end) => (Outcome::AtLeast, None, Some(rate), stop(end)),
            LatencyLimit::Unknown(end) => (Outcome::Unknown, None, None, stop(end)),
        };
        // A level that was too short to show it lies above the capacity all the same.
        let most = self.most();
        for level in &mut self.levels {
            level.backlog_grows |= level.offered_rate.0 > most;
        }
        let within = record::RateWithin {
            operation: self.plan.name().to_owned(),
            quantile: Fraction(1.0 - self.search.bound.share_beyond()),
            bound_ns: self.search.bound.longest,
            arrivals: if self.search.poisson {
                record::ArrivalKind::Poisson
            } else {
                record::ArrivalKind::Constant
            },
            workers: self.threads * self.numbers.len() as u32,
            outcome,
            rate,
            at_least,
            stopped_by: self.stopped.unwrap_or(end),
            unloaded_ns: Some(self.unloaded),
            expected_seconds: expected,
            levels: std::mem::take(&mut self.levels),
            capacity: None,
        };
        let interrupted = self.stopped == Some(Stop::Interrupted);
        let outcome = match self.shown.take() {
            Some(Shown { plan, ran, judged, .. }) => {
                let shown = figures::outcome(self.controller, &plan, self.prepared, ran, judged);
                CaseOutcome { interrupted, ..shown }
            }
            None => outcome::without(self.plan, super::TokenMeasureError::Interrupted.into()),
        };
        (Some(within), outcome)
    }

    /// What other programs took from the device makes the limit look lower than it is.
    fn undisturbed(&mut self, limit: LatencyLimit) -> LatencyLimit {
        let cause = attribute_case(&mean_evidence(&self.evidence)).cause;
        if self.evidence.is_empty() || cause != LimitCause::OtherPrograms {
            return limit;
        }
        let end = WithinEnd::GeneratorLate;
        let withheld = match limit {
            LatencyLimit::Rate(rate) => LatencyLimit::AtLeast(PerSecond(rate.low), end),
            LatencyLimit::NoRate => LatencyLimit::Unknown(end),
            other => return other,
        };
        self.stopped = Some(record::RateWithinStop::OtherPrograms);
        withheld
    }

    fn without(&mut self, why: CaseNotMeasured) -> CaseOutcome {
        let cleaned = self.controller.clean_up_after_the_lost();
        outcome::without(self.plan, why).with_trouble(cleaned.err())
    }
}

/// What one worker alone shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alone {
    Within,
    /// Even its quantile lies beyond the bound.
    Beyond,
    Interrupted,
}

impl MeasuresRates for Levels<'_> {
    type Error = NoLevel;

    /// A level of which the generator was late for a moment says nothing of the device, and is
    /// measured again: who was late each time is too slow for this bound.
    fn measure_rate(
        &mut self,
        rate: PerSecond,
        arrivals: u64,
    ) -> Result<Option<RateLevel>, NoLevel> {
        let mut tries = 1;
        loop {
            let level = self.offer(rate, arrivals)?;
            let late = level.as_ref().is_some_and(|level| level.generator == GeneratorHealth::Late);
            if !late || tries >= LATE_TRIES {
                return Ok(level);
            }
            tries += 1;
        }
    }
}

impl Levels<'_> {
    /// The device surely serves no more, per second; infinite where that is not known.
    fn most(&self) -> f64 {
        capacity(&self.rate_levels, self.unloaded).map_or(f64::INFINITY, |served| served.high)
    }

    /// Offers a rate for so many arrivals; `None`: the time is up, or the user ended it.
    fn offer(&mut self, rate: PerSecond, arrivals: u64) -> Result<Option<RateLevel>, NoLevel> {
        let filling = (arrivals / FILLING).min(MOST_FILLING);
        let plan = self.plan_of(rate, arrivals, filling);
        let CaseStop::Seconds(window) = plan.stop else { return Ok(None) };
        let after = self.begun.elapsed() + Duration::from(window);
        if self.search.time.is_some_and(|time| after > time) {
            self.stopped = Some(record::RateWithinStop::Time);
            return Ok(None);
        }
        self.tell_part(format!("level {}, {rate} offered", self.levels.len() + 1));
        let (ran, judged, samples) = self.level(&plan)?;
        let plan = CasePlan { threads: self.threads, ..plan };
        if ran.interrupted {
            self.stopped = Some(record::RateWithinStop::Interrupted);
            return Ok(None);
        }
        let failed = is_failed(&ran, &judged);
        let seen = LevelArrivals::new(&plan, &ran.gathered, self.numbers.len(), samples, filling);
        let seen = seen.bounded_by(self.search.bound);
        let (generator, delay) = self.generator(&ran, arrivals, seen.arrivals());
        let level = RateLevel { rate, batches: seen.batches(), generator };
        self.rate_levels.push(level.clone());
        self.levels.push(record::OfferedLevel {
            offered_rate: rate,
            arrivals: seen.arrivals(),
            beyond: seen.beyond(),
            latency_ns: seen.quantile(),
            backlog_grows: level.backlog_grows(),
            generator: match generator {
                GeneratorHealth::Sound => record::GeneratorState::Sound,
                GeneratorHealth::Late => record::GeneratorState::Late,
                GeneratorHealth::Exhausted => record::GeneratorState::Exhausted,
            },
            generator_delay_ns: delay,
        });
        self.note_evidence(&plan, &ran);
        let share = self.search.bound.share_beyond();
        let most = self.most();
        let within = level.share_beyond() <= share
            && !level.backlog_grows()
            && rate.0 <= most
            && generator == GeneratorHealth::Sound;
        let rate_of = |plan: &CasePlan| match plan.load {
            LoadPlan::Open { rate, .. } => rate.0,
            LoadPlan::Closed | LoadPlan::Chained => 0.0,
        };
        let better = |shown: &Shown| {
            let shown_rate = rate_of(&shown.plan);
            !shown.within || shown_rate > most || (within && shown_rate < rate.0)
        };
        if failed || self.shown.as_ref().is_none_or(better) {
            self.shown = Some(Shown { plan, ran, judged, within });
        }
        if failed { Err(NoLevel::Failures) } else { Ok(Some(level)) }
    }
}

fn is_failed(ran: &RanCase, judged: &[Judged]) -> bool {
    let wrong = judged.iter().any(|lane| lane.wrong > 0);
    wrong || ran.has_trouble() || !ran.gathered.has_no_failure()
}

const fn stop(end: WithinEnd) -> record::RateWithinStop {
    match end {
        WithinEnd::GeneratorLate => record::RateWithinStop::GeneratorLate,
        WithinEnd::GeneratorExhausted => record::RateWithinStop::GeneratorExhausted,
        WithinEnd::RateCap => record::RateWithinStop::RateCap,
        WithinEnd::LevelCap => record::RateWithinStop::LevelCap,
        WithinEnd::Interrupted => record::RateWithinStop::Interrupted,
    }
}

const SESSION_COUNT: Rv = Rv(cryptoki_sys::CKR_SESSION_COUNT as u64);
