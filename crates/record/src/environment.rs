//! The machine that the client ran on, as far as it can change a figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::figures::Fraction;

/// The machine that the client ran on. What is not known, of figures that others made, is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The processor's model name (Linux: `model name` of /proc/cpuinfo).
    pub cpu: Option<String>,
    /// The cores that this process may run on (its affinity, not what the machine has).
    pub cores: Option<u32>,
    /// The name and release of the kernel (uname).
    pub kernel: Option<String>,
    /// What else the machine did.
    pub load: SystemLoad,
    /// The clock that everything was measured with.
    pub clock: Option<ClockPrecision>,
    /// The operating system's own name (Linux: PRETTY_NAME of /etc/os-release).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// The memory of the machine, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The processor time that the control group allows, in cores (cpu.max). Absent: no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_quota_cores: Option<f64>,
    /// The frequency governor (Linux: cpufreq/scaling_governor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The hypervisor or container that the machine is, as far as it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualisation: Option<String>,
}

/// What else the machine did. Null where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemLoad {
    /// Runnable tasks, averaged over the minute before the run.
    pub average_1m: Option<f64>,
    /// Runnable tasks, averaged over the 5 minutes before the run.
    pub average_5m: Option<f64>,
    /// Runnable tasks, averaged over the 15 minutes before the run.
    pub average_15m: Option<f64>,
    /// Processor time that other processes used during the run, in cores.
    pub other_cores: Option<f64>,
    /// The share of processor time that the hypervisor took away during the run (steal).
    pub steal_share: Option<Fraction>,
}

/// What the clock can tell apart, and what asking it costs. Neither is subtracted from a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockPrecision {
    /// The smallest difference between two readings, in nanoseconds.
    #[schemars(with = "u64")]
    pub step_ns: Nanos,
    /// The time that one reading takes, in nanoseconds.
    pub cost_ns: f64,
}
