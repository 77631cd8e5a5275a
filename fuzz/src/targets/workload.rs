//! A workload that `trace --workload` kept, through to the plan of its replay.

use tapstone_replay::{ReplayOptions, plan_replay};
use tapstone_workload::{WorkloadLimits, operations, transactions, workload_of_bytes};

use crate::FuzzTarget;
use crate::structure::Structure;

/// A file as it is.
pub const TARGET: FuzzTarget = FuzzTarget {
    name: "workload",
    reads: "workloads",
    structure: Structure::Bytes,
    longest: 8192,
    check,
};

fn check(input: &[u8]) {
    let limits = WorkloadLimits { calls: 100_000, threads: 1_000, numbers: 100_000 };
    let Ok(workload) = workload_of_bytes(input.to_vec(), limits) else { return };
    let calls: usize = workload.threads.iter().map(|thread| thread.calls.len()).sum();
    assert!(calls <= 100_000, "{calls} calls");
    let all: u64 = operations(&workload).iter().map(|it| u64::from(it.calls)).sum();
    assert_eq!(all, calls as u64, "every call is a part of one operation");
    for transaction in transactions(&workload).list {
        assert!(transaction.start <= transaction.end, "{transaction:?}");
    }
    let Ok(plan) = plan_replay(&workload, &ReplayOptions::default()) else { return };
    let steps = plan.processes.iter().flat_map(|process| &process.threads);
    let steps: usize = steps.map(|thread| thread.steps.len()).sum();
    let skipped: u64 = plan.skipped.iter().map(|skipped| skipped.count).sum();
    assert_eq!(steps as u64 + skipped, calls as u64, "every call is replayed or told as skipped");
}
