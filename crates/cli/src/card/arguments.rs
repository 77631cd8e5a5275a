//! The options of `tapstone card`, as typed.

use clap::Args;
use tapstone_measure::units::Nanos;

use crate::live::LiveArguments;
use crate::output::OutputArguments;
use crate::token::PinSourceArguments;
use crate::values;

/// Measure what a smart card costs, command by command.
///
/// A suite says what is sent. Without --allow-writes nothing on the card changes; a PIN is given to
/// it only if you name one, after its retry counter was read, and never with its last try. The
/// run is one transaction, so other programs wait; only tests that begin with a card just powered
/// (`generic`, `piv-contact`) let it go before each operation.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A suite by name, or a suite file of your own
    #[arg(long, value_name = "NAME|FILE", default_value = "generic")]
    pub(crate) suite: String,
    /// A test of the suite by name, or `NAME*` for all that begin so; without it, all
    #[arg(long, value_name = "NAME")]
    pub(crate) op: Vec<String>,
    /// List the suites that come with Tapstone
    #[arg(long)]
    pub(crate) list_suites: bool,
    /// List the tests of the suite
    #[arg(long, conflicts_with = "list_suites")]
    pub(crate) list_operations: bool,
    /// The reader, or a part of its name that no other has
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// Measure every case so many times, in rounds that go through all cases
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(3..=100_000))]
    pub(crate) rounds: u64,
    /// Where pseudo-random inputs come from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) pin: PinSourceArguments,

    /// Allow what the suite says that it makes, changes and removes; it is listed first
    #[arg(long, help_heading = "Safety")]
    pub(crate) allow_writes: bool,
    /// How long a command may take before the card counts as hung
    #[arg(long, value_name = "DURATION", help_heading = "Timeouts", default_value = "60s", value_parser = values::duration)]
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
  tapstone card                                           what any card answers
  tapstone card --suite piv --pin-file pin                a PIV card, signatures verified
  tapstone card --suite bench --allow-writes --output run.json
  tapstone compare run.json reference:jcop-cards          beside the published cards
  tapstone card --suite my.toml --op card.my.read --rounds 100

Exit codes: 0 done, 2 could not measure.";
