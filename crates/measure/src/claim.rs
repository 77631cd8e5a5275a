//! What a data sheet or a user claims about a case, in the units that they use.
//!
//! `rsa1024.sign >= 13000/s`, `rsa1024.sign <= 77us`, `rsa1024.sign >= 6656000 exponentiations/s`
//! or `rsa2048.sign p99 <= 5ms`. A claim is parsed once, converted with its arithmetic in words,
//! and judged by the interval of what was measured. It never turns a point into an interval.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::interval::Estimate;
use crate::summary::Summary;
use tapstone_text::thousands;

use crate::units::{Nanos, PerSecond};

/// A case and what is claimed about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The case's name: `rsa1024.sign`.
    pub case: String,
    /// The bound, in the unit that it was written in.
    pub bound: Bound,
}

/// What is claimed, in the unit that it was written in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// `>= 13000/s`: at least so many operations.
    Operations(PerSecond),
    /// `>= 6656000 exponentiations/s`: at least so many of the steps that a private-key operation
    /// takes on paper, one for every two bits of the key.
    Exponentiations(PerSecond),
    /// `<= 77us`: at most so long for each operation on average, one after the other.
    TimePerOperation(Nanos),
    /// `p99 <= 5ms`: a statistic of the latencies is at most so long.
    Latency(Statistic, Nanos),
}

/// Which figure of a case's latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The mean of all completed operations.
    Mean,
    /// The median: half of all operations do not exceed it.
    P50,
    /// What 90 % do not exceed.
    P90,
    /// What 95 % do not exceed.
    P95,
    /// What 99 % do not exceed.
    P99,
    /// What 99.9 % do not exceed.
    #[serde(rename = "p99.9")]
    P99_9,
}

/// The length of a key in bits; of an RSA key, that of its modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBits(pub u32);

/// A claim in the units of a [`Summary`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimTarget {
    /// What is demanded of the figure.
    pub demand: Demand,
    /// How it follows from the claim, for the reader to check.
    pub arithmetic: String,
}

/// A bound on one figure of a [`Summary`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// [`Summary::rate`] is at least this.
    Rate(PerSecond),
    /// A latency is at most this.
    Latency(Statistic, Nanos),
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// The whole interval meets it.
    Met,
    /// The whole interval misses it.
    Missed,
    /// The interval reaches across it, or there is no figure.
    Undecided,
}

/// A verdict and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimJudgement {
    /// What became of the claim.
    pub verdict: ClaimVerdict,
    /// Why, in a sentence.
    pub text: String,
}

/// Which part of a claim is wrong, and how to write it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClaimError {
    /// Neither `>=` nor `<=`.
    #[error(
        "claim `{0}` has no comparison\n\
         hint: write >= before a rate and <= before a time: rsa1024.sign >= 13000/s"
    )]
    Comparison(String),
    /// Nothing, or too much, before the comparison.
    #[error(
        "`{0}` before the comparison is not a case with at most one statistic\n\
         hint: write `rsa1024.sign` or `rsa1024.sign p99`"
    )]
    Case(String),
    /// The word before the comparison names no statistic of latencies.
    #[error("`{0}` is not a statistic\nhint: one of mean, p50, p90, p95, p99, p99.9")]
    Statistic(String),
    /// No positive number after the comparison.
    #[error("`{0}` does not start with a positive number\nhint: write 13000/s, 13,000/s or 77.5us")]
    Number(String),
    /// What follows the number is no unit of a rate or a time.
    #[error(
        "`{0}` is not a unit of a claim\n\
         hint: a rate is in /s, operations/s or exponentiations/s, a time in ns, us, ms or s"
    )]
    Unit(String),
    /// `>=` with a time, `<=` with a rate, or a rate for a statistic of latencies.
    #[error(
        "`{0}` claims nothing that a device could miss\n\
         hint: a rate is claimed with >=, a time and a statistic with <="
    )]
    Direction(String),
    /// Exponentiations of a key whose length is unknown.
    #[error(
        "exponentiations of `{0}` cannot be converted without the length of its RSA key\n\
         hint: claim operations per second instead: `{0} >= 13000/s`"
    )]
    KeyBits(String),
}

impl FromStr for Claim {
    type Err = ClaimError;

