//! The recipe of hsm-speed, automated: more threads until the rate stops growing, then more
//! processes, then more hosts; each step judged by paired passes, so that a drifting device cannot
//! fake a gain.

use std::time::{Duration, Instant};

use tapstone_measure::attribution::{
    LevelEvidence, SearchEnd, SearchEvidence, attribute_process, attribute_search,
};
use tapstone_measure::interval::Estimate;
use tapstone_measure::knee::{
    AxisEnd, Knee, Level, LevelPass, LevelStep, MOST_PASSES, PASSES, axis_end, enough, find_knee,
    should_stop, steps,
};
use tapstone_measure::order::TurnOrder;
use tapstone_measure::summary::Summary;
use tapstone_measure::units::PerSecond;
use tapstone_names::pkcs11::Rv;
use tapstone_record as record;
use tapstone_record::Concurrency;

use super::case_figures::CaseFigures;
use super::error::TokenMeasureError;
use super::evidence::{limit_record, mean_evidence};
use super::gather::Gathered;
use super::judged::Judged;
use super::outcome::{self, CaseNotMeasured};
use super::plan::{CasePlan, CaseStop};
use super::prepare::Prepared;
use super::ran_case::RanCase;
use super::steering::{SearchPart, TimeLeft, TokenObserver};
use super::{CaseOutcome, TokenController, figures, verify};

/// How far to look for a limit.
#[derive(Clone, Copy, Debug)]
pub struct LimitPlan {
    /// No level has more threads in a process.
    pub max_threads: u32,
    /// No level has more processes for a token.
    pub max_processes: u32,
    /// No level has more hosts.
    pub max_hosts: u32,
    /// When to stop looking.
    pub time: Duration,
}

/// What came of a search for the limit.
#[derive(Debug)]
pub struct Limit {
    /// For the record; `None` when not even one level could be measured.
    pub knee: Option<record::Knee>,
    /// The case of the level with the highest rate, over all its passes.
    pub outcome: CaseOutcome,
}

/// How often a number has to be doubled to reach the most.
fn doublings(number: u32, most: u32) -> u32 {
    most.div_ceil(number).next_power_of_two().trailing_zeros()
}

/// `4 threads`; processes and hosts are named where there are several.
fn level_name(level: Concurrency) -> String {
    let several = |count: u32, what: &str| match count {
        1 => String::new(),
        count => format!(" × {count} {what}"),
    };
    let threads = if level.threads == 1 { "thread" } else { "threads" };
    let processes = several(level.processes, "processes");
    format!("{} {threads}{processes}{}", level.threads, several(level.hosts, "hosts"))
}

/// One pass over a level.
struct Pass {
    ran: RanCase,
    judged: Vec<Judged>,
    summary: Summary,
}

/// One level with all that its passes measured.
struct MeasuredLevel {
    concurrency: Concurrency,
    passes: Vec<LevelPass>,
    evidence: Vec<LevelEvidence>,
    best: Option<Pass>,
}

impl MeasuredLevel {
    fn as_level(&self, axis: ConcurrencyAxis) -> Level {
        Level { concurrency: axis.number(self.concurrency), passes: self.passes.clone() }
    }

    fn mean_rate(&self) -> f64 {
        self.rates().sum::<f64>() / self.passes.len().max(1) as f64
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        self.passes.iter().map(|pass| pass.rate.0)
    }
}

impl TokenController {
    /// Looks for the concurrency beyond which the rate of a case stops growing.
    pub fn find_limit(
        &mut self,
        plan: &CasePlan,
        limits: LimitPlan,
        observer: &mut dyn TokenObserver,
    ) -> Limit {
        observer.stage(plan.name(), "preparing keys");
        let prepared = match self.prepare(plan, 1, 1) {
            Ok(prepared) => prepared,
            Err(why) => return Limit { knee: None, outcome: outcome::without(plan, why) },
        };
        let mut search = Search {
            controller: self,
            plan,
            limits,
            prepared,
            levels: Vec::new(),
            passes: 0,
            measured: 0,
            most_left: 0,
            order: TurnOrder::from_seed(plan.common.seed),
            begun: Instant::now(),
            stopped: None,
            any_failure: false,
            enough: Concurrency::ONE,
            ends: ConcurrencyAxis::ALL.map(|_| AxisEnd::NotTried),
        };
        search.climb(observer);
        search.end()
    }
}

