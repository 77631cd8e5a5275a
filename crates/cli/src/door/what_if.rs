//! `tapstone door what-if`: which changes reach a target.

use clap::Args;
use tapstone_door::{WhatIfQuestion, what_if};
use tapstone_measure::units::Nanos;

use super::scenario::{OpenedScenario, ScenarioArguments};
use crate::exit::Exit;
use crate::output::OutputArguments;
use crate::values;

/// Say which changes reach a target, the cheapest first.
///
/// Changes are tried alone and in all sets that go together: another algorithm, a faster card, the
/// bit rate, other links, authentication in the controller, known cards, validation beforehand,
/// signing and validating at the same time, and the card's self-check. A set is listed when it
/// reaches the target and would not without any one of its changes. Each change says what must hold
/// for it to be secure, or possible at all. Effort is counted in points: a setting is 1, software
/// 2, wiring 4, cards for everybody 8; a scenario can say otherwise.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// What a transaction may take, in the place of the scenario's target: 1500ms, 1.5s
    #[arg(long, value_parser = values::duration, value_name = "DURATION")]
    target_time: Option<Nanos>,
    /// A change that cannot be made, by name or kind; may be given several times
    #[arg(long, value_name = "CHANGE")]
    without: Vec<String>,
    /// How many sets are shown
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    sets: u16,
    /// The seed of the draws from distributions
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone door what-if hid-rsa2048
  tapstone door what-if hid-rsa2048 --target-time 2s --without algorithm --without faster-card
  tapstone door what-if osdp-ip-rsa2048 --target-time 1s --format json

Exit codes: 0 a set of changes reaches the target, 1 none does, 2 the scenario cannot be used.";

pub(crate) fn run_door_what_if(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let opened = arguments.scenario.open()?;
    let OpenedScenario { scenario, name, .. } = &opened;
    let question = WhatIfQuestion {
        target: arguments.target_time,
        without: arguments.without.clone(),
        sets: arguments.sets.into(),
        seed: arguments.seed,
    };
    let (answer, notes) = what_if(scenario, name, &question)?;
    let found = answer.sets_found > 0;
    let mut record = opened.record();
    record.what_if = Some(answer);
    record.warnings = notes;
    arguments.output.put(&record)?;
    Ok(if found { Exit::Done } else { Exit::Missed })
}
