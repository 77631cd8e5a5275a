//! What a chart shows, without a word on how it is drawn. A section makes one where it makes the
//! table that says the same.

use tapstone_record::{Estimate, Fraction};
use tapstone_text::{thousands, three_digits};

use crate::figures;

/// A chart, and what it shows in a sentence for those who do not see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// The question that the chart answers.
    pub(crate) title: String,
    /// The answer in a sentence, with figures.
    pub(crate) says: String,
    pub(crate) size: ChartSize,
    pub(crate) plot: Plot,
}

/// How much room a chart gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartSize {
    /// The width of the page: the answer to a question.
    Whole,
    /// Half of it: one of many results.
    Half,
}

/// Values against values, or bars with names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plot {
    Xy(Xy),
    Bars(Bars),
}

/// A chart of lines and points over two axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Xy {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) zoom: Zoom,
}

/// Whether a script can show a part of a chart on all its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zoom {
    Never,
    /// Along x, which is linear: time, or operations in their order. Series are lines or dots.
    AlongX,
}

impl Zoom {
    /// Of so many points in their order. Few can be told apart as they are.
    pub(crate) const fn of_points(count: usize) -> Self {
        const FEWEST: usize = 12;
        if count < FEWEST { Self::Never } else { Self::AlongX }
    }
}

/// An axis: its name, unit and scale.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) unit: AxisUnit,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn linear(name: &str, unit: AxisUnit) -> Self {
        Self { name: name.into(), unit, scale: Scale::Linear }
    }

    /// Log where values go over more than a decade and a half: on a shorter one such an axis has
    /// hardly a tick.
    pub(crate) fn by_spread(name: &str, unit: AxisUnit, values: impl Iterator<Item = f64>) -> Self {
        const WIDE: f64 = 30.0;
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
        if high / low > WIDE {
            Self::log(&format!("{name} (log)"), unit)
        } else {
            Self::linear(name, unit)
        }
    }

    pub(crate) fn log(name: &str, unit: AxisUnit) -> Self {
        Self { name: name.into(), unit, scale: Scale::Log }
    }
}

/// How values are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear, and begins at zero.
    Linear,
    /// Equal ratios are equally long; only what is above zero can be shown.
    Log,
}

/// The unit of the values of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisUnit {
    /// Nanoseconds, shown in the unit that fits (ns, µs, ms, s).
    Time,
    /// Nanoseconds, shown in milliseconds whatever their number.
    Millis,
    /// Completed operations per second.
    Rate,
    /// A part of a whole: 1 is all of it.
    Share,
    /// One over the other.
    Ratio,
    /// A count without a unit.
    Count,
}

impl AxisUnit {
    pub(crate) fn print(self, value: f64) -> String {
        match self {
            Self::Time if value < 0.0 => format!("-{}", figures::time(-value)),
            Self::Time => figures::time(value),
            Self::Millis => figures::ms(value),
            Self::Rate => figures::rate(value),
            Self::Share => figures::share(Fraction(value)),
            Self::Ratio => figures::ratio(value),
            Self::Count if value >= 1000.0 => thousands(value.round() as u64),
            Self::Count => match three_digits(value) {
                // Things are counted whole: `10`, not `10.0`.
                text if text.contains('.') => {
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                }
                text => text,
            },
        }
    }
}

/// Points of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) tone: Tone,
    pub(crate) shape: Shape,
    pub(crate) points: Vec<Point>,
}

/// How points are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A line without dots.
    Line,
    /// A line that is broken: something computed beside something measured.
    Dashed,
    /// Dots on a line, with their intervals.
    DotsAndLine,
    /// Dots without a line.
    Dots,
    /// A column from zero for each, as wide as the way to the next one's x.
    Columns,
}

/// A value, and its interval where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

impl Point {
    pub(crate) const fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    pub(crate) const fn estimated(x: f64, y: &Estimate) -> Self {
        Self { x, y: y.estimate, interval: Some((y.low, y.high)) }
    }
}

/// A line across the chart, with a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    pub(crate) at: f64,
    pub(crate) across: Across,
    pub(crate) text: String,
}

/// Which way a mark goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    /// At a value of x, from the bottom to the top.
    X,
    /// At a value of y, from side to side.
    Y,
}

/// Bars with names, from the top.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars {
    pub(crate) axis: Axis,
    pub(crate) bars: Vec<Bar>,
    pub(crate) marks: Vec<Mark>,
    /// From where to where a value says that nothing has changed.
    pub(crate) zone: Option<(f64, f64)>,
    /// What the tones of the parts stand for.
    pub(crate) legend: Vec<(Tone, String)>,
}

/// A bar: its name, its parts in their order, or dots where parts would not add up; and the interval
/// of the first dot, or of the whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) parts: Vec<BarPart>,
    pub(crate) dots: Vec<Dot>,
    pub(crate) interval: Option<(f64, f64)>,
    /// The figure, beside the bar.
    pub(crate) figure: String,
}

impl Bar {
    /// A dot with its interval: a bar would begin somewhere, and a mean or a ratio does not.
    pub(crate) fn dot(name: impl Into<String>, tone: Tone, at: &Estimate, figure: String) -> Self {
        let dots = vec![Dot { tone, at: at.estimate, name: "" }];
        let interval = (at.high > at.low).then_some((at.low, at.high));
        Self { name: name.into(), parts: Vec::new(), dots, interval, figure }
    }

    /// Parts one behind the other.
    pub(crate) fn of_parts(
        name: impl Into<String>,
        parts: Vec<BarPart>,
        figure: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), parts, dots: Vec::new(), interval: None, figure: figure.into() }
    }
}

/// A value of a bar that is not its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) tone: Tone,
    pub(crate) at: f64,
    /// What value it is: `median`; nothing where the axis says it.
    pub(crate) name: &'static str,
}

/// A part of a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BarPart {
    pub(crate) tone: Tone,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

/// What tells one thing from another. Colour is one sign of it: shapes, names and places are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    First,
    Second,
    Third,
    Fourth,
    Good,
    Bad,
    Muted,
}
