//! A bound on the latency as users write it: `p99 <= 5ms`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::claim::{Bound, Claim, Statistic};
use crate::units::Nanos;

/// A quantile of the latencies and how long it may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyBound {
    /// The quantile; never the mean.
    quantile: Statistic,
    /// How long it may be.
    pub longest: Nanos,
}

/// Why a text is no bound on the latency.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a bound on the latency: {why}\nhint: write a quantile, <= and a time: 'p99 <= 5ms'"
)]
pub struct LatencyBoundError {
    text: String,
    why: String,
}

impl LatencyBound {
    /// The share of the arrivals that may take longer: 0.01 for p99.
    #[must_use]
    pub const fn share_beyond(self) -> f64 {
        match self.quantile {
            Statistic::P50 => 0.5,
            Statistic::P90 => 0.1,
            Statistic::P95 => 0.05,
            Statistic::P99_9 => 0.001,
            // The mean is refused where a bound is read.
            Statistic::P99 | Statistic::Mean => 0.01,
        }
    }

    /// The quantile as it is written: `p99`.
    #[must_use]
    pub fn quantile_name(self) -> &'static str {
        self.quantile.name()
    }
}

impl FromStr for LatencyBound {
    type Err = LatencyBoundError;

    fn from_str(text: &str) -> Result<Self, LatencyBoundError> {
        let wrong = |why: &str| LatencyBoundError { text: text.to_owned(), why: why.to_owned() };
        let Some((quantile, longest)) = text.split_once("<=").or_else(|| text.split_once('≤'))
        else {
            return Err(wrong("there is no <="));
        };
        let quantile = match quantile.trim().parse() {
            Ok(Statistic::Mean) => return Err(wrong("the mean is not a quantile")),
            Ok(quantile) => quantile,
            Err(_) => return Err(wrong("the quantile is none of p50, p90, p95, p99, p99.9")),
        };
        // The time is written as in a claim, and means the same.
        let claim = format!("case {} <= {}", Statistic::name(quantile), longest.trim());
        match claim.parse::<Claim>().map(|claim| claim.bound) {
            Ok(Bound::Latency(quantile, longest)) => Ok(Self { quantile, longest }),
            _ => Err(wrong("what follows <= is not a time in ns, us, ms or s")),
        }
    }
}

impl fmt::Display for LatencyBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <= {}", self.quantile.name(), self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_users_write_them() {
        let bound = |text: &str| text.parse::<LatencyBound>().unwrap();
        for text in ["p99 <= 5ms", "p99<=5ms", " p99 ≤ 5 ms ", "p99 <= 5000us"] {
            let LatencyBound { quantile, longest } = bound(text);
            assert_eq!((quantile, longest), (Statistic::P99, Nanos::from_millis(5)), "{text}");
        }
        let shares = ["p50", "p90", "p95", "p99", "p99.9"]
            .map(|quantile| bound(&format!("{quantile} <= 1s")).share_beyond());
        assert_eq!(shares, [0.5, 0.1, 0.05, 0.01, 0.001]);
        assert_eq!(bound("p99.9<=200us").to_string(), "p99.9 <= 200 µs");
    }

    #[test]
    fn what_is_no_bound_is_told_with_the_way_to_write_one() {
        let cases = [
            ("", "there is no <="),
            ("p99 = 5ms", "there is no <="),
            ("p99 >= 5ms", "there is no <="),
            ("<= 5ms", "the quantile is none of"),
            ("p98 <= 5ms", "the quantile is none of"),
            ("rsa2048.sign p99 <= 5ms", "the quantile is none of"),
            ("mean <= 5ms", "the mean is not a quantile"),
            ("p99 <= 5", "is not a time"),
            ("p99 <= 0ms", "is not a time"),
            ("p99 <= -1ms", "is not a time"),
            ("p99 <= 5/s", "is not a time"),
            ("p99 <= soon", "is not a time"),
        ];
        for (text, why) in cases {
            let error = text.parse::<LatencyBound>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("hint: write"), "{text}: {error}");
        }
    }

    #[test]
    fn a_bound_names_its_quantile() {
        for quantile in ["p50", "p90", "p95", "p99", "p99.9"] {
            let bound: LatencyBound = format!("{quantile} <= 5ms").parse().unwrap();
            assert_eq!(bound.quantile_name(), quantile);
        }
    }
}
