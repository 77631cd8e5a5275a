//! Lines and points.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::AsRangedCoord;
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::{DashedLineSeries, IntoLogRange, LineSeries, SVGBackend};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::labels::{LINE, Labels, Place};
use super::stretched::{Plane, Stretched};
use super::ticks::ticks;
use super::values::{self, Value};
use super::{Area, NotDrawn, Size, is_shown, pixels, tones};
use crate::chart::{Across, Axis, AxisUnit, Mark, Point, Scale, Series, Shape, Xy, Zoom};

/// Above what is drawn: the name of what goes up.
const ABOVE: f64 = 24.0;

/// Below it: figures, and the name of what goes across.
const BELOW: f64 = 44.0;

/// Drawings of one size that lie on each other, from the lowest: what a script replaces when it
/// zooms, what it does not, and the words.
pub(super) struct Layers<'a> {
    pub(super) across: Area<'a>,
    pub(super) ground: Area<'a>,
    pub(super) words: Area<'a>,
}

/// What is not in the layers.
pub(super) enum Drawn {
    /// Series are in them; these are the values.
    Whole(Vec<Value>),
    /// Series and their values, which can be stretched. They belong below the words.
    Stretched(Stretched),
}

pub(super) fn draw_xy(layers: &Layers<'_>, xy: &Xy, size: Size) -> Result<Drawn, NotDrawn> {
    let points = || xy.series.iter().flat_map(|series| &series.points);
    let marks = xy.marks.iter().filter(|mark| mark.across == Across::X).map(|mark| mark.at);
    let x = Ends::of_axis(&xy.x, points().map(|it| it.x).chain(marks));
    let y = Ends::up(xy);
    match (xy.x.scale, xy.y.scale) {
        (Scale::Linear, Scale::Linear) => on(layers, xy, size, x.linear(), y.linear()),
        (Scale::Linear, Scale::Log) => on(layers, xy, size, x.linear(), y.log().log_scale()),
        (Scale::Log, Scale::Linear) => on(layers, xy, size, x.log().log_scale(), y.linear()),
        (Scale::Log, Scale::Log) => on(layers, xy, size, x.log().log_scale(), y.log().log_scale()),
    }
}

/// From where to where values go.
struct Ends {
    low: f64,
    high: f64,
}

impl Ends {
    /// Of the values with their intervals, and of what is marked.
    fn up(xy: &Xy) -> Self {
        let points = xy.series.iter().flat_map(|series| &series.points);
        let values = points.flat_map(|it| {
            let (low, high) = it.interval.unwrap_or((it.y, it.y));
            [it.y, low, high]
        });
        let marks = xy.marks.iter().filter(|mark| mark.across == Across::Y).map(|mark| mark.at);
        Self::of_axis(&xy.y, values.chain(marks))
    }

    fn of_axis(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let shown = |value: &f64| is_shown(*value, axis.scale);
        let (low, high) =
            values.filter(shown).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
                (low.min(it), high.max(it))
            });
        if low.is_finite() { Self { low, high } } else { Self { low: 1.0, high: 10.0 } }
    }

    fn linear(&self) -> std::ops::Range<f64> {
        let low = self.low.min(0.0);
        let length = self.high - low;
        low..low + if length > 0.0 { length * 1.05 } else { 1.0 }
    }

    fn log(&self) -> std::ops::Range<f64> {
        // A whole step around what there is, so that at least one line has a label.
        let room = (self.high / self.low).powf(0.06).max(1.15);
        self.low / room..self.high * room
    }
}

/// The range of an axis, linear or logarithmic.
trait AxisRange: AsRangedCoord<Value = f64> {}

impl<T: AsRangedCoord<Value = f64>> AxisRange for T {}

type Canvas<'a, 'b, X, Y> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, <Y as AsRangedCoord>::CoordDescType>,
>;

