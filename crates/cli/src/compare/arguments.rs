//! The options of `tapstone compare`, as typed.

use std::path::PathBuf;

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
    /// More records: all of them side by side, each with its excess over the fastest
    #[arg(value_name = "RECORD", conflicts_with_all = ["fail_above", "item"])]
    pub(crate) more: Vec<String>,
    /// Compare with the record in this folder that is of the same work on the same device
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["second", "item"])]
    pub(crate) baseline: Option<PathBuf>,
    /// Keep the record in that folder, as the baseline of later runs; the first one starts so
    #[arg(long, requires = "baseline", conflicts_with = "second")]
    pub(crate) update: bool,
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
  tapstone compare card1.json card2.json card3.json
  tapstone compare new.json --baseline baselines --fail-above 5%
  tapstone compare new.json --baseline baselines --update

Exit codes: 0 done, also when a threshold is undecided; 1 a threshold was surely exceeded; 2 could
not compare.";
