//! Bars with names, each with its figure beside it.

use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::prelude::{IntoFont, IntoLogRange};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, TextStyle};

use super::{Area, FONT, NotDrawn, Size, TEXT, fitted, is_shown, pixels, tones};
use crate::chart::{Across, Bar, Bars, Scale};

/// A bar with the room around it.
const EACH: u32 = 26;

/// Height of the axis below the bars, in pixels.
const BELOW: u32 = 46;

/// Half the thickness of a bar, of what it may take up.
const HALF: f64 = 0.34;

/// No name takes more than this part of the width.
const NAMES: f64 = 0.42;

pub(super) fn height(bars: &Bars, size: Size) -> u32 {
    let above = if size == Size::Wide && !bars.marks.is_empty() { 22 } else { 10 };
    BELOW + above + EACH * bars.bars.len() as u32
}

pub(super) fn draw_bars(area: &Area<'_>, bars: &Bars, size: Size) -> Result<(), NotDrawn> {
    let values = || {
        let parts =
            bars.bars.iter().flat_map(|bar| &bar.parts).flat_map(|part| [part.from, part.to]);
        let ends =
            bars.bars.iter().filter_map(|bar| bar.interval).flat_map(|(low, high)| [low, high]);
        parts
            .chain(ends)
            .chain(bars.marks.iter().map(|mark| mark.at))
            .filter(|it| is_shown(*it, bars.axis.scale))
    };
    let high = values().fold(f64::MIN_POSITIVE, f64::max);
    match bars.axis.scale {
        Scale::Linear => {
            let low = values().fold(0.0, f64::min);
            on(area, bars, size, low..high * 1.02)
        }
        Scale::Log => {
            let low = values().filter(|value| *value > 0.0).fold(high, f64::min);
            // Room for the shortest bar to be seen.
            on(area, bars, size, (low * 0.8..high * 1.1).log_scale())
        }
    }
}

fn on<X>(area: &Area<'_>, bars: &Bars, size: Size, axis: X) -> Result<(), NotDrawn>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let width = f64::from(size.width());
    let count = bars.bars.len();
    let names = bars.bars.iter().map(|bar| pixels(&bar.name)).fold(0.0, f64::max);
    let names = (names + 12.0).min(width * NAMES);
    let figures = bars.bars.iter().map(|bar| pixels(&bar.figure)).fold(0.0, f64::max) + 10.0;
    let above = if size == Size::Wide && !bars.marks.is_empty() { 22 } else { 10 };
    let mut chart = ChartBuilder::on(area)
        .margin_top(above)
        .margin_right(figures.min(width * 0.3))
        .x_label_area_size(BELOW - 6)
        .y_label_area_size(names)
        .build_cartesian_2d(axis, count as f64..0.0)?;
    let text = TextStyle::from((FONT, TEXT).into_font()).color(&tones::INK);
    let unit = bars.axis.unit;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .y_labels(0)
        .x_labels(if size == Size::Wide { 9 } else { 3 })
        .x_label_formatter(&|value| unit.print(*value))
        .x_desc(&bars.axis.name)
        .label_style(text.clone())
        .bold_line_style(tones::LINE)
        .light_line_style(tones::nothing())
        .axis_style(tones::LINE)
        .draw()?;
    let range = chart.x_range();
    let inside = |value: f64| value.max(range.start).min(range.end);
    for (place, bar) in bars.bars.iter().enumerate() {
        let middle = place as f64 + 0.5;
        let part = |part: &crate::chart::BarPart| {
            let corners = [(inside(part.from), middle - HALF), (inside(part.to), middle + HALF)];
            Rectangle::new(corners, tones::colour(part.tone).filled())
        };
        chart.draw_series(bar.parts.iter().map(part))?;
        if let Some((low, high)) = bar.interval {
            let whisker =
                |points: Vec<(f64, f64)>| PathElement::new(points, tones::WHISKER.stroke_width(2));
            let end = |at: f64| vec![(inside(at), middle - 0.16), (inside(at), middle + 0.16)];
            let across = vec![(inside(low), middle), (inside(high), middle)];
            chart.draw_series([across, end(low), end(high)].map(whisker))?;
        }
    }
    for mark in bars.marks.iter().filter(|mark| mark.across == Across::X) {
        let at = inside(mark.at);
        let line =
            PathElement::new(vec![(at, 0.0), (at, count as f64)], tones::MARK.stroke_width(1));
        chart.draw_series([line])?;
        if size == Size::Wide {
            let (x, y) = chart.plotting_area().map_coordinate(&(at, 0.0));
            let style = text.clone().color(&tones::MARK).pos(Pos::new(HPos::Center, VPos::Bottom));
            let most = 2.0 * f64::from(x).min(width - f64::from(x));
            area.draw(&Text::new(fitted(&mark.text, most), (x, y - 4), style))?;
        }
    }
    for (place, bar) in bars.bars.iter().enumerate() {
        let end = range_end(bar, range.start, range.end);
        let (x, y) = chart.plotting_area().map_coordinate(&(end, place as f64 + 0.5));
        let (left, _) = chart.plotting_area().get_pixel_range();
        let name = text.clone().pos(Pos::new(HPos::Right, VPos::Center));
        let figure = text.clone().color(&tones::MARK).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(fitted(&bar.name, names - 8.0), (left.start - 8, y), name))?;
        area.draw(&Text::new(bar.figure.clone(), (x + 6, y), figure))?;
    }
    Ok(())
}

/// Where a bar and its interval end.
fn range_end(bar: &Bar, low: f64, high: f64) -> f64 {
    let parts = bar.parts.iter().map(|part| part.to.max(part.from));
    let ends = parts.chain(bar.interval.map(|(_, high)| high));
    ends.fold(low, f64::max).max(low).min(high)
}
