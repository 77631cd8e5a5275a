//! One result: its latencies, their spread, its course, and single values.

use tapstone_record::{CaseResult, Fraction, SeriesPoint};

use crate::bins::log_bins;
use crate::chart::{
    Across, Axis, AxisUnit, Chart, ChartSize, Mark, Plot, Point, Series, Shape, Tone, Xy, Zoom,
};
use crate::figures;

/// Columns of a histogram.
const BINS: usize = 40;

/// Points of a course: more do not show.
const POINTS: usize = 120;

fn one(name: &str, tone: Tone, shape: Shape, points: Vec<Point>) -> Series {
    Series { name: name.into(), tone, shape, points }
}

/// Latencies by how rare they are: one of `x` operations takes longer than `y`.
fn curve(case: &CaseResult) -> Option<Vec<Point>> {
    const FEWEST: u64 = 100;
    const QUANTILES: [f64; 13] =
        [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999];
    let histogram = case.histogram.as_ref()?.decode().ok()?;
    if histogram.len() < FEWEST {
        return None;
    }
    // Beyond the last operation there is nothing to be known.
    let known = |quantile: &&f64| (1.0 - **quantile) * histogram.len() as f64 >= 1.0;
    let point = |quantile: &f64| {
        Point::new(1.0 / (1.0 - quantile), histogram.value_at_quantile(*quantile) as f64)
    };
    Some(QUANTILES.iter().filter(known).map(point).collect())
}

/// The scale gives the rare ones their room.
fn by_rarity(title: &str, says: String, size: ChartSize, series: Vec<Series>) -> Chart {
    let points = || series.iter().flat_map(|series| &series.points);
    let shown = points().map(|point| point.x).fold(0.0, f64::max);
    let marks = [(2.0, "p50"), (10.0, "p90"), (100.0, "p99"), (1000.0, "p99.9")];
    let marks = marks.iter().filter(|(x, _)| *x <= shown);
    let mark = |(x, name): &(f64, &str)| Mark { at: *x, across: Across::X, text: (*name).into() };
    let marks = marks.map(mark).collect();
    let y = Axis::by_spread("latency", AxisUnit::Time, points().map(|point| point.y));
    let x = Axis::log("one of so many operations takes longer (log)", AxisUnit::Count);
    Chart {
        title: title.into(),
        says,
        size,
        plot: Plot::Xy(Xy { x, y, series, marks, zoom: Zoom::Never }),
    }
}

pub(in super::super) fn percentiles(case: &CaseResult) -> Option<Chart> {
    let series = vec![one("latency", Tone::First, Shape::Line, curve(case)?)];
    let says = quantiles(case);
    Some(by_rarity("How long do the slow ones take?", says, ChartSize::Half, series))
}

/// An operation in a closed loop, and at a given rate.
pub(crate) fn loops(closed: &CaseResult, open: &CaseResult) -> Option<Chart> {
    let series = vec![
        one("closed loop", Tone::First, Shape::Line, curve(closed)?),
        one("open loop", Tone::Second, Shape::DotsAndLine, curve(open)?),
    ];
    let says = format!("closed loop: {}; open loop: {}", quantiles(closed), quantiles(open));
    let title = format!("How long does {} take?", closed.operation);
    Some(by_rarity(&title, says, ChartSize::Whole, series))
}

fn quantiles(case: &CaseResult) -> String {
    let latency = case.latency_ns.unwrap_or_default();
    let all = [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)];
    let known = all.iter().filter_map(|(name, value)| {
        Some(format!("{name} {}", figures::time(value.as_ref()?.estimate)))
    });
    known.collect::<Vec<_>>().join(", ")
}

/// The histogram of latencies; `None` without one, or with fewer than three bins.
pub(in super::super) fn spread(case: &CaseResult) -> Option<Chart> {
    let bins = log_bins(case.histogram.as_ref()?, BINS, Fraction(0.999)).ok()?;
    if bins.len() < 3 {
        return None;
    }
    let all: f64 = bins.iter().map(|bin| bin.count as f64).sum();
    let mut points: Vec<Point> =
        bins.iter().map(|bin| Point::new(bin.from.0 as f64, bin.count as f64 / all)).collect();
    let last = bins.last()?;
    points.push(Point::new(last.to.0 as f64, 0.0));
    let x = Axis::by_spread("latency", AxisUnit::Time, points.iter().map(|point| point.x));
    let most = bins.iter().max_by_key(|bin| bin.count)?;
    let range = figures::range(most.from.0 as f64, most.to.0 as f64, figures::time);
    Some(Chart {
        title: "How are latencies spread?".into(),
        says: format!("most take {range}; the longest {}", last.to),
        size: ChartSize::Half,
        plot: Plot::Xy(Xy {
            x,
            y: Axis::linear("share of operations", AxisUnit::Share),
            series: vec![one("share", Tone::First, Shape::Columns, points)],
            marks: Vec::new(),
            zoom: Zoom::Never,
        }),
    })
}

