//! Splits times into parts by least squares over cases that differ in what they do.
//!
//! Every round measures every case once, so every round gives its own coefficients; their spread
//! over the rounds is their uncertainty. Nothing is assumed about how times are distributed, and
//! what drifts between rounds is in the interval.

use crate::interval::Estimate;

/// One case in one round: what it did, and how long that took.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// How much of each thing it did; the first is usually 1, for what does not vary.
    pub amounts: Vec<f64>,
    /// What it took, in any unit.
    pub value: f64,
}

/// A fit over rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// What one of each thing costs, in the unit of the values; `None` where the cases do not
    /// separate it from the others.
    pub coefficients: Vec<Option<Estimate>>,
    /// The largest distance of a case's mean from the fit, over that mean.
    pub worst_residual: f64,
}

/// A pivot smaller than this, relative to its column, is rounding and no information.
const SINGULAR: f64 = 1e-9;

/// Fits every round and puts the rounds together. The cases are the same in every round, in the
/// same order. `None` for fewer than two rounds, or cases that determine no coefficient.
#[must_use]
pub fn fit(rounds: &[Vec<FitPoint>]) -> Option<Fit> {
    let width = rounds.first()?.first()?.amounts.len();
    let told = independent(&rounds[0], width);
    let solved: Vec<Vec<f64>> = rounds.iter().filter_map(|round| solve(round, &told)).collect();
    if solved.len() < 2 || told.is_empty() {
        return None;
    }
    let mut coefficients = vec![None; width];
    for (place, column) in told.iter().enumerate() {
        let values: Vec<f64> = solved.iter().map(|round| round[place]).collect();
        coefficients[*column] = Estimate::mean_of(&values);
    }
    let worst_residual = residual(rounds, &coefficients);
    Some(Fit { coefficients, worst_residual })
}

/// The columns, from the first on, none of which the ones before it already say.
fn independent(round: &[FitPoint], width: usize) -> Vec<usize> {
    let mut told = Vec::new();
    for column in 0..width {
        told.push(column);
        if told.len() > round.len() || solve(round, &told).is_none() {
            told.pop();
        }
    }
    told
}

/// The normal equations of these columns, by Gauss with the largest pivot; `None` when they are
/// singular.
fn solve(round: &[FitPoint], columns: &[usize]) -> Option<Vec<f64>> {
    let n = columns.len();
    // Columns are scaled to length 1, so that bytes and commands weigh the same.
    let scale: Vec<f64> = columns
        .iter()
        .map(|column| round.iter().map(|of| of.amounts[*column].powi(2)).sum::<f64>().sqrt())
        .collect();
    if scale.contains(&0.0) {
        return None;
    }
    let at = |of: &FitPoint, place: usize| of.amounts[columns[place]] / scale[place];
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let product = |j: usize| round.iter().map(|of| at(of, i) * at(of, j)).sum::<f64>();
            let right = round.iter().map(|of| at(of, i) * of.value).sum::<f64>();
            (0..n).map(product).chain([right]).collect()
        })
        .collect();
    for pivot in 0..n {
        let best =
            (pivot..n).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, best);
        if rows[pivot][pivot].abs() < SINGULAR {
            return None;
        }
        let source = rows[pivot].clone();
        for row in rows.iter_mut().skip(pivot + 1) {
            let factor = row[pivot] / source[pivot];
            row.iter_mut().zip(&source).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let mut solution = vec![0.0; n];
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][n] - known) / rows[row][row];
    }
    Some(solution.iter().zip(&scale).map(|(value, scale)| value / scale).collect())
}

