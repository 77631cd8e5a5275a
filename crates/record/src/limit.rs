//! What limits a rate, and what that is said from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::figures::Fraction;

/// What limits a rate: what would raise it by a tenth or more if it were not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The device: nothing else that was tried or seen would raise the rate.
    Device,
    /// This machine: the measuring processes used up its processors.
    Client,
    /// Other programs on this machine, or its hypervisor, took processors away.
    OtherPrograms,
    /// A lock that the threads of one process share.
    ProcessLock,
    /// A connection, or an engine, that the threads of one process share.
    ProcessConnection,
    /// One of these two.
    ProcessLockOrConnection,
    /// The round trips to the device.
    Network,
    /// The search ended while the rate was still growing.
    SearchCap,
    /// The search was interrupted.
    Interruption,
    /// The evidence does not say.
    #[default]
    Unknown,
}

/// What limits a rate, why that is said, and what was seen of the threads and their machine. Null
/// where the system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitEvidence {
    /// What limits the rate.
    pub limited_by: LimitedBy,
    /// Why that is said, in a sentence.
    pub why: String,
    /// The share of the workers' time on a processor.
    pub running_share: Option<Fraction>,
    /// The share of the workers' time in which they were ready to run and had no processor.
    pub run_queue_share: Option<Fraction>,
    /// How often workers gave their processor up to wait for something.
    pub voluntary_switches: Option<u64>,
    /// How often a worker's processor was taken away.
    pub involuntary_switches: Option<u64>,
    /// Processor time that other programs used or the hypervisor took away, in cores.
    pub other_cores: Option<f64>,
    /// The share of time in which some task of the machine waited for a processor (PSI).
    pub pressure_share: Option<Fraction>,
    /// What workers were found doing, by samples.
    pub waits: Option<WaitShares>,
    /// The shortest round trip of a TCP connection to another machine, in nanoseconds; of several
    /// connections the longest of these.
    #[schemars(with = "Option<u64>")]
    pub round_trip_ns: Option<Nanos>,
}

/// What workers were found doing, as shares of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitShares {
    /// The number of samples.
    pub samples: u64,
    /// On a processor, or ready to run.
    pub running: Fraction,
    /// In futex(2): waiting for a lock, or for another thread.
    pub lock: Fraction,
    /// In nanosleep(2) or its kin.
    pub sleep: Fraction,
    /// In any other system call: reading, polling, ioctl(2).
    pub input: Fraction,
}