    fn from_str(text: &str) -> Result<Self, ClaimError> {
        let comparison = [">=", "<=", "≥", "≤"]
            .into_iter()
            .find_map(|sign| text.split_once(sign).map(|(left, right)| (sign, left, right)));
        let Some((sign, left, right)) = comparison else {
            return Err(ClaimError::Comparison(text.to_owned()));
        };
        let words: Vec<&str> = left.split_whitespace().collect();
        let (case, statistic) = match words[..] {
            [case] => (case, None),
            [case, statistic] => (case, Some(statistic.parse()?)),
            _ => return Err(ClaimError::Case(left.trim().to_owned())),
        };
        let (value, unit) = quantity(right.trim())?;
        let at_least = matches!(sign, ">=" | "≥");
        let bound = match (ClaimUnit::parse(unit)?, statistic, at_least) {
            (ClaimUnit::Operations, None, true) => Bound::Operations(PerSecond(value)),
            (ClaimUnit::Exponentiations, None, true) => Bound::Exponentiations(PerSecond(value)),
            (ClaimUnit::Time(scale), None, false) => {
                Bound::TimePerOperation(time(value, scale, right)?)
            }
            (ClaimUnit::Time(scale), Some(statistic), false) => {
                Bound::Latency(statistic, time(value, scale, right)?)
            }
            _ => return Err(ClaimError::Direction(text.to_owned())),
        };
        Ok(Self { case: case.to_owned(), bound })
    }
}

/// A unit as it is written.
enum ClaimUnit {
    Operations,
    Exponentiations,
    /// By its length in ns.
    Time(f64),
}

impl ClaimUnit {
    fn parse(text: &str) -> Result<Self, ClaimError> {
        match text {
            "/s" | "ops/s" | "operations/s" => Ok(Self::Operations),
            "exponentiations/s" => Ok(Self::Exponentiations),
            "ns" => Ok(Self::Time(1.0)),
            "us" | "µs" | "μs" => Ok(Self::Time(1e3)),
            "ms" => Ok(Self::Time(1e6)),
            "s" => Ok(Self::Time(1e9)),
            _ => Err(ClaimError::Unit(text.to_owned())),
        }
    }
}

/// A positive number, with separators of thousands or without, and what follows it.
fn quantity(text: &str) -> Result<(f64, &str), ClaimError> {
    let part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '_');
    let end = text.find(|c| !part(c)).unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| !matches!(c, ',' | '_')).collect();
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok((value, text[end..].trim_start())),
        _ => Err(ClaimError::Number(text.to_owned())),
    }
}

/// A time of at least a nanosecond and less than five centuries.
fn time(value: f64, nanos: f64, text: &str) -> Result<Nanos, ClaimError> {
    let nanos = (value * nanos).round();
    if nanos < 1.0 || nanos >= u64::MAX as f64 {
        return Err(ClaimError::Number(text.trim().to_owned()));
    }
    Ok(Nanos(nanos as u64))
}

impl Statistic {
    const ALL: [Self; 6] = [Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P99_9];

    /// As it is written in a claim.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
        }
    }

    /// The figure in ns; `None` where there were too few completions for it.
    #[must_use]
    pub fn figure_in(self, summary: &Summary) -> Option<Estimate> {
        match self {
            Self::Mean => summary.mean,
            Self::P50 => summary.p50,
            Self::P90 => summary.p90,
            Self::P95 => summary.p95,
            Self::P99 => summary.p99,
            Self::P99_9 => summary.p99_9,
        }
    }

    /// The figure of a single round in ns, which needs no interval of its own; `None` where there
    /// were too few completions for it.
    #[must_use]
    pub fn figure_in_round(self, round: &Summary) -> Option<f64> {
        let [p50, p90, p95, p99, p99_9] = round.quantile_values;
        match self {
            Self::Mean => round.mean.map(|mean| mean.estimate),
            Self::P50 => p50,
            Self::P90 => p90,
            Self::P95 => p95,
            Self::P99 => p99,
            Self::P99_9 => p99_9,
        }
    }
}

impl FromStr for Statistic {
    type Err = ClaimError;

    fn from_str(text: &str) -> Result<Self, ClaimError> {
        let named = Self::ALL.into_iter().find(|statistic| statistic.name() == text);
        named.ok_or_else(|| ClaimError::Statistic(text.to_owned()))
    }
}

