//! Which figure is compared with which.
//!
//! - Two cases of records match when operation, concurrency, kind of loop (and its rate) are the
//!   same, and the length of the message where both tell it.
//! - What is compared is the rate for tokens in a closed loop, and the mean latency for everything
//!   else: in an open loop the rate is the generator's, and of cards and calls people know times.
//!   Where one side lacks it, the other is taken.
//! - A published figure has a quantity of its own; it matches the cases of its operation that have
//!   that quantity, with its concurrency where the source tells it. Not an open loop: nobody
//!   published one.
//! - Cases that failed, in part or altogether, or gave wrong results, and figures without an interval,
//!   are not compared. Those of the candidate are named, and so is what has no ratio: no threshold
//!   holds for them.

use std::collections::BTreeSet;

use tapstone_record::{
    CaseResult, Concurrency, Estimate, LoadKind, NotCompared, Outcome, Provenance, Quantity,
    Record, TargetKind, Throughput, Variation,
};
use tapstone_reference::{PublishedFigure, PublishedItem};

use crate::ratio::ratio_of;

/// Two figures of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct FigurePair {
    /// The operation's name, the same on both sides.
    pub operation: String,
    /// Which item of a published baseline.
    pub item: Option<String>,
    /// The length of the message, where both tell it.
    pub message_bytes: Option<u64>,
    /// How many workers the candidate had.
    pub concurrency: Concurrency,
    /// Whether rates or latencies are compared, and so the unit of both figures.
    pub quantity: Quantity,
    /// The baseline's figure, in the unit of the quantity.
    pub baseline: Estimate,
    /// Where it came from.
    pub baseline_provenance: Provenance,
    /// The candidate's figure, in the unit of the quantity.
    pub candidate: Estimate,
    /// Where it came from.
    pub candidate_provenance: Provenance,
    /// Samples on the measured side that has fewer.
    pub samples: Option<u64>,
    /// False when an interval is too narrow, so that nothing follows from it.
    pub reliable: bool,
    /// Which variation the intervals of both hold; `None` where a measured side does not say.
    pub variation: Option<Variation>,
}

impl FigurePair {
    /// Whether one figure can be divided by the other.
    fn has_ratio(&self) -> bool {
        ratio_of(self.baseline, self.candidate).is_some()
    }
}

/// What could be matched, and what could not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matched {
    /// The pairs, in the order of the candidate.
    pub pairs: Vec<FigurePair>,
    /// Operations of the baseline without a counterpart.
    pub only_in_baseline: Vec<String>,
    /// Operations that both tried, without a figure of the candidate that counts, or without figures
    /// that can be divided; each with why.
    pub not_compared: Vec<NotCompared>,
    /// Operations of the candidate without a counterpart.
    pub only_in_candidate: Vec<String>,
    /// Why a pair has no verdict, as sentences.
    pub doubts: Vec<String>,
}

/// What may decide where more samples of the same window would not.
const DECIDES: &str =
    "longer windows may decide, or at least five rounds on each measured side (--rounds 5)";

/// Pairs of two records.
#[must_use]
pub fn match_records(baseline: &Record, candidate: &Record) -> Matched {
    let token = candidate.target.kind == TargetKind::Token;
    let mut matched = Matched::default();
    let mut met = BTreeSet::new();
    for case in usable(candidate) {
        let counterpart = usable(baseline)
            .enumerate()
            .filter(|(place, other)| !met.contains(place) && same_work(case, other))
            .find_map(|(place, other)| {
                Some((place, pair(other, case, token, baseline, candidate)?))
            });
        match counterpart {
            Some((place, pair)) => {
                met.insert(place);
                // Calls of a short run: how they changed is told without a verdict.
                if (pair.reliable && pair.has_ratio()) || !is_a_call(candidate, case) {
                    matched.add(pair);
                }
            }
            None => matched.only_in_candidate.push(case.operation.clone()),
        }
    }
    let left = usable(baseline).enumerate().filter(|(place, _)| !met.contains(place));
    for (_, below) in left {
        let tried = candidate.results.iter().filter(|case| same_work(below, case));
        let failed = tried.filter_map(failure).next();
        match failed {
            Some(failed) => matched.not_compared.push(failed),
            None => matched.only_in_baseline.push(below.operation.clone()),
        }
    }
    matched.tidy();
    matched
}

/// Pairs of a record with every item of a reference.
#[must_use]
pub fn match_items(items: &[PublishedItem], candidate: &Record) -> Matched {
    let mut matched = Matched::default();
    let mut met = BTreeSet::new();
    for case in usable(candidate) {
        let before = matched.pairs.len();
        for item in items {
            for figure in item.figures.iter().filter(|figure| same_figure(case, figure)) {
                if let Some(pair) = published(item, figure, case, candidate) {
                    met.insert(figure.operation.clone());
                    matched.add(pair);
                }
            }
        }
        if matched.pairs.len() == before {
            matched.only_in_candidate.push(case.operation.clone());
        }
    }
    let figures = || items.iter().flat_map(|item| &item.figures);
    for case in &candidate.results {
        let is_published = figures().any(|figure| same_figure(case, figure));
        if let Some(failed) = failure(case).filter(|_| is_published) {
            met.insert(failed.operation.clone());
            matched.not_compared.push(failed);
        }
    }
    let all = figures().map(|figure| &figure.operation);
    matched.only_in_baseline = all.filter(|name| !met.contains(*name)).cloned().collect();
    matched.tidy();
    matched
}

impl Matched {
    fn add(&mut self, pair: FigurePair) {
        if !pair.has_ratio() {
            let why = format!("no ratio, as an interval reaches down to zero; {DECIDES}");
            self.not_compared.push(NotCompared { operation: pair.operation, why });
            return;
        }
        if !pair.reliable {
            self.doubts.push(format!(
                "{}: the intervals are too narrow, since the samples are still correlated: no \
                 verdict; {DECIDES}",
                pair.operation
            ));
        }
        self.pairs.push(pair);
    }

