//! A workload that `trace --workload` kept, through to the plan of its replay.

use std::panic;
use std::sync::Once;

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

/// libFuzzer ends the process at every panic. Those of the Parquet library on broken pages are caught
/// by what reads a workload, and count as an error.
fn let_caught_panics_pass() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_caught = info.location().is_some_and(|at| at.file().contains("/parquet-"));
            if !is_caught {
                others(info);
            }
        }));
    });
}

fn check(input: &[u8]) {
    let_caught_panics_pass();
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