struct Search<'a> {
    controller: &'a mut TokenController,
    plan: &'a CasePlan,
    limits: LimitPlan,
    /// For as many processes as the largest level so far; smaller levels use some of them.
    prepared: Prepared,
    levels: Vec<MeasuredLevel>,
    /// Passes so far, over whichever levels.
    passes: u32,
    /// Levels measured so far, each once a pass.
    measured: u32,
    /// How many more there will be at most.
    most_left: u32,
    order: TurnOrder,
    begun: Instant,
    stopped: Option<Stopped>,
    /// Operations failed somewhere: the rates are not those of a device that works.
    any_failure: bool,
    /// The fewest threads that are enough for one process, and the fewest such processes that are
    /// enough for one host.
    enough: Concurrency,
    /// What more of each kind has brought, by [`ConcurrencyAxis::ALL`].
    ends: [AxisEnd; 3],
}

/// One kind of concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConcurrencyAxis {
    Threads,
    Processes,
    Hosts,
}

impl ConcurrencyAxis {
    const ALL: [Self; 3] = [Self::Threads, Self::Processes, Self::Hosts];

    const fn number(self, level: Concurrency) -> u32 {
        match self {
            Self::Threads => level.threads,
            Self::Processes => level.processes,
            Self::Hosts => level.hosts,
        }
    }

    /// How many surely flat doublings show that more of it brings nothing.
    ///
    /// Two of threads: one may be a boundary, such as the cores of one card of several. Processes
    /// and hosts are tried from where threads are enough, so that each doubling is beyond that.
    const fn flat_doublings(self) -> usize {
        match self {
            Self::Threads => 2,
            Self::Processes | Self::Hosts => 1,
        }
    }

    const fn set(self, level: Concurrency, number: u32) -> Concurrency {
        match self {
            Self::Threads => Concurrency { threads: number, ..level },
            Self::Processes => Concurrency { processes: number, ..level },
            Self::Hosts => Concurrency { hosts: number, ..level },
        }
    }
}

/// Where the rate stops growing.
struct Found {
    smallest: Concurrency,
    below: Option<Concurrency>,
    knee: Knee,
}

/// What limits the whole, and what limits one process where that is another matter.
struct Attributions {
    whole: record::LimitEvidence,
    process: Option<record::LimitEvidence>,
}

enum Stopped {
    By(record::KneeStop),
    Trouble(CaseNotMeasured),
}

