//! The options of `tapstone trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tapstone_events::Fix;
use tapstone_events::system_calls::SystemCallSet;
use tapstone_explain::operation::Operation;

use crate::command_line::RecordArguments;
use crate::output::OutputArguments;
use crate::values;

/// Run a program and say where its time goes: PKCS#11, PC/SC, the card, waiting.
///
/// The program runs as it would without: its output, its exit code and its behaviour stay the same.
/// What is found goes to standard error.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    /// What one operation is: `C_Sign` with its C_SignInit, `SCardTransmit`; without it the command
    #[arg(long, value_name = "OPERATION", default_value = "whole")]
    pub(crate) operation: Operation,
    /// Write a trace for Perfetto's user interface (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Write stacks with their own time, in nanoseconds, for flame graphs
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Keep the events in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// The largest size of the events
    #[arg(long, value_name = "BYTES", default_value = "2G", value_parser = values::bytes)]
    pub(crate) events_size: usize,
    #[command(flatten)]
    pub(crate) record: RecordArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Run nothing: read the events that an earlier trace kept
    #[arg(long, value_name = "FILE", help_heading = "Program", conflicts_with_all = [
        "command", "fixes", "with_daemon", "syscalls", "data", "events", "events_size",
    ])]
    pub(crate) read: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present = "read",
        value_name = "COMMAND",
        help_heading = "Program"
    )]
    pub(crate) command: Vec<OsString>,
}

impl Arguments {
    /// System calls to observe. An operation that is one needs it.
    pub(crate) fn system_calls(&self) -> Option<SystemCallSet> {
        match (&self.syscalls, &self.operation) {
            (Some(set), Operation::SystemCall(name)) => Some(set.clone().with(name)),
            (None, Operation::SystemCall(name)) => name.parse().ok(),
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

Exit codes: the program's own is passed on; 2 also stands for what could not be traced.";