fn on<X: AxisRange, Y: AxisRange>(
    layers: &Layers<'_>,
    xy: &Xy,
    size: Size,
    x: X,
    y: Y,
) -> Result<Drawn, NotDrawn> {
    let mut chart = ChartBuilder::on(&layers.ground)
        .margin_top(ABOVE)
        .margin_right(18)
        .x_label_area_size(BELOW)
        .y_label_area_size(widest(xy))
        .build_cartesian_2d(x, y)?;
    let across = ticks(xy.x.scale, &chart.x_range(), if size == Size::Wide { 10 } else { 5 });
    // Things are counted whole.
    let counted = |value: &f64| xy.x.unit != AxisUnit::Count || value.fract().abs() < 1e-9;
    let across: Vec<f64> = across.into_iter().filter(counted).collect();
    let up = ticks_up(xy, &chart.y_range());
    grid::<X, Y>(&chart, &across, &up, layers)?;
    let shown = shown_series(xy);
    if xy.zoom == Zoom::Never {
        for series in &shown {
            draw_series::<X, Y>(&mut chart, series)?;
        }
    }
    let mut labels = Labels::new(&layers.words);
    name_axes::<X, Y>(&chart, xy, &mut labels)?;
    draw_marks::<X, Y>(&mut chart, xy, &mut labels)?;
    figures_up::<X, Y>(&chart, xy, &up, &mut labels)?;
    labels.go_on_in(&layers.across);
    figures_across::<X, Y>(&chart, xy, &across, &mut labels)?;
    Ok(match xy.zoom {
        Zoom::Never => Drawn::Whole(values_of::<X, Y>(&chart, xy)),
        Zoom::AlongX => Drawn::Stretched(Stretched::new(xy, &shown, &plane_of::<X, Y>(&chart))),
    })
}

/// Without the points that have no place on such an axis.
fn shown_series(xy: &Xy) -> Vec<Series> {
    let inside = |point: &&Point| is_shown(point.x, xy.x.scale) && is_shown(point.y, xy.y.scale);
    let shown = |series: &Series| Series {
        points: series.points.iter().filter(inside).copied().collect(),
        ..series.clone()
    };
    xy.series.iter().map(shown).collect()
}

/// Where series are drawn, in pixels and in values.
fn plane_of<X: AxisRange, Y: AxisRange>(
    chart: &Canvas<'_, '_, X, Y>,
) -> Plane<impl Fn(f64) -> f64> {
    let plotting = chart.plotting_area();
    let (sides, ends) = plotting.get_pixel_range();
    let x = chart.x_range();
    let low = x.start;
    Plane { sides, ends, x, up: move |y| f64::from(plotting.map_coordinate(&(low, y)).1) }
}

/// The width of the widest figure of the axis that goes up, with what is around it.
fn widest(xy: &Xy) -> f64 {
    let ends = Ends::up(xy);
    let range = match xy.y.scale {
        Scale::Linear => ends.linear(),
        Scale::Log => ends.log(),
    };
    let texts = ticks_up(xy, &range).into_iter().map(|it| pixels(&xy.y.unit.print(it)));
    texts.fold(pixels("1,000"), f64::max) + 14.0
}

fn ticks_up(xy: &Xy, range: &std::ops::Range<f64>) -> Vec<f64> {
    ticks(xy.y.scale, range, 6)
}

fn grid<X: AxisRange, Y: AxisRange>(
    chart: &Canvas<'_, '_, X, Y>,
    across: &[f64],
    up: &[f64],
    layers: &Layers<'_>,
) -> Result<(), NotDrawn> {
    let plotting = chart.plotting_area();
    let (sides, ends) = plotting.get_pixel_range();
    let line_on = |area: &Area<'_>, from: (i32, i32), to: (i32, i32)| {
        area.draw(&PathElement::new(vec![from, to], tones::LINE.stroke_width(1)))
    };
    for value in across {
        let (x, _) = plotting.map_coordinate(&(*value, chart.y_range().start));
        line_on(&layers.across, (x, ends.start), (x, ends.end))?;
    }
    let line = |from, to| line_on(&layers.ground, from, to);
    for value in up {
        let (_, y) = plotting.map_coordinate(&(chart.x_range().start, *value));
        line((sides.start, y), (sides.end, y))?;
    }
    line((sides.start, ends.start), (sides.start, ends.end))?;
    line((sides.start, ends.end), (sides.end, ends.end))?;
    Ok(())
}

