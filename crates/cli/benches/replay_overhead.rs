//! What a replay adds to the calls that it makes: a recorded load without pauses, against a bare loop
//! that makes the same calls and keeps two readings of the clock for each, over a module that answers
//! at once, in interleaved rounds of one run.
//!
//! `cargo bench` runs all rounds; without `--bench` a few show that it works.

#[allow(dead_code, reason = "each bench uses a part")]
#[path = "support/bare.rs"]
mod bare;
#[allow(dead_code, reason = "each bench uses a part")]
mod support;

use tapstone_measure::units::Nanos;
use tapstone_replay::{ReplayOptions, ReplayPlan, plan_replay};
use tapstone_token::controller::TokenController;
use tapstone_workload::{Workload, WorkloadCall, WorkloadThread};

use bare::Bare;

const SIGNATURES: usize = 100_000;

fn main() {
    let rounds = support::rounds(21, 2);
    let module = support::module();
    let mut controller = support::open(&module, &[]);
    let bare = Bare::load(&module);
    let plan = plan_replay(&load(), &ReplayOptions::default()).expect("it can be replayed");
    let mut loops = Vec::new();
    let mut replays = Vec::new();
    for round in 0..rounds {
        if round % 2 == 0 {
            loops.push(bare.keep_each_call(SIGNATURES));
        }
        replays.push(replayed(&mut controller, &plan));
        if round % 2 == 1 {
            loops.push(bare.keep_each_call(SIGNATURES));
        }
    }
    controller.close();
    let mut ratios: Vec<f64> =
        replays.iter().zip(&loops).map(|(replay, bare)| replay / bare).collect();
    println!("C_SignInit and C_Sign on a module that answers at once, ns for both,");
    println!("medians of {rounds} interleaved rounds of {SIGNATURES} each\n");
    println!("  bare loop, two readings a call  {:7.1}", median(&mut loops));
    println!("  replay                          {:7.1}", median(&mut replays));
    println!("  ratio                           {:7.3}", median(&mut ratios));
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Signatures one after the other.
fn load() -> Workload {
    let call = |function| WorkloadCall {
        session: 1,
        duration: Nanos(100),
        ..WorkloadCall::named(function)
    };
    let begin = WorkloadCall { mechanism: Some(1), object: 1, ..call("C_SignInit") };
    let work = WorkloadCall { input_bytes: 32, output_bytes: 256, ..call("C_Sign") };
    let calls = std::iter::repeat_n([begin, work], SIGNATURES).flatten().collect();
    let threads = vec![WorkloadThread { calls, ..WorkloadThread::default() }];
    Workload { threads, ..Workload::default() }
}

/// Nanoseconds for a signature.
fn replayed(controller: &mut TokenController, plan: &ReplayPlan) -> f64 {
    let outcome = controller.replay(&plan.processes).expect("the null module replays it");
    let times = &outcome.threads[0][0].times;
    assert!(times.len() == 2 * SIGNATURES && times.iter().all(|call| call.result == 0));
    let (first, last) = (times[0], times[times.len() - 1]);
    (last.begin + last.duration - first.begin).0 as f64 / SIGNATURES as f64
}