impl Claim {
    /// The claim in the units of a summary. The key's length is needed for exponentiations only.
    ///
    /// # Errors
    /// [`ClaimError::KeyBits`] when it is needed and not known.
    pub fn target(&self, key: Option<KeyBits>) -> Result<ClaimTarget, ClaimError> {
        let (demand, arithmetic) = match self.bound {
            Bound::Operations(rate) => (Demand::Rate(rate), format!("{rate} as claimed")),
            Bound::Exponentiations(claimed) => {
                // hsm-speed's announcement counts 512 of them, on paper, for a private-key
                // operation of 1,024 bits.
                let bits = key.filter(|key| key.0 >= 2);
                let bits = bits.ok_or_else(|| ClaimError::KeyBits(self.case.clone()))?.0;
                let each = bits / 2;
                let rate = PerSecond(claimed.0 / f64::from(each));
                let steps = thousands(claimed.0.round() as u64);
                let text = format!(
                    "{steps} exponentiations/s / ({bits} bits / 2 = {each} for each operation) = {rate}"
                );
                (Demand::Rate(rate), text)
            }
            Bound::TimePerOperation(time) => {
                let rate = PerSecond(1.0 / time.as_secs_f64());
                (Demand::Rate(rate), format!("1 s / {time} for each operation = {rate}"))
            }
            Bound::Latency(statistic, time) => {
                let text = format!("{} of {time} as claimed", statistic.name());
                (Demand::Latency(statistic, time), text)
            }
        };
        Ok(ClaimTarget { demand, arithmetic })
    }
}

impl Demand {
    /// The figure that it is about, in its own unit.
    #[must_use]
    pub fn figure(self, summary: &Summary) -> Option<Estimate> {
        match self {
            Self::Rate(_) => Some(summary.rate),
            Self::Latency(statistic, _) => statistic.figure_in(summary),
        }
    }

    /// The figure of a single round, in its own unit.
    #[must_use]
    pub fn figure_in_round(self, round: &Summary) -> Option<f64> {
        match self {
            Self::Rate(_) => Some(round.rate.estimate),
            Self::Latency(statistic, _) => statistic.figure_in_round(round),
        }
    }

    /// Judges by the interval of what was measured: per second for a rate, in ns for a latency.
    #[must_use]
    pub fn judge(self, measured: Option<Estimate>) -> ClaimJudgement {
        let Some(measured) = measured else {
            let text = format!(
                "undecided: too few or too uneven operations for an interval against {self}"
            );
            return ClaimJudgement { verdict: ClaimVerdict::Undecided, text };
        };
        let verdict = match (self.met_by(measured.low), self.met_by(measured.high)) {
            (true, true) => ClaimVerdict::Met,
            (false, false) => ClaimVerdict::Missed,
            _ => ClaimVerdict::Undecided,
        };
        let low = self.print(measured.low);
        let high = self.print(measured.high);
        let compared = self.compared(measured.estimate);
        let text = format!("{verdict}: {compared} (95 % interval {low} to {high})");
        ClaimJudgement { verdict, text }
    }

    /// Judges a published figure that comes without an interval, and says so.
    #[must_use]
    pub fn judge_point(self, published: f64) -> ClaimJudgement {
        let verdict = if self.met_by(published) { ClaimVerdict::Met } else { ClaimVerdict::Missed };
        let compared = self.compared(published);
        ClaimJudgement { verdict, text: format!("{verdict}, judged as a point: {compared}") }
    }

    fn met_by(self, figure: f64) -> bool {
        match self {
            Self::Rate(rate) => figure >= rate.0,
            Self::Latency(_, time) => figure <= time.0 as f64,
        }
    }

    fn compared(self, figure: f64) -> String {
        let claimed = match self {
            Self::Rate(rate) => rate.0,
            Self::Latency(_, time) => time.0 as f64,
        };
        format!("{} is {:.1} % of {self}", self.print(figure), 100.0 * figure / claimed)
    }

    fn print(self, figure: f64) -> String {
        match self {
            Self::Rate(_) => PerSecond(figure).to_string(),
            Self::Latency(..) => Nanos(figure.round() as u64).to_string(),
        }
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => write!(f, "the claimed {rate}"),
            Self::Latency(statistic, time) => {
                write!(f, "the claimed {} of {time}", statistic.name())
            }
        }
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bound(text: &str) -> Result<Bound, ClaimError> {
        text.parse().map(|claim: Claim| claim.bound)
    }

    fn demand(text: &str, bits: u32) -> Demand {
        text.parse::<Claim>().unwrap().target(Some(KeyBits(bits))).unwrap().demand
    }

    #[test]
    fn claims_are_read_in_the_units_that_people_use() {
        let rate = Ok(Bound::Operations(PerSecond(13_000.0)));
        for text in ["13000/s", "13,000 ops/s", "13_000 operations/s", "13000.0/s"] {
            assert_eq!(bound(&format!("rsa1024.sign >= {text}")), rate);
        }
        assert_eq!(bound("rsa1024.sign≥13000/s"), rate);
        let time = Ok(Bound::TimePerOperation(Nanos(77_500)));
        assert_eq!(bound("rsa1024.sign <= 77.5us"), time);
        assert_eq!(bound("rsa1024.sign <= 0.0775 ms"), time);
        let tail = Bound::Latency(Statistic::P99_9, Nanos::from_millis(5));
        assert_eq!(bound("rsa2048.sign p99.9 <= 5ms"), Ok(tail));
        assert_eq!("aes.gcm >= 1/s".parse::<Claim>().unwrap().case, "aes.gcm");
    }

