//! The events of a traced program as spans of a page.

use std::path::{Path, PathBuf};

use tapstone_attach::kept::KeptWatch;
use tapstone_events::UnlistedCall;
use tapstone_explain::exchanges;
use tapstone_explain::reading::read_timeline;
use tapstone_explain::timeline::{Family, Leaf, Span, Thread, Timeline, with_depths};
use tapstone_measure::units::Nanos;
use tapstone_names::apdu::Described;
use tapstone_observe::kept;
use tapstone_record::Record;
use tapstone_report::html;
use tapstone_text::thousands;

/// So many spans are a picture, and the page stays small. The longest are kept.
const MOST: usize = 20_000;
/// Beside them so many of the last calls, of all threads together.
const MOST_LAST: usize = 5_000;

/// What there is of a record's events.
pub(super) enum Found {
    /// It has none, or nobody kept them.
    Nothing,
    /// They were kept, and cannot be found; the sentence says so.
    Gone(String),
    /// The events, read from their file.
    Events(html::TimelineChart),
}

/// The timeline of a traced program: from the file that was named, or the one that the record
/// names.
pub(super) fn find_timeline(
    record: &Record,
    path: &Path,
    named: Option<&Path>,
) -> anyhow::Result<Found> {
    if record.layers.is_empty() {
        return Ok(Found::Nothing);
    }
    let found = match (named, &record.events) {
        (Some(file), _) => file.to_owned(),
        (None, None) => return Ok(Found::Nothing),
        (None, Some(events)) => match beside(path, Path::new(&events.file)) {
            Some(found) => found,
            None => {
                return Ok(Found::Gone(format!(
                    "there is no timeline: the events of this run, {}, are not there any more; if \
                     they were moved, --events FILE names them",
                    events.file
                )));
            }
        },
    };
    let timeline = match KeptWatch::read(&found)? {
        Some(watched) => read_timeline(&watched.events)?,
        None => read_timeline(&kept::read_kept(&found)?.recording)?,
    };
    Ok(Found::Events(drawn(&timeline)))
}

/// The file as it was named, or in the folder of the record.
fn beside(record: &Path, events: &Path) -> Option<PathBuf> {
    let moved = record.with_file_name(events.file_name()?);
    [events.to_owned(), moved].into_iter().find(|path| path.is_file())
}

fn drawn(timeline: &Timeline) -> html::TimelineChart {
    let commands = exchanges::described(timeline);
    let mut lanes: Vec<html::TimelineLane> =
        timeline.threads.iter().map(|thread| lane(timeline, thread, &commands)).collect();
    let thread_of = |call: &UnlistedCall| (call.process, call.thread);
    let of_threads = timeline.last_calls.chunk_by(|one, other| thread_of(one) == thread_of(other));
    let mut last: Vec<_> = of_threads.filter_map(|calls| last_calls(timeline, calls)).collect();
    let left_out = keep_longest(&mut lanes, MOST) + keep_longest(&mut last, MOST_LAST);
    for last in last {
        match lanes.iter_mut().find(|lane| lane.name == last.name) {
            Some(lane) => lane.spans.extend(last.spans),
            None => lanes.push(last),
        }
    }
    lanes.retain(|lane| !lane.spans.is_empty());
    html::TimelineChart { wall: timeline.wall(), lanes, left_out: left_out as u64 }
}

/// Keeps the longest spans, and says how many others there were.
fn keep_longest(lanes: &mut [html::TimelineLane], most: usize) -> usize {
    let mut lengths: Vec<u64> =
        lanes.iter().flat_map(|lane| lane.spans.iter().map(|span| span.length.0)).collect();
    let left_out = lengths.len().saturating_sub(most);
    if left_out > 0 {
        let (_, shortest, _) = lengths.select_nth_unstable(left_out);
        let shortest = *shortest;
        // Of equally long ones, the first.
        let mut room = most;
        for lane in lanes {
            lane.spans.retain(|span| {
                let kept = span.length.0 >= shortest && room > 0;
                room -= usize::from(kept);
                kept
            });
        }
    }
    left_out
}

fn lane(timeline: &Timeline, thread: &Thread, commands: &[Described]) -> html::TimelineLane {
    let mut depths: Vec<u32> = Vec::with_capacity(thread.spans.len());
    let mut spans = Vec::new();
    for span in &thread.spans {
        let depth = span.parent.map_or(0, |parent| depths[parent.index()] + 1);
        depths.push(depth);
        spans.push(html::TimelineSpan {
            name: call_name(timeline, span, commands),
            start: since(timeline, span.start),
            length: span.end - span.start,
            depth,
            layer: layer(&timeline.call(span.call).family),
        });
    }
    spans.extend(thread.leaves.iter().map(|leaf| html::TimelineSpan {
        name: leaf_name(timeline, leaf),
        start: since(timeline, leaf.start),
        length: leaf.end - leaf.start,
        depth: leaf.parent.map_or(0, |parent| depths[parent.index()] + 1),
        layer: html::TimelineLayer::Libc,
    }));
    spans.sort_by_key(|span| (span.start, span.depth));
    html::TimelineLane { name: lane_name(timeline, thread.process, thread.id), spans }
}

/// The last calls of a thread, which are not in its timeline.
fn last_calls(timeline: &Timeline, calls: &[UnlistedCall]) -> Option<html::TimelineLane> {
    let span = |(call, depth): (&UnlistedCall, u32)| {
        let called = timeline.call(call.function);
        html::TimelineSpan {
            name: called.function.to_owned(),
            start: since(timeline, call.start),
            length: call.end - call.start,
            depth,
            layer: layer(&called.family),
        }
    };
    let first = calls.first()?;
    Some(html::TimelineLane {
        name: lane_name(timeline, first.process, first.thread),
        spans: with_depths(calls).map(span).collect(),
    })
}

fn lane_name(timeline: &Timeline, process: u32, thread: u32) -> String {
    let image = timeline.processes.iter().rfind(|image| image.id == process);
    let program = image.map_or("", |image| image.program.as_str());
    let program = program.rsplit('/').next().unwrap_or(program);
    format!("{program} {process}, thread {thread}")
}

fn since(timeline: &Timeline, moment: Nanos) -> Nanos {
    Nanos(moment.0.saturating_sub(timeline.started.0))
}

/// `SCardTransmit: GET DATA, X.509 certificate for card authentication`.
fn call_name(timeline: &Timeline, span: &Span, commands: &[Described]) -> String {
    let function = timeline.call(span.call).function;
    let Some(command) = span.exchange().and_then(|id| commands.get(id.0.index())) else {
        return function.to_owned();
    };
    match &command.object {
        Some(object) => format!("{function}: {}, {object}", command.name),
        None => format!("{function}: {}", command.name),
    }
}

/// `poll of libpcsclite.so.1, 31,000 times`.
fn leaf_name(timeline: &Timeline, leaf: &Leaf) -> String {
    let call = timeline.call(leaf.call);
    let by = if call.caller.is_empty() { String::new() } else { format!(" by {}", call.caller) };
    match leaf.count {
        0 | 1 => format!("{}{by}", call.function),
        count => format!("{}{by}, {} times", call.function, thousands(count.into())),
    }
}

const fn layer(family: &Family) -> html::TimelineLayer {
    match family {
        Family::Pkcs11 => html::TimelineLayer::Pkcs11,
        Family::Pcsc => html::TimelineLayer::Pcsc,
        Family::Driver => html::TimelineLayer::Driver,
        Family::Libc(_) => html::TimelineLayer::Libc,
    }
}
