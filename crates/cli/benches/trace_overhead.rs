//! What observing a program costs: the same commands bare and with the probe inside, in interleaved
//! rounds of one run.
//!
//! - `one call`: a client in C that calls a PKCS#11 module which does nothing, many times.
//! - `start-up`: a program that does nothing.
//! - `tapstone trace`: the same, and all that the command does before and after it.
//! - `pkcs11-tool`: a real program on a virtual PIV card behind the real pcscd, with the probe; with
//!   its system calls too, the default set; and, bare, with strace looking at the same system calls
//!   and their stacks.
//!
//! `cargo bench` runs all rounds; without `--bench` a few show that it works. No time is asserted.

#![allow(clippy::unwrap_used, reason = "what is shared with the tests is written like a test")]

#[path = "../tests/fixtures/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod fixtures;
#[path = "../tests/pcscd/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod pcscd;
#[path = "support/rounds.rs"]
mod rounds;

use std::ffi::OsString;
use std::path::PathBuf;

use tapstone_command::command::Command;
use tapstone_command::run::{ProgramInput, ProgramOutput, ProgramRun, Signals};
use tapstone_events::system_calls::SystemCallSet;
use tapstone_measure::compare::{PairedRound, paired_ratio};
use tapstone_measure::interval::Estimate;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_observe::observe::{self, ObservationPlan};
use tapstone_observe::probe::ProbeOptions;

/// Operations of the client, of two calls each.
const OPERATIONS: usize = 500_000;

fn main() {
    let signals = Signals::watch().unwrap();
    let bench = Bench { signals };
    println!(
        "the same command bare and observed, interleaved; medians, ratio with its 95 % interval\n"
    );
    println!("                       rounds       bare   observed  ratio");
    if let Some(client) = fixtures::built("client") {
        let operations = OPERATIONS.to_string();
        let rounds = rounds::rounds(20, 2);
        let module = null_module();
        let command = command(&[
            client.as_os_str().to_owned(),
            module.into(),
            "--digest".into(),
            operations.into(),
            "--bytes".into(),
            "16".into(),
        ]);
        let pairs = bench.pairs("one call", &command, rounds, Bench::observed);
        let added: Vec<f64> =
            pairs.iter().map(|pair| pair.added() / (2 * OPERATIONS) as f64).collect();
        interval("added to a call, ns", &added, "at most 60 ns");
    }
    let pairs = bench.pairs(
        "start-up",
        &command(&["true".into()]),
        rounds::rounds(200, 4),
        Bench::observed,
    );
    let added: Vec<f64> = pairs.iter().map(Pair::added).collect();
    interval("added to the start, ns", &added, "at most 1 ms");
    let pairs = bench.pairs(
        "tapstone trace",
        &command(&["true".into()]),
        rounds::rounds(200, 4),
        Bench::traced,
    );
    let added: Vec<f64> = pairs.iter().map(Pair::added).collect();
    interval("added to the command, ns", &added, "at most 5 ms");
    if let Some(_card) = pcscd::VirtualCard::insert(&["piv"]) {
        let command = command(&["pkcs11-tool".into(), "--list-objects".into()]);
        bench.pairs("pkcs11-tool", &command, rounds::rounds(120, 2), Bench::observed);
        println!("                                                        at most 1.05");
        bench.pairs("--syscalls", &command, rounds::rounds(40, 2), Bench::stopped);
        println!("                                                        at most 3");
        if Command::from_words(["strace".into()]).is_ok() {
            bench.pairs("strace -f -k", &command, rounds::rounds(5, 2), Bench::straced);
        } else {
            println!("  strace is not there (Debian: strace)");
        }
    }
}

fn command(words: &[OsString]) -> Command {
    Command::from_words(words.iter().cloned()).unwrap()
}

/// Cargo puts it beside the programs of tests and benches.
fn null_module() -> PathBuf {
    let bench = std::env::current_exe().unwrap();
    bench.with_file_name("libnull_module.so")
}

struct Bench {
    signals: Signals,
}

