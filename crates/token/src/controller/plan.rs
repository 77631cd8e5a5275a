//! What is to be measured, settled: the controller asks nobody anything any more.

use tapstone_measure::units::{Nanos, PerSecond};

use crate::catalogue::Variant;

/// One case: an operation, or several that are mixed, under one load.
#[derive(Clone, Debug)]
pub struct CasePlan {
    /// The operations with their weights in a mix.
    pub lanes: Vec<LanePlan>,
    /// Threads in each process.
    pub threads: u32,
    /// Processes for each token; with hosts, on each host.
    pub processes: u32,
    /// Hosts: 1 where workers run here.
    pub hosts: u32,
    /// What makes a worker start its next operation.
    pub load: LoadPlan,
    /// What ends the case.
    pub stop: CaseStop,
    /// The keys that its operations use.
    pub keys: KeysPlan,
    /// Everything that cases of a run have in common.
    pub common: Common,
}

/// One operation of a case.
#[derive(Clone, Debug)]
pub struct LanePlan {
    /// The operation with all its parameters.
    pub variant: Variant,
    /// Its share of the operations is this over the sum.
    pub weight: u32,
}

/// What makes a worker start its next operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPlan {
    /// The end of the one before; two clock readings each.
    Closed,
    /// The same; one clock reading each.
    Chained,
    /// A schedule of this many a second, all workers together.
    Open {
        /// Operations per second, of all workers together.
        rate: PerSecond,
        /// Independent arrivals instead of equal gaps.
        poisson: bool,
    },
}

/// What ends a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CaseStop {
    /// A window of this length.
    Seconds(Nanos),
    /// The rate's interval is this narrow, looked at after 2, 4, 8, … seconds, or the longest
    /// window is over.
    Precision {
        /// Half the interval's width over the rate.
        relative: f64,
        /// The longest window, if that precision is not reached.
        longest: Nanos,
    },
    /// This many operations, all workers together.
    Count(u64),
}

/// Which keys a case uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysPlan {
    /// Made for the case.
    Own {
        /// How many keys are made.
        count: KeyCount,
        /// On the token even where session objects would do.
        on_token: bool,
    },
    /// A key that the user has on the token.
    Existing {
        /// The CKA_LABEL of the key.
        label: Option<String>,
        /// The CKA_ID of the key.
        id: Option<Vec<u8>>,
    },
}

/// How many keys are made, in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCount {
    /// One for all threads.
    Shared,
    /// One for each thread.
    PerWorker,
    /// So many, which every thread uses in turn.
    Number(u32),
}

/// Everything that cases of a run have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// Whether results are checked in software.
    pub verify: bool,
    /// Time each call of an operation too.
    pub phases: bool,
    /// Whether raw samples are kept.
    pub samples: bool,
    /// How long threads warm up.
    pub warm_up: Nanos,
    /// Failures in a row after which a thread gives up.
    pub max_failures: u32,
    /// Reopen sessions after a lost device.
    pub reconnect: bool,
    /// Objects on the token besides the keys, for each process.
    pub extra_objects: u32,
    /// Open sessions besides those that measure, for each process.
    pub idle_sessions: u32,
    /// Where inputs and samples of results come from.
    pub seed: u64,
    /// The smallest difference that the clock can show.
    pub clock_step: Nanos,
    /// Time from the end of an operation to the start of the next, in nanoseconds.
    pub loop_cost_ns: f64,
}

impl CasePlan {
    /// The name of the case: its operation's, or `mix`.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.lanes[..] {
            [lane] => &lane.variant.name,
            _ => "mix",
        }
    }

    /// The order of the lanes in a mix, by operation number: exact shares, shuffled by the seed.
    pub(super) fn mix(&self) -> Vec<u8> {
        /// A power of two, and enough for weights of a fraction of a percent.
        const LENGTH: u64 = 4096;
        if self.lanes.len() < 2 {
            return Vec::new();
        }
        let total: u64 = self.lanes.iter().map(|lane| u64::from(lane.weight)).sum();
        let mut order = Vec::with_capacity(LENGTH as usize);
        let mut reached = 0;
        for (index, lane) in self.lanes.iter().enumerate() {
            reached += u64::from(lane.weight);
            order.resize((reached * LENGTH / total.max(1)) as usize, index as u8);
        }
        let mut random = tapstone_measure::pace::SplitMix(self.common.seed);
        for place in (1..order.len()).rev() {
            order.swap(place, (random.bits() % (place as u64 + 1)) as usize);
        }
        order
    }
}
