//! Charts as inline SVG. Each is drawn twice, for a wide screen or paper and for a narrow one: a
//! drawing that is shrunk cannot be read. The page shows one of them, by its width.
//!
//! Colours here are those of the light theme, so that a chart that is copied out of the page is a
//! chart; `page.css` gives each its colour in the dark theme and on paper.

mod bars;
mod labels;
mod stretched;
mod ticks;
mod tones;
mod values;
mod xy;

use maud::{Markup, PreEscaped, html};
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use thiserror::Error;

use crate::chart::{Chart, ChartSize, Plot, Scale, Tone};
use crate::text::clean;
use xy::{Drawn, Layers};

/// What text in charts is set in. The page's own font is used where it is shown.
const FONT: &str = "sans-serif";

/// How large, in pixels.
const TEXT: f64 = 12.1;

/// The width of a character over its height: a digit of a wide font, and more than most letters.
const CHARACTER: f64 = 0.64;

/// A chart that could not be drawn.
#[derive(Debug, Error)]
#[error("{0}")]
struct NotDrawn(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for NotDrawn {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A size at which charts are drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Wide,
    Narrow,
    /// For either: half of the one, all of the other.
    Half,
}

impl Size {
    const fn width(self) -> u32 {
        match self {
            Self::Wide => 880,
            Self::Narrow => 350,
            Self::Half => 350,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
            Self::Half => "half",
        }
    }
}

/// The chart with its title, its legend, and what it says in words.
pub(super) fn figure(chart: &Chart) -> Markup {
    let sizes: &[Size] = match chart.size {
        ChartSize::Whole => &[Size::Wide, Size::Narrow],
        ChartSize::Half => &[Size::Half],
    };
    let drawn: Vec<_> = sizes.iter().map(|size| svg(chart, *size)).collect();
    html! {
        figure.chart.half[chart.size == ChartSize::Half] {
            figcaption { (clean(&chart.title, true)) (legend(&chart.plot)) }
            @for drawing in &drawn {
                @match drawing {
                    Ok(drawing) => (drawing),
                    Err(error) => p.note { "The chart could not be drawn: " (error) ". The table has its figures." },
                }
            }
            (values::table(&chart.plot))
        }
    }
}

fn svg(chart: &Chart, size: Size) -> Result<Markup, NotDrawn> {
    let width = size.width();
    let height = height(&chart.plot, size);
    let (mut across, mut ground, mut words) = (String::new(), String::new(), String::new());
    let drawn;
    {
        let layers = Layers {
            across: SVGBackend::with_string(&mut across, (width, height)).into_drawing_area(),
            ground: SVGBackend::with_string(&mut ground, (width, height)).into_drawing_area(),
            words: SVGBackend::with_string(&mut words, (width, height)).into_drawing_area(),
        };
        drawn = match &chart.plot {
            Plot::Xy(xy) => xy::draw_xy(&layers, xy, size)?,
            Plot::Bars(bars) => Drawn::Whole(bars::draw_bars(&layers.ground, bars, size)?),
        };
        for area in [&layers.across, &layers.ground, &layers.words] {
            area.present()?;
        }
    }
    let [across, ground, words] = [&across, &ground, &words].map(|it| PreEscaped(inside(it)));
    Ok(html! {
        svg class=(size.class()) viewBox=(format!("0 0 {width} {height}"))
            width=(width) height=(height) role="img" aria-label=(clean(&chart.says, true)) {
            @match &drawn {
                Drawn::Whole(values) => { (across) (ground) (words) (values::places(values)) }
                Drawn::Stretched(series) => {
                    g.across { (across) } (ground) (series.markup()) (words)
                }
            }
        }
    })
}

/// What a drawing holds, without the element around it.
fn inside(svg: &str) -> String {
    let inside = svg.find('>').map_or("", |end| &svg[end + 1..]);
    shorter(inside.trim_end().trim_end_matches("</svg>"))
}

/// What every element repeats is said once, by the page's style.
fn shorter(svg: &str) -> String {
    let svg = svg.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "");
    let svg = svg.replace(" stroke=\"none\"", "");
    svg.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

fn height(plot: &Plot, size: Size) -> u32 {
    match (plot, size) {
        (Plot::Xy(_), Size::Wide) => 300,
        (Plot::Xy(_), Size::Narrow) => 270,
        (Plot::Xy(_), Size::Half) => 230,
        (Plot::Bars(bars), size) => bars::height(bars, size),
    }
}

fn legend(plot: &Plot) -> Markup {
    let entries: Vec<(Tone, &str)> = match plot {
        Plot::Bars(bars) => bars.legend.iter().map(|(tone, name)| (*tone, name.as_str())).collect(),
        Plot::Xy(xy) if xy.series.len() > 1 => {
            xy.series.iter().map(|series| (series.tone, series.name.as_str())).collect()
        }
        Plot::Xy(_) => Vec::new(),
    };
    html! {
        @if !entries.is_empty() {
            span.legend {
                @for (tone, name) in entries {
                    span { i class=(format!("swatch {}", tones::class(tone))) {} (clean(name, true)) }
                }
            }
        }
    }
}

/// Whether a value can be drawn on such a scale. A record may have been written by hand; a billion
/// seconds are long enough for all others.
fn is_shown(value: f64, scale: Scale) -> bool {
    const MOST: f64 = 1e18;
    const LEAST: f64 = 1e-9;
    match scale {
        Scale::Linear => value.abs() <= MOST,
        Scale::Log => (LEAST..=MOST).contains(&value),
    }
}

/// Text that is no wider than so many pixels.
fn fitted(text: &str, pixels: f64) -> String {
    let most = (pixels / (TEXT * CHARACTER)) as usize;
    crate::text::truncate(&clean(text, true), most.max(4), "…")
}

/// How many pixels text takes up, about.
fn pixels(text: &str) -> f64 {
    crate::text::width(text) as f64 * TEXT * CHARACTER
}
