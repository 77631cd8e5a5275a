//! The histogram as a list: a line for each bin of equal ratio, with a bar and a count.

use tapstone_record::{CaseResult, Estimate, Fraction};
use tapstone_text::thousands;

use crate::bins::{Bin, log_bins};
use crate::figures;
use crate::sections::grid::{Entry, Grid, Keep, figures as right, words as left};
use crate::sections::page::Page;
use crate::sections::span::{Span, Tint};

/// Lines of the list, at most.
const LINES: usize = 14;

/// What lies beyond this quantile shares the last line.
const BODY: Fraction = Fraction(0.999);

/// Columns beside the bars: bounds, count, share and mark.
const BESIDE: usize = 50;

pub(super) fn add_spread(page: &mut Page, case: &CaseResult) {
    let Some(histogram) = &case.histogram else { return };
    let bins = match log_bins(histogram, LINES, BODY) {
        Ok(bins) => bins,
        Err(error) => {
            let problem = error.to_string().replace('\n', "; ");
            return page.fact("histogram", Span::new(problem, Tint::Caution));
        }
    };
    if bins.is_empty() {
        return;
    }
    let bins = without_empty_runs(&bins);
    let columns = vec![
        right("latency (log)", Keep::Always),
        left("", Keep::Rank(1)),
        right("operations", Keep::Always),
        right("", Keep::Always),
        left("", Keep::Rank(2)),
    ];
    let bar_width = page.width().saturating_sub(BESIDE).clamp(10, 60);
    page.blank();
    page.grid(&Grid { columns, entries: entries(&bins, case, bar_width) });
}

fn entries(bins: &[Bin], case: &CaseResult, bar_width: usize) -> Vec<Entry> {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0) as f64;
    let all: f64 = bins.iter().map(|bin| bin.count as f64).sum();
    let entry = |bin: &Bin| {
        let bounds = figures::range(bin.from.0 as f64, bin.to.0 as f64, figures::time);
        Entry::Cells(vec![
            Span::plain(bounds),
            Span::bar(bin.count as f64 / most, bar_width, Tint::Accent),
            Span::plain(thousands(bin.count)),
            Span::faint(figures::share(Fraction(bin.count as f64 / all))),
            Span::faint(marks(bin, case)),
        ])
    };
    bins.iter().map(entry).collect()
}

/// Empty neighbours as one.
fn without_empty_runs(bins: &[Bin]) -> Vec<Bin> {
    let run = |run: &[Bin]| Bin { to: run[run.len() - 1].to, ..run[0] };
    bins.chunk_by(|one, next| one.count == 0 && next.count == 0).map(run).collect()
}

/// The quantiles that lie in a bin: `← p50`.
fn marks(bin: &Bin, case: &CaseResult) -> String {
    let Some(latency) = case.latency_ns else { return String::new() };
    let marks = [("p50", latency.p50), ("p99", latency.p99), ("p99.9", latency.p99_9)];
    let inside = |value: &Estimate| (bin.from.0 as f64..bin.to.0 as f64).contains(&value.estimate);
    let names: Vec<&str> = marks
        .iter()
        .filter(|(_, value)| value.as_ref().is_some_and(inside))
        .map(|it| it.0)
        .collect();
    if names.is_empty() { String::new() } else { format!("← {}", names.join(", ")) }
}
