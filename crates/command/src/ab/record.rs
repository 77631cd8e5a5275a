//! What rounds of two commands say, in the record's words.

use tapstone_compare::{SlowdownLimit, judge_slowdown, more_samples};
use tapstone_measure::compare::{Percent, ROUNDS};
use tapstone_measure::interval::{self, LEVEL};
use tapstone_measure::slice::Slice;
use tapstone_measure::summary::histogram;
use tapstone_measure::trend;
use tapstone_measure::units::Nanos;
use tapstone_record as record;
use tapstone_record::{
    CaseResult, Change, ComparedCase, Comparison, Concurrency, EncodedHistogram, Estimate,
    Fraction, Judgement, Latency, Load, NoNumber, Outcome, Pairing, Quantity, Record, Seconds,
    Status, StoppedBy, Threshold, WarmUp, Window,
};

use super::paired::{self, Ratio};
use super::{Ab, AbError, MeasuredRounds, RunTimes};
use crate::rounds::Ended;

/// The step in which wait4 tells processor times: a microsecond.
const CPU_STEP: f64 = 1e3;

/// The latencies of a warm-up that are kept one by one.
const FIRST_KEPT: usize = 16;

/// What is compared of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ComparedPart {
    Wall,
    /// User and system time together.
    Cpu,
    User,
    System,
}

impl ComparedPart {
    const ALL: [Self; 4] = [Self::Wall, Self::Cpu, Self::User, Self::System];

    const fn operation(self) -> &'static str {
        match self {
            Self::Wall => "command.wall",
            Self::Cpu => "command.cpu",
            Self::User => "command.user",
            Self::System => "command.system",
        }
    }

    const fn quantity(self) -> Quantity {
        match self {
            Self::Wall => Quantity::WallTime,
            Self::Cpu | Self::User | Self::System => Quantity::CpuTime,
        }
    }

    fn time_in(self, times: &RunTimes) -> Nanos {
        match self {
            Self::Wall => times.wall,
            Self::Cpu => times.user + times.system,
            Self::User => times.user,
            Self::System => times.system,
        }
    }

    fn mean(self, values: &[Nanos]) -> Option<Estimate> {
        let values: Vec<f64> = values.iter().map(|value| value.0 as f64).collect();
        let step = if self == Self::Wall { 1.0 } else { CPU_STEP };
        let mean = interval::Estimate::mean_of(&values)?;
        Some(mean.no_narrower_than(step).not_negative().into())
    }

    fn ratio(self, baseline: &[Nanos], candidate: &[Nanos]) -> Option<Ratio> {
        match self {
            Self::Wall | Self::Cpu => paired::of_times(baseline, candidate),
            Self::User | Self::System => paired::of_sampled_times(baseline, candidate),
        }
    }
}

impl MeasuredRounds {
    /// Puts everything into a record: the candidate's program, the times of each side, the
    /// comparison, and what to know before believing it.
    pub fn add_to(&self, record: &mut Record, ab: &Ab, fail_above: Option<Percent>) {
        let [_, candidate] = &ab.sides;
        match candidate.command.identity() {
            Ok(program) => record.target.program = Some(program),
            Err(error) => record.warnings.push(format!(
                "{} cannot be read ({error}): its SHA-256 is not in the record",
                candidate.command.program().display()
            )),
        }
        for part in ComparedPart::ALL {
            let case = |side| CaseResult { seed: Some(ab.seed), ..self.case_result(part, side) };
            record.results.extend([0, 1].map(case));
        }
        record.comparison = self.comparison(ab, fail_above);
        record.warnings.extend(self.warnings(ab));
    }

    /// One time of each complete round.
    fn values(&self, part: ComparedPart, side: usize) -> Vec<Nanos> {
        self.rounds.rounds.iter().map(|round| part.time_in(&round[side])).collect()
    }

