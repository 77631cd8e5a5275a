//! Compares two records, or a record with published figures.
//!
//! [`pairs`] matches operations by name, message length, concurrency and kind of loop. Each pair gives
//! the ratio of the candidate's figure to the baseline's, with an interval, and a verdict from that
//! interval alone. Two runs at different times do not share their drift, so their intervals combine as
//! independent ones; differences between their environments become warnings. What one run measures
//! interleaved is compared by `tapstone_measure::compare` instead.
//!
//! Nothing here reads a file or prints: records go in, a [`Comparison`] comes out.
//!
//! ```
//! use tapstone_compare::{NamedRecord, compare_records};
//! use tapstone_record::{
//!     Change, CaseResult, Concurrency, Environment, Estimate, Load, RateBasis, Record, Status, Target,
//!     TargetKind, Throughput, Tool,
//! };
//!
//! fn record(rate: f64) -> Record {
//!     let mut case =
//!         CaseResult::new("rsa2048.sign", Status::OK, Concurrency::ONE, Load::CLOSED);
//!     let rate = Estimate { estimate: rate, low: rate * 0.99, high: rate * 1.01 };
//!     case.throughput = Some(Throughput::operations(rate, RateBasis::Window));
//!     let tool = Tool { name: "tapstone".into(), version: "1.0.0".into() };
//!     let target = Target::new(TargetKind::Token);
//!     let mut record = Record::new(tool, jiff::Timestamp::UNIX_EPOCH, Environment::default(), target);
//!     record.results.push(case);
//!     record
//! }
//!
//! let old = record(1000.0);
//! let new = record(1200.0);
//! let baseline = NamedRecord { record: &old, path: "old.json", sha256: "" };
//! let candidate = NamedRecord { record: &new, path: "new.json", sha256: "" };
//! let comparison = compare_records(baseline, candidate, None)?;
//! assert_eq!(comparison.cases[0].verdict, Change::Faster);
//! assert!((comparison.cases[0].ratio.estimate - 1.2).abs() < 1e-9);
//! # Ok::<(), tapstone_compare::CompareError>(())
//! ```
//!
//! The interval also says how many more samples would decide an open question, nine times of ten:
//!
//! ```
//! use tapstone_compare::more_samples;
//! use tapstone_record::Estimate;
//!
//! // 2 % faster, known to 4 %: four times the samples would move the end of the interval to 1 if
//! // the estimate stayed, but it moves as well, so it takes eleven times as many.
//! let ratio = Estimate { estimate: 1.02, low: 1.02 / 1.04, high: 1.02 * 1.04 };
//! let more = more_samples(ratio, 1.0, 1000).unwrap();
//! assert!((9_500..10_000).contains(&more), "{more}");
//! ```
#![forbid(unsafe_code)]

pub mod baseline;
mod calls;
mod differences;
mod error;
pub mod pairs;
mod ratio;
mod side;
mod side_by_side;

pub use error::CompareError;
pub use ratio::{SlowdownLimit, judge_slowdown, more_samples, ratio_of};
pub use side_by_side::side_by_side;

use tapstone_measure::compare::Percent;
use tapstone_record::{
    Change, ComparedCase, Comparison, Fraction, Judgement, NoNumber, Pairing, Record, Threshold,
};
use tapstone_reference::{PublishedItem, Reference};

use self::pairs::FigurePair;

/// A record and how it was named.
#[derive(Clone, Copy, Debug)]
pub struct NamedRecord<'a> {
    /// The record to compare.
    pub record: &'a Record,
    /// The path of its file, as the user wrote it.
    pub path: &'a str,
    /// The SHA-256 of its file, in hexadecimal.
    pub sha256: &'a str,
}

/// Compares a candidate with a baseline, both of them records.
///
/// # Errors
/// When no operation of one can be compared with one of the other.
pub fn compare_records(
    baseline: NamedRecord<'_>,
    candidate: NamedRecord<'_>,
    fail_above: Option<Percent>,
) -> Result<Comparison, CompareError> {
    let matched = pairs::match_records(baseline.record, candidate.record);
    if matched.pairs.is_empty() {
        return Err(CompareError::nothing_in_common(&matched, baseline.path, candidate.path));
    }
    let mut comparison = Comparison {
        pairing: Pairing::Records,
        baseline: side::side_of_record(baseline),
        candidate: side::side_of_record(candidate),
        cases: matched.pairs.iter().filter_map(|pair| compare_pair(pair, fail_above)).collect(),
        calls: calls::compare_calls(baseline.record, candidate.record),
        threshold: None,
        only_in_baseline: matched.only_in_baseline,
        not_compared: matched.not_compared,
        only_in_candidate: matched.only_in_candidate,
        warnings: differences::between_records(baseline.record, candidate.record),
    };
    comparison.warnings.extend(matched.doubts);
    decide(&mut comparison, fail_above);
    Ok(comparison)
}

