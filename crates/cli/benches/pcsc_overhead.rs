//! What `tapstone pcsc` adds to a call: its own figures against those of a bare loop in C
//! (`support/bare_pcsc.c`) over the same calls, in interleaved rounds of one run.
//!
//! The calls go to a real pcscd with a virtual card in it. Both sides run as programs of their
//! own, count the same calls from the first on, and take two readings of CLOCK_MONOTONIC around
//! each. What is left is what stands between the readings beside the call: a note of which call is
//! entered, in memory that outlives the worker; and caches that hold more than a bare loop's.
//!
//! Everything is kept to one processor. On several, a call waits until another that sleeps has
//! woken up, 5 to 20 µs on a virtual machine, and which side pays for that is chance.
//!
//! `cargo bench` runs all rounds; without `--bench` a few show that it works. No time is asserted.

#![allow(clippy::unwrap_used, reason = "what is shared with the tests is written like a test")]

#[path = "../tests/pcscd/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod pcscd;
#[path = "support/rounds.rs"]
mod rounds;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tapstone_measure::interval::Estimate;
use tapstone_record::Record;

use pcscd::{READER, VirtualCard};

/// From a call that stays in the library to one that goes all the way to the card.
const OPERATIONS: [&str; 6] = [
    "is_valid",
    "get_status_unaware",
    "status",
    "begin_transaction",
    "end_transaction",
    "transmit",
];

/// Calls in a round: so many are all in the record one by one.
const CALLS: usize = 1000;

/// What may be added to a call that takes 10 µs, in ns.
const LIMIT: f64 = 1000.0;

fn main() {
    let rounds = rounds::rounds(60, 2);
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let Some(bare) = compiled(folder.path()) else { return };
    keep_to_one_processor();
    let Some(_card) = VirtualCard::insert(&["bench"]) else { return };
    println!("tapstone pcsc against a bare loop in C, {rounds} rounds of {CALLS} calls each,");
    println!("interleaved; ns, differences with their 95 % intervals over the rounds\n");
    println!("                        bare     added to the         added to the");
    println!(
        "                      median     median               mean                at most 1 µs"
    );
    for operation in OPERATIONS {
        let pairs: Vec<Pair> = (0..rounds).map(|round| pair(&bare, operation, round)).collect();
        report(operation, &pairs);
    }
}

/// The last of those allowed, for this process and all that it starts. A pcscd that runs already
/// stays where it is.
fn keep_to_one_processor() {
    let allowed = sched_getaffinity(None).expect("a process may ask where it runs");
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(last.expect("it runs somewhere"));
    sched_setaffinity(None, &one).expect("a process may have less than it has");
}

/// The bare loop, made anew. `None`, which has been said then, without a C compiler.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("bare_pcsc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/support/bare_pcsc.c");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-o"]).arg(&program).arg(source);
    match cc.arg("-ldl").status() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            pcscd::skip("cc (Debian: gcc)");
            None
        }
        status => {
            assert!(status.expect("cc starts").success(), "cc cannot compile the bare loop");
            Some(program)
        }
    }
}

/// The times of one round, through Tapstone and without it.
struct Pair {
    bare: Figures,
    tapstone: Figures,
}

/// One side of a round, in ns.
struct Figures {
    median: f64,
    mean: f64,
}

/// Each goes first in every other round.
fn pair(bare: &Path, operation: &str, round: usize) -> Pair {
    if round.is_multiple_of(2) {
        let bare = by_bare_loop(bare, operation);
        Pair { bare, tapstone: by_tapstone(operation) }
    } else {
        let tapstone = by_tapstone(operation);
        Pair { bare: by_bare_loop(bare, operation), tapstone }
    }
}

fn by_bare_loop(program: &Path, operation: &str) -> Figures {
    let text = run(Command::new(program).args([operation, &CALLS.to_string(), READER]));
    let ns = |line: &str| line.parse().expect("a number a line");
    figures(text.lines().map(ns).collect())
}

fn by_tapstone(operation: &str) -> Figures {
    let mut tapstone = Command::new(env!("CARGO_BIN_EXE_tapstone"));
    tapstone.args(["pcsc", "--quiet", "--format", "json", "--reader", READER]);
    let text = run(tapstone.args(["--op", operation, "--count", &CALLS.to_string()]));
    let record = Record::from_json(&text, operation).expect("a record");
    let values = &record.results[0].latencies_ns;
    figures(values.iter().map(|value| value.0 as f64).collect())
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).expect("it prints text")
}

fn figures(mut ns: Vec<f64>) -> Figures {
    assert_eq!(ns.len(), CALLS, "every call is there");
    ns.sort_by(f64::total_cmp);
    Figures { median: ns[CALLS / 2], mean: ns.iter().sum::<f64>() / CALLS as f64 }
}

fn report(operation: &str, pairs: &[Pair]) {
    let added = |of: fn(&Figures) -> f64| {
        let differences: Vec<f64> =
            pairs.iter().map(|pair| of(&pair.tapstone) - of(&pair.bare)).collect();
        Estimate::mean_of(&differences).expect("at least two rounds")
    };
    let median = added(|side| side.median);
    let mean = added(|side| side.mean);
    let mut bare: Vec<f64> = pairs.iter().map(|pair| pair.bare.median).collect();
    bare.sort_by(f64::total_cmp);
    println!(
        "  {operation:18} {:7.0}  {}  {}   {}",
        bare[bare.len() / 2],
        shown(&median),
        shown(&mean),
        verdict(&median)
    );
}

fn shown(added: &Estimate) -> String {
    format!("{:+6.0} [{:+6.0}, {:+6.0}]", added.estimate, added.low, added.high)
}

fn verdict(added: &Estimate) -> &'static str {
    if added.high <= LIMIT {
        "held"
    } else if added.low > LIMIT {
        "EXCEEDED"
    } else {
        "undecided"
    }
}
