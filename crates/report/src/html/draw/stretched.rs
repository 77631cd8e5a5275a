//! Series that the page's script can zoom: a picture in the picture, as the timeline's lanes are. What
//! is shown of it is its view box, and strokes are not stretched. It has the exact places of all
//! points, and for each a column that says its value, so that none is lost when one comes near.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{Markup, html};

use super::tones;
use super::values::{self, Value};
use crate::chart::{AxisUnit, Series, Shape, Xy};

/// Lines are drawn a little beyond where values go: a stroke has a width.
const AROUND: f64 = 4.0;

/// Where series are drawn.
pub(super) struct Plane<F> {
    /// In the chart, in pixels.
    pub(super) sides: Range<i32>,
    pub(super) ends: Range<i32>,
    /// The values from side to side.
    pub(super) x: Range<f64>,
    /// The pixel of a value, from the top of the chart.
    pub(super) up: F,
}

/// See the module's text.
pub(super) struct Stretched {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x: Range<f64>,
    unit: AxisUnit,
    lines: Vec<Line>,
    values: Vec<Value>,
}

struct Line {
    series: Series,
    path: String,
}

impl Stretched {
    pub(super) fn new(xy: &Xy, series: &[Series], plane: &Plane<impl Fn(f64) -> f64>) -> Self {
        let mut all = Self {
            left: plane.sides.start.into(),
            top: f64::from(plane.ends.start) - AROUND,
            width: (plane.sides.end - plane.sides.start).into(),
            height: f64::from(plane.ends.end - plane.ends.start) + 2.0 * AROUND,
            x: plane.x.clone(),
            unit: xy.x.unit,
            lines: Vec::new(),
            values: Vec::new(),
        };
        for series in series {
            let places: Vec<(f64, f64)> = series
                .points
                .iter()
                .map(|point| (all.place(point.x), (plane.up)(point.y) - all.top))
                .collect();
            all.lines.push(Line { series: series.clone(), path: path(series.shape, &places) });
            for (at, point) in series.points.iter().enumerate() {
                let value = all.column(&places, at, values::of_point(xy, series, point));
                all.values.push(value);
            }
        }
        all
    }

    fn place(&self, x: f64) -> f64 {
        (x - self.x.start) / (self.x.end - self.x.start) * self.width
    }

    /// What is nearer to a point than to its neighbours, from the bottom to the top.
    fn column(&self, places: &[(f64, f64)], at: usize, says: String) -> Value {
        let between = |one: usize, other: usize| f64::midpoint(places[one].0, places[other].0);
        let left = at.checked_sub(1).map_or(0.0, |before| between(before, at));
        let right = if at + 1 < places.len() { between(at, at + 1) } else { self.width };
        Value { left, top: 0.0, width: right - left, height: self.height, says }
    }

    pub(super) fn markup(&self) -> Markup {
        let Self { left, top, width, height, x, .. } = self;
        let counted = self.unit == AxisUnit::Count;
        html! {
            svg.stretched x=(left) y=(top) width=(width) height=(height)
                viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none"
                data-from=(x.start) data-to=(x.end) data-counted[counted]
                data-points=(self.lines.iter().map(|it| it.series.points.len()).max().unwrap_or(0)) {
                @for Line { series, path } in &self.lines {
                    path d=(path) fill="none" stroke=(hex(series)) stroke-linecap="round"
                        stroke-width=(if is_dots(series.shape) { 4 } else { 2 }) {}
                }
                (values::columns(&self.values))
            }
        }
    }
}

fn hex(series: &Series) -> String {
    let colour = tones::colour(series.tone);
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

const fn is_dots(shape: Shape) -> bool {
    matches!(shape, Shape::Dots)
}

/// Dots are lines without length, with round ends: a circle would be stretched.
fn path(shape: Shape, places: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in places.iter().enumerate() {
        let (to, end) = match (is_dots(shape), at) {
            (true, _) => ("M", "h0"),
            (false, 0) => ("M", ""),
            (false, _) => ("L", ""),
        };
        let _ = write!(path, "{to}{x:.2} {y:.0}{end}");
    }
    path
}