fn name_axes<X: AxisRange, Y: AxisRange>(
    chart: &Canvas<'_, '_, X, Y>,
    xy: &Xy,
    labels: &mut Labels<'_, '_>,
) -> Result<(), NotDrawn> {
    let (sides, ends) = chart.plotting_area().get_pixel_range();
    let right = f64::from(sides.end);
    let above = Place { x: 2.0, y: 3.0, across: HPos::Left, up: VPos::Top };
    labels.write(&xy.y.name, tones::INK, right, &[above])?;
    let bottom = f64::from(ends.end) + BELOW - 1.0;
    let below = Place { x: right, y: bottom, across: HPos::Right, up: VPos::Bottom };
    labels.write(&xy.x.name, tones::INK, right, &[below])
}

/// After the marks: a figure of an axis gives way to what is marked.
fn figures_up<X: AxisRange, Y: AxisRange>(
    chart: &Canvas<'_, '_, X, Y>,
    xy: &Xy,
    up: &[f64],
    labels: &mut Labels<'_, '_>,
) -> Result<(), NotDrawn> {
    let plotting = chart.plotting_area();
    let (sides, _) = plotting.get_pixel_range();
    for value in up {
        let (_, y) = plotting.map_coordinate(&(chart.x_range().start, *value));
        let x = f64::from(sides.start) - 7.0;
        let place = Place { x, y: y.into(), across: HPos::Right, up: VPos::Center };
        labels.write(&xy.y.unit.print(*value), tones::INK, x, &[place])?;
    }
    Ok(())
}

fn figures_across<X: AxisRange, Y: AxisRange>(
    chart: &Canvas<'_, '_, X, Y>,
    xy: &Xy,
    across: &[f64],
    labels: &mut Labels<'_, '_>,
) -> Result<(), NotDrawn> {
    let plotting = chart.plotting_area();
    let (_, ends) = plotting.get_pixel_range();
    for value in across {
        let (x, _) = plotting.map_coordinate(&(*value, chart.y_range().start));
        let y = f64::from(ends.end) + 6.0;
        let place = Place { x: x.into(), y, across: HPos::Center, up: VPos::Top };
        labels.write(&xy.x.unit.print(*value), tones::INK, 120.0, &[place])?;
    }
    Ok(())
}

fn draw_marks<X: AxisRange, Y: AxisRange>(
    chart: &mut Canvas<'_, '_, X, Y>,
    xy: &Xy,
    labels: &mut Labels<'_, '_>,
) -> Result<(), NotDrawn> {
    let across = chart.x_range();
    let up = chart.y_range();
    let shown = |mark: &&Mark| {
        let axis = if mark.across == Across::X { &xy.x } else { &xy.y };
        is_shown(mark.at, axis.scale)
    };
    for mark in xy.marks.iter().filter(shown) {
        let ends = match mark.across {
            Across::X => vec![(mark.at, up.start), (mark.at, up.end)],
            Across::Y => vec![(across.start, mark.at), (across.end, mark.at)],
        };
        chart.draw_series([PathElement::new(ends, tones::MARK.stroke_width(1))])?;
        let plotting = chart.plotting_area();
        let (sides, _) = plotting.get_pixel_range();
        let place = match mark.across {
            Across::X => (mark.at, up.end),
            Across::Y => (across.end, mark.at),
        };
        let (x, y) = plotting.map_coordinate(&place);
        let places = places_of_mark(mark.across, f64::from(x), f64::from(y));
        labels.write(&mark.text, tones::MARK, f64::from(sides.end - sides.start), &places)?;
    }
    Ok(())
}

