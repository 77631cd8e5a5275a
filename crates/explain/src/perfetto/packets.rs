//! Writes packets one by one, each text only once.

use std::collections::HashMap;
use std::io::{self, Write};

use prost::Message;
use tapstone_measure::units::Nanos;

use super::proto::{
    CLOCK_MONOTONIC, Clock, ClockSnapshot, DebugAnnotation, Interned, InternedData, NEEDS_STATE,
    Packet, PacketDefaults, STATE_CLEARED, TrackDescriptor, TrackEvent, Type,
};

/// There is one writer, so there is one sequence.
const SEQUENCE: u32 = 1;
/// Field 1 of Trace, with its length in front: what each packet begins with.
const PACKET_KEY: u8 = 1 << 3 | 2;

/// A trace that is being written.
pub(super) struct Packets<W> {
    to: W,
    categories: HashMap<String, u64>,
    names: HashMap<String, u64>,
    argument_names: HashMap<String, u64>,
    values: HashMap<String, u64>,
    /// Texts that no packet has told of yet.
    fresh: InternedData,
    buffer: Vec<u8>,
}

/// Where events go: the number of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(pub(super) u64);

/// What a slice or an instant is called.
#[derive(Clone, Copy)]
pub(super) struct Title<'a> {
    pub(super) name: &'a str,
    pub(super) category: &'static str,
}

impl<W: Write> Packets<W> {
    /// Begins a trace whose moments are CLOCK_MONOTONIC.
    pub(super) fn begin(to: W, started: Nanos) -> io::Result<Self> {
        let mut packets = Self {
            to,
            categories: HashMap::new(),
            names: HashMap::new(),
            argument_names: HashMap::new(),
            values: HashMap::new(),
            fresh: InternedData::default(),
            buffer: Vec::new(),
        };
        let clock = Clock { clock_id: Some(CLOCK_MONOTONIC), timestamp: Some(started.0) };
        packets.write(Packet {
            // Without this, moments are translated to CLOCK_BOOTTIME, of which nothing is known.
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock],
                primary_trace_clock: Some(CLOCK_MONOTONIC),
            }),
            sequence_flags: Some(STATE_CLEARED),
            trace_packet_defaults: Some(PacketDefaults {
                timestamp_clock_id: Some(CLOCK_MONOTONIC),
            }),
            ..Packet::default()
        })?;
        Ok(packets)
    }

    pub(super) fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.write(Packet { track_descriptor: Some(descriptor), ..Packet::default() })
    }

    pub(super) fn slice_begins(
        &mut self,
        track: Track,
        at: Nanos,
        title: Title<'_>,
        arguments: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        self.titled(Type::SliceBegin, track, at, title, arguments)
    }

    pub(super) fn slice_ends(&mut self, track: Track, at: Nanos) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(Type::SliceEnd.into()),
            track_uuid: Some(track.0),
            ..TrackEvent::default()
        };
        self.event(at, event)
    }

    pub(super) fn instant(
        &mut self,
        track: Track,
        at: Nanos,
        title: Title<'_>,
        arguments: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        self.titled(Type::Instant, track, at, title, arguments)
    }

    pub(super) fn number(&mut self, name: &str, value: u64) -> DebugAnnotation {
        DebugAnnotation { uint_value: Some(value), ..self.argument(name) }
    }

    pub(super) fn signed(&mut self, name: &str, value: i64) -> DebugAnnotation {
        DebugAnnotation { int_value: Some(value), ..self.argument(name) }
    }

    pub(super) fn truth(&mut self, name: &str) -> DebugAnnotation {
        DebugAnnotation { bool_value: Some(true), ..self.argument(name) }
    }

    pub(super) fn text(&mut self, name: &str, value: &str) -> DebugAnnotation {
        DebugAnnotation { string_value_iid: Some(self.value(value)), ..self.argument(name) }
    }

    pub(super) fn list<'a>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = &'a str>,
    ) -> DebugAnnotation {
        let item = |value: &str| DebugAnnotation {
            string_value_iid: Some(self.value(value)),
            ..DebugAnnotation::default()
        };
        let array_values = values.map(item).collect();
        DebugAnnotation { array_values, ..self.argument(name) }
    }

    /// Hands on what is still in memory.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn titled(
        &mut self,
        r#type: Type,
        track: Track,
        at: Nanos,
        title: Title<'_>,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let categories = &mut self.fresh.event_categories;
        let category_iid = intern(&mut self.categories, categories, title.category);
        let name_iid = intern(&mut self.names, &mut self.fresh.event_names, title.name);
        let event = TrackEvent {
            category_iid: Some(category_iid),
            debug_annotations,
            r#type: Some(r#type.into()),
            name_iid: Some(name_iid),
            track_uuid: Some(track.0),
        };
        self.event(at, event)
    }

    fn event(&mut self, at: Nanos, event: TrackEvent) -> io::Result<()> {
        self.write(Packet {
            timestamp: Some(at.0),
            track_event: Some(event),
            sequence_flags: Some(NEEDS_STATE),
            ..Packet::default()
        })
    }

    fn argument(&mut self, name: &str) -> DebugAnnotation {
        let names = &mut self.fresh.debug_annotation_names;
        let name_iid = intern(&mut self.argument_names, names, name);
        DebugAnnotation { name_iid: Some(name_iid), ..DebugAnnotation::default() }
    }

    fn value(&mut self, value: &str) -> u64 {
        intern(&mut self.values, &mut self.fresh.debug_annotation_string_values, value)
    }

    fn write(&mut self, mut packet: Packet) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        if self.fresh != InternedData::default() {
            packet.interned_data = Some(std::mem::take(&mut self.fresh));
        }
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).expect("a vector grows");
        self.to.write_all(&self.buffer)
    }
}

/// The number of a text, and a place among those to be told of when it is new. 0 is no number.
fn intern(known: &mut HashMap<String, u64>, fresh: &mut Vec<Interned>, text: &str) -> u64 {
    if let Some(iid) = known.get(text) {
        return *iid;
    }
    let iid = known.len() as u64 + 1;
    known.insert(text.to_owned(), iid);
    fresh.push(Interned { iid: Some(iid), text: Some(text.to_owned()) });
    iid
}