/// The rate over the window.
pub(in super::super) fn course(case: &CaseResult) -> Option<Chart> {
    let slices = &case.series;
    if slices.len() < 4 {
        return None;
    }
    let each = slices.len().div_ceil(POINTS);
    let ends = slices.iter().skip(1).map(|next| Some(next.start_ns)).chain([None]);
    let ended: Vec<(&SeriesPoint, u64)> = slices
        .iter()
        .zip(ends)
        .filter_map(|(slice, next)| Some((slice, slice.end_ns.or(next)?.0)))
        .collect();
    let start = ended.first()?.0.start_ns.0;
    let point = |run: &[(&SeriesPoint, u64)]| {
        let from = run[0].0.start_ns.0;
        let to = run[run.len() - 1].1;
        let completed: f64 = run.iter().map(|(slice, _)| slice.completed as f64).sum();
        let seconds = to.saturating_sub(from) as f64 / 1e9;
        (seconds > 0.0).then(|| Point::new(from.saturating_sub(start) as f64, completed / seconds))
    };
    let whole = without_the_rest(&ended);
    // Fewer slices than others have would be one that is no better than its noise.
    let points: Vec<Point> = whole.chunks_exact(each).filter_map(point).collect();
    let count = points.len();
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it.y), high.max(it.y)));
    Some(Chart {
        title: "Was the rate steady?".into(),
        says: format!("between {}", figures::range(low, high, figures::rate)),
        size: ChartSize::Half,
        plot: Plot::Xy(Xy {
            x: Axis::linear("time in the window", AxisUnit::Time),
            y: Axis::linear("operations per second", AxisUnit::Rate),
            series: vec![one("rate", Tone::First, Shape::Line, points)],
            marks: Vec::new(),
            zoom: Zoom::of_points(count),
        }),
    })
}

/// Slices without a last one that the end of the window cut short: of what had begun in it, nothing
/// could end any more, and the rate would seem to fall.
fn without_the_rest<'a, 'b>(ended: &'b [(&'a SeriesPoint, u64)]) -> &'b [(&'a SeriesPoint, u64)] {
    const WHOLE: f64 = 0.95;
    let length = |(slice, end): &(&SeriesPoint, u64)| end.saturating_sub(slice.start_ns.0) as f64;
    match ended {
        [rest @ .., before, last] if length(last) < WHOLE * length(before) => {
            &ended[..rest.len() + 1]
        }
        all => all,
    }
}

/// Each operation by itself: above all the first ones.
pub(in super::super) fn values(case: &CaseResult) -> Option<Chart> {
    const MOST: usize = 120;
    if case.latencies_ns.len() < 4 {
        return None;
    }
    // Of many, the longest of neighbours: what is rare must not disappear.
    let each = case.latencies_ns.len().div_ceil(MOST);
    let longest = |run: &[tapstone_measure::units::Nanos]| {
        run.iter().map(|value| value.0 as f64).fold(0.0, f64::max)
    };
    let points: Vec<Point> = case
        .latencies_ns
        .chunks(each)
        .enumerate()
        .map(|(place, run)| Point::new((place * each + 1) as f64, longest(run)))
        .collect();
    let count = points.len();
    let median = case.latency_ns.and_then(|latency| latency.p50);
    let first = case.latencies_ns[0];
    let says = match median {
        Some(median) => {
            format!("the first took {first}, the median is {}", figures::time(median.estimate))
        }
        None => format!("the first took {first}"),
    };
    let mark = |median: tapstone_record::Estimate| Mark {
        at: median.estimate,
        across: Across::Y,
        text: format!("median {}", figures::time(median.estimate)),
    };
    Some(Chart {
        title: "Are the first calls different?".into(),
        says,
        size: ChartSize::Half,
        plot: Plot::Xy(Xy {
            x: Axis::linear("operation, in order", AxisUnit::Count),
            y: Axis::linear("latency", AxisUnit::Time),
            series: vec![one("latency", Tone::First, Shape::Dots, points)],
            marks: median.map(mark).into_iter().collect(),
            zoom: Zoom::of_points(count),
        }),
    })
}
