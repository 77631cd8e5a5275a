//! The options of `tapstone token`, as typed. What they mean together is settled in
//! [`super::cases`] and [`super::target`].

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tapstone_measure::latency_bound::LatencyBound;
use tapstone_measure::units::{Nanos, PerSecond};
use tapstone_token::catalogue::KeySpec;

use crate::live::LiveArguments;
use crate::nats::{EnrolmentArguments, NatsArguments};
use crate::output;
use crate::values::{self, Hexadecimal};

/// Measure how fast a PKCS#11 token or HSM is.
///
/// Without --op, --mix, --suite or --claim a suite of the usual operations is measured. Session
/// keys are made for the run and are gone with it; where a token takes none, or with --token-keys,
/// keys are made on the token and removed at the end. Nothing else is written, and the PIN is
/// tried once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) target: TargetArguments,
    #[command(flatten)]
    pub(crate) pin: PinArguments,
    #[command(flatten)]
    pub(crate) what: WhatArguments,
    #[command(flatten)]
    pub(crate) load: LoadArguments,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    #[command(flatten)]
    pub(crate) limit: LimitArguments,
    #[command(flatten)]
    pub(crate) recorded: RecordedArguments,
    #[command(flatten)]
    pub(crate) hosts: HostArguments,
    #[command(flatten)]
    pub(crate) endurance: EnduranceArguments,
    #[command(flatten)]
    pub(crate) leftovers: LeftoversArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone token --module /usr/lib/softhsm/libsofthsm2.so --token-label demo --pin-file pin
  tapstone token … --op rsa2048.sign --op ecdsa-p256.sign --threads 4 --seconds 10
  tapstone token … --op rsa1024.sign --find-limit
  tapstone token … --op rsa1024.sign --find-limit --within 'p99 <= 5ms'
  tapstone token … --op rsa2048.sign --rate 500
  tapstone token … --mix rsa2048.sign=70,aes256-gcm.encrypt=30
  tapstone token --hosts 4 --nats tls://hub:4222 --target hsm-a --op rsa2048.sign --find-limit
  tapstone token … --claim 'rsa1024.sign >= 13000/s'
  tapstone token … --workload app.parquet --scale 3x
  tapstone token … --workload app.parquet --scale-until 'p99 <= 20ms'

Exit codes: 0 done, 1 a claim was missed or is undecided, 2 could not measure.";

#[derive(Args)]
pub(crate) struct ModuleArgumentsArguments {
    /// What the module is told by C_Initialize, in pReserved: NSS's needs "configdir=… flags=…";
    /// other users of the machine see it here, and not in the variable
    #[arg(long, value_name = "TEXT", env = "TAPSTONE_MODULE_ARGS", hide_env_values = true)]
    pub(crate) module_args: Option<String>,
}

