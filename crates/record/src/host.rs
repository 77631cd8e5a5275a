//! The machines that a load came from, when it came from several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::environment::Environment;
use crate::load::Window;

/// A machine that took part, or was to. What it did is in the `shares` of each case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name: what its agent's configuration says, or the machine's own.
    pub name: String,
    /// Its agent, from the agent's start to its end.
    pub agent: String,
    /// The version of its agent.
    pub version: String,
    /// What became of it.
    pub state: HostState,
    /// Why it was lost, or could not take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The machine that the host runs on; absent if it was never heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Its clock. The bound is the worst of all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<HostClock>,
    /// The part that it had in the window of its last case, on the coordinator's clock. It ends with
    /// the last that was heard of a host that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// What became of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostState {
    /// It took part to the end.
    Done,
    /// It was lost on the way: it was killed, cut off, stalled or ended.
    Lost,
    /// It could not take part.
    Refused,
}

/// A host's clock as the coordinator knows it, from round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// Its CLOCK_MONOTONIC less the coordinator's, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset differs from that by no more, in nanoseconds.
    #[schemars(with = "u64")]
    pub bound_ns: Nanos,
    /// The shortest round trip, in nanoseconds.
    #[schemars(with = "u64")]
    pub round_trip_ns: Nanos,
}
