//! How the probe is to behave, and how much it may write.

use tapstone_events::Fix;

/// How the probe is to behave.
#[derive(Clone, Debug, Default)]
pub struct ProbeOptions {
    /// The fixes that the probe applies to the program's calls.
    pub fixes: Vec<Fix>,
    /// Whether fixes act from the start.
    pub on: bool,
    /// Whether the data of commands is kept. Never that of commands which carry secrets.
    pub data: bool,
    /// Whether it is noted where the first calls of each place come from.
    pub callers: bool,
    /// How much may be written.
    pub size: EventBytes,
    /// In how much of it calls are listed; those beyond are counted. `None`: in nearly all of it.
    pub listed: Option<EventBytes>,
}

/// How many bytes of events may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBytes(pub u64);

impl Default for EventBytes {
    /// 2 GiB: some 25 million calls.
    fn default() -> Self {
        Self(2 << 30)
    }
}