    #[test]
    fn errors_name_the_part_that_is_wrong() {
        let cases = [
            ("rsa1024.sign = 13000/s", "`rsa1024.sign = 13000/s` has no comparison"),
            (">= 13000/s", "`` before the comparison"),
            ("rsa1024 sign p99 <= 5ms", "`rsa1024 sign p99` before the comparison"),
            ("rsa1024.sign p98 <= 5ms", "`p98` is not a statistic"),
            ("rsa1024.sign >= many/s", "`many/s` does not start with a positive number"),
            ("rsa1024.sign >= -5/s", "`-5/s` does not start"),
            ("rsa1024.sign >= 0/s", "`0/s` does not start"),
            ("rsa1024.sign <= 0us", "`0us` does not start"),
            ("rsa1024.sign >= 9 verifications/s", "`verifications/s` is not a unit"),
            ("rsa1024.sign >= 77us", "claims nothing that a device could miss"),
            ("rsa1024.sign p99 >= 5/s", "claims nothing that a device could miss"),
        ];
        for (text, message) in cases {
            let error = bound(text).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("\nhint: "), "{text}: {error}");
        }
        // More than a number of 64 bits holds.
        let endless = format!("rsa1024.sign >= {}/s", "9".repeat(400));
        assert!(matches!(bound(&endless), Err(ClaimError::Number(_))));
    }

    #[test]
    fn conversions_show_their_arithmetic() {
        let target = |text: &str, bits| text.parse::<Claim>().unwrap().target(bits);
        let steps = "rsa1024.sign >= 6656000 exponentiations/s";
        let converted = target(steps, Some(KeyBits(1024))).unwrap();
        assert_eq!(converted.demand, Demand::Rate(PerSecond(13_000.0)));
        assert_eq!(
            converted.arithmetic,
            "6,656,000 exponentiations/s / (1024 bits / 2 = 512 for each operation) = 13,000/s"
        );
        assert!(
            matches!(target(steps, None), Err(ClaimError::KeyBits(case)) if case == "rsa1024.sign")
        );
        let time = target("rsa1024.sign <= 77us", None).unwrap();
        assert_eq!(time.arithmetic, "1 s / 77.0 µs for each operation = 12,987/s");
    }

    #[test]
    fn the_interval_decides() {
        let claim = demand("rsa1024.sign >= 13000/s", 1024);
        let judged = |estimate, low, high| claim.judge(Some(Estimate { estimate, low, high }));
        assert_eq!(judged(13_200.0, 13_100.0, 13_300.0).verdict, ClaimVerdict::Met);
        assert_eq!(judged(12_900.0, 12_850.0, 12_950.0).verdict, ClaimVerdict::Missed);
        let close = judged(13_050.0, 12_950.0, 13_150.0);
        assert_eq!(close.verdict, ClaimVerdict::Undecided);
        assert_eq!(
            close.text,
            "undecided: 13,050/s is 100.4 % of the claimed 13,000/s (95 % interval 12,950/s to 13,150/s)"
        );
        let tail = demand("rsa2048.sign p99 <= 5ms", 2048);
        assert_eq!(tail.judge(Some(Estimate::around(4.5e6, 1e5))).verdict, ClaimVerdict::Met);
        assert_eq!(tail.judge(Some(Estimate::around(5.5e6, 1e5))).verdict, ClaimVerdict::Missed);
        assert_eq!(tail.judge(None).verdict, ClaimVerdict::Undecided);
    }

    #[test]
    fn an_interval_that_ends_at_the_claim_meets_it() {
        let verdict = |text: &str, low, high| {
            demand(text, 1024).judge(Some(Estimate { estimate: low, low, high })).verdict
        };
        assert_eq!(verdict("x >= 100/s", 100.0, 200.0), ClaimVerdict::Met);
        assert_eq!(verdict("x >= 100/s", 99.9, 100.0), ClaimVerdict::Undecided);
        assert_eq!(verdict("x >= 100/s", 98.0, 99.9), ClaimVerdict::Missed);
        assert_eq!(verdict("x p50 <= 100ns", 50.0, 100.0), ClaimVerdict::Met);
        assert_eq!(verdict("x p50 <= 100ns", 100.0, 100.1), ClaimVerdict::Undecided);
        assert_eq!(verdict("x p50 <= 100ns", 100.1, 200.0), ClaimVerdict::Missed);
    }

    #[test]
    fn a_point_is_judged_as_a_point() {
        let rate = demand("x >= 100/s", 0);
        assert_eq!(rate.judge_point(100.0).verdict, ClaimVerdict::Met);
        let missed = rate.judge_point(50.0);
        assert_eq!(missed.verdict, ClaimVerdict::Missed);
        assert_eq!(missed.text, "missed, judged as a point: 50.0/s is 50.0 % of the claimed 100/s");
        let time = demand("x mean <= 200us", 0);
        assert_eq!(time.judge_point(2e5).verdict, ClaimVerdict::Met);
        assert_eq!(
            time.judge_point(3e5).text,
            "missed, judged as a point: 300 µs is 150.0 % of the claimed mean of 200 µs"
        );
    }

    #[test]
    fn times_are_from_a_nanosecond_to_five_centuries() {
        let time = |text: &str| bound(&format!("x <= {text}"));
        assert_eq!(time("1ns"), Ok(Bound::TimePerOperation(Nanos(1))));
        assert_eq!(time("0.4ns"), Err(ClaimError::Number("0.4ns".into())));
        assert_eq!(time("0.5ns"), Ok(Bound::TimePerOperation(Nanos(1))));
        assert_eq!(time("2s"), Ok(Bound::TimePerOperation(Nanos::from_secs(2))));
        assert_eq!(time("3µs"), Ok(Bound::TimePerOperation(Nanos(3_000))));
        assert_eq!(time("3μs"), Ok(Bound::TimePerOperation(Nanos(3_000))));
        let most = u64::MAX as f64;
        assert_eq!(time(&format!("{most}ns")), Err(ClaimError::Number(format!("{most}ns"))));
        assert!(time(&format!("{}ns", most * 0.9)).is_ok());
    }

    #[test]
    fn exponentiations_need_a_key() {
        let claim: Claim = "x >= 10 exponentiations/s".parse().unwrap();
        for bits in [None, Some(KeyBits(0)), Some(KeyBits(1))] {
            assert_eq!(claim.target(bits), Err(ClaimError::KeyBits("x".into())));
        }
        let target = claim.target(Some(KeyBits(2))).unwrap();
        assert_eq!(target.demand, Demand::Rate(PerSecond(10.0)));
        let arithmetic =
            |text: &str| text.parse::<Claim>().unwrap().target(None).unwrap().arithmetic;
        assert_eq!(arithmetic("x >= 10/s"), "10.0/s as claimed");
        assert_eq!(arithmetic("x p95 <= 5ms"), "p95 of 5.00 ms as claimed");
    }

    #[test]
    fn each_statistic_is_its_own_figure() {
        let figure = |place: f64| Some(Estimate::around(place, 0.0));
        let summary = Summary {
            rate: Estimate::around(7.0, 0.0),
            mean: figure(1.0),
            p50: figure(2.0),
            p90: figure(3.0),
            p95: figure(4.0),
            p99: figure(5.0),
            p99_9: figure(6.0),
            quantile_values: [12.0, 13.0, 14.0, 15.0, 16.0].map(Some),
            n: 1,
            batches: 0,
            method: String::new(),
            reliable: true,
        };
        let found = |name: &str| {
            let demand = demand(&format!("x {name} <= 1s"), 0);
            demand.figure(&summary).map(|figure| figure.estimate)
        };
        let names = ["mean", "p50", "p90", "p95", "p99", "p99.9"];
        assert_eq!(names.map(found), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Some));
        assert_eq!(demand("x >= 1/s", 0).figure(&summary), figure(7.0));
        let value = |name: &str| demand(&format!("x {name} <= 1s"), 0).figure_in_round(&summary);
        assert_eq!(names.map(value), [1.0, 12.0, 13.0, 14.0, 15.0, 16.0].map(Some));
        assert_eq!(demand("x >= 1/s", 0).figure_in_round(&summary), Some(7.0));
    }

    proptest! {
        #[test]
        fn any_text_is_a_claim_or_an_error_with_a_hint(text in ".{0,40}") {
            if let Err(error) = text.parse::<Claim>() {
                prop_assert!(error.to_string().contains("\nhint: "));
            }
        }

        #[test]
        fn a_rate_and_its_time_are_the_same_claim(micros in 1u32..1_000_000) {
            let by_time = demand(&format!("x <= {micros}us"), 0);
            prop_assert_eq!(by_time, Demand::Rate(PerSecond(1.0 / (f64::from(micros) / 1e6))));
        }
    }
}
