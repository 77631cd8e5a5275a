//! Bars and dots with names, each with its figure beside it.

use plotters::chart::ChartBuilder;
use plotters::coord::ranged1d::AsRangedCoord;
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::IntoLogRange;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::labels::{LINE, Labels, Place};
use super::ticks::ticks;
use super::values::{Value, said};
use super::{Area, NotDrawn, Size, is_shown, pixels, tones};
use crate::chart::{Across, Bar, Bars, Scale};

/// Height of the axis below the bars, in pixels.
const BELOW: u32 = 46;

/// Half the thickness of a bar, in pixels.
const HALF: i32 = 9;

/// No name takes more than this part of the width, and no figure more than this one.
const NAMES: f64 = 0.42;
const FIGURES: f64 = 0.3;

/// Where everything stands, by the size of the drawing.
#[derive(Clone, Copy)]
struct Layout {
    width: f64,
    /// Above the bars: a line for each mark.
    above: u32,
    /// A bar with the room around it, and where in it the bar is.
    each: u32,
    middle: u32,
    /// What is left of the bars, and right of them.
    left: f64,
    right: f64,
}

impl Layout {
    fn new(bars: &Bars, size: Size) -> Self {
        let width = f64::from(size.width());
        let above = 8 + LINE as u32 * bars.marks.len().min(3) as u32;
        let widest = |text: fn(&Bar) -> &String| {
            bars.bars.iter().map(|bar| pixels(text(bar))).fold(0.0, f64::max)
        };
        match size {
            // Names and figures have a line of their own: there is no room beside the bars.
            Size::Narrow => Self { width, above, each: 46, middle: 30, left: 6.0, right: 14.0 },
            Size::Wide | Size::Half => Self {
                width,
                above,
                each: 26,
                middle: 13,
                left: (widest(|bar| &bar.name) + 14.0).min(width * NAMES),
                right: (widest(|bar| &bar.figure) + 18.0).min(width * FIGURES),
            },
        }
    }

    fn middle_of(&self, place: usize) -> i32 {
        (self.above + self.each * place as u32 + self.middle) as i32
    }
}

pub(super) fn height(bars: &Bars, size: Size) -> u32 {
    let Layout { above, each, .. } = Layout::new(bars, size);
    BELOW + above + each * bars.bars.len() as u32
}

pub(super) fn draw_bars(area: &Area<'_>, bars: &Bars, size: Size) -> Result<Vec<Value>, NotDrawn> {
    let values = || {
        let parts =
            bars.bars.iter().flat_map(|bar| &bar.parts).flat_map(|part| [part.from, part.to]);
        let dots = bars.bars.iter().flat_map(|bar| &bar.dots).map(|dot| dot.at);
        let pairs = bars.bars.iter().filter_map(|bar| bar.interval).chain(bars.zone);
        let ends = pairs.flat_map(|(low, high)| [low, high]);
        parts
            .chain(dots)
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
            // Room on both sides, so that the first and the last can be seen.
            let room = (high / low).powf(0.06).max(1.02);
            on(area, bars, size, (low / room..high * room).log_scale())
        }
    }
}