impl fmt::Debug for ModuleArgumentsArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModuleArgumentsArguments(…)")
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Token")]
pub(crate) struct TargetArguments {
    /// The PKCS#11 module; `tapstone targets` lists those found
    #[arg(long, value_name = "PATH", env = "TAPSTONE_MODULE", required_unless_present_any = ["list_operations", "hosts"])]
    pub(crate) module: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) module_args: ModuleArgumentsArguments,
    /// The token with this label; several are measured at once
    #[arg(long, value_name = "LABEL")]
    pub(crate) token_label: Vec<String>,
    /// The token with this serial number; several are measured at once
    #[arg(long, value_name = "SERIAL")]
    pub(crate) token_serial: Vec<String>,
    /// The token in this slot; several are measured at once
    #[arg(long, value_name = "ID")]
    pub(crate) slot: Vec<u64>,
    /// How long a call may take before the module counts as hung
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub(crate) timeout: Nanos,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "PIN (never an argument, and tried once)")]
#[group(multiple = false)]
pub(crate) struct PinSourceArguments {
    /// Read the PIN from this file; one newline at its end is dropped
    #[arg(long, value_name = "PATH")]
    pub(crate) pin_file: Option<PathBuf>,
    /// Read the PIN from this environment variable
    #[arg(long, value_name = "NAME")]
    pub(crate) pin_env: Option<String>,
    /// Read the PIN from this open descriptor
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pin_fd: Option<u32>,
    /// Ask for the PIN on the terminal
    #[arg(long)]
    pub(crate) pin_prompt: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinArguments {
    #[command(flatten)]
    pub(crate) source: PinSourceArguments,
    /// Log in although the token says that a wrong PIN was given before
    #[arg(long, help_heading = "PIN (never an argument, and tried once)")]
    pub(crate) accept_low_count: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What to measure")]
pub(crate) struct WhatArguments {
    /// An operation by name, or `NAME.*` for all its variants
    #[arg(long, value_name = "NAME", conflicts_with_all = ["mix", "suite"])]
    pub(crate) op: Vec<String>,
    /// Several operations at once, with their weights: rsa2048.sign=70,aes256-gcm.encrypt=30
    #[arg(long, value_name = "NAME=WEIGHT,…", value_delimiter = ',', conflicts_with = "suite")]
    pub(crate) mix: Vec<String>,
    /// A set of operations with their parameters, as TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) suite: Option<PathBuf>,
    /// Message sizes: 16,64,1k,16k
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = values::bytes)]
    pub(crate) size: Vec<usize>,
    /// A promise to check: 'rsa1024.sign >= 13000/s', 'rsa2048.sign p99 <= 5ms'
    #[arg(long, value_name = "CLAIM")]
    pub(crate) claim: Vec<String>,
    /// Measure each case in at least so many rounds, each a fresh start with a window of its own,
    /// so that intervals hold what differs between runs; a claim takes 5 or more in any case
    #[arg(long, value_name = "N", value_parser = values::rounds)]
    pub(crate) rounds: Option<usize>,
    /// List the operations that can be named
    #[arg(long)]
    pub(crate) list_operations: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArguments {
    /// Threads in each process, one session each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Processes for each token, each with a C_Initialize of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: u32,
    /// Measure for exactly so long
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, conflicts_with_all = ["count", "duration"])]
    pub(crate) seconds: Option<Nanos>,
    /// The same for long runs: 24h
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with = "count")]
    pub(crate) duration: Option<Nanos>,
    /// Measure so many operations and check every result; of keys that an operation makes, up to
    /// 4096 for each thread and 64 pairs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Measure until the rate is known this well [default: 1%, with --within 3%]
    #[arg(long, value_name = "PERCENT", value_parser = values::precision)]
    pub(crate) precision: Option<f64>,
    /// Give up on that after so long [default: 60 s, in a suite 5 s a case]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) max_time: Option<Nanos>,
    /// Open loop: so many operations a second, all workers together, whatever the device does
    #[arg(long, value_name = "PER-SECOND", value_parser = values::rate, allow_hyphen_values = true)]
    pub(crate) rate: Option<PerSecond>,
    /// How the requests of --rate and --within arrive [default: constant, with --within poisson]
    #[arg(long, value_enum)]
    pub(crate) arrivals: Option<Arrivals>,
    /// How long each worker warms up, at least one operation
    #[arg(long, value_name = "SECONDS", default_value = "0.25", value_parser = values::seconds)]
    pub(crate) warm_up: Nanos,
    /// Read the clock once an operation instead of twice
    #[arg(long, conflicts_with = "rate")]
    pub(crate) chained_clock: bool,
    /// Where pseudo-random inputs come from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// Equal gaps
    Constant,
    /// Independently of each other
    Poisson,
}

impl LoadArguments {
    /// Half the interval over the rate, where nothing else is asked for.
    const PRECISION: f64 = 0.01;