/// Compares a candidate with each item of a published baseline, or with those alone whose name
/// holds the text of `only`, in whatever case.
///
/// # Errors
/// When no operation of the record has a published figure, and when no item has such a name.
pub fn compare_with_reference(
    reference: &Reference,
    only: Option<&str>,
    candidate: NamedRecord<'_>,
    fail_above: Option<Percent>,
) -> Result<Comparison, CompareError> {
    let items = chosen(reference, only)?;
    let matched = pairs::match_items(&items, candidate.record);
    if matched.pairs.is_empty() {
        let name = format!("reference:{}", reference.name);
        return Err(CompareError::nothing_in_common(&matched, &name, candidate.path));
    }
    let mut comparison = Comparison {
        pairing: Pairing::Published,
        baseline: side::side_of_reference(reference),
        candidate: side::side_of_record(candidate),
        cases: matched.pairs.iter().filter_map(|pair| compare_pair(pair, fail_above)).collect(),
        calls: Vec::new(),
        threshold: None,
        only_in_baseline: matched.only_in_baseline,
        not_compared: matched.not_compared,
        only_in_candidate: matched.only_in_candidate,
        warnings: differences::from_reference(reference, candidate.record),
    };
    comparison.warnings.extend(matched.doubts);
    decide(&mut comparison, fail_above);
    Ok(comparison)
}

fn chosen(reference: &Reference, only: Option<&str>) -> Result<Vec<PublishedItem>, CompareError> {
    let mut items = reference.items();
    let Some(text) = only else { return Ok(items) };
    let names: Vec<String> = items.iter().map(|item| item.name.clone()).collect();
    items.retain(|item| item.name.to_lowercase().contains(&text.to_lowercase()));
    if items.is_empty() {
        let reference = reference.name.to_owned();
        return Err(CompareError::NoSuchItem { text: text.to_owned(), reference, names });
    }
    Ok(items)
}

/// A pair with its ratio, verdict and judgement; `None` when a figure is zero.
fn compare_pair(pair: &FigurePair, fail_above: Option<Percent>) -> Option<ComparedCase> {
    let ratio = ratio_of(pair.baseline, pair.candidate)?;
    let budget = fail_above.map(|percent| SlowdownLimit::new(pair.quantity, percent));
    let verdict =
        if pair.reliable { ratio::verdict(pair.quantity, ratio) } else { Change::Inconclusive };
    let threshold = budget.map(|budget| match judge_slowdown(budget, ratio) {
        _ if !pair.reliable => Judgement::Undecided,
        judgement => judgement,
    });
    // With a threshold that is what has to be decided; without one it is the direction.
    let open = threshold.map_or(verdict == Change::Inconclusive, |it| it == Judgement::Undecided);
    let limit = budget.map_or(1.0, SlowdownLimit::limit);
    let more = pair.samples.and_then(|samples| more_samples(ratio, limit, samples));
    let no_number = match (pair.reliable, more) {
        _ if !open => None,
        (false, _) => Some(NoNumber::Unreliable),
        (true, None) if ratio.low == ratio.high => Some(NoNumber::NothingToRepeat),
        (true, None) => pair.samples.map(|_| NoNumber::OnTheLimit),
        (true, Some(_)) => None,
    };
    Some(ComparedCase {
        operation: pair.operation.clone(),
        item: pair.item.clone(),
        message_bytes: pair.message_bytes,
        concurrency: Some(pair.concurrency),
        quantity: pair.quantity,
        baseline: pair.baseline,
        baseline_provenance: Some(pair.baseline_provenance),
        candidate: pair.candidate,
        candidate_provenance: Some(pair.candidate_provenance),
        ratio,
        rounds: None,
        variation: pair.variation,
        verdict,
        threshold,
        more_samples: more.filter(|_| open && pair.reliable),
        no_number,
    })
}

fn decide(comparison: &mut Comparison, fail_above: Option<Percent>) {
    comparison.threshold = fail_above.map(|percent| Threshold {
        fail_above: Fraction(percent.0 / 100.0),
        exceeded: comparison.cases.iter().any(|row| row.threshold == Some(Judgement::Exceeded)),
    });
}
