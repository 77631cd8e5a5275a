//! A card's time taken apart: what a command costs, a byte, and a computation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::{Estimate, Fraction};

/// One operation's time as `commands x a + bytes x b + set_ups x s + operations x c`, fitted over
/// cases that differ in these numbers.
///
/// A part that its cases do not vary, or that they cannot tell from the others, is null: it is in
/// the fixed part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The operation, as its cases are called without what they vary.
    pub operation: String,
    /// What does not grow with anything varied, in nanoseconds: the commands themselves.
    pub fixed_ns: Estimate,
    /// How many commands the fixed part stands for.
    pub commands: u64,
    /// A byte over the interface, either way, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_ns: Option<Estimate>,
    /// A set-up on the card (`init`), in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_up_ns: Option<Estimate>,
    /// An operation on the card (`doFinal`), in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_ns: Option<Estimate>,
    /// A byte of input in each operation on the card, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_byte_ns: Option<Estimate>,
    /// How many operations the fit rests on.
    pub n: u64,
    /// The largest distance of a case's mean from the fit, over that mean.
    pub worst_residual: Fraction,
    /// How it was made, in words.
    pub method: String,
}
