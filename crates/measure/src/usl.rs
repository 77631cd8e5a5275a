//! Gunther's Universal Scalability Law, fitted to rates at several concurrencies.
//!
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)): λ is the rate of one, σ the share that queues for something
//! shared (contention), κ what every pair costs to stay consistent (coherency). With κ > 0 more
//! concurrency ends up slower (Gunther, Guerrilla Capacity Planning, 2007, chapters 4 to 6).

use serde::{Deserialize, Serialize};

use crate::units::PerSecond;

/// The law's parameters, none negative, and what they predict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// λ: the rate at a concurrency of one.
    pub lambda: PerSecond,
    /// σ: contention, a share.
    pub sigma: f64,
    /// κ: coherency, per pair.
    pub kappa: f64,
    /// Where more concurrency stops helping.
    pub peak: Peak,
    /// The largest distance between a measured rate and the law, as a share of the measured one:
    /// the law is a guess where this is not small.
    pub misfit: f64,
}

/// Where the predicted rate is highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peak {
    /// N* = √((1−σ)/κ), beyond which the rate falls.
    At {
        /// N*, at least 1.
        concurrency: f64,
        /// X(N*), the rate at that concurrency.
        rate: PerSecond,
    },
    /// Without coherency cost it never falls: it nears λ/σ.
    Limit(PerSecond),
    /// Without contention either it grows forever: the limit was not reached.
    None,
}

/// A measured rate at a concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UslPoint {
    /// N, at least 1.
    pub concurrency: u32,
    /// X(N), more than zero.
    pub rate: PerSecond,
}

impl Usl {
    /// Fits the law by least squares of relative errors; `None` without three points of different
    /// concurrency, or where no such law has a positive λ.
    ///
    /// N/X is linear in 1/λ, σ/λ and κ/λ, and its relative error is that of X, so weights of
    /// (X/N)² keep a slow level as important as a fast one. Three unknowns have so few ways to be
    /// zero that each is tried; the best one without a negative value is the constrained optimum.
    #[must_use]
    pub fn fit(points: &[UslPoint]) -> Option<Self> {
        let mut levels: Vec<u32> = points.iter().map(|point| point.concurrency).collect();
        levels.sort_unstable();
        levels.dedup();
        let usable = |point: &UslPoint| point.concurrency > 0 && point.rate.0 > 0.0;
        if levels.len() < 3 || !points.iter().all(usable) {
            return None;
        }
        let rows: Vec<[f64; 3]> = points.iter().map(|point| terms(*point)).collect();
        let candidates: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
        let allowed = |x: &[f64; 3]| x[0] > 0.0 && x[1] >= 0.0 && x[2] >= 0.0;
        let best = candidates
            .into_iter()
            .filter_map(|free| solve(&rows, free))
            .filter(allowed)
            .min_by(|x, y| squares(&rows, x).total_cmp(&squares(&rows, y)))?;
        Some(Self::from_linear(best, points))
    }

    /// The predicted rate at a concurrency.
    #[must_use]
    pub fn rate_at(&self, concurrency: f64) -> PerSecond {
        let others = concurrency - 1.0;
        let cost = 1.0 + self.sigma * others + self.kappa * concurrency * others;
        PerSecond(self.lambda.0 * concurrency / cost)
    }

    fn from_linear([inverse, contention, coherency]: [f64; 3], points: &[UslPoint]) -> Self {
        let sigma = contention / inverse;
        let kappa = coherency / inverse;
        let lambda = PerSecond(1.0 / inverse);
        let mut law = Self { lambda, sigma, kappa, peak: Peak::None, misfit: 0.0 };
        law.peak = law.find_peak();
        law.misfit = points
            .iter()
            .map(|point| (law.rate_at(f64::from(point.concurrency)).0 / point.rate.0 - 1.0).abs())
            .fold(0.0, f64::max);
        law
    }

    fn find_peak(&self) -> Peak {
        if self.kappa > 0.0 {
            // With σ above 1 the second one is already too many.
            let concurrency = ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0);
            return Peak::At { concurrency, rate: self.rate_at(concurrency) };
        }
        if self.sigma > 0.0 {
            return Peak::Limit(PerSecond(self.lambda.0 / self.sigma));
        }
        Peak::None
    }
}

/// The weighted row of a point: its dot product with (1/λ, σ/λ, κ/λ) is to be 1.
fn terms(point: UslPoint) -> [f64; 3] {
    let n = f64::from(point.concurrency);
    let weight = point.rate.0 / n;
    [weight, weight * (n - 1.0), weight * n * (n - 1.0)]
}

