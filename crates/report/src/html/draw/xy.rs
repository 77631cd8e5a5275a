//! Lines and points.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::{DashedLineSeries, IntoFont, IntoLogRange, LineSeries, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, TextStyle};

use super::{Area, FONT, NotDrawn, Size, TEXT, fitted, is_shown, tones};
use crate::chart::{Across, Axis, Mark, Point, Scale, Series, Shape, Xy};

pub(super) fn draw_xy(area: &Area<'_>, xy: &Xy, size: Size) -> Result<(), NotDrawn> {
    let points = || xy.series.iter().flat_map(|series| &series.points);
    let mark = |across| xy.marks.iter().filter(move |mark| mark.across == across);
    let x = Ends::of_axis(&xy.x, points().map(|it| it.x).chain(mark(Across::X).map(|it| it.at)));
    let values = points().flat_map(|it| {
        let (low, high) = it.interval.unwrap_or((it.y, it.y));
        [it.y, low, high]
    });
    let y = Ends::of_axis(&xy.y, values.chain(mark(Across::Y).map(|it| it.at)));
    match (xy.x.scale, xy.y.scale) {
        (Scale::Linear, Scale::Linear) => on(area, xy, size, x.linear(), y.linear()),
        (Scale::Linear, Scale::Log) => on(area, xy, size, x.linear(), y.log().log_scale()),
        (Scale::Log, Scale::Linear) => on(area, xy, size, x.log().log_scale(), y.linear()),
        (Scale::Log, Scale::Log) => on(area, xy, size, x.log().log_scale(), y.log().log_scale()),
    }
}

/// From where to where values go.
struct Ends {
    low: f64,
    high: f64,
}

impl Ends {
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

type Canvas<'a, 'b, X, Y> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<<X as AsRangedCoord>::CoordDescType, <Y as AsRangedCoord>::CoordDescType>,
>;

fn on<X, Y>(area: &Area<'_>, xy: &Xy, size: Size, x: X, y: Y) -> Result<(), NotDrawn>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin_top(12)
        .margin_right(18)
        .x_label_area_size(42)
        .y_label_area_size(if size == Size::Wide { 84 } else { 64 })
        .build_cartesian_2d(x, y)?;
    let text = TextStyle::from((FONT, TEXT).into_font()).color(&tones::INK);
    let horizontal = xy.x.unit;
    let vertical = xy.y.unit;
    let (across, up) =
        (|value: &f64| horizontal.print(*value), |value: &f64| vertical.print(*value));
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(if size == Size::Wide { 10 } else { 5 })
        .y_labels(if xy.y.scale == Scale::Log { 12 } else { 7 })
        .x_label_formatter(&across)
        .y_label_formatter(&up)
        .x_desc(&xy.x.name)
        .label_style(text.clone())
        .bold_line_style(tones::LINE)
        .light_line_style(tones::nothing())
        .axis_style(tones::LINE);
    // On a narrow screen the caption says what goes up.
    if size == Size::Wide {
        mesh.y_desc(&xy.y.name);
    }
    mesh.draw()?;
    drop(mesh);
    for series in &xy.series {
        let inside =
            |point: &&Point| is_shown(point.x, xy.x.scale) && is_shown(point.y, xy.y.scale);
        let points = series.points.iter().filter(inside).copied().collect();
        draw_series::<X, Y>(&mut chart, &Series { points, ..series.clone() })?;
    }
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
        let (place, pos) = match mark.across {
            Across::X => ((mark.at, up.end), Pos::new(HPos::Right, VPos::Top)),
            Across::Y => ((across.end, mark.at), Pos::new(HPos::Right, VPos::Bottom)),
        };
        let (x, y) = plotting.map_coordinate(&place);
        let x = x - 5;
        let y = y + if mark.across == Across::X { 3 } else { -3 };
        let (left, _) = plotting.get_pixel_range();
        let style = text.clone().color(&tones::MARK).pos(pos);
        area.draw(&Text::new(fitted(&mark.text, f64::from(x - left.start)), (x, y), style))?;
    }
    Ok(())
}

fn draw_series<X, Y>(chart: &mut Canvas<'_, '_, X, Y>, series: &Series) -> Result<(), NotDrawn>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
{
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