impl Search<'_> {
    fn climb(&mut self, observer: &mut dyn TokenObserver) {
        self.add(Concurrency::ONE);
        self.most_left = PASSES as u32 + self.most_after(ConcurrencyAxis::Threads, 1);
        self.pass_over(&[0], PASSES, observer);
        self.climb_by(ConcurrencyAxis::Threads, Concurrency::ONE, observer);
        self.refine(observer);
        // Processes are tried from the fewest threads that are enough, and hosts from those.
        self.enough.threads = enough(&self.by(ConcurrencyAxis::Threads)).unwrap_or(1);
        self.climb_by(ConcurrencyAxis::Processes, self.enough, observer);
        self.enough.processes = enough(&self.by(ConcurrencyAxis::Processes)).unwrap_or(1);
        self.climb_by(ConcurrencyAxis::Hosts, self.enough, observer);
        if self.stopped.is_none() {
            // Each kind is tried from where the one before is enough: the last one decides.
            let tried = self.ends.iter().rfind(|end| **end != AxisEnd::NotTried);
            let reason = match tried {
                Some(AxisEnd::Flat { .. }) => record::KneeStop::Plateau,
                _ => record::KneeStop::Limit,
            };
            self.stopped = Some(Stopped::By(reason));
        }
    }

    /// Doubles one kind of concurrency until that no longer helps.
    fn climb_by(
        &mut self,
        axis: ConcurrencyAxis,
        from: Concurrency,
        observer: &mut dyn TokenObserver,
    ) {
        let most = self.most(axis);
        let mut below = from;
        while self.stopped.is_none() && axis.number(below) < most {
            let level = axis.set(below, (axis.number(below) * 2).min(most));
            self.most_left = self.most_after(axis, axis.number(below));
            self.step(below, level, observer);
            if should_stop(&self.by(axis)) {
                break;
            }
            below = level;
        }
        self.ends[axis as usize] = axis_end(&self.by(axis), axis.flat_doublings());
    }

    /// So much of it may be tried.
    const fn most(&self, axis: ConcurrencyAxis) -> u32 {
        match axis {
            ConcurrencyAxis::Threads => self.limits.max_threads,
            ConcurrencyAxis::Processes => self.limits.max_processes,
            ConcurrencyAxis::Hosts => self.limits.max_hosts,
        }
    }

    /// How many measurements follow at most, when there are `number` of this kind: each doubling
    /// measures two levels, in as many passes as it takes to see whether it helped.
    fn most_after(&self, axis: ConcurrencyAxis, number: u32) -> u32 {
        let later = ConcurrencyAxis::ALL.iter().skip(axis as usize + 1);
        let doublings = later.fold(doublings(number, self.most(axis)), |sum, later| {
            sum + doublings(1, self.most(*later))
        });
        let refined = if axis == ConcurrencyAxis::Threads { PASSES } else { 0 };
        doublings * 2 * MOST_PASSES as u32 + refined as u32
    }

    /// The pass that begins, and how long the search goes on at most: as long as its time limit
    /// allows, or as all passes take that it can still make, if they take as long as those so far.
    fn part(&self, concurrency: Concurrency, passes: usize) -> SearchPart {
        let elapsed = self.begun.elapsed();
        let each = elapsed.checked_div(self.measured).unwrap_or_else(|| match self.plan.stop {
            CaseStop::Seconds(window) => (window + self.plan.common.warm_up).into(),
            CaseStop::Precision { .. } | CaseStop::Count(_) => Duration::ZERO,
        });
        let allowed = self.limits.time.saturating_sub(elapsed) + each;
        let most = each.saturating_mul(self.most_left);
        let left = if most.is_zero() { allowed } else { most.min(allowed) };
        let name = format!("{}, pass {}", level_name(concurrency), passes + 1);
        SearchPart { name, left: TimeLeft::UpTo(left) }
    }

    /// Measures a new level and the one below it, pass by pass, in turned order.
    fn step(&mut self, below: Concurrency, level: Concurrency, observer: &mut dyn TokenObserver) {
        let known = self.levels.iter().position(|known| known.concurrency == below);
        let before = known.unwrap_or(self.levels.len() - 1);
        self.add(level);
        let last = self.levels.len() - 1;
        self.pass_over(&[before, last], PASSES, observer);
        while self.stopped.is_none() && self.is_unclear(before, last) {
            self.pass_over(&[before, last], 1, observer);
        }
        if self.levels[last].passes.is_empty() {
            self.levels.pop();
        }
    }

    /// Passes so far do not say whether a doubling helped, and more may.
    fn is_unclear(&self, before: usize, last: usize) -> bool {
        let pair =
            [before, last].map(|level| self.levels[level].as_level(ConcurrencyAxis::Threads));
        let few = self.levels[last].passes.len() < MOST_PASSES;
        few && steps(&pair).iter().all(LevelStep::is_unclear)
    }

    /// One halving towards the knee: it is a place on a curve, not a number of threads.
    fn refine(&mut self, observer: &mut dyn TokenObserver) {
        let between = find_knee(&self.by(ConcurrencyAxis::Threads)).and_then(|knee| knee.refine());
        let Some(between) = between.filter(|_| self.stopped.is_none()) else { return };
        self.add(ConcurrencyAxis::Threads.set(Concurrency::ONE, between));
        let last = self.levels.len() - 1;
        self.pass_over(&[last], PASSES, observer);
        self.levels.sort_by_key(|level| level.concurrency.threads);
    }

    fn add(&mut self, concurrency: Concurrency) {
        self.levels.push(MeasuredLevel {
            concurrency,
            passes: Vec::new(),
            evidence: Vec::new(),
            best: None,
        });
    }

    /// Measures these levels in turn, forwards or backwards.
    fn pass_over(&mut self, levels: &[usize], count: usize, observer: &mut dyn TokenObserver) {
        for _ in 0..count {
            let mut order = levels.to_vec();
            if self.order.is_backwards() {
                order.reverse();
            }
            for level in order {
                if self.stopped.is_none() {
                    self.measure(level, observer);
                }
            }
            self.passes += 1;
        }
    }

    fn measure(&mut self, level: usize, observer: &mut dyn TokenObserver) {
        if self.begun.elapsed() >= self.limits.time && self.levels.len() > 1 {
            self.stopped = Some(Stopped::By(record::KneeStop::Time));
            return;
        }
        let concurrency = self.levels[level].concurrency;
        observer.begin_part(&self.part(concurrency, self.levels[level].passes.len()));
        let passed = self.pass(concurrency, observer);
        self.measured += 1;
        self.most_left = self.most_left.saturating_sub(1);
        match passed {
            Ok((pass, evidence)) => self.take(level, pass, evidence),
            Err(CaseNotMeasured::Refused(failure)) if failure.code == SESSION_COUNT => {
                self.stopped = Some(Stopped::By(record::KneeStop::SessionCount));
            }
            Err(why) => self.stopped = Some(Stopped::Trouble(why)),
        }
    }

    fn take(&mut self, level: usize, pass: Pass, evidence: LevelEvidence) {
        let Pass { ran, judged, summary } = &pass;
        let failed = ran.has_trouble() || judged.iter().any(|lane| lane.wrong > 0);
        self.any_failure |= failed || !ran.gathered.has_no_failure();
        if ran.interrupted {
            self.stopped = Some(Stopped::By(record::KneeStop::Interrupted));
        } else if failed {
            self.stopped = Some(Stopped::By(record::KneeStop::Failures));
        }
        let rate = summary.rate.estimate;
        let measured = &mut self.levels[level];
        // A pass that was cut short says nothing of its level.
        if !ran.interrupted {
            measured.passes.push(LevelPass { number: self.passes, rate: PerSecond(rate) });
            measured.evidence.push(evidence);
        }
        let better = |best: &Pass| best.summary.rate.estimate < rate;
        let shown = measured.best.as_ref().is_none_or(better) && !ran.interrupted;
        if shown || failed || (ran.interrupted && measured.best.is_none()) {
            measured.best = Some(pass);
        }
    }

    fn pass(
        &mut self,
        concurrency: Concurrency,
        observer: &mut dyn TokenObserver,
    ) -> Result<(Pass, LevelEvidence), CaseNotMeasured> {
        let plan = CasePlan {
            threads: concurrency.threads,
            processes: concurrency.processes,
            hosts: concurrency.hosts,
            ..self.plan.clone()
        };
        self.prepare_for(concurrency)?;
        let some = |of_token: &Vec<usize>| {
            of_token.iter().copied().take(concurrency.processes as usize).collect::<Vec<usize>>()
        };
        let tokens = self.controller.tokens_of(concurrency.hosts);
        let used = self.prepared.processes.iter().take(tokens);
        let numbers: Vec<usize> = used.flat_map(some).collect();
        let prepared = &self.prepared;
        let mut ran = self.controller.run_case(
            &plan,
            prepared,
            &numbers,
            concurrency.threads,
            observer,
            None,
        )?;
        let judged = verify::judge(self.controller, &plan, prepared, &mut ran);
        let gathered: &Gathered = &ran.gathered;
        let workers = concurrency.threads * numbers.len() as u32;
        let step = plan.common.clock_step;
        let summary = gathered.summary(&gathered.combined(), None, workers, step);
        let maker = CaseFigures { controller: self.controller, plan: &plan, prepared, ran: &ran };
        let evidence = maker.evidence();
        Ok((Pass { ran, judged, summary }, evidence))
    }

    /// Keys live in the processes that use them: for more of them the case is prepared anew.
    fn prepare_for(&mut self, level: Concurrency) -> Result<(), CaseNotMeasured> {
        let tokens = self.controller.tokens_of(level.hosts);
        let has = self.prepared.processes.iter().map(Vec::len).min().unwrap_or(0);
        if has < level.processes as usize || self.prepared.processes.len() < tokens {
            self.controller.finish(&self.prepared)?;
            self.prepared = self.controller.prepare(self.plan, level.hosts, level.processes)?;
        }
        Ok(())
    }

    /// The levels that differ in this only, from as much of the other kinds as is enough.
    fn by(&self, axis: ConcurrencyAxis) -> Vec<Level> {
        let from = match axis {
            ConcurrencyAxis::Threads => Concurrency::ONE,
            ConcurrencyAxis::Processes => ConcurrencyAxis::Processes.set(self.enough, 1),
            ConcurrencyAxis::Hosts => self.enough,
        };
        let alike = |level: &&MeasuredLevel| axis.set(level.concurrency, axis.number(from)) == from;
        self.levels.iter().filter(alike).map(|level| level.as_level(axis)).collect()
    }

    /// The knee, and how much concurrency it is: of processes where one is not enough. `None` where
    /// the rate was still growing, or may have been.
    fn found(&self) -> Option<Found> {
        if !matches!(self.stopped, Some(Stopped::By(record::KneeStop::Plateau))) {
            return None;
        }
        let threads = find_knee(&self.by(ConcurrencyAxis::Threads))?;
        let more = |axis: ConcurrencyAxis| {
            let knee = find_knee(&self.by(axis)).filter(|knee| knee.concurrency > 1)?;
            Some((axis, knee))
        };
        let found = more(ConcurrencyAxis::Hosts).or_else(|| more(ConcurrencyAxis::Processes));
        let (axis, knee) = found.unwrap_or((ConcurrencyAxis::Threads, threads));
        let from = match axis {
            ConcurrencyAxis::Threads => Concurrency::ONE,
            ConcurrencyAxis::Processes | ConcurrencyAxis::Hosts => self.enough,
        };
        Some(Found {
            smallest: axis.set(from, knee.concurrency),
            below: knee.below.map(|below| axis.set(from, below)),
            knee,
        })
    }

    fn end(mut self) -> Limit {
        let found = self.found();
        let stopped_by = match &self.stopped {
            Some(Stopped::By(reason)) => *reason,
            Some(Stopped::Trouble(CaseNotMeasured::Error(TokenMeasureError::Interrupted))) => {
                record::KneeStop::Interrupted
            }
            _ => record::KneeStop::Failures,
        };
        let mut trouble = Vec::new();
        trouble.extend(self.controller.finish(&self.prepared).err());
        let levels: Vec<record::Level> = self.levels.iter().filter_map(level_of).collect();
        let knee =
            (!levels.is_empty()).then(|| self.knee_record(levels, found.as_ref(), stopped_by));
        let limit = knee.as_ref().and_then(|knee| knee.limit.clone());
        let rate = self.pooled_rate(found.as_ref());
        let best = self.take_best();
        let mut outcome = match (best, self.stopped) {
            (Some((concurrency, Pass { ran, judged, summary })), stopped) => {
                let plan = CasePlan {
                    threads: concurrency.threads,
                    processes: concurrency.processes,
                    hosts: concurrency.hosts,
                    ..self.plan.clone()
                };
                let mut outcome =
                    figures::outcome(self.controller, &plan, &self.prepared, ran, judged);
                outcome.summary = Some(Summary { rate: rate.unwrap_or(summary.rate), ..summary });
                if let ([case], Some(limit)) = (&mut outcome.cases[..], limit) {
                    case.limited_by = limit.limited_by;
                    case.limit = Some(limit);
                }
                if let Some(Stopped::Trouble(CaseNotMeasured::Error(error))) = stopped {
                    outcome.trouble.push(error);
                }
                outcome
            }
            (None, Some(Stopped::Trouble(why))) => outcome::without(self.plan, why),
            (None, _) => {
                outcome::without(self.plan, CaseNotMeasured::Error(TokenMeasureError::Interrupted))
            }
        };
        outcome.trouble.extend(trouble);
        outcome.interrupted |= stopped_by == record::KneeStop::Interrupted;
        Limit { knee, outcome }
    }

    fn take_best(&mut self) -> Option<(Concurrency, Pass)> {
        let measured = self.levels.iter_mut().filter(|level| level.best.is_some());
        let best = measured.max_by(|a, b| a.mean_rate().total_cmp(&b.mean_rate()))?;
        Some((best.concurrency, best.best.take()?))
    }

    /// The plateau over all passes, or else the rate of the best level over its own: a claim is not
    /// judged by the luckiest pass.
    fn pooled_rate(&self, found: Option<&Found>) -> Option<Estimate> {
        if let Some(found) = found {
            return Some(found.knee.plateau);
        }
        let best = self.levels.iter().max_by(|a, b| a.mean_rate().total_cmp(&b.mean_rate()))?;
        Estimate::mean_of(&best.rates().collect::<Vec<_>>()).map(Estimate::not_negative)
    }

    /// What limits the rate, and what limits the threads of one process.
    fn attributions(&self, stopped_by: record::KneeStop) -> Option<Attributions> {
        let measured = || self.levels.iter().filter(|level| !level.evidence.is_empty());
        let workers = |level: &&MeasuredLevel| {
            let Concurrency { threads, processes, hosts } = level.concurrency;
            (u64::from(threads) * u64::from(processes) * u64::from(hosts), processes)
        };
        let top = mean_evidence(&measured().max_by_key(workers)?.evidence);
        let one_process = measured().filter(|level| level.concurrency.processes == 1);
        let most_threads = one_process.max_by_key(|level| level.concurrency.threads)?;
        let alone = measured().find(|level| level.concurrency == Concurrency::ONE)?;
        let [threads, processes, hosts] = self.ends;
        let search = SearchEvidence {
            end: match stopped_by {
                record::KneeStop::Interrupted => SearchEnd::Interrupted,
                _ if self.any_failure => SearchEnd::Failed,
                record::KneeStop::Plateau | record::KneeStop::Limit => SearchEnd::Complete,
                record::KneeStop::SessionCount => SearchEnd::SessionCount,
                record::KneeStop::Time => SearchEnd::Time,
                record::KneeStop::Failures => SearchEnd::Failed,
            },
            threads,
            processes,
            hosts: self.controller.hosts().is_some().then_some(hosts),
            top,
            most_threads: mean_evidence(&most_threads.evidence),
            latency_alone: mean_evidence(&alone.evidence).latency,
        };
        let second_process =
            steps(&self.by(ConcurrencyAxis::Processes)).first().and_then(|step| step.ratio);
        let process = attribute_process(&search, second_process);
        Some(Attributions {
            whole: limit_record(attribute_search(&search), &search.top),
            process: process.map(|process| limit_record(process, &search.most_threads)),
        })
    }

    fn knee_record(
        &self,
        levels: Vec<record::Level>,
        found: Option<&Found>,
        stopped_by: record::KneeStop,
    ) -> record::Knee {
        use tapstone_measure::usl::Peak;
        let law = found.and_then(|found| found.knee.law).map(|law| record::ScalabilityLaw {
            lambda: law.lambda.0,
            sigma: law.sigma,
            kappa: law.kappa,
            peak_concurrency: match law.peak {
                Peak::At { concurrency, .. } => Some(concurrency),
                Peak::Limit(_) | Peak::None => None,
            },
            peak_rate: match law.peak {
                Peak::At { rate, .. } | Peak::Limit(rate) => Some(rate),
                Peak::None => None,
            },
            misfit: Some(record::Fraction(law.misfit)),
        });
        let limits = self.attributions(stopped_by);
        record::Knee {
            operation: self.plan.name().to_owned(),
            concurrency: found.map(|found| found.smallest),
            below: found.and_then(|found| found.below),
            plateau: found.map(|found| found.knee.plateau.into()),
            law,
            stopped_by,
            levels,
            process_limit: limits.as_ref().and_then(|limits| limits.process.clone()),
            limit: limits.map(|limits| limits.whole),
        }
    }
}