/// The times of one round, observed and not.
struct Pair {
    bare: Nanos,
    observed: Nanos,
}

impl Pair {
    fn added(&self) -> f64 {
        self.observed.0 as f64 - self.bare.0 as f64
    }
}

impl Bench {
    fn pairs(
        &self,
        name: &str,
        command: &Command,
        rounds: usize,
        observed: fn(&Self, &Command) -> Nanos,
    ) -> Vec<Pair> {
        let pair = |round: usize| {
            if round.is_multiple_of(2) {
                let bare = self.bare(command);
                Pair { bare, observed: observed(self, command) }
            } else {
                let observed = observed(self, command);
                Pair { bare: self.bare(command), observed }
            }
        };
        let pairs: Vec<Pair> = (0..rounds).map(pair).collect();
        let median = |of: fn(&Pair) -> Nanos| {
            let mut all: Vec<Nanos> = pairs.iter().map(of).collect();
            all.sort_unstable();
            all[all.len() / 2]
        };
        let rate = |time: Nanos| PerSecond(1.0 / time.as_secs_f64());
        // Observed over bare, in times: bare's rate over observed's.
        let round = |pair: &Pair| PairedRound { a: rate(pair.observed), b: rate(pair.bare) };
        let ratio = paired_ratio(&pairs.iter().map(round).collect::<Vec<_>>());
        let Estimate { estimate, low, high } = ratio.unwrap();
        let bare = median(|pair| pair.bare);
        let observed = median(|pair| pair.observed);
        println!(
            "  {name:20} {rounds:6} {:>10} {:>10}  {estimate:.3} [{low:.3}, {high:.3}]",
            bare.to_string(),
            observed.to_string()
        );
        pairs
    }

    fn bare(&self, command: &Command) -> Nanos {
        let run = ProgramRun::new(command).output(ProgramOutput::Tail).input(ProgramInput::Null);
        let finished = run.finish(&self.signals).unwrap();
        assert!(finished.exit.is_success(), "{}", finished.exit);
        finished.wall
    }

    fn observed(&self, command: &Command) -> Nanos {
        self.seen(command, None)
    }

    fn stopped(&self, command: &Command) -> Nanos {
        self.seen(command, Some(SystemCallSet::default_set()))
    }

    /// By the command, as its user sees it.
    fn traced(&self, command: &Command) -> Nanos {
        let words = [env!("CARGO_BIN_EXE_tapstone"), "trace", "--quiet", "--"];
        let words = words.iter().map(OsString::from).chain([command.program().into()]);
        let words = words.chain(command.arguments().iter().cloned());
        self.bare(&Command::from_words(words).unwrap())
    }

    /// The same calls, with their stacks.
    fn straced(&self, command: &Command) -> Nanos {
        let calls = SystemCallSet::default_set().names().collect::<Vec<_>>().join(",");
        let options = ["strace", "-f", "-k", "-qq", "-o", "/dev/null", "-e", &calls];
        let words = options.iter().map(OsString::from).chain([command.program().into()]);
        let words = words.chain(command.arguments().iter().cloned());
        self.bare(&Command::from_words(words).unwrap())
    }

    fn seen(&self, command: &Command, system_calls: Option<SystemCallSet>) -> Nanos {
        let options = ProbeOptions { callers: true, ..ProbeOptions::default() };
        let plan = ObservationPlan {
            system_calls,
            output: ProgramOutput::Tail,
            ..ObservationPlan::new(command, &options)
        };
        let seen = observe::observe(&plan, &self.signals).unwrap();
        assert!(seen.finished.exit.is_success() && seen.blind.is_none(), "{:?}", seen.blind);
        seen.finished.wall
    }
}

fn interval(name: &str, values: &[f64], bound: &str) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(Estimate { estimate, low, high }) = Estimate::mean_of(values) else { return };
    let median = sorted[sorted.len() / 2];
    println!(
        "    {name:24} median {median:.1}, mean {estimate:.1} [{low:.1}, {high:.1}]   {bound}"
    );
}
