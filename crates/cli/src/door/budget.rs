//! `tapstone door budget`: split the path of an authentication into its parts.

use clap::Args;
use tapstone_door::budget;
use tapstone_measure::units::Nanos;
use tapstone_record::Verdict;

use super::scenario::{OpenedScenario, ScenarioArguments};
use crate::exit::Exit;
use crate::output::OutputArguments;
use crate::print::out;
use crate::values;

/// Split the path of an authentication into its parts, against a target.
///
/// Each part is transfer or processing, with its share and where its time is from: published,
/// derived from a formula, assumed, or measured. Where times are distributions, the probability of
/// meeting the target is shown too. A card's self-check, which sums of a path leave out, is shown
/// apart, and counts against the target.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// What a transaction may take, in the place of the scenario's target: 1500ms, 1.5s
    #[arg(long, value_parser = values::duration, value_name = "DURATION")]
    target_time: Option<Nanos>,
    /// The seed of the draws from distributions
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print the TOML of a shipped scenario instead, to start one of your own
    #[arg(long)]
    show: bool,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone door budget hid-rsa2048
  tapstone door budget osdp-ip-p256 --target-time 1200ms --format json
  tapstone door budget hid-rsa2048 --show > my-door.toml
  tapstone door budget my-door.toml --card run.json

Exit codes: 0 the target is met, 1 it is missed, 2 the scenario or the record cannot be used.";

pub(crate) fn run_door_budget(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.show {
        out!("{}", arguments.scenario.text()?);
        return Ok(Exit::Done);
    }
    arguments.output.check()?;
    let mut opened = arguments.scenario.open()?;
    if let Some(target) = arguments.target_time {
        opened.scenario.target = target.into();
    }
    let OpenedScenario { scenario, name, .. } = &opened;
    let mut record = opened.record();
    let budget = budget(scenario, name, arguments.seed);
    let missed = budget.verdict == Some(Verdict::Missed);
    record.budget = Some(budget);
    record.warnings.clone_from(&scenario.notes);
    arguments.output.put(&record)?;
    Ok(if missed { Exit::Missed } else { Exit::Done })
}
