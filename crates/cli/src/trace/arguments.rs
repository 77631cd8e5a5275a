//! The options of `tapstone trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use tapstone_events::Fix;
use tapstone_events::system_calls::SystemCallSet;
use tapstone_explain::operation::OperationRule;
use tapstone_measure::units::Nanos;

use crate::command_line::RecordArguments;
use crate::output::OutputArguments;
use crate::values;

/// Run a program and say where its time goes: PKCS#11, PC/SC, the card, waiting.
///
/// The program runs as it would without: its output, its exit code and its behaviour stay the same.
/// What is found goes to standard error.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("attached").args(["pids", "users_of"]).multiple(true))]
pub(crate) struct Arguments {
    /// Change the program while it runs: `delay:SCardEndTransaction=1ms..10ms`, `no-sleep`, …
    #[arg(long = "fix", value_name = "FIX")]
    pub(crate) fixes: Vec<Fix>,
    /// Start this daemon first and trace it too: 'pcscd --foreground' (root)
    #[arg(long, value_name = "COMMAND")]
    pub(crate) with_daemon: Option<String>,
    /// Also observe system calls, with the stacks that made them: `--syscalls=+write,-read` changes
    /// the default set: files, connections, sockets, sleep
    #[arg(long, value_name = "SET", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "default")]
    pub(crate) syscalls: Option<SystemCallSet>,
    /// Keep the data of APDUs; never of those that carry PINs or keys
    #[arg(long)]
    pub(crate) data: bool,
    /// Do not note where calls come from: of the first calls of each place, the functions on the
    /// stack are kept, and nothing else that lies there
    #[arg(long)]
    pub(crate) no_callers: bool,
    /// What one operation is: `C_Sign` with its C_SignInit, `SCardTransmit`; without it the command
    #[arg(long, value_name = "OPERATION", default_value = "whole")]
    pub(crate) operation: OperationRule,
    /// Write a trace for Perfetto's user interface (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write stacks with their own time, in nanoseconds, for flame graphs
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Keep the events in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write the program's load on its token to this Parquet file, for `tapstone report` and
    /// `tapstone token --workload`: calls, lengths and pauses, without data, labels, ids or keys
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// The largest size of the events, after which calls are counted and no longer listed
    /// [default: 2G, with calls listed in 56M, or in all of it with --events, --operation,
    /// --workload, --perfetto or --folded]
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    events_size: Option<usize>,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Run nothing: read the events that an earlier trace kept
    #[arg(long, value_name = "FILE", help_heading = "Program", conflicts_with_all = [
        "command", "fixes", "with_daemon", "syscalls", "data", "no_callers", "events", "events_size", "attached",
    ])]
    pub(crate) read: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) attached: AttachArguments,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present_any = ["read", "pids", "users_of"],
        value_name = "COMMAND",
        help_heading = "Program"
    )]
    pub(crate) command: Vec<OsString>,
}

/// What is watched that runs already.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "A program that already runs (root)")]
pub(crate) struct AttachArguments {
    /// Start nothing: watch this process and its children; may be repeated
    #[arg(long = "pid", value_name = "PID", conflicts_with_all = STARTED)]
    pub(crate) pids: Vec<u32>,
    /// Watch every process that has this module loaded: a path, or a file name
    #[arg(long, value_name = "MODULE", conflicts_with_all = STARTED)]
    pub(crate) users_of: Vec<String>,
    /// Watch for so long; without it until Ctrl-C, or until the processes have ended
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds, requires = "attached")]
    pub(crate) seconds: Option<Nanos>,
    /// Count and time calls in the kernel, without the calls one by one: for hours, and for programs
    /// that make hundreds of thousands a second; without findings
    #[arg(long, requires = "attached", conflicts_with_all = [
        "perfetto", "folded", "operation", "events", "workload",
    ])]
    pub(crate) counts: bool,
    /// Watch the returns of all functions, also where an exception or pthread_cancel may leave them:
    /// such a program then aborts, or skips its clean-up
    #[arg(long, requires = "attached")]
    pub(crate) returns: bool,
}

/// What only a program that is started can have.
const STARTED: [&str; 7] =
    ["command", "fixes", "with_daemon", "syscalls", "data", "no_callers", "record_command"];

impl AttachArguments {
    pub(crate) fn is_asked(&self) -> bool {
        !self.pids.is_empty() || !self.users_of.is_empty()
    }
}

impl Arguments {
    /// How large the events may become, in bytes.
    pub(crate) fn events_size(&self) -> u64 {
        const LARGEST: u64 = 2 << 30;
        self.events_size.map_or(LARGEST, |size| size as u64)
    }

    /// In how much of that calls are listed, where not all of them are needed: so a trace of
    /// any number of calls takes less than 300 MB with the analysis, where few threads make them.
    /// What else happens has more room.
    pub(crate) fn listed(&self) -> Option<u64> {
        const FIRST_CALLS: u64 = 56 << 20;
        let needs_each = [&self.events, &self.workload, &self.perfetto, &self.folded]
            .into_iter()
            .any(Option::is_some)
            || self.operation != OperationRule::Whole
            || self.attached.is_asked();
        (!needs_each && self.events_size.is_none()).then_some(FIRST_CALLS)
    }

    /// System calls to observe. An operation that is one needs it.
    pub(crate) fn system_calls(&self) -> Option<SystemCallSet> {
        match (&self.syscalls, &self.operation) {
            (Some(set), OperationRule::SystemCall(name)) => Some(set.clone().with(name)),
            (None, OperationRule::SystemCall(name)) => name.parse().ok(),
            (set, _) => set.clone(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tapstone trace -- pkcs11-tool --list-objects
  tapstone trace --output trace.json -- ./my-program --its-option
  tapstone trace --syscalls -- ./my-program                                also system calls
  tapstone trace --with-daemon 'pcscd --foreground' -- opensc-tool --atr      (as root)
  tapstone trace --fix 'delay:SCardEndTransaction=1ms..10ms' -- pkcs11-tool --list-objects
  tapstone trace --events e -- ./my-program; tapstone trace --read e --operation C_Sign
  tapstone trace --workload app.parquet -- ./my-program       its load on its token, to replay
  tapstone trace --pid 4711 --seconds 30                      a program that already runs (root)
  tapstone trace --users-of libsofthsm2.so --counts --output watched.json

Exit codes: the program's own is passed on; 2 also stands for what could not be traced.";
