//! Why two things cannot be compared, and what to do about it.

use thiserror::Error;

use crate::pairs::Matched;

/// Names of operations shown in an error; more are counted.
const SHOWN: usize = 6;

/// Two things cannot be compared. The text ends with a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompareError {
    /// No item of the reference has such a name.
    #[error("reference:{reference} has no item \"{text}\"\nhint: its items are {}", names.join(", "))]
    NoSuchItem {
        /// What was asked for.
        text: String,
        /// The name of the reference, without `reference:`.
        reference: String,
        /// The items that there are.
        names: Vec<String>,
    },
    /// Not one operation is in two of several.
    #[error(
        "{} have no comparable operation in common\nhint: compare runs of the same operations \
         with the same concurrency, message size and loop", names.join(", ")
    )]
    NothingShared {
        /// What was to be compared.
        names: Vec<String>,
    },
    /// Nothing that both tried can be compared.
    #[error(
        "{baseline} and {candidate} cannot be compared: {why}\nhint: tapstone report {candidate} \
         says what was measured there"
    )]
    NothingComparable {
        /// What was to be compared with.
        baseline: String,
        /// What was to be compared.
        candidate: String,
        /// Names of operations, each with why, the first few of them.
        why: String,
    },
    /// Not one operation is in both.
    #[error(
        "{baseline} and {candidate} have no comparable operation in common: the first has \
         {in_baseline}, the second {in_candidate}\nhint: compare runs of the same operations with \
         the same concurrency, message size and loop"
    )]
    NothingInCommon {
        /// What was to be compared with.
        baseline: String,
        /// What was to be compared.
        candidate: String,
        /// Names of that side's operations, the first few of them.
        in_baseline: String,
        /// Names of that side's operations, the first few of them.
        in_candidate: String,
    },
}

impl CompareError {
    pub(crate) fn nothing_in_common(matched: &Matched, baseline: &str, candidate: &str) -> Self {
        if !matched.not_compared.is_empty() {
            let each = matched.not_compared.iter();
            let each: Vec<String> =
                each.map(|it| format!("{} ({})", it.operation, it.why)).collect();
            return Self::NothingComparable {
                baseline: baseline.to_owned(),
                candidate: candidate.to_owned(),
                why: names(&each),
            };
        }
        Self::NothingInCommon {
            baseline: baseline.to_owned(),
            candidate: candidate.to_owned(),
            in_baseline: names(&matched.only_in_baseline),
            in_candidate: names(&matched.only_in_candidate),
        }
    }
}

fn names(all: &[String]) -> String {
    let (shown, more) = all.split_at(all.len().min(SHOWN));
    match (shown, more) {
        ([], _) => "none".to_owned(),
        (shown, []) => shown.join(", "),
        (shown, more) => format!("{} and {} more", shown.join(", "), more.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_six_operations_are_named() {
        let numbered = |count: u32| -> Vec<String> {
            (0..count).map(|number| format!("op{number}")).collect()
        };
        assert_eq!(names(&[]), "none");
        assert_eq!(names(&numbered(2)), "op0, op1");
        assert_eq!(names(&numbered(6)), "op0, op1, op2, op3, op4, op5");
        assert_eq!(names(&numbered(8)), "op0, op1, op2, op3, op4, op5 and 2 more");
    }
}
