//! The latency against the offered rate, with the bound and the limit.

use tapstone_record::{OfferedLevel, RateWithin};

use crate::chart::{
    Across, Axis, AxisUnit, Chart, ChartSize, Mark, Plot, Point, Series, Shape, Tone, Xy, Zoom,
};
use crate::figures;
use crate::words::quantile_name;

pub(in super::super) fn rate_within(within: &RateWithin) -> Option<Chart> {
    let point =
        |level: &OfferedLevel| Some(Point::new(level.offered_rate.0, level.latency_ns?.0 as f64));
    let mut points: Vec<Point> = within.levels.iter().filter_map(point).collect();
    if points.len() < 2 {
        return None;
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let quantile = quantile_name(within);
    let bound = within.bound_ns;
    let mut marks = vec![Mark {
        at: bound.0 as f64,
        across: Across::Y,
        text: format!("bound: {quantile} <= {bound}"),
    }];
    marks.extend(within.rate.map(|rate| Mark {
        at: rate.estimate,
        across: Across::X,
        text: "highest rate within".into(),
    }));
    let says = within.rate.map_or_else(
        || "the highest rate within the bound was not found".to_owned(),
        |rate| format!("highest rate within {}", figures::with_interval(&rate, figures::rate)),
    );
    let latencies = points.iter().map(|point| point.y).collect::<Vec<f64>>();
    let rates = points.iter().map(|point| point.x).collect::<Vec<f64>>();
    Some(Chart {
        title: "How does the latency grow with the offered rate?".into(),
        says,
        size: ChartSize::Whole,
        plot: Plot::Xy(Xy {
            x: Axis::by_spread("offered per second", AxisUnit::Rate, rates.into_iter()),
            y: Axis::by_spread(
                &format!("{quantile} of the latency"),
                AxisUnit::Time,
                latencies.into_iter(),
            ),
            series: vec![Series {
                name: format!("{quantile}, from the intended start"),
                tone: Tone::First,
                shape: Shape::Dots,
                points,
            }],
            marks,
            zoom: Zoom::Never,
        }),
    })
}