    /// How well the rate is to be known.
    pub(crate) fn precision(&self) -> f64 {
        self.precision.unwrap_or(Self::PRECISION)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Keys and objects")]
pub(crate) struct KeyArguments {
    /// How many keys each process makes: shared, per-worker, or a number
    #[arg(long, value_name = "HOW MANY", default_value = "shared")]
    pub(crate) keys: String,
    /// Keys on the token even where session keys would do, those that operations generate too
    #[arg(long, conflicts_with_all = ["key_label", "key_id"])]
    pub(crate) token_keys: bool,
    /// Use the existing key with this label; it is never changed
    #[arg(long, value_name = "LABEL")]
    pub(crate) key_label: Option<String>,
    /// Use the existing key with this id; it is never changed
    #[arg(long, value_name = "HEX", value_parser = values::hexadecimal)]
    pub(crate) key_id: Option<Hexadecimal>,
    /// So many session objects besides, in each process: how does the token scale with objects?
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) key_count: u32,
    /// So many open sessions besides, in each process: how does it scale with sessions?
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) idle_sessions: u32,
    /// Do not check the results; record and report say so
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// What the search within a bound settles itself, or what it is not made for.
const NOT_WITHIN: [&str; 7] =
    ["hosts", "claim", "seconds", "duration", "max_processes", "chained_clock", "reconnect"];

#[derive(Debug, Args)]
#[command(next_help_heading = "Where is the limit")]
pub(crate) struct LimitArguments {
    /// More threads, then more processes, then more hosts, until the rate stops growing
    #[arg(long, conflicts_with_all = ["rate", "count", "threads", "mix", "suite", "samples"])]
    pub(crate) find_limit: bool,
    /// Instead: the highest rate, offered in an open loop, whose latency stays within this bound:
    /// 'p99 <= 5ms'. One of p50, p90, p95, p99, p99.9; says beforehand how long it will take
    #[arg(long, value_name = "BOUND", requires = "find_limit", conflicts_with_all = NOT_WITHIN)]
    pub(crate) within: Option<LatencyBound>,
    /// Go no further than so many threads; with --within, so many requests at once in a process
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_threads: u32,
    /// Go no further than so many processes for each token
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) max_processes: u32,
}

/// What a recorded load settles itself.
const NOT_REPLAYED: [&str; 20] = [
    "op",
    "live",
    "mix",
    "suite",
    "size",
    "claim",
    "rounds",
    "list_operations",
    "threads",
    "processes",
    "seconds",
    "duration",
    "count",
    "rate",
    "key_label",
    "key_id",
    "find_limit",
    "hosts",
    "leftovers",
    "samples",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "A recorded load")]
pub(crate) struct RecordedArguments {
    /// Replay the load that `tapstone trace --workload FILE -- COMMAND` recorded: the same calls,
    /// sessions, order and pauses, with keys made for it
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_REPLAYED)]
    pub(crate) workload: Option<PathBuf>,
    /// So many times the same clients, each with sessions and a start of its own: 3x
    #[arg(long, value_name = "TIMES", value_parser = values::scale, requires = "workload")]
    pub(crate) scale: Option<u32>,
    /// How many times this load keeps the latency of its transactions within a bound:
    /// 'p99 <= 20ms'. It is replayed at several scales, three times as long as recorded each
    #[arg(long, value_name = "BOUND", requires = "workload", conflicts_with = "scale")]
    pub(crate) scale_until: Option<LatencyBound>,
    /// What a recorded key was, where the recording does not tell: 3=rsa2048, 4=p256, 5=aes128
    #[arg(long, value_name = "NUMBER=KIND", value_parser = values::workload_key, requires = "workload")]
    pub(crate) workload_key: Vec<(u32, KeySpec)>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "One load from many machines")]
pub(crate) struct HostArguments {
    /// Let so many machines do it, on each of which a `tapstone agent` offers the target
    #[arg(long, value_name = "N", requires_all = ["nats", "target"], conflicts_with_all = LOCAL, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) hosts: Option<u32>,
    /// The target, by its name in the agents' configurations
    #[arg(long, value_name = "NAME", requires = "hosts")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) nats: NatsArguments,
    #[command(flatten)]
    pub(crate) enrolment: EnrolmentArguments,
}

/// What an agent reads from its own configuration.
const LOCAL: [&str; 9] = [
    "token_label",
    "token_serial",
    "slot",
    "pin_file",
    "pin_env",
    "pin_fd",
    "pin_prompt",
    "accept_low_count",
    "leftovers",
];

#[derive(Debug, Args)]
#[command(next_help_heading = "Endurance")]
pub(crate) struct EnduranceArguments {
    /// Failures in a row after which a thread gives up; a success starts the count again
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_failures: u32,
    /// Reopen sessions after a lost device, with the PIN that was accepted; keys are on the token
    #[arg(long)]
    pub(crate) reconnect: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Leftovers")]
pub(crate) struct LeftoversArguments {
    /// List keys that a killed run left on the token
    #[arg(long)]
    pub(crate) leftovers: bool,
    /// Also remove them
    #[arg(long, requires = "leftovers")]
    pub(crate) remove: bool,
}

#[derive(Debug, Args)]
#[group(id = "TokenOutput")]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    #[command(flatten)]
    pub(crate) shared: output::OutputArguments,
    /// Also write every single operation to this Parquet file
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    /// Also time each call of an operation; costs a clock reading a call
    #[arg(long)]
    pub(crate) phases: bool,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
}
