//! From the times of a block to a row with an interval, or to the reason why there is none.

use tapstone_measure::interval::{Estimate, LEVEL};
use tapstone_measure::units::Nanos;
use tapstone_record::{
    self as record, CaseResult, Concurrency, Fraction, Interval, Latency, Load, Provenance, Status,
    StoppedBy, Subtraction,
};

use super::block::{Block, Measured, Outcome, SignedNanos};

/// JCAlgTest's clock tells milliseconds apart.
const CLOCK_STEP: Nanos = Nanos::from_millis(1);

/// Its own averages are printed with two decimals of a millisecond.
const PRINTED_STEP_NS: f64 = 10_000.0;

const BASELINE_STEP: &str = "baseline subtraction";
const NOT_ABOVE: &str = "NOT_ABOVE_BASELINE";

/// The row of a block.
pub(super) fn row(block: &Block) -> CaseResult {
    let operation = operation(&block.method);
    let mut row = CaseResult::new(operation, Status::OK, Concurrency::ONE, Load::CLOSED);
    row.provenance = Provenance::Published;
    match &block.outcome {
        Outcome::Refused { code } => row.status = refusal(&block.method, code),
        Outcome::Measured(measured) => fill(&mut row, measured),
    }
    row
}

/// Whether a row has no time because its difference could as well be negative.
pub(super) fn is_not_above_baseline(row: &CaseResult) -> bool {
    row.status.code.as_deref() == Some(NOT_ABOVE)
}

/// The stable name of an operation: see the module's documentation.
pub(super) fn operation(method: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let words: Vec<&str> = method.split_whitespace().collect();
    let last = words.len().saturating_sub(1);
    for (place, word) in words.iter().enumerate() {
        let apart = matches!(*word, "TYPE" | "LENGTH" | "ALG");
        let begins = place == last || apart || word.contains('_');
        match parts.last_mut() {
            Some(constant) if !begins => {
                constant.push('_');
                constant.push_str(word);
            }
            _ => parts.push((*word).to_owned()),
        }
    }
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') => c,
        _ => '-',
    };
    let parts = parts.iter().map(|part| part.trim_end_matches("()").chars().map(plain).collect());
    ["jcalgtest".to_owned()].into_iter().chain(parts).collect::<Vec<String>>().join(".")
}

/// What the card does not offer is unsupported; a status word that JCAlgTest does not know is a
/// failure.
fn refusal(method: &str, code: &str) -> Status {
    let step = method.split_whitespace().last().unwrap_or(method);
    let offered = code.starts_with("UNK") || code.to_ascii_lowercase().contains("error");
    let outcome = if offered { record::Outcome::Failed } else { record::Outcome::Unsupported };
    Status::at(outcome, step, code)
}

fn fill(row: &mut CaseResult, measured: &Measured) {
    let Measured { operations_each, differences, .. } = measured;
    row.message_bytes = measured.data_bytes;
    row.completed = operations_each * differences.len() as u64;
    row.stopped_by = Some(StoppedBy::Count);
    row.subtraction = Some(Subtraction {
        operations_each: *operations_each,
        baseline_ns: measured.baseline.iter().map(|time| time.0).collect(),
        subtracted_ns: measured.subtracted.0,
        differences_ns: differences.iter().map(|time| time.0).collect(),
    });
    match latency(measured) {
        Some(latency) => row.latency_ns = Some(latency),
        None => {
            row.status = Status::at(record::Outcome::Failed, BASELINE_STEP, NOT_ABOVE);
            row.warnings.push(
                "the difference to the baseline could as well be negative, and is no time".into(),
            );
        }
    }
    if row.latency_ns.is_some_and(|latency| latency.mean.is_some()) {
        row.interval = Some(Interval {
            n: differences.len() as u64,
            method: "Student's t over the measurements, with the baseline's in quadrature".into(),
            level: Fraction(LEVEL),
            reliable: true,
            autocorrelation: None,
        });
    } else if row.latency_ns.is_some() {
        row.warnings
            .push("a single measurement: its spread, and so an interval, is unknown".into());
    }
    row.warnings.extend(doubts(measured));
}

