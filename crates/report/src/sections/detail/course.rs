//! The window in time: the rate and the median of its slices, and where it stood still.

use tapstone_measure::units::Nanos;
use tapstone_record::{CaseResult, SeriesPoint};

use crate::figures;
use crate::sections::blocks::sparkline;
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};

/// Columns of a line, at most; half the terminal when that is less.
const COLUMNS: usize = 60;

pub(super) fn add_course(page: &mut Page, case: &CaseResult) {
    if case.series.len() >= 2 {
        let parts = parts(&case.series, COLUMNS.min(page.width() / 2));
        page.blank();
        drawn(page, "rate", parts.iter().map(|part| Some(part.rate)).collect(), figures::rate);
        drawn(page, "p50", parts.iter().map(|part| part.p50).collect(), figures::time);
        let failed: Vec<f64> = parts.iter().map(|part| part.failed).collect();
        if failed.iter().any(|count| *count > 0.0) {
            page.drawing("failed", &sparkline(failed), "", Tint::Bad);
        }
    }
    for drift in case.warnings.iter().filter(|warning| is_drift(warning)) {
        page.fact("drift", Span::new(drift, Tint::Caution));
    }
    for outage in &case.outages {
        let text = format!(
            "nothing completed for {} from {} on: {}",
            outage.length_ns, outage.start_ns, outage.code
        );
        page.fact("outage", Span::new(text, Tint::Bad));
    }
}

/// Whether a warning is about the course of the window: it compares its first and last fifth.
pub(in crate::sections) fn is_drift(warning: &str) -> bool {
    warning.contains("last fifth")
}

/// A line from zero to the highest value, with the range of the values beside it.
fn drawn(page: &mut Page, label: &str, values: Vec<Option<f64>>, print: fn(f64) -> String) {
    let known = || values.iter().copied().flatten();
    let (Some(low), Some(high)) = (known().reduce(f64::min), known().reduce(f64::max)) else {
        return;
    };
    let line = sparkline(values.iter().map(|value| value.unwrap_or(0.0)));
    page.drawing(label, &line, &figures::range(low, high, print), Tint::Accent);
}

/// Neighbouring slices of a series, taken together.
struct SliceGroup {
    /// The rate of the point, in operations per second.
    rate: f64,
    failed: f64,
    /// The median of the slice in the middle, in nanoseconds: medians cannot be averaged.
    p50: Option<f64>,
}

fn parts(series: &[SeriesPoint], columns: usize) -> Vec<SliceGroup> {
    let each = series.len().div_ceil(columns.max(1));
    let ends = series.iter().skip(1).map(|next| Some(next.start_ns)).chain([None]);
    let lengths: Vec<Option<Nanos>> = series
        .iter()
        .zip(ends)
        .map(|(slice, next)| Some(slice.end_ns.or(next)? - slice.start_ns))
        .collect();
    let part = |(slices, lengths): (&[SeriesPoint], &[Option<Nanos>])| {
        // A last slice without an end has no rate.
        let timed =
            || slices.iter().zip(lengths).filter_map(|(slice, length)| Some((slice, (*length)?)));
        let completed: f64 = timed().map(|(slice, _)| slice.completed as f64).sum();
        let seconds: f64 = timed().map(|(_, length)| length.as_secs_f64()).sum();
        let middle = slices[slices.len() / 2].p50_ns;
        SliceGroup {
            rate: if seconds > 0.0 { completed / seconds } else { 0.0 },
            failed: slices.iter().map(|slice| slice.failed as f64).sum(),
            p50: middle.map(|p50| p50.0 as f64),
        }
    };
    series.chunks(each).zip(lengths.chunks(each)).map(part).collect()
}
