//! A run's cases as they stand in the record.

use tapstone_measure::trend::{self, FirstCalls};
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_record as record;

use super::card_run::CardRun;
use super::figures::{LaneFigures, WorkerPart, lanes};
use super::steering::CardStop;

/// Operations up to so many are kept one by one: enough for a plot, and for another program.
const MOST_VALUES: usize = 1000;

/// Of fewer operations no trend can be told.
const ENOUGH: u64 = 50;

/// What a case is called, and what its figures mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseDescription {
    /// The operation's name in the record.
    pub operation: String,
    /// Bytes of input, where the case has any.
    pub message_bytes: Option<u64>,
    /// Nothing but the operation is done, so that operations a second mean something.
    pub has_rate: bool,
    /// The names of its steps, where they are timed.
    pub steps: Vec<String>,
}

/// The cases of a run, in the order of the plans; a lane without a single operation has no figures.
#[must_use]
pub fn case_results(
    ran: &CardRun,
    plans: &[CaseDescription],
    stop: CardStop,
) -> Vec<record::CaseResult> {
    let lanes = lanes(ran);
    let result = |(number, plan): (usize, &CaseDescription)| {
        let lane = lanes.iter().find(|lane| usize::from(lane.lane) == number);
        case_result(ran, plan, number as u16, lane, stop)
    };
    plans.iter().enumerate().map(result).collect()
}

fn case_result(
    ran: &CardRun,
    plan: &CaseDescription,
    number: u16,
    lane: Option<&LaneFigures>,
    stop: CardStop,
) -> record::CaseResult {
    let processes = ran.samples.len() as u32;
    let concurrency = record::Concurrency { processes, ..record::Concurrency::ONE };
    let name = plan.operation.as_str();
    let Some(lane) = lane else {
        let status = status(ran, number, None);
        return record::CaseResult::new(name, status, concurrency, record::Load::CLOSED);
    };
    let status = status(ran, number, Some(lane));
    let mut case = record::CaseResult::new(name, status, concurrency, record::Load::CLOSED);
    let (opens, closes) = lane.window;
    case.message_bytes = plan.message_bytes;
    case.window = Some(record::Window {
        start_ns: opens,
        end_ns: closes,
        seconds: record::Seconds((closes - opens).as_secs_f64()),
    });
    case.failed = lane.failed.clone();
    case.set_figures(&lane.summary, &lane.total);
    if plan.has_rate {
        let over = record::RateBasis::Window;
        case.throughput = Some(record::Throughput::operations(lane.summary.rate, over));
        if let Some(interval) = &mut case.interval {
            interval.reliable &= lane.rate_reliable;
            interval.method = format!("{}; rate: {}", interval.method, lane.rate_method);
        }
    }
    case.latencies_ns = values(ran, number);
    // Few operations are better looked at one by one than by slices that are mostly empty.
    if case.latencies_ns.is_empty() {
        case.series = record::SeriesPoint::all(&lane.series);
    }
    case.warm_up = warm_up(ran, lane);
    case.phases = phases(ran, plan, number);
    case.shares = shares(lane, closes - opens);
    case.stopped_by = Some(stopped_by(ran, stop));
    case.warnings = warnings(lane, &case);
    case
}

fn status(ran: &CardRun, number: u16, lane: Option<&LaneFigures>) -> record::Status {
    let completed = lane.map_or(0, |lane| lane.total.completed);
    let outcome = if completed == 0 { record::Outcome::Failed } else { record::Outcome::Partial };
    let unsupported = ran.ready.iter().flatten().flat_map(|ready| &ready.unsupported);
    if let Some((_, fault)) = unsupported.into_iter().find(|(of, _)| *of == number) {
        return record::Status::at(record::Outcome::Unsupported, fault.step(), fault.code());
    }
    if let Some(lost) = &ran.lost {
        let call = lost.call().map_or_else(|| "worker".to_owned(), |call| call.to_string());
        return record::Status::at(outcome, call, lost.code());
    }
    if let Some(fault) = lane.and_then(|lane| lane.last_fault.as_ref()) {
        return record::Status::at(outcome, fault.step(), fault.code());
    }
    let gave_up = ran.done.iter().flatten().find_map(|done| done.gave_up.as_ref());
    match gave_up {
        Some(fault) if completed == 0 => record::Status::at(outcome, fault.step(), fault.code()),
        _ if completed == 0 => record::Status { outcome, step: None, code: None },
        _ => record::Status::OK,
    }
}