fn squares(rows: &[[f64; 3]], x: &[f64; 3]) -> f64 {
    let miss = |row: &[f64; 3]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>() - 1.0;
    rows.iter().map(|row| miss(row).powi(2)).sum()
}

/// Least squares over the free unknowns, the others being zero, by modified Gram-Schmidt: normal
/// equations would square a condition number that N(N−1) already makes large.
fn solve(rows: &[[f64; 3]], free: &[usize]) -> Option<[f64; 3]> {
    let mut columns: Vec<Vec<f64>> =
        free.iter().map(|unknown| rows.iter().map(|row| row[*unknown]).collect()).collect();
    let mut target = vec![1.0; rows.len()];
    let count = free.len();
    let mut upper = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for i in 0..count {
        let before = norm(&columns[i]);
        let (done, rest) = columns.split_at_mut(i);
        for (j, column) in done.iter().enumerate() {
            upper[j][i] = take_away(column, &mut rest[0]);
        }
        upper[i][i] = norm(&rest[0]);
        // What is left of a column that depends on the others is rounding.
        if upper[i][i] <= before * 1e-12 {
            return None;
        }
        rest[0].iter_mut().for_each(|value| *value /= upper[i][i]);
        right[i] = take_away(&rest[0], &mut target);
    }
    let mut x = [0.0; 3];
    for i in (0..count).rev() {
        let known: f64 = (i + 1..count).map(|j| upper[i][j] * x[free[j]]).sum();
        x[free[i]] = (right[i] - known) / upper[i][i];
    }
    Some(x)
}