/// Beside the line, on either side, and further down or to the left where others are.
fn places_of_mark(across: Across, x: f64, y: f64) -> Vec<Place> {
    match across {
        Across::X => (0..4)
            .flat_map(|row| {
                let y = y + 3.0 + LINE * f64::from(row);
                [(x - 5.0, HPos::Right), (x + 5.0, HPos::Left)].map(|(x, across)| Place {
                    x,
                    y,
                    across,
                    up: VPos::Top,
                })
            })
            .collect(),
        Across::Y => (0..4)
            .flat_map(|column| {
                let x = x - 5.0 - 110.0 * f64::from(column);
                [(y - 2.0, VPos::Bottom), (y + 2.0, VPos::Top)].map(|(y, up)| Place {
                    x,
                    y,
                    across: HPos::Right,
                    up,
                })
            })
            .collect(),
    }
}

/// A value for each mark; those of what was computed lie below those of what was measured.
fn values_of<X: AxisRange, Y: AxisRange>(chart: &Canvas<'_, '_, X, Y>, xy: &Xy) -> Vec<Value> {
    let plotting = chart.plotting_area();
    let (_, ends) = plotting.get_pixel_range();
    let place = |point: &Point| {
        let (x, y) = plotting.map_coordinate(&(point.x, point.y));
        (f64::from(x), f64::from(y))
    };
    let is_computed = |series: &&Series| series.shape == Shape::Dashed;
    let (under, over): (Vec<&Series>, Vec<&Series>) = xy.series.iter().partition(is_computed);
    let mut all = Vec::new();
    for series in under.into_iter().chain(over) {
        let shown =
            |point: &&&Point| is_shown(point.x, xy.x.scale) && is_shown(point.y, xy.y.scale);
        for point in values::told(series).iter().filter(shown) {
            let says = values::of_point(xy, series, point);
            let (x, y) = place(point);
            let next = series.points.iter().find(|it| it.x > point.x);
            all.push(match (series.shape, next) {
                // All that is above and below a column leads to it: a short one is hard to hit.
                (Shape::Columns, Some(next)) => Value {
                    left: x,
                    top: f64::from(ends.start),
                    width: (place(next).0 - x).max(1.0),
                    height: f64::from(ends.end - ends.start),
                    says,
                },
                _ => Value::around(x, y, says),
            });
        }
    }
    all
}

fn draw_series<X: AxisRange, Y: AxisRange>(
    chart: &mut Canvas<'_, '_, X, Y>,
    series: &Series,
) -> Result<(), NotDrawn> {
    let colour = tones::colour(series.tone);
    let points = || series.points.iter().map(|point| (point.x, point.y));
    let bottom = chart.y_range().start;
    let top = chart.y_range().end;
    match series.shape {
        Shape::Line => {
            chart.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
        }
        Shape::Dashed => {
            let line = DashedLineSeries::new(points(), 6, 4, colour.stroke_width(2));
            chart.draw_series(line)?;
        }
        Shape::DotsAndLine => {
            chart.draw_series(LineSeries::new(points(), colour.stroke_width(1)))?;
            chart.draw_series(series.points.iter().filter_map(|point| {
                let (low, high) = point.interval?;
                let low = low.clamp(bottom, top);
                let high = high.clamp(bottom, top);
                let ends = vec![(point.x, low), (point.x, high)];
                Some(PathElement::new(ends, colour.stroke_width(3)))
            }))?;
            chart.draw_series(points().map(|at| Circle::new(at, 4, colour.filled())))?;
        }
        Shape::Dots => {
            chart.draw_series(points().map(|at| Circle::new(at, 2, colour.filled())))?;
        }
        Shape::Columns => {
            let column = |pair: &[Point]| {
                let corners = [(pair[0].x, bottom), (pair[1].x, pair[0].y.max(bottom))];
                Rectangle::new(corners, colour.filled())
            };
            chart.draw_series(series.points.windows(2).map(column))?;
        }
    }
    Ok(())
}
