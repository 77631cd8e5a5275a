//! The measuring loop and its statistics: clock, units, window, estimates with intervals, verdicts.
//!
//! Nothing here knows what is measured. The only I/O is reading the clock and sleeping, so tests run
//! everything on a virtual clock.
//!
//! # From operations to figures
//!
//! 1. [`looper`] runs one worker: it starts an operation when [`pace`] says so (closed or open loop),
//!    reads the [`clock`], and counts. [`gate`] tells all workers when the window opens and closes.
//! 2. [`recorder`] cuts the counts into slices ([`mod@slice`]). [`series`] adds up the slices of all workers.
//! 3. [`summary`] makes figures of a series: rate, mean, quantiles, each an
//!    [`Estimate`](interval::Estimate) with a 95 % interval.
//! 4. [`trend`] names what one figure hides: drift, two modes, outliers, a slow start.
//! 5. [`claim`], [`compare`] and [`knee`] judge figures by their intervals; [`within`] looks for the
//!    highest rate within a latency.
//!
//! Latencies depend on their neighbours, so [`summary`] takes every spread over batches ([`batch`])
//! and never over single operations:
//!
//! ```
//! use std::num::NonZeroU32;
//! use tapstone_measure::series::Series;
//! use tapstone_measure::summary::{Conditions, Summary};
//! use tapstone_measure::units::Nanos;
//!
//! // One worker without pauses: each call takes 1 ms, for one second.
//! let window = Nanos::from_secs(1);
//! let calls = (1..1000).map(|call| (Nanos::from_millis(call), Some(Nanos::from_millis(1))));
//! let series = Series::from_operations(calls, (Nanos::ZERO, window));
//! let summary = Summary::from_series(
//!     &series,
//!     &Conditions {
//!         window,
//!         workers: NonZeroU32::MIN,
//!         first_and_last: Some((Nanos::from_millis(1), Nanos::from_millis(999))),
//!         clock_step: Nanos(1),
//!     },
//! );
//! assert_eq!(summary.n, 999);
//! assert!(summary.rate.holds(1000.0));
//! assert!(summary.p99_9.is_none(), "999 calls are too few for a quantile of 99.9 %");
//! ```
//!
//! # Judging
//!
//! A claim is judged by the whole interval. An interval that reaches across the bound decides
//! nothing:
//!
//! ```
//! use tapstone_measure::claim::{Claim, ClaimVerdict};
//! use tapstone_measure::interval::Estimate;
//!
//! let claim: Claim = "rsa2048.sign >= 1000/s".parse()?;
//! let target = claim.target(None)?;
//! let judge = |rate, half_width| target.demand.judge(Some(Estimate::around(rate, half_width))).verdict;
//! assert_eq!(judge(1100.0, 20.0), ClaimVerdict::Met);
//! assert_eq!(judge(1010.0, 20.0), ClaimVerdict::Undecided);
//! # Ok::<(), tapstone_measure::claim::ClaimError>(())
//! ```
//!
//! Two versions run interleaved, and each round gives one ratio, so what both share cancels:
//!
//! ```
//! use tapstone_measure::compare::{PairedRound, PairedVerdict, compare_rounds};
//! use tapstone_measure::units::PerSecond;
//!
//! // The machine slows down from round to round; B stays 10 % ahead of A.
//! let rate = |round: u32| 1000.0 - 10.0 * f64::from(round);
//! let rounds: Vec<PairedRound> = (0..20)
//!     .map(|round| PairedRound { a: PerSecond(rate(round)), b: PerSecond(1.1 * rate(round)) })
//!     .collect();
//! let comparison = compare_rounds(&rounds);
//! assert_eq!(comparison.verdict, PairedVerdict::Faster);
//! assert!((comparison.ratio.unwrap().estimate - 1.1).abs() < 1e-9);
//! ```
//!
//! The Universal Scalability Law predicts where more concurrency stops helping:
//!
//! ```
//! use tapstone_measure::units::PerSecond;
//! use tapstone_measure::usl::{Peak, Usl, UslPoint};
//!
//! let points = [(1, 100.0), (2, 190.0), (4, 345.0), (8, 571.0), (16, 800.0), (32, 914.0)]
//!     .map(|(concurrency, rate)| UslPoint { concurrency, rate: PerSecond(rate) });
//! let law = Usl::fit(&points).unwrap();
//! assert!(matches!(law.peak, Peak::At { concurrency, .. } if concurrency > 16.0));
//! ```
#![forbid(unsafe_code)]

pub mod attribution;
pub mod batch;
pub mod bucket;
pub mod claim;
pub mod clock;
pub mod compare;
pub mod contention;
pub mod exceedance;
pub mod gate;
pub mod interval;
pub mod knee;
pub mod latency_bound;
pub mod linear;
pub mod loop_overhead;
pub mod looper;
pub mod order;
pub mod pace;
mod quantile;
mod ratio;
pub mod recorder;
pub mod rounds;
pub mod series;
pub mod slice;
pub mod summary;
pub mod trend;
pub mod units;
pub mod usl;
pub mod within;
