//! A claim, of a data sheet for example, held against a figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figures::Estimate;

/// A claim and what the measurement says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// The claim as it was given, for example `rsa1024.sign >= 13000/s`.
    pub text: String,
    /// The operation that it is about.
    pub operation: String,
    /// Whether the claim holds, or why nothing is concluded.
    pub verdict: Verdict,
    /// The figure that it was held against: operations per second for a rate, nanoseconds for a
    /// latency; null when there is none.
    pub measured: Option<Estimate>,
    /// How the verdict follows from the figure, in words and numbers.
    pub arithmetic: String,
    /// Which part of the figure decided.
    pub judged: Judged,
    /// The figure of each round that the interval was made of, in the same unit; without them the
    /// interval knows of one window only, or of the passes of a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
}

/// Whether a claim, or a limit, holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval meets the bound.
    Met,
    /// The whole interval misses the bound.
    Missed,
    /// The figure is too uncertain to tell, or there is none.
    Undecided,
    /// There is a figure that nothing may be concluded from: results were wrong, operations failed,
    /// its interval is unreliable, or other programs disturbed the load.
    Void,
}

/// Which part of a figure a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// The whole interval lies on one side.
    Interval,
    /// The best single value only.
    Point,
}
