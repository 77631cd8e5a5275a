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
    /// Moves bytes.
    Transfer,
    /// Computes.
    Processing,
    /// Waits for something that is neither.
    Waiting,
}
