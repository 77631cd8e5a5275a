//! Where an axis has lines with figures: few round values, on a logarithmic axis too.

use std::ops::Range;

use crate::chart::Scale;

/// Round values inside a range, `most` of them at the utmost, from the lowest.
pub(super) fn ticks(scale: Scale, range: &Range<f64>, most: usize) -> Vec<f64> {
    match scale {
        Scale::Linear => linear(range, most),
        Scale::Log => logarithmic(range, most),
    }
}

fn linear(range: &Range<f64>, most: usize) -> Vec<f64> {
    let length = range.end - range.start;
    if length.is_nan() || length <= 0.0 {
        return Vec::new();
    }
    let least = length / most.max(1) as f64;
    let power = 10_f64.powf(least.log10().floor());
    let rough = [1.0, 2.0, 5.0, 10.0].into_iter().find(|it| it * power >= least * (1.0 - 1e-9));
    let step = rough.unwrap_or(10.0) * power;
    let first = (range.start / step - 1e-9).ceil();
    let last = (range.end / step + 1e-9).floor();
    let count = (last - first).clamp(0.0, 2.0 * most as f64) as usize;
    (0..=count).map(|place| (first + place as f64) * step).collect()
}

/// The closest of some series of which no more than `most` are inside. A range in which fewer than
/// two of such values are has the round ones of a linear axis.
fn logarithmic(range: &Range<f64>, most: usize) -> Vec<f64> {
    const SERIES: [&[f64]; 4] =
        [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];
    let decades = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let inside = |values: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        values.filter(|it| (range.start..=range.end).contains(it)).collect()
    };
    let of_series = |series: &[f64]| {
        let mut all = decades
            .clone()
            .flat_map(|decade| series.iter().map(move |it| it * 10_f64.powi(decade)));
        inside(&mut all)
    };
    let fitting = SERIES.iter().map(|series| of_series(series)).find(|it| it.len() <= most);
    let found = fitting.unwrap_or_else(|| {
        let every = (of_series(&[1.0]).len()).div_ceil(most.max(1));
        of_series(&[1.0]).into_iter().step_by(every.max(1)).collect()
    });
    if found.len() >= 2 { found } else { inside(&mut linear(range, most).into_iter()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_round_and_few() {
        assert_eq!(ticks(Scale::Linear, &(0.0..5_365.0), 6), [0.0, 1e3, 2e3, 3e3, 4e3, 5e3]);
        assert_eq!(ticks(Scale::Log, &(0.9..36.0), 8), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(ticks(Scale::Log, &(1.0..1e9), 4), [1.0, 1e3, 1e6, 1e9]);
        let near = ticks(Scale::Log, &(0.93..1.08), 4);
        assert_eq!(near.len(), 3, "{near:?}");
        assert!(ticks(Scale::Linear, &(1.0..1.0), 4).is_empty());
    }
}
