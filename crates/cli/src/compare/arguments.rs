//! The options of `tapstone compare`, as typed.

use clap::Args;
use tapstone_measure::compare::Percent;

use crate::output::OutputArguments;

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
    /// Only the items of a reference (cards, devices, versions) whose name holds this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) item: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone compare old.json new.json
  tapstone compare old.json new.json --fail-above 5%
  tapstone compare card.json reference:jcop-cards
  tapstone compare card.json reference:jcop-cards --item JCOP31 --fail-above 5%
  tapstone compare reference:jcop-cards

Exit codes: 0 done, also when a threshold is undecided; 1 a threshold was surely exceeded; 2 could
not compare.";