    /// Each name once, in the order in which it came.
    fn tidy(&mut self) {
        for names in [&mut self.only_in_baseline, &mut self.only_in_candidate, &mut self.doubts] {
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(name.clone()));
        }
        let mut seen = BTreeSet::new();
        self.not_compared.retain(|it| seen.insert((it.operation.clone(), it.why.clone())));
    }
}

fn is_a_call(record: &Record, case: &CaseResult) -> bool {
    record.calls.iter().any(|call| call.operation() == case.operation)
}

/// Cases that have figures to compare. The calls of a traced program may fail as they please; of what
/// is measured, a figure in part would say what the rest did not.
pub(crate) fn usable(record: &Record) -> impl Iterator<Item = &CaseResult> {
    let is_program = record.target.kind == TargetKind::Command;
    record.results.iter().filter(move |case| {
        let in_part = is_program && case.status.outcome == Outcome::Partial;
        in_part || failure(case).is_none()
    })
}

/// Why no figure of a case counts; `None` where they do.
pub(crate) fn failure(case: &CaseResult) -> Option<NotCompared> {
    let wrong = case.verification.map_or(0, |of| of.wrong);
    let what = match case.status.outcome {
        _ if wrong > 0 => format!("{wrong} results were wrong"),
        Outcome::Ok => return None,
        Outcome::Unsupported => "unsupported".to_owned(),
        Outcome::Partial => "measured in part".to_owned(),
        Outcome::Failed => "failed".to_owned(),
    };
    let said = [Some(&what), case.status.step.as_ref(), case.status.code.as_ref()];
    let why = said.into_iter().flatten().cloned().collect::<Vec<_>>().join(": ");
    Some(NotCompared { operation: case.operation.clone(), why })
}

pub(crate) fn same_work(one: &CaseResult, other: &CaseResult) -> bool {
    let bytes = one.message_bytes.zip(other.message_bytes).is_none_or(|(one, other)| one == other);
    one.operation == other.operation
        && one.concurrency == other.concurrency
        && one.load == other.load
        && bytes
}

fn same_figure(case: &CaseResult, figure: &PublishedFigure) -> bool {
    case.operation == figure.operation
        && case.load.kind == LoadKind::Closed
        && figure.concurrency.is_none_or(|workers| workers == case.concurrency)
}

fn pair(
    below: &CaseResult,
    above: &CaseResult,
    token: bool,
    baseline: &Record,
    candidate: &Record,
) -> Option<FigurePair> {
    let closed = above.load.kind == LoadKind::Closed;
    let order = if token && closed {
        [Quantity::Throughput, Quantity::Latency]
    } else {
        [Quantity::Latency, Quantity::Throughput]
    };
    let found = order.into_iter().find_map(|quantity| {
        // An open loop's rate says nothing of the device.
        let told = closed || quantity != Quantity::Throughput;
        let figures = figure_of(below, quantity)?;
        Some((quantity, figures, figure_of(above, quantity)?)).filter(|_| told)
    });
    let (quantity, of_baseline, of_candidate) = found?;
    Some(FigurePair {
        operation: above.operation.clone(),
        item: None,
        message_bytes: above.message_bytes.filter(|_| below.message_bytes.is_some()),
        concurrency: above.concurrency,
        quantity,
        baseline: of_baseline,
        baseline_provenance: provenance(baseline, below),
        candidate: of_candidate,
        candidate_provenance: provenance(candidate, above),
        samples: Some(below.completed.min(above.completed)),
        reliable: reliable(below) && reliable(above),
        variation: variation(below).zip(variation(above)).map(|(one, other)| match (one, other) {
            (Variation::Rounds, Variation::Rounds) => Variation::Rounds,
            _ => Variation::Window,
        }),
    })
}

fn published(
    item: &PublishedItem,
    figure: &PublishedFigure,
    case: &CaseResult,
    candidate: &Record,
) -> Option<FigurePair> {
    let quantity = figure.value.quantity();
    let value = figure.value.in_unit_of_quantity();
    Some(FigurePair {
        operation: case.operation.clone(),
        item: Some(item.name.clone()),
        message_bytes: None,
        concurrency: case.concurrency,
        quantity,
        baseline: Estimate { estimate: value, low: value, high: value },
        baseline_provenance: figure.provenance,
        candidate: figure_of(case, quantity)?,
        candidate_provenance: provenance(candidate, case),
        samples: Some(case.completed),
        reliable: reliable(case),
        variation: variation(case),
    })
}

/// In nanoseconds, or in operations per second.
pub(crate) fn figure_of(case: &CaseResult, quantity: Quantity) -> Option<Estimate> {
    match quantity {
        Quantity::Throughput => {
            let Throughput { estimate, low, high, .. } = case.throughput?;
            Some(Estimate { estimate, low, high })
        }
        // The wall time of a program is the latency of running it.
        Quantity::Latency | Quantity::WallTime | Quantity::CpuTime => case.latency_ns?.mean,
    }
}

fn reliable(case: &CaseResult) -> bool {
    case.interval.as_ref().is_none_or(|interval| interval.reliable)
}

fn variation(case: &CaseResult) -> Option<Variation> {
    case.interval.as_ref()?.variation
}

/// A figure of an emulated device is emulated, however it is marked itself.
pub(crate) fn provenance(record: &Record, case: &CaseResult) -> Provenance {
    match case.provenance {
        Provenance::Measured if record.target.emulated.is_some() => Provenance::Emulated,
        provenance => provenance,
    }
}
