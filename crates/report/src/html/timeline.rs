//! What happened when, from the program down to the card: a lane for each thread, in it a row for
//! each depth of its calls.
//!
//! Spans are drawn between 0 and a million of the run's time, so that zooming in shows more. The
//! longest have their names in the picture and are listed below it, which is all that a reader
//! without a script needs; the script adds names for all others, and zoom.

use std::collections::BTreeMap;

use maud::{Markup, html};
use tapstone_measure::units::Nanos;
use tapstone_record::Finding;
use tapstone_text::thousands;

use crate::figures;
use crate::text::{clean, width};
use crate::words;

/// The spans of a traced program.
#[derive(Clone, Debug, Default)]
pub struct TimelineChart {
    /// How long the program ran.
    pub wall: Nanos,
    /// One lane for each thread, from top to bottom.
    pub lanes: Vec<TimelineLane>,
    /// How many spans are not here, the shortest of all.
    pub left_out: u64,
}

/// A thread and its calls.
#[derive(Clone, Debug, Default)]
pub struct TimelineLane {
    /// What it is called.
    pub name: String,
    /// Its spans, in the order of their beginnings.
    pub spans: Vec<TimelineSpan>,
}

/// A call, from its begin to its end.
#[derive(Clone, Debug)]
pub struct TimelineSpan {
    /// The function, and what it was about.
    pub name: String,
    /// When it began, from the start of the program.
    pub start: Nanos,
    /// How long it took.
    pub length: Nanos,
    /// How many calls it stands inside of.
    pub depth: u32,
    /// The layer that the called function belongs to.
    pub layer: TimelineLayer,
}

/// The layer of a call, from the program down to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimelineLayer {
    /// A function of a PKCS#11 module (`C_*`).
    Pkcs11,
    /// The PC/SC client library.
    Pcsc,
    /// A function of a reader's driver (`IFDH*`), inside the PC/SC daemon.
    Driver,
    /// libc, by a library.
    Libc,
}

impl TimelineLayer {
    const fn class(self) -> &'static str {
        match self {
            Self::Pkcs11 => "first",
            Self::Pcsc => "third",
            Self::Driver => "fourth",
            Self::Libc => "dim",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Pkcs11 => "PKCS#11",
            Self::Pcsc => "PC/SC",
            Self::Driver => "reader driver",
            Self::Libc => "libc, by a library",
        }
    }
}

/// The run's time in the picture.
const UNITS: f64 = 1e6;

/// The height of a row, in pixels.
const ROW: u32 = 16;

/// So wide is the picture where nothing is zoomed, in pixels, and a character of a name.
const PIXELS: f64 = 900.0;
const CHARACTER: f64 = 6.2;

/// A span shorter than this part of the run has no name of its own without a script.
const NAMED: f64 = 0.004;

/// So many of the longest are listed.
const LISTED: usize = 25;

pub(super) fn section(timeline: &TimelineChart, findings: &[Finding], prefix: &str) -> Markup {
    let spans = || timeline.lanes.iter().flat_map(|lane| &lane.spans);
    let mut layers: Vec<TimelineLayer> = spans().map(|span| span.layer).collect();
    layers.sort_unstable();
    layers.dedup();
    let names = Names::in_spans(spans());
    let shown = tapstone_text::counted(spans().count() as u64, "call", "calls");
    html! {
        section id=(format!("{prefix}-timeline")) {
            h3 { "Timeline " small { "from the start of the program to its end, " (timeline.wall) } }
            p.legend { @for layer in &layers {
                span { i class=(format!("swatch {}", layer.class())) {} (layer.name()) }
            } }
            div.timeline data-wall=(timeline.wall.0) data-names=(names.list())
                data-findings=(found(findings, timeline)) {
                @for lane in &timeline.lanes { (lane_of(lane, timeline.wall, &names)) }
                (axis(timeline.wall))
            }
            p.faint {
                (shown) " shown."
                @if timeline.left_out > 0 {
                    " The shortest " (thousands(timeline.left_out)) " were left out; the file of \
                    events has them, and `tapstone trace --read FILE --perfetto` shows them all."
                }
            }
            details {
                summary { "The longest calls as a table" }
                (longest(timeline))
            }
        }
    }
}