fn on<X>(area: &Area<'_>, bars: &Bars, size: Size, axis: X) -> Result<Vec<Value>, NotDrawn>
where
    X: AsRangedCoord<Value = f64>,
{
    let layout = Layout::new(bars, size);
    let count = bars.bars.len();
    let chart = ChartBuilder::on(area)
        .margin_top(layout.above)
        .margin_right(layout.right)
        .x_label_area_size(BELOW)
        .y_label_area_size(layout.left)
        .build_cartesian_2d(axis, count as f64..0.0)?;
    let range = chart.x_range();
    let plotting = chart.plotting_area();
    let x = |value: f64| plotting.map_coordinate(&(value.max(range.start).min(range.end), 0.0)).0;
    let bottom = (layout.above + layout.each * count as u32) as i32;
    let steps = ticks(bars.axis.scale, &range, if size == Size::Wide { 8 } else { 4 });
    draw_ground(area, bars, &steps, (&x, layout.above as i32, bottom))?;
    let mut values = Vec::new();
    for (place, bar) in bars.bars.iter().enumerate() {
        values.extend(draw_bar(area, bars, bar, layout.middle_of(place), &x)?);
    }
    let mut labels = Labels::new(area);
    name_bars(&mut labels, bars, &layout, size)?;
    name_marks(&mut labels, bars, &layout, &x)?;
    let y = f64::from(bottom);
    for step in &steps {
        let place = Place { x: x(*step).into(), y: y + 6.0, across: HPos::Center, up: VPos::Top };
        labels.write(&bars.axis.unit.print(*step), tones::INK, 120.0, &[place])?;
    }
    let end = layout.width - layout.right;
    let name = Place { x: end, y: y + 44.0, across: HPos::Right, up: VPos::Bottom };
    labels.write(&bars.axis.name, tones::INK, layout.width, &[name])?;
    Ok(values)
}

/// Where a value lies across.
type ToPixels<'a> = dyn Fn(f64) -> i32 + 'a;

/// What lies below the bars: the zone in which nothing has changed, lines to read by, marks.
fn draw_ground(
    area: &Area<'_>,
    bars: &Bars,
    steps: &[f64],
    (x, top, bottom): (&ToPixels<'_>, i32, i32),
) -> Result<(), NotDrawn> {
    if let Some((low, high)) = bars.zone {
        let corners = [(x(low), top), (x(high), bottom)];
        area.draw(&Rectangle::new(corners, tones::LINE.filled()))?;
    }
    let line = |at: f64, top: i32, style| {
        area.draw(&PathElement::new(vec![(x(at), top), (x(at), bottom)], style))
    };
    for step in steps {
        line(*step, top, tones::LINE.stroke_width(1))?;
    }
    for mark in bars.marks.iter().filter(|mark| mark.across == Across::X) {
        line(mark.at, top - 4, tones::MARK.stroke_width(1))?;
    }
    Ok(())
}

fn draw_bar(
    area: &Area<'_>,
    bars: &Bars,
    bar: &Bar,
    middle: i32,
    x: &ToPixels<'_>,
) -> Result<Vec<Value>, NotDrawn> {
    let mut texts = said(bars, bar).into_iter().map(|text| format!("{}: {text}", bar.name));
    let mut values = Vec::new();
    for part in &bar.parts {
        let left = x(part.from.min(part.to));
        let right = x(part.from.max(part.to));
        let corners = [(left, middle - HALF), (right, middle + HALF)];
        area.draw(&Rectangle::new(corners, tones::colour(part.tone).filled()))?;
        if part.from != part.to {
            values.extend(texts.next().map(|says| Value {
                left: left.into(),
                top: f64::from(middle - HALF),
                width: f64::from(right - left).max(4.0),
                height: f64::from(2 * HALF),
                says,
            }));
        }
    }
    if let Some((low, high)) = bar.interval {
        let line = |points: Vec<(i32, i32)>| {
            area.draw(&PathElement::new(points, tones::WHISKER.stroke_width(2)))
        };
        line(vec![(x(low), middle), (x(high), middle)])?;
        for end in [x(low), x(high)] {
            line(vec![(end, middle - 5), (end, middle + 5)])?;
        }
    }
    // The last is the rarest; the first is what the row is about, and lies on top.
    let dots: Vec<_> = bar.dots.iter().enumerate().zip(texts).collect();
    for ((place, dot), says) in dots.into_iter().rev() {
        let at = x(dot.at);
        let size = if place == 0 { 5 } else { 3 };
        area.draw(&Circle::new((at, middle), size, tones::colour(dot.tone).filled()))?;
        values.push(Value::around(at.into(), middle.into(), says));
    }
    Ok(values)
}

fn name_bars(
    labels: &mut Labels<'_, '_>,
    bars: &Bars,
    layout: &Layout,
    size: Size,
) -> Result<(), NotDrawn> {
    for (place, bar) in bars.bars.iter().enumerate() {
        let middle = f64::from(layout.middle_of(place));
        let at = |x: f64, across| Place { x, y: middle, across, up: VPos::Center };
        let right = layout.width - 2.0;
        if size == Size::Narrow {
            let above = |place: Place| Place { y: middle - 20.0, ..place };
            let room = layout.width - 20.0;
            let figure = pixels(&bar.figure).min(room * 0.6);
            labels.write(&bar.figure, tones::MARK, room * 0.6, &[above(at(right, HPos::Right))])?;
            labels.write(&bar.name, tones::INK, room - figure, &[above(at(2.0, HPos::Left))])?;
        } else {
            let end = layout.left - 8.0;
            labels.write(&bar.name, tones::INK, end, &[at(end, HPos::Right)])?;
            let most = layout.right - 10.0;
            labels.write(&bar.figure, tones::MARK, most, &[at(right, HPos::Right)])?;
        }
    }
    Ok(())
}

/// Above the bars, each as low as others let it.
fn name_marks(
    labels: &mut Labels<'_, '_>,
    bars: &Bars,
    layout: &Layout,
    x: &ToPixels<'_>,
) -> Result<(), NotDrawn> {
    let bottom = f64::from(layout.above) - 4.0;
    for mark in bars.marks.iter().filter(|mark| mark.across == Across::X) {
        let row = |row: u32| Place {
            x: x(mark.at).into(),
            y: bottom - LINE * f64::from(row),
            across: HPos::Center,
            up: VPos::Bottom,
        };
        labels.write(&mark.text, tones::MARK, layout.width, &[row(0), row(1), row(2)])?;
    }
    Ok(())
}
