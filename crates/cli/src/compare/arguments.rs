//! The options of `tapstone compare`, as typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tapstone_measure::compare::Percent;

/// Compare two records, or a record with published figures.
///
/// Operations are matched by name, message size, concurrency and loop. Each pair gives the
/// candidate's figure over the baseline's with a 95 % interval, and a verdict from that interval:
/// faster, slower or inconclusive. The first record is the baseline; a reference always is.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A record, or reference:NAME; a reference alone is shown with its source's conclusions
    #[arg(value_name = "RECORD|reference:NAME")]
    pub(crate) first: String,
    /// A record, or reference:NAME
    #[arg(value_name = "RECORD|reference:NAME")]
    pub(crate) second: Option<String>,
    /// Fail when the candidate is surely slower by more than this part of the baseline: 5%
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub(crate) fail_above: Option<Percent>,
    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Also write the comparison as a record to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tapstone compare old.json new.json
  tapstone compare old.json new.json --fail-above 5%
  tapstone compare card.json reference:jcop-cards
  tapstone compare reference:jcop-cards

Exit codes: 0 done, also when a threshold is undecided; 1 a threshold was surely exceeded; 2 could
not compare.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Text,
    /// The comparison as a record
    Json,
    /// A line an operation
    Csv,
}