fn norm(column: &[f64]) -> f64 {
    column.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Removes from `column` its part along a unit vector, and returns how long that was.
fn take_away(unit: &[f64], column: &mut [f64]) -> f64 {
    let along: f64 = unit.iter().zip(column.iter()).map(|(a, b)| a * b).sum();
    column.iter_mut().zip(unit).for_each(|(value, direction)| *value -= along * direction);
    along
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Usl {
        let lambda = PerSecond(lambda);
        Usl { lambda, sigma, kappa, peak: Peak::None, misfit: 0.0 }
    }

    fn points(law: &Usl) -> Vec<UslPoint> {
        let rate = |concurrency| law.rate_at(f64::from(concurrency));
        LEVELS.map(|concurrency| UslPoint { concurrency, rate: rate(concurrency) }).to_vec()
    }

    proptest! {
        #[test]
        fn an_exact_law_is_found_again(
            lambda in 1.0f64..1e6, sigma in 0.0f64..0.9, kappa in 1e-5f64..0.05,
        ) {
            let fit = Usl::fit(&points(&law(lambda, sigma, kappa))).unwrap();
            prop_assert!((fit.lambda.0 / lambda - 1.0).abs() < 1e-6);
            prop_assert!((fit.sigma - sigma).abs() < 1e-6, "{:?}", fit);
            prop_assert!((fit.kappa / kappa - 1.0).abs() < 1e-3, "{:?}", fit);
            let expected = ((1.0 - sigma) / kappa).sqrt().max(1.0);
            let found = matches!(fit.peak, Peak::At { concurrency, .. }
                if (concurrency / expected - 1.0).abs() < 1e-3);
            prop_assert!(found, "{:?} {}", fit, expected);
        }

        #[test]
        fn parameters_are_never_negative(
            rates in prop::collection::vec(1.0f64..1e6, 8),
        ) {
            let zip = LEVELS.into_iter().zip(rates);
            let points: Vec<_> = zip
                .map(|(concurrency, rate)| UslPoint { concurrency, rate: PerSecond(rate) })
                .collect();
            let fit = Usl::fit(&points).unwrap();
            prop_assert!(fit.lambda.0 > 0.0 && fit.sigma >= 0.0 && fit.kappa >= 0.0);
        }
    }

    #[test]
    fn a_level_without_a_rate_has_no_law() {
        let mut points = points(&law(100.0, 0.1, 0.001));
        assert!(Usl::fit(&points).is_some());
        points[3].rate = PerSecond(0.0);
        assert_eq!(Usl::fit(&points), None);
    }

    #[test]
    fn more_than_linear_growth_is_no_limit() {
        let points = LEVELS.map(|concurrency| {
            let n = f64::from(concurrency);
            UslPoint { concurrency, rate: PerSecond(100.0 * n.powf(1.1)) }
        });
        assert_eq!(Usl::fit(&points).unwrap().peak, Peak::None);
    }

    #[test]
    fn a_queue_alone_has_a_limit_and_no_peak() {
        let mut points = points(&law(1000.0, 0.1, 0.0));
        // A touch above the law at the end, so that rounding cannot invent a coherency.
        points[7].rate.0 *= 1.001;
        let Peak::Limit(limit) = Usl::fit(&points).unwrap().peak else { panic!("no limit") };
        assert!((limit.0 / 10_000.0 - 1.0).abs() < 0.01, "{limit}");
    }

    /// The squares of the relative errors, with which a law is judged.
    fn error(law: &Usl, points: &[UslPoint]) -> f64 {
        let inverse = 1.0 / law.lambda.0;
        let rows: Vec<[f64; 3]> = points.iter().map(|point| terms(*point)).collect();
        squares(&rows, &[inverse, law.sigma * inverse, law.kappa * inverse])
    }

    #[test]
    fn coherency_alone_has_a_peak_and_no_contention() {
        let mut points = points(&law(1000.0, 0.0, 0.0005));
        // Above the law in the middle: the best of all laws would have a negative contention.
        points[4].rate.0 *= 1.01;
        points[5].rate.0 *= 1.01;
        let rows: Vec<[f64; 3]> = points.iter().map(|point| terms(*point)).collect();
        assert!(solve(&rows, &[0, 1, 2]).unwrap()[1] < 0.0);
        let fit = Usl::fit(&points).unwrap();
        assert_eq!(fit.sigma, 0.0);
        assert!((fit.kappa / 0.0005 - 1.0).abs() < 0.02, "{fit:?}");
        let Peak::At { concurrency, .. } = fit.peak else { panic!("{fit:?}") };
        assert!((concurrency - 2000.0_f64.sqrt()).abs() < 0.5, "{fit:?}");
        // What has neither, and what has contention alone, fit worse.
        let [[alone, ..], queue] = [&[0][..], &[0, 1]].map(|free| solve(&rows, free).unwrap());
        assert!(squares(&rows, &[alone, 0.0, 0.0]) > error(&fit, &points));
        assert!(squares(&rows, &queue) > error(&fit, &points));
    }

    #[test]
    fn a_law_says_how_far_its_worst_point_is_off() {
        let mut points = points(&law(1000.0, 0.1, 0.001));
        assert!(Usl::fit(&points).unwrap().misfit < 1e-9);
        points[0].rate.0 /= 2.0;
        let fit = Usl::fit(&points).unwrap();
        let off = |point: &UslPoint| {
            (fit.rate_at(f64::from(point.concurrency)).0 - point.rate.0).abs() / point.rate.0
        };
        let worst = points.iter().map(off).fold(0.0, f64::max);
        assert!(worst > 0.05 && (fit.misfit - worst).abs() < 1e-12, "{fit:?} {worst}");
    }

    #[test]
    fn what_cannot_be_measured_has_no_law() {
        let good = points(&law(1000.0, 0.1, 0.001));
        for (concurrency, rate) in [(0, 100.0), (2, 0.0), (2, -1.0)] {
            let mut bad = good.clone();
            bad[1] = UslPoint { concurrency, rate: PerSecond(rate) };
            assert_eq!(Usl::fit(&bad), None, "{concurrency} {rate}");
        }
        // Three points of two concurrencies.
        let doubled = [good[0], good[0], good[1]];
        assert_eq!(Usl::fit(&doubled), None);
        assert!(Usl::fit(&good[..3]).is_some());
    }

    #[test]
    fn a_peak_is_at_one_or_more() {
        let Peak::At { concurrency, rate } = law(100.0, 1.5, 0.1).find_peak() else { panic!() };
        assert_eq!((concurrency, rate.0), (1.0, 100.0));
        assert_eq!(law(100.0, 0.0, 0.0).find_peak(), Peak::None);
        assert_eq!(law(100.0, 0.5, 0.0).find_peak(), Peak::Limit(PerSecond(200.0)));
    }

    #[test]
    fn two_levels_are_no_curve() {
        assert_eq!(Usl::fit(&points(&law(1000.0, 0.1, 0.0))[..2]), None);
        assert_eq!(Usl::fit(&[]), None);
    }

    #[test]
    fn the_rate_of_one_is_a_number_however_steep_the_levels_fall() {
        // As if one alone had no limit: N/X is a multiple of N - 1, and 1/λ is 0 but for rounding.
        for scale in 1..2_000 {
            let points = [2, 3, 4, 5].map(|concurrency| {
                let n = f64::from(concurrency);
                UslPoint { concurrency, rate: PerSecond(f64::from(scale) * n / (n - 1.0)) }
            });
            let fit = Usl::fit(&points);
            assert!(fit.is_some_and(|fit| fit.lambda.0.is_finite()), "{scale}: {fit:?}");
        }
    }
}
