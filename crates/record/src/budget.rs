//! A transaction split into its parts, held against a limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::claim::Verdict;
use crate::figures::{Estimate, Fraction, Provenance};

/// Where the time of one transaction goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// The transaction, for example `door.pki-cak`.
    pub operation: String,
    /// From its start to its end, in nanoseconds.
    pub total_ns: Estimate,
    /// What it may take, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub limit_ns: Option<Nanos>,
    /// Whether it keeps within the limit; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Its parts, in the order in which they happen.
    pub parts: Vec<BudgetPart>,
    /// What the model is of, where parts come from a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioName>,
    /// The card's self-check, which sums of a path leave out, but whoever stands there waits for.
    /// Not in `total_ns`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub self_check: Vec<BudgetPart>,
    /// `total_ns` with the self-check, in nanoseconds. Where it is there, the limit is for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_with_self_check_ns: Option<Estimate>,
    /// How probable it is that the transaction keeps within the limit; absent where nothing is known of the
    /// spread of any part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<Probability>,
}

/// A scenario of a door.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioName {
    /// As it was named: a file, or a shipped scenario.
    pub name: String,
    /// The title that the scenario file gives it.
    pub title: String,
}

/// How probable it is that a limit is kept, by drawing every part at random many times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probability {
    /// The part of transactions that keep it, with its interval: that of the drawing, not of what
    /// was put into it.
    pub met: Estimate,
    /// The time that half of the transactions keep, in nanoseconds.
    pub p50_ns: f64,
    /// The time that 95 % of the transactions keep, in nanoseconds.
    pub p95_ns: f64,
    /// How many transactions were drawn.
    pub draws: u64,
    /// The seed of the drawing.
    pub seed: u64,
}

/// One part of a transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetPart {
    /// The component, or the pair of components with the wire between them: `card`, `card-reader`.
    pub component: String,
    /// What it does with the time.
    pub kind: PartKind,
    /// Its time, in nanoseconds.
    pub time_ns: Estimate,
    /// Its part of the total.
    pub share: Fraction,
    /// Its time by the formula of its link, in nanoseconds, where that is known beside a time from
    /// elsewhere. The difference is what the formula does not explain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_formula_ns: Option<f64>,
    /// Where its time came from.
    pub provenance: Provenance,
    /// The source of a time that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What a part of a transaction does with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// The part moves bytes over a link.
    Transfer,
    /// The part computes, on the card or on the host.
    Processing,
    /// Waits for something that is neither.
    Waiting,
}