    /// The times of one side.
    fn case_result(&self, part: ComparedPart, side: usize) -> CaseResult {
        let name = ["baseline", "candidate"][side];
        let operation = format!("{}[{name}]", part.operation());
        let mut case =
            CaseResult::new(operation, self.status(side), Concurrency::ONE, Load::CLOSED);
        let values = self.values(part, side);
        let mut all = Slice::empty();
        values.iter().for_each(|value| all.count(*value));
        let mean = part.mean(&values);
        case.completed = values.len() as u64;
        case.latency_ns = Some(Latency { mean, min: all.min, max: all.max, ..Latency::default() });
        case.interval = mean.map(|_| record::Interval {
            n: case.completed,
            method: "mean over the rounds, Student's t".to_owned(),
            level: Fraction(LEVEL),
            reliable: true,
            autocorrelation: None,
            variation: Some(record::Variation::Rounds),
        });
        case.histogram = EncodedHistogram::encode(&histogram(&all)).ok();
        case.window = self.window(side);
        case.warm_up = self.warm_up(part, side, all.quantile(0.5));
        case.stopped_by = Some(self.stopped_by());
        if part == ComparedPart::Wall {
            case.warnings.extend(trend::outlier(&all).map(|outlier| outlier.to_string()));
        }
        case.latencies_ns = values;
        case
    }

    fn status(&self, side: usize) -> Status {
        let (place, code) = match self.failure() {
            Some(AbError::Failed { place, exit, .. }) => (place, exit.to_string()),
            Some(AbError::NotRun { place, error }) => (place, format!("{:?}", error.code)),
            Some(AbError::Interrupted) | None => return Status::OK,
        };
        if place.turn.side == side {
            Status::at(Outcome::Partial, place.to_string(), code)
        } else {
            Status::OK
        }
    }

    fn stopped_by(&self) -> StoppedBy {
        match self.rounds.ended {
            Ended::Done => StoppedBy::Count,
            Ended::Interrupted => StoppedBy::Interrupted,
            Ended::Failed { .. } => StoppedBy::Failures,
        }
    }

    /// From the side's first run to its last. The other side's runs are in between.
    fn window(&self, side: usize) -> Option<Window> {
        let first = self.rounds.rounds.first()?;
        let last = self.rounds.rounds.last()?;
        let start_ns = first[side].started;
        let end_ns = last[side].started + last[side].wall;
        let seconds = Seconds((end_ns - start_ns).as_secs_f64());
        Some(Window { start_ns, end_ns, seconds })
    }

    fn warm_up(&self, part: ComparedPart, side: usize, median: Option<Nanos>) -> Option<WarmUp> {
        let all: Vec<Nanos> =
            self.rounds.warm_up.iter().map(|round| part.time_in(&round[side])).collect();
        let first_ns = all[..all.len().min(FIRST_KEPT)].to_vec();
        let sum = first_ns.iter().copied().sum::<Nanos>().0 as f64;
        let median = median.filter(|median| *median > Nanos::ZERO);
        let ratio_to_median = median.map(|median| sum / first_ns.len() as f64 / median.0 as f64);
        let seconds = Seconds(all.iter().copied().sum::<Nanos>().as_secs_f64());
        let operations = all.len() as u64;
        (operations > 0).then_some(WarmUp { operations, seconds, first_ns, ratio_to_median })
    }