fn residual(rounds: &[Vec<FitPoint>], coefficients: &[Option<Estimate>]) -> f64 {
    let rows = rounds[0].len();
    let distance = |row: usize| {
        let values = rounds.iter().filter_map(|round| round.get(row)).map(|of| of.value);
        let mean = values.sum::<f64>() / rounds.len() as f64;
        let amounts = &rounds[0][row].amounts;
        let told = amounts.iter().zip(coefficients);
        let fitted: f64 =
            told.map(|(amount, cost)| amount * cost.map_or(0.0, |cost| cost.estimate)).sum();
        if mean > 0.0 { (fitted - mean).abs() / mean } else { 0.0 }
    };
    (0..rows).map(distance).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rounds(costs: [f64; 3], noise: impl Fn(usize, usize) -> f64) -> Vec<Vec<FitPoint>> {
        let points = [(8.0, 0.0), (8.0, 1.0), (8.0, 4.0), (128.0, 0.0), (128.0, 1.0), (128.0, 4.0)];
        let observation = |round: usize, row: usize| {
            let (bytes, operations) = points[row];
            let amounts = vec![1.0, bytes, operations];
            let value: f64 = amounts.iter().zip(costs).map(|(amount, cost)| amount * cost).sum();
            FitPoint { amounts, value: value + noise(round, row) }
        };
        (0..10).map(|round| (0..6).map(|row| observation(round, row)).collect()).collect()
    }

    proptest! {
        #[test]
        fn exact_times_give_back_their_parts(
            fixed in 1e3..1e9, byte in 0.0..1e6, operation in 0.0..1e9f64,
        ) {
            let found = fit(&rounds([fixed, byte, operation], |_, _| 0.0)).unwrap();
            let scale = fixed + byte * 128.0 + operation * 4.0;
            for (found, cost) in found.coefficients.iter().zip([fixed, byte, operation]) {
                prop_assert!((found.unwrap().estimate - cost).abs() <= 1e-6 * scale);
            }
            prop_assert!(found.worst_residual < 1e-6);
        }
    }

    #[test]
    fn the_intervals_hold_the_truth_about_as_often_as_they_say() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        let runs = 400;
        let mut held = 0;
        for _ in 0..runs {
            let noise: Vec<f64> = (0..60).map(|_| random.random_range(-2e3..2e3)).collect();
            let found = fit(&rounds([5e6, 1e3, 2e5], |round, row| noise[round * 6 + row])).unwrap();
            held += usize::from(found.coefficients[2].unwrap().holds(2e5));
        }
        let share = held as f64 / f64::from(runs);
        assert!((0.91..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_told() {
        // The last column says the same as the first.
        let mut rounds = rounds([5.0, 1.0, 2.0], |_, _| 0.0);
        for of in rounds.iter_mut().flatten() {
            of.amounts.push(3.0);
        }
        let found = fit(&rounds).unwrap();
        assert_eq!(found.coefficients.len(), 4);
        assert_eq!(found.coefficients[3], None);
        assert!(found.coefficients[0].is_some());
        assert_eq!(fit(&rounds[..1]), None, "one round has no spread");
    }

    /// So many rounds, each with these amounts and values.
    fn same_rounds(count: usize, rows: &[(&[f64], f64)]) -> Vec<Vec<FitPoint>> {
        let row = |(amounts, value): &(&[f64], f64)| FitPoint {
            amounts: amounts.to_vec(),
            value: *value,
        };
        vec![rows.iter().map(row).collect(); count]
    }

    #[test]
    fn the_worst_residual_is_the_largest_share_of_a_mean() {
        // 12 fits both best: it is 2 away from 10, and 2 from 14.
        let found = fit(&same_rounds(2, &[(&[1.0], 10.0), (&[1.0], 14.0)])).unwrap();
        assert!((found.worst_residual - 0.2).abs() < 1e-12, "{found:?}");
        // Of nothing there is no share: only the 2 of 4 count.
        let found = fit(&same_rounds(2, &[(&[1.0], 0.0), (&[1.0], 4.0)])).unwrap();
        assert!((found.worst_residual - 0.5).abs() < 1e-12, "{found:?}");
        // The mean over the rounds: 8 and 12 are 10, and so is the fit.
        let mut rounds = same_rounds(2, &[(&[1.0], 8.0)]);
        rounds[1][0].value = 12.0;
        assert!(fit(&rounds).unwrap().worst_residual < 1e-12);
    }

    #[test]
    fn parts_are_told_apart_where_they_rise_together() {
        // Twice, once and once more of what the cases do; the last two columns rise alike.
        let cases = [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [1.0, 3.0, 3.0], [1.0, 4.0, 6.0]];
        let told = cases.map(|[one, two, three]| 2.0 * one + 3.0 * two + 5.0 * three);
        let rows: Vec<(&[f64], f64)> =
            cases.iter().zip(told).map(|(amounts, value)| (&amounts[..], value)).collect();
        let found = fit(&same_rounds(2, &rows)).unwrap();
        let costs: Vec<f64> =
            found.coefficients.iter().map(|cost| cost.unwrap().estimate).collect();
        for (cost, truth) in costs.iter().zip([2.0, 3.0, 5.0]) {
            assert!((cost - truth).abs() < 1e-9, "{costs:?}");
        }
    }

    #[test]
    fn as_many_cases_as_coefficients_are_enough() {
        let found = fit(&same_rounds(2, &[(&[1.0, 0.0], 5.0), (&[1.0, 1.0], 8.0)])).unwrap();
        let costs: Vec<f64> =
            found.coefficients.iter().map(|cost| cost.unwrap().estimate).collect();
        assert!((costs[0] - 5.0).abs() < 1e-9 && (costs[1] - 3.0).abs() < 1e-9, "{costs:?}");
    }
}
