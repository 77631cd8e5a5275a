//! A timeline as a trace for Perfetto's UI (<https://ui.perfetto.dev>): a track for each thread, on
//! it a slice for each call, inside the slice of the call that made it.
//!
//! Calls of libc that were counted together become one slice as long as the sum of their times,
//! with the number of calls as argument, or a mark where there is no room for that. System calls
//! have a track of their own below their thread's: their times are the tracer's.
//!
//! Nothing is kept but names: packets are written as they are made.

mod arguments;
mod layout;
mod packets;
mod proto;
mod system_calls;

use std::collections::HashMap;
use std::io::{self, Write};

use tapstone_measure::units::Nanos;
use tapstone_names::apdu::Described;

use self::layout::{Child, SlicePlace, places};
use self::packets::{Packets, Title, Track};
use self::proto::{ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
pub use self::system_calls::{SystemCallSlice, system_calls};
use crate::timeline::{Family, Place, Thread, Timeline, with_depths};
use crate::tree::{Node, Tree};
use crate::{codes, exchanges};

/// Writes a trace, with the [system calls](system_calls()) that were seen or none.
///
/// # Errors
/// What the system says when it cannot be written.
pub fn write_trace<'a>(
    timeline: &Timeline,
    system_calls: impl IntoIterator<Item = SystemCallSlice<'a>>,
    to: impl Write,
) -> io::Result<()> {
    let mut trace = TraceWriter {
        timeline,
        commands: exchanges::described(timeline),
        packets: Packets::begin(to, timeline.started)?,
        tracks: HashMap::new(),
    };
    for thread in &timeline.threads {
        let track = trace.track(TrackKind::Thread(thread.process, thread.id))?;
        let tree = Tree::of_thread(thread);
        trace.calls(thread, &tree, None, (thread.start, thread.end), track)?;
    }
    trace.last_calls()?;
    for call in system_calls {
        trace.system_call(&call)?;
    }
    trace.dropped()?;
    trace.packets.finish()
}

/// What has a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TrackKind {
    Process(u32),
    Thread(u32, u32),
    SystemCalls(u32, u32),
}

struct TraceWriter<'a, W> {
    timeline: &'a Timeline,
    commands: Vec<Described>,
    packets: Packets<W>,
    tracks: HashMap<TrackKind, Track>,
}