/// The time of one operation; `None` when it may be negative.
fn latency(measured: &Measured) -> Option<Latency> {
    let each = measured.operations_each as f64;
    let lengths: Option<Vec<Nanos>> =
        measured.differences.iter().map(|difference| difference.as_length()).collect();
    let lengths = lengths?;
    let shortest = lengths.iter().min()?;
    let longest = lengths.iter().max()?;
    let one = |length: &Nanos| Nanos((length.0 as f64 / each).round() as u64);
    let mean = if lengths.len() > 1 {
        let mean = mean(measured).map(|ns| ns / each);
        Some(mean.no_narrower_than(CLOCK_STEP.0 as f64 / each)).filter(|mean| mean.low > 0.0)
    } else {
        None
    };
    // A single measurement has no interval, but the baseline shows what a reading may be off by.
    let alone = lengths.len() == 1 && shortest.0 as i64 > baseline_reach(measured);
    (mean.is_some() || alone).then(|| Latency {
        mean: mean.map(Into::into),
        min: one(shortest),
        max: one(longest),
        ..Latency::default()
    })
}

/// The mean of the differences, with what is uncertain in the baseline as well: the two are
/// independent, so their half-widths add in quadrature.
fn mean(measured: &Measured) -> Estimate {
    let half_width = |values: &[SignedNanos]| {
        let values: Vec<f64> = values.iter().map(|value| value.0 as f64).collect();
        Estimate::mean_of(&values).map_or(0.0, |mean| mean.high - mean.estimate)
    };
    let (of_differences, of_baseline) =
        (half_width(&measured.differences), half_width(&measured.baseline));
    Estimate::around(mean_of(&measured.differences), of_differences.hypot(of_baseline))
}

fn mean_of(values: &[SignedNanos]) -> f64 {
    values.iter().map(|value| value.0 as f64).sum::<f64>() / values.len() as f64
}

/// How far the baseline's own readings lie apart, and at least a step of the clock.
fn baseline_reach(measured: &Measured) -> i64 {
    let ends = measured.baseline.iter().min().zip(measured.baseline.iter().max());
    let apart = ends.map_or(0, |(low, high)| high.0 - low.0);
    apart.max(CLOCK_STEP.0 as i64)
}

fn doubts(measured: &Measured) -> Vec<String> {
    let mut doubts = Vec::new();
    if measured.marked {
        doubts.push("JCAlgTest marked these measurements CHECK: they lie far apart".to_owned());
    }
    let mean = mean_of(&measured.differences) / measured.operations_each as f64;
    let file = measured.mean_of_file.0 as f64;
    // Half a printed step, and the same for what the measurements themselves were rounded by.
    if (mean - file).abs() > PRINTED_STEP_NS {
        doubts.push(format!(
            "the file's own mean of {:.2} ms is not that of its measurements, {:.2} ms",
            file / 1e6,
            mean / 1e6
        ));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_the_same_for_old_and_new_files() {
        let cases = [
            ("ALG_SHA MessageDigest_update()", "jcalgtest.alg_sha.messagedigest_update"),
            ("UTIL Util_arrayCopy_RAM()", "jcalgtest.util.util_arraycopy_ram"),
            (
                "TYPE_HMAC_SHA-1 LENGTH_HMAC_64 setKey()",
                "jcalgtest.type_hmac_sha-1.length_hmac_64.setkey",
            ),
            (
                "TYPE DSA PRIVATE LENGTH DSA 512 clearX()",
                "jcalgtest.type_dsa_private.length_dsa_512.clearx",
            ),
            ("ALG_X \u{1b}[31mred()", "jcalgtest.alg_x.--31mred"),
        ];
        for (name, stable) in cases {
            assert_eq!(operation(name), stable);
        }
    }

    #[test]
    fn what_a_card_does_not_offer_is_told_from_a_failure() {
        let outcome = |code| refusal("ALG_SHA MessageDigest_update()", code).outcome;
        assert_eq!(outcome("NO_SUCH_ALGORITHM"), record::Outcome::Unsupported);
        assert_eq!(outcome("CryptoException_ILLEGAL_USE"), record::Outcome::Unsupported);
        let unknown = "UNKONWN_ERROR-card_has_return_value_6f00";
        assert_eq!(outcome(unknown), record::Outcome::Failed);
    }
}