fn lane_of(lane: &TimelineLane, wall: Nanos, names: &Names<'_>) -> Markup {
    let deepest = lane.spans.iter().map(|span| span.depth).max().unwrap_or(0);
    let height = (deepest + 1) * ROW;
    let mut rows: BTreeMap<(u32, TimelineLayer), Vec<&TimelineSpan>> = BTreeMap::new();
    for span in &lane.spans {
        rows.entry((span.depth, span.layer)).or_default().push(span);
    }
    let scale = UNITS / wall.0.max(1) as f64;
    let says = format!(
        "{}: {}",
        lane.name,
        tapstone_text::counted(lane.spans.len() as u64, "call", "calls")
    );
    let at = |span: &TimelineSpan| {
        (span.start.0 as f64 * scale, (span.length.0 as f64 * scale).max(1.0))
    };
    html! {
        div.lane {
            p.lane-name { (clean(&lane.name, true)) }
            svg.spans viewBox=(format!("0 0 {UNITS} {height}")) preserveAspectRatio="none"
                height=(height) role="img" aria-label=(clean(&says, true)) {
                @for ((depth, layer), spans) in &rows {
                    g class=(layer.class()) transform=(format!("translate(0 {})", depth * ROW)) {
                        @for span in spans {
                            @let (x, length) = at(span);
                            path class=[(length / UNITS >= NAMED).then_some("long")] d=(format!("M{x:.1} 1h{length:.1}v{}h-{length:.1}z", ROW - 2))
                                data-n=(names.number(&span.name)) {
                                @if length / UNITS >= NAMED {
                                    title { (clean(&span.name, true)) ", " (span.length) " at " (span.start) }
                                }
                            }
                        }
                    }
                }
            }
            (labels(lane, wall, height))
        }
    }
}

/// Names over the spans that are wide enough for them: a second picture, which is not stretched.
fn labels(lane: &TimelineLane, wall: Nanos, height: u32) -> Markup {
    let part = |nanos: Nanos| nanos.0 as f64 / wall.0.max(1) as f64;
    let fitting = lane.spans.iter().filter_map(|span| {
        let room = (part(span.length) * PIXELS / CHARACTER) as usize;
        let text = clean(&span.name, true);
        let short = text.split(": ").next().unwrap_or_default().to_owned();
        [text, short].into_iter().find(|text| width(text) + 1 < room).map(|text| (span, text))
    });
    html! {
        svg.labels height=(height) aria-hidden="true" {
            @for (span, text) in fitting {
                text x=(format!("{:.2}%", 100.0 * part(span.start))) dx="4"
                    y=(span.depth * ROW + ROW - 4) { (text) }
            }
        }
    }
}

fn axis(wall: Nanos) -> Markup {
    let ticks =
        (0..=4).map(|place| (25 * place, figures::time(wall.0 as f64 * f64::from(place) / 4.0)));
    html! {
        svg.axis height="20" aria-hidden="true" {
            @for (place, text) in ticks {
                @let anchor = match place { 0 => "start", 100 => "end", _ => "middle" };
                text x=(format!("{place}%")) y="14" text-anchor=(anchor) { (text) }
            }
        }
    }
}

fn longest(timeline: &TimelineChart) -> Markup {
    let mut all: Vec<(&TimelineLane, &TimelineSpan)> = timeline
        .lanes
        .iter()
        .flat_map(|lane| lane.spans.iter().map(move |span| (lane, span)))
        .collect();
    all.sort_by_key(|(_, span)| std::cmp::Reverse(span.length));
    html! {
        div.scroll tabindex="0" role="group" aria-label="the longest calls" {
            table.sortable {
                thead { tr {
                    th.words scope="col" { "call" }
                    th.figures scope="col" { "begins" }
                    th.figures scope="col" { "takes" }
                    th.words scope="col" { "thread" }
                } }
                tbody { @for (lane, span) in all.iter().take(LISTED) { tr {
                    td { (clean(&span.name, true)) }
                    td.figures data-sort=(span.start.0) { (span.start) }
                    td.figures data-sort=(span.length.0) { (span.length) }
                    td { (clean(&lane.name, true)) }
                } } }
            }
        }
    }
}

/// Findings of which calls are in the picture, as JSON: what was found, and the function. The script
/// marks the calls of a finding.
fn found(findings: &[Finding], timeline: &TimelineChart) -> String {
    let mut found: Vec<[String; 2]> = Vec::new();
    for finding in findings {
        let function = function_of(&finding.place);
        let mut spans = timeline.lanes.iter().flat_map(|lane| &lane.spans);
        let one = [words::finding(&finding.kind), function].map(|text| clean(text, true));
        if !function.is_empty()
            && spans.any(|span| function_of(&span.name) == function)
            && !found.contains(&one)
        {
            found.push(one);
        }
    }
    serde_json::to_string(&found).unwrap_or_default()
}

/// `SCardTransmit` of `SCardTransmit: GET DATA`.
fn function_of(name: &str) -> &str {
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}

/// The names of spans, each once: thousands of spans have few.
struct Names<'a>(BTreeMap<&'a str, usize>);

impl<'a> Names<'a> {
    fn in_spans(spans: impl Iterator<Item = &'a TimelineSpan>) -> Self {
        let mut names = BTreeMap::new();
        for span in spans {
            let next = names.len();
            names.entry(span.name.as_str()).or_insert(next);
        }
        Self(names)
    }

    fn number(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// In the order of their numbers, as JSON.
    fn list(&self) -> String {
        let mut list = vec![String::new(); self.0.len()];
        self.0.iter().for_each(|(name, number)| list[*number] = clean(name, true));
        serde_json::to_string(&list).unwrap_or_default()
    }
}
