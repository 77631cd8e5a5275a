//! The value of each mark of a chart: what is said of it when it is pointed at, and once more in a
//! table.

use maud::{Markup, html};

use crate::chart::{Axis, Bars, Plot, Point, Series, Shape, Xy};
use crate::text::clean;

/// So many points of a line have a value of their own; between them there is little to be read.
const MOST: usize = 40;

/// A place in a drawing and what it stands for. Where several are near each other the last counts.
pub(super) struct Value {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) says: String,
}

impl Value {
    /// Around a point: a finger is no needle.
    pub(super) fn around(x: f64, y: f64, says: String) -> Self {
        const REACH: f64 = 7.0;
        Self { left: x - REACH, top: y - REACH, width: 2.0 * REACH, height: 2.0 * REACH, says }
    }
}

/// Places that say their value under a mouse; the page's script says it for the keyboard too.
pub(super) fn places(values: &[Value]) -> Markup {
    html! {
        g.values {
            @for Value { left, top, width, height, says } in values {
                path d=(format!("M{left:.0} {top:.0}h{width:.0}v{height:.0}h-{width:.0}z")) {
                    title { (clean(says, true)) }
                }
            }
        }
    }
}

/// Places of a drawing that is stretched, which is seen from near.
pub(super) fn columns(values: &[Value]) -> Markup {
    html! {
        g.values {
            @for Value { left, width, height, says, .. } in values {
                path d=(format!("M{left:.2} 0h{width:.2}v{height:.0}h-{width:.2}z")) {
                    title { (clean(says, true)) }
                }
            }
        }
    }
}

/// Those points of a line that say their value.
pub(super) fn told(series: &Series) -> Vec<&Point> {
    let points = &series.points;
    let points = match series.shape {
        // The last only says where the one before it ends.
        Shape::Columns => &points[..points.len().saturating_sub(1)],
        _ => points,
    };
    let every = match series.shape {
        Shape::Line | Shape::Dashed => points.len().div_ceil(MOST).max(1),
        Shape::DotsAndLine | Shape::Dots | Shape::Columns => 1,
    };
    points.iter().step_by(every).collect()
}

pub(super) fn of_point(xy: &Xy, series: &Series, point: &Point) -> String {
    format!("{}: {}, at {}", series.name, figure(&xy.y, point), xy.x.unit.print(point.x))
}

fn figure(axis: &Axis, point: &Point) -> String {
    let value = axis.unit.print(point.y);
    match point.interval {
        Some((low, high)) => {
            format!("{value} ({} … {})", axis.unit.print(low), axis.unit.print(high))
        }
        None => value,
    }
}

/// All values of a chart, for whoever has no pointer.
pub(super) fn table(plot: &Plot) -> Markup {
    match plot {
        Plot::Xy(xy) => of_lines(xy),
        Plot::Bars(bars) => of_bars(bars),
    }
}

/// So many rows are read; what is beyond them the drawing still says.
const ROWS: usize = 40;

fn of_lines(xy: &Xy) -> Markup {
    let rows = xy
        .series
        .iter()
        .flat_map(|series| told(series).into_iter().map(move |point| (series, point)))
        .step_by((xy.series.iter().map(|it| told(it).len()).sum::<usize>()).div_ceil(ROWS).max(1));
    let several = xy.series.len() > 1;
    html! {
        (folded(html! {
            thead { tr {
                @if several { th.words scope="col" { "line" } }
                th scope="col" { (clean(&xy.x.name, true)) }
                th scope="col" { (clean(&xy.y.name, true)) }
            } }
            tbody { @for (series, point) in rows { tr {
                @if several { td { (clean(&series.name, true)) } }
                td { (xy.x.unit.print(point.x)) }
                td { (figure(&xy.y, point)) }
            } } }
        }))
    }
}

fn of_bars(bars: &Bars) -> Markup {
    html! {
        (folded(html! {
            thead { tr {
                th.words scope="col" { "bar" }
                th.words scope="col" { (clean(&bars.axis.name, true)) }
            } }
            tbody { @for bar in &bars.bars { tr {
                td { (clean(&bar.name, true)) }
                td { (clean(&said(bars, bar).join("; "), true)) }
            } } }
        }))
    }
}

/// Each part and each dot of a bar with its value.
pub(super) fn said(bars: &Bars, bar: &crate::chart::Bar) -> Vec<String> {
    let unit = bars.axis.unit;
    let of_tone = |tone| bars.legend.iter().find(|(it, _)| *it == tone);
    let name = |tone| of_tone(tone).map(|(_, name)| format!("{name} ")).unwrap_or_default();
    let parts = bar.parts.iter().filter(|part| part.to != part.from);
    let parts = parts.map(|part| format!("{}{}", name(part.tone), unit.print(part.to - part.from)));
    let dots = bar.dots.iter().enumerate().map(|(place, dot)| {
        let interval = bar.interval.filter(|_| place == 0);
        let interval = interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} … {})", unit.print(low), unit.print(high))
        });
        format!("{} {}{interval}", dot.name, unit.print(dot.at)).trim_start().to_owned()
    });
    parts.chain(dots).collect()
}

fn folded(rows: Markup) -> Markup {
    html! {
        details.numbers {
            summary { "Values" }
            div.scroll tabindex="0" role="group" aria-label="values of the chart" { table { (rows) } }
        }
    }
}
