//! The options of `tapstone pcsc`, as typed.

use clap::Args;
use tapstone_measure::units::Nanos;

use crate::live::LiveArguments;
use crate::output::OutputArguments;
use crate::values;

/// Measure the calls of PC/SC, one by one.
///
/// Without --op all calls are measured that take nothing away from other programs. Nothing is
/// written to the card; no PIN is asked for.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A call, as --list-operations names it
    #[arg(long, value_name = "NAME")]
    pub(crate) op: Vec<String>,
    /// The reader, or a part of its name that no other has
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// List the readers and the cards in them
    #[arg(long)]
    pub(crate) list_readers: bool,
    /// List the calls that can be measured
    #[arg(long)]
    pub(crate) list_operations: bool,

    /// Measure so many calls, the first one included
    #[arg(long, value_name = "N", help_heading = "Load", value_parser = clap::value_parser!(u64).range(1..=10_000_000), conflicts_with_all = ["seconds", "processes"])]
    pub(crate) count: Option<u64>,
    /// Measure for so long
    #[arg(long, value_name = "SECONDS", help_heading = "Load", value_parser = values::seconds)]
    pub(crate) seconds: Option<Nanos>,
    /// Measure until the mean is known this well
    #[arg(long, value_name = "PERCENT", help_heading = "Load", default_value = "1%", value_parser = values::precision)]
    pub(crate) precision: f64,
    /// Give up on that after so long
    #[arg(long, value_name = "SECONDS", help_heading = "Load", default_value = "5", value_parser = values::seconds)]
    pub(crate) max_time: Nanos,
    /// Calls before that do not count, for so long; none with --count
    #[arg(long, value_name = "SECONDS", help_heading = "Load", default_value = "0.25", value_parser = values::seconds)]
    pub(crate) warm_up: Nanos,
    /// So many processes at once, each with a context of its own: who waits, and how long
    #[arg(long, value_name = "N", help_heading = "Load", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: u32,
    /// Hold each transaction for so long, outside what is timed
    #[arg(long, value_name = "DURATION", help_heading = "Load", default_value = "0ms", value_parser = values::pause)]
    pub(crate) hold: Nanos,

    /// How long a call may take before it counts as hung
    #[arg(long, value_name = "DURATION", help_heading = "Timeouts", default_value = "30s", value_parser = values::duration)]
    pub(crate) timeout: Nanos,
    /// How long to wait for a reader that another program has for itself
    #[arg(long, value_name = "DURATION", help_heading = "Timeouts", default_value = "30s", value_parser = values::pause)]
    pub(crate) wait: Nanos,

    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone pcsc                                           every call that disturbs nobody
  tapstone pcsc --op end_transaction --count 100          each value, the slow first calls, the mean
  tapstone pcsc --op begin_transaction --processes 4 --hold 5ms
  tapstone pcsc --op disconnect_reset --reader Virtual --output run.json

Exit codes: 0 done, 2 could not measure.";
