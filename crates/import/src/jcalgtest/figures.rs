//! From the times of a block to a case with an interval, or to the reason why there is none.

use tapstone_measure::interval::LEVEL;
use tapstone_record::{
    self as record, CaseResult, Concurrency, Fraction, Interval, Load, Provenance, Status,
    StoppedBy, Subtraction, Variation,
};

use super::block::{Block, MethodOutcome, MethodTimes, SignedNanos};
use super::steady::Steady;

/// Its own averages are printed with two decimals of a millisecond.
const PRINTED_STEP_NS: f64 = 10_000.0;

const BASELINE_STEP: &str = "baseline subtraction";
const NOT_ABOVE: &str = "NOT_ABOVE_BASELINE";

/// The case of a block.
pub(super) fn case_of_block(block: &Block) -> CaseResult {
    let operation = operation(&block.method);
    let mut case = CaseResult::new(operation, Status::OK, Concurrency::ONE, Load::CLOSED);
    case.provenance = Provenance::Published;
    match &block.outcome {
        MethodOutcome::Refused { code } => case.status = refusal(&block.method, code),
        MethodOutcome::Measured(measured) => fill(&mut case, measured),
    }
    case
}

/// Whether a case has no time because its difference could as well be negative.
pub(super) fn is_not_above_baseline(case: &CaseResult) -> bool {
    case.status.code.as_deref() == Some(NOT_ABOVE)
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

fn fill(case: &mut CaseResult, measured: &MethodTimes) {
    let MethodTimes { operations_each, differences, .. } = measured;
    let steady = Steady::from_measured(measured);
    case.message_bytes = measured.data_bytes;
    case.completed = operations_each * differences.len() as u64;
    case.stopped_by = Some(StoppedBy::Count);
    case.subtraction = Some(Subtraction {
        operations_each: *operations_each,
        baseline_ns: measured.baseline.iter().map(|time| time.0).collect(),
        subtracted_ns: measured.subtracted.0,
        differences_ns: differences.iter().map(|time| time.0).collect(),
        published_mean_ns: Some(measured.mean_of_file.0),
        baseline_median_ns: Some(steady.baseline_median),
    });
    let Some(figure) = steady.figure() else {
        case.status = Status::at(record::Outcome::Failed, BASELINE_STEP, NOT_ABOVE);
        case.warnings.push(
            "the difference to the baseline could as well be negative, and is no time".into(),
        );
        case.warnings.extend(doubts(measured));
        return;
    };
    case.latency_ns = Some(figure.latency);
    case.interval = figure.latency.mean.map(|_| Interval {
        n: figure.averaged as u64,
        method: "Student's t over the measurements after the first, with the baseline's in \
                 quadrature"
            .into(),
        level: Fraction(LEVEL),
        reliable: true,
        autocorrelation: None,
        variation: Some(Variation::Window),
    });
    case.warnings.extend(figure.caution(&steady));
    case.warnings.extend(doubts(measured));
}

fn mean_of(values: &[SignedNanos]) -> f64 {
    values.iter().map(|value| value.0 as f64).sum::<f64>() / values.len() as f64
}

fn doubts(measured: &MethodTimes) -> Vec<String> {
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
