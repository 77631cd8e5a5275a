//! The messages of Perfetto's trace format that are written here, with the fields that they need:
//! protos/perfetto/trace of <https://github.com/google/perfetto>. Numbers are Perfetto's.

/// TracePacket.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Packet {
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<PacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
}

/// SEQ_INCREMENTAL_STATE_CLEARED: nothing that was interned before holds.
pub(super) const STATE_CLEARED: u32 = 1;
/// SEQ_NEEDS_INCREMENTAL_STATE: the packet uses what was interned, or defaults.
pub(super) const NEEDS_STATE: u32 = 2;

/// TracePacketDefaults.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PacketDefaults {
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
}

/// ClockSnapshot.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

/// ClockSnapshot.Clock.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

/// BUILTIN_CLOCK_MONOTONIC.
pub(super) const CLOCK_MONOTONIC: u32 = 3;

/// TrackDescriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
}

/// ProcessDescriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, repeated, tag = "2")]
    pub(super) cmdline: Vec<String>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

/// ThreadDescriptor.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

/// TrackEvent.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackEvent {
    /// Perfetto has any number; here it is one.
    #[prost(uint64, optional, tag = "3")]
    pub(super) category_iid: Option<u64>,
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
}

/// TrackEvent.Type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Type {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// DebugAnnotation: an argument, with one value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub(super) name_iid: Option<u64>,
    #[prost(bool, optional, tag = "2")]
    pub(super) bool_value: Option<bool>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub(super) int_value: Option<i64>,
    #[prost(message, repeated, tag = "12")]
    pub(super) array_values: Vec<DebugAnnotation>,
    #[prost(uint64, optional, tag = "17")]
    pub(super) string_value_iid: Option<u64>,
}

/// InternedData: texts that later packets of the sequence name by number.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct InternedData {
    /// EventCategory.
    #[prost(message, repeated, tag = "1")]
    pub(super) event_categories: Vec<Interned>,
    /// EventName.
    #[prost(message, repeated, tag = "2")]
    pub(super) event_names: Vec<Interned>,
    /// DebugAnnotationName.
    #[prost(message, repeated, tag = "3")]
    pub(super) debug_annotation_names: Vec<Interned>,
    /// InternedString.
    #[prost(message, repeated, tag = "29")]
    pub(super) debug_annotation_string_values: Vec<Interned>,
}

/// All four kinds of interned texts look like this.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Interned {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) text: Option<String>,
}

/// Trace: what a whole file is.
#[cfg(test)]
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<Packet>,
}