    /// `None` with a single round: it has no ratio with an interval.
    fn comparison(&self, ab: &Ab, fail_above: Option<Percent>) -> Option<Comparison> {
        let parts = if self.divided() { &ComparedPart::ALL[..] } else { &ComparedPart::ALL[..2] };
        let rows: Vec<ComparedCase> =
            parts.iter().filter_map(|part| self.compared(*part, fail_above)).collect();
        let side = |of: &super::AbSide| record::Side {
            name: of.name.clone(),
            source: of.command.shown().to_owned(),
            sha256: None,
            emulated: None,
            made_by: None,
        };
        let threshold = fail_above.map(|percent| Threshold {
            fail_above: Fraction(percent.0 / 100.0),
            exceeded: rows.iter().any(|row| row.threshold == Some(Judgement::Exceeded)),
        });
        (!rows.is_empty()).then(|| Comparison {
            pairing: Pairing::Interleaved,
            baseline: side(&ab.sides[0]),
            candidate: side(&ab.sides[1]),
            cases: rows,
            calls: Vec::new(),
            threshold,
            only_in_baseline: Vec::new(),
            not_compared: Vec::new(),
            only_in_candidate: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// Whether enough runs met clock ticks to tell user from system time.
    fn divided(&self) -> bool {
        [ComparedPart::User, ComparedPart::System].into_iter().all(|part| {
            let baseline = self.values(part, 0);
            let candidate = self.values(part, 1);
            part.ratio(&baseline, &candidate).is_some()
        })
    }

    fn compared(&self, part: ComparedPart, fail_above: Option<Percent>) -> Option<ComparedCase> {
        let baseline = self.values(part, 0);
        let candidate = self.values(part, 1);
        let Ratio { ratio, verdict } = part.ratio(&baseline, &candidate)?;
        let ratio = Estimate::from(ratio);
        let rounds = baseline.len();
        // What a user waits for is the wall time.
        let budget = fail_above.filter(|_| part == ComparedPart::Wall);
        let budget = budget.map(|percent| SlowdownLimit::new(part.quantity(), percent));
        let threshold = budget.map(|budget| match judge_slowdown(budget, ratio) {
            _ if rounds < ROUNDS => Judgement::Undecided,
            judgement => judgement,
        });
        let open =
            threshold.map_or(verdict == Change::Inconclusive, |it| it == Judgement::Undecided);
        let limit = budget.map_or(1.0, SlowdownLimit::limit);
        let more = if open { more_rounds(ratio, limit, rounds) } else { None };
        let no_number = (open && more.is_none()).then_some(NoNumber::OnTheLimit);
        Some(ComparedCase {
            operation: part.operation().to_owned(),
            item: None,
            message_bytes: None,
            concurrency: None,
            quantity: part.quantity(),
            baseline: part.mean(&baseline)?,
            baseline_provenance: None,
            candidate: part.mean(&candidate)?,
            candidate_provenance: None,
            ratio,
            rounds: u32::try_from(rounds).ok(),
            variation: Some(record::Variation::Rounds),
            verdict,
            threshold,
            more_samples: more,
            no_number,
        })
    }

    fn warnings(&self, ab: &Ab) -> Vec<String> {
        let complete = self.rounds.rounds.len();
        let wanted = ab.rounds;
        let why = match &self.rounds.ended {
            Ended::Done => None,
            Ended::Interrupted => Some("interrupted"),
            Ended::Failed { .. } => Some("a run failed"),
        };
        let ended = why.map(|why| format!("{why}: {complete} of {wanted} rounds were complete"));
        let few = (complete < ROUNDS).then(|| {
            format!("{complete} rounds are too few for a verdict: that needs at least {ROUNDS}")
        });
        let undivided = (complete >= 2 && !self.divided()).then(|| {
            "user and system time of runs as short as these are not told apart: the kernel knows \
             their sum, command.cpu, and divides it by clock ticks, of which most runs met none"
                .to_owned()
        });
        [ended, few, undivided].into_iter().flatten().collect()
    }
}

/// About how many more rounds would decide, if the estimate stays; a verdict needs 20 anyway.
fn more_rounds(ratio: Estimate, limit: f64, rounds: usize) -> Option<u64> {
    let missing = ROUNDS.saturating_sub(rounds) as u64;
    let clear = ratio.low > limit || ratio.high < limit;
    match more_samples(ratio, limit, rounds as u64) {
        Some(more) => Some(more.max(missing)),
        None => (clear && missing > 0).then_some(missing),
    }
}