impl<W: Write> TraceWriter<'_, W> {
    /// The track of a row, which is described when it is first asked for.
    fn track(&mut self, row: TrackKind) -> io::Result<Track> {
        if let Some(track) = self.tracks.get(&row) {
            return Ok(*track);
        }
        let mut descriptor = TrackDescriptor::default();
        match row {
            TrackKind::Process(process) => {
                let program = program(self.timeline, process);
                descriptor.process = Some(ProcessDescriptor {
                    pid: Some(process as i32),
                    cmdline: vec![program.to_owned()],
                    process_name: Some(program.rsplit('/').next().unwrap_or(program).to_owned()),
                });
            }
            TrackKind::Thread(process, id) => {
                self.track(TrackKind::Process(process))?;
                // Perfetto's UI writes the number beside it.
                let name = if process == id { "main" } else { "thread" };
                descriptor.thread = Some(ThreadDescriptor {
                    pid: Some(process as i32),
                    tid: Some(id.into()),
                    thread_name: Some(name.to_owned()),
                });
            }
            TrackKind::SystemCalls(process, id) => {
                descriptor.parent_uuid = Some(self.track(TrackKind::Thread(process, id))?.0);
                descriptor.name = Some("system calls".to_owned());
            }
        }
        let track = Track(self.tracks.len() as u64 + 1);
        self.tracks.insert(row, track);
        descriptor.uuid = Some(track.0);
        self.packets.track(descriptor)?;
        Ok(track)
    }

    /// What was called inside a call, or outside of all, as deep as it goes. Calls are at most as
    /// deep as the probe follows them.
    fn calls(
        &mut self,
        thread: &Thread,
        tree: &Tree,
        parent: Option<u32>,
        around: (Nanos, Nanos),
        track: Track,
    ) -> io::Result<()> {
        let children: Vec<Child<Node>> =
            tree.inside(parent).iter().map(|node| child(thread, *node)).collect();
        for (node, place) in places(around, &children) {
            let (title, arguments) = match node {
                Node::Span(at) => {
                    let span = &thread.spans[at as usize];
                    let injected = thread.injected.get(&Place::new(at)).copied();
                    let arguments = arguments::of_span(
                        &mut self.packets,
                        self.timeline,
                        span,
                        injected,
                        &self.commands,
                    );
                    (self.title(span.call), arguments)
                }
                Node::Leaf(at) => {
                    let leaf = &thread.leaves[at as usize];
                    let arguments = arguments::of_leaf(&mut self.packets, self.timeline, leaf);
                    (self.title(leaf.call), arguments)
                }
            };
            match place {
                SlicePlace::Slice { start, end } => {
                    self.packets.slice_begins(track, start, title, arguments)?;
                    if let Node::Span(at) = node {
                        self.calls(thread, tree, Some(at), (start, end), track)?;
                    }
                    self.packets.slice_ends(track, end)?;
                }
                SlicePlace::Mark { at } => self.packets.instant(track, at, title, arguments)?,
            }
        }
        Ok(())
    }

    /// The last calls of threads whose calls were only counted: of them names and results are known.
    fn last_calls(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut open: Vec<(Track, Nanos)> = Vec::new();
        for (call, depth) in with_depths(&timeline.last_calls) {
            while open.len() > depth as usize {
                self.end_last(&mut open)?;
            }
            let track = self.track(TrackKind::Thread(call.process, call.thread))?;
            let called = timeline.call(call.function);
            // What functions of libc return depends on what they were given.
            let arguments = match called.family {
                Family::Libc(_) => Vec::new(),
                _ => vec![self.packets.text("result", &codes::name(called, call.result))],
            };
            let title = self.title(call.function);
            self.packets.slice_begins(track, call.start, title, arguments)?;
            open.push((track, call.end));
        }
        while !open.is_empty() {
            self.end_last(&mut open)?;
        }
        Ok(())
    }

    fn end_last(&mut self, open: &mut Vec<(Track, Nanos)>) -> io::Result<()> {
        match open.pop() {
            Some((track, end)) => self.packets.slice_ends(track, end),
            None => Ok(()),
        }
    }

    fn title(&self, call: crate::timeline::FunctionId) -> Title<'static> {
        let call = self.timeline.call(call);
        let category = match call.family {
            Family::Pkcs11 => "pkcs11",
            Family::Pcsc => "pcsc",
            Family::Driver => "driver",
            Family::Libc(_) => "libc",
        };
        Title { name: call.function, category }
    }

    fn system_call(&mut self, call: &SystemCallSlice<'_>) -> io::Result<()> {
        let track = self.track(TrackKind::SystemCalls(call.process, call.thread))?;
        let arguments = arguments::of_system_call(&mut self.packets, call);
        let title = Title { name: call.name, category: "system call" };
        self.packets.slice_begins(track, call.start, title, arguments)?;
        self.packets.slice_ends(track, call.end.max(call.start))
    }

    /// Says where the trace ends that it is not whole.
    fn dropped(&mut self) -> io::Result<()> {
        let Timeline { dropped, summed, .. } = self.timeline;
        // Of each call that was only counted there is neither beginning nor end.
        let summed = summed.iter().fold(0, |all: u64, calls| calls.count.saturating_add(all));
        let dropped = dropped.saturating_add(summed.saturating_mul(2));
        let root = self.timeline.root;
        if dropped == 0 {
            return Ok(());
        }
        let track = self.track(TrackKind::Process(root))?;
        let arguments = vec![self.packets.number("count", dropped)];
        let title = Title { name: "events that found no room", category: "tapstone" };
        self.packets.instant(track, self.timeline.ended, title, arguments)
    }
}

fn child(thread: &Thread, node: Node) -> Child<Node> {
    match node {
        Node::Span(at) => {
            let span = &thread.spans[at as usize];
            Child { what: node, start: span.start, end: span.end, sum: None }
        }
        Node::Leaf(at) => {
            let leaf = &thread.leaves[at as usize];
            let sum = (leaf.count > 1).then_some(leaf.time);
            Child { what: node, start: leaf.start, end: leaf.end, sum }
        }
    }
}

/// The program that a process ran last; of one that was only forked off, its parent's.
pub(crate) fn program(timeline: &Timeline, process: u32) -> &str {
    let mut id = process;
    // As many generations as there are processes: ids that are used again could go round.
    for _ in 0..=timeline.processes.len() {
        let images = timeline.processes.iter().rev().filter(|image| image.id == id);
        let Some(parent) = images.clone().next().map(|image| image.parent) else { break };
        let named = images.map(|image| image.program.as_str()).find(|name| !name.is_empty());
        if let Some(name) = named {
            return name;
        }
        id = parent;
    }
    "unknown program"
}

#[cfg(test)]
#[path = "perfetto/tests.rs"]
mod tests;