const SESSION_COUNT: Rv = Rv(cryptoki_sys::CKR_SESSION_COUNT as u64);

fn level_of(measured: &MeasuredLevel) -> Option<record::Level> {
    let rates: Vec<f64> = measured.rates().collect();
    let rate = match Estimate::mean_of(&rates) {
        Some(mean) => record::Estimate::from(mean.not_negative()).into(),
        None => record::LevelRate::of_one_pass(*rates.first()?),
    };
    Some(record::Level {
        threads: measured.concurrency.threads,
        processes: measured.concurrency.processes,
        hosts: measured.concurrency.hosts,
        rate,
        passes: rates.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_doubles_so_often_at_most() {
        for (number, most, times) in
            [(1, 64, 6), (32, 64, 1), (64, 64, 0), (1, 1, 0), (1, 10, 4), (3, 10, 2), (48, 64, 1)]
        {
            assert_eq!(doublings(number, most), times, "{number} to {most}");
        }
    }

    #[test]
    fn levels_are_called_by_what_there_are_several_of() {
        assert_eq!(level_name(Concurrency::ONE), "1 thread");
        let level = Concurrency { threads: 4, processes: 2, hosts: 1 };
        assert_eq!(level_name(level), "4 threads × 2 processes");
        assert_eq!(
            level_name(Concurrency { hosts: 3, ..level }),
            "4 threads × 2 processes × 3 hosts"
        );
    }
}