fn values(ran: &CardRun, number: u16) -> Vec<Nanos> {
    let all = ran.samples.iter().flatten().filter(|sample| sample.lane == number);
    let values: Vec<Nanos> = all
        .filter(|sample| sample.fault.is_none())
        .map(|sample| sample.latency)
        .take(MOST_VALUES + 1)
        .collect();
    if values.len() > MOST_VALUES || ran.samples.len() > 1 { Vec::new() } else { values }
}

fn warm_up(ran: &CardRun, lane: &LaneFigures) -> Option<record::WarmUp> {
    let ready = ran.ready.iter().flatten().find(|ready| !ready.warm_up.is_empty())?;
    let operations = ran.ready.iter().flatten().map(|ready| ready.warm_up.len() as u64).sum();
    let length = ready.warm_up.iter().copied().sum();
    Some(record::WarmUp::from_calls(operations, length, &ready.warm_up, &lane.summary))
}

/// Time by step of a test.
fn phases(ran: &CardRun, plan: &CaseDescription, number: u16) -> Vec<record::Phase> {
    let mut sums = vec![Nanos::ZERO; plan.steps.len()];
    let mut operations = 0_u64;
    let good = ran.samples.iter().flatten();
    for sample in good.filter(|sample| sample.lane == number && sample.fault.is_none()) {
        operations += 1;
        for exchange in &sample.exchanges {
            if let Some(sum) = sums.get_mut(usize::from(exchange.step)) {
                *sum += exchange.time;
            }
        }
    }
    let all: Nanos = sums.iter().copied().sum();
    let phase = |(name, sum): (&String, Nanos)| {
        let mean = sum.0 as f64 / operations.max(1) as f64;
        let share = record::Fraction(sum.0 as f64 / all.0.max(1) as f64);
        record::Phase::new(name.clone(), mean, share)
    };
    plan.steps.iter().zip(sums).map(phase).collect()
}

/// Who of several contending processes got how much, and waited how long.
fn shares(lane: &LaneFigures, window: Nanos) -> Vec<record::Share> {
    if lane.parts.len() < 2 {
        return Vec::new();
    }
    let all: u64 = lane.parts.iter().map(|part| part.completed).sum();
    let share = |(index, part): (usize, &WorkerPart)| record::Share {
        kind: record::ShareKind::Process,
        name: format!("process {}", index + 1),
        completed: part.completed,
        rate: PerSecond(part.completed as f64 / window.as_secs_f64().max(1e-9)),
        share: record::Fraction(part.completed as f64 / all.max(1) as f64),
        mean_ns: (part.completed > 0).then_some(part.mean_ns),
        client_utilisation: None,
        longest_ns: (part.completed > 0).then_some(part.longest),
    };
    lane.parts.iter().enumerate().map(share).collect()
}

fn stopped_by(ran: &CardRun, stop: CardStop) -> record::StoppedBy {
    let gave_up = ran.done.iter().flatten().any(|done| done.gave_up.is_some());
    match stop {
        _ if ran.interrupted => record::StoppedBy::Interrupted,
        _ if ran.lost.is_some() || gave_up => record::StoppedBy::Failures,
        _ if ran.precise => record::StoppedBy::Precision,
        CardStop::Count => record::StoppedBy::Count,
        CardStop::Time(_) | CardStop::Precision { .. } => record::StoppedBy::Time,
    }
}

fn warnings(lane: &LaneFigures, case: &record::CaseResult) -> Vec<String> {
    let failed: u64 = case.failed.values().sum();
    let all = failed + case.completed;
    let median = lane.summary.p50.map(|p50| Nanos(p50.estimate as u64));
    // Without a warm-up the first calls are among the others.
    let first = case.warm_up.as_ref().map_or(
        FirstCalls { latencies: &case.latencies_ns, warm_up: case.latencies_ns.len() as u64 },
        |warm_up| FirstCalls { latencies: &warm_up.first_ns, warm_up: warm_up.operations },
    );
    let drift = trend::drift(&lane.series, lane.window.1 - lane.window.0);
    let drifts = matches!(drift.course, trend::Course::Slower | trend::Course::Faster);
    let mut told = Vec::new();
    told.extend(
        (failed > 0).then(|| format!("{failed} of {all} operations failed; no figure counts them")),
    );
    let slow_start = median.and_then(|median| trend::slow_start(first, median, lane.total.busy));
    told.extend(slow_start.map(|slow| slow.to_string()));
    // What contending processes do to each other is no trend.
    if lane.total.completed >= ENOUGH && lane.parts.len() == 1 {
        told.extend(drifts.then(|| drift.to_string()));
        told.extend(trend::bimodality(&lane.total, Nanos(1)).map(|modes| modes.to_string()));
        told.extend(trend::outlier(&lane.total).map(|outlier| outlier.to_string()));
    }
    told
}
