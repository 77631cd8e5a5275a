//! `tapstone door simulate`: the queue at the door.

use clap::Args;
use tapstone_door::{Crowd, simulate};

use super::scenario::{OpenedScenario, ScenarioArguments};
use crate::exit::Exit;
use crate::output::OutputArguments;

/// Let people come to a door, and say how long they wait.
///
/// They come at random (a Poisson process), wait for their turn, hold their card, take it away too
/// early or have to try again, pass or give up. What they do is in the scenario, under `people`;
/// without that, it is assumed. The same seed gives the same day. The mean wait is shown beside
/// what queueing theory says of it (M/D/1, M/G/1).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// How many people come: 500/h, 8/min
    #[arg(long, value_parser = arrivals, value_name = "RATE", allow_hyphen_values = true)]
    people: f64,
    /// How many people are simulated
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    count: u64,
    /// The seed
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArguments,
}

const EXAMPLES: &str = "\
Examples:
  tapstone door simulate hid-rsa2048 --people 500/h
  tapstone door simulate osdp-ip-p256 --people 12/min --count 1000000 --seed 7
  tapstone door simulate my-door.toml --card run.json --people 500/h --format json

Exit codes: 0 done, 1 as many people come as can pass, or more, 2 the scenario cannot be used.";

/// Parses a rate of people, `500/h` or `8/min`, as people per hour.
fn arrivals(text: &str) -> Result<f64, String> {
    let wrong = || "write a rate of people: 500/h or 8/min".to_owned();
    let (number, unit) = text.split_once('/').unwrap_or((text, "h"));
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let per_hour = match unit.trim() {
        "h" | "hour" => number,
        "min" | "minute" => number * 60.0,
        "s" => number * 3600.0,
        _ => return Err(wrong()),
    };
    let fits = per_hour.is_finite() && per_hour > 0.0 && per_hour <= 1e6;
    fits.then_some(per_hour).ok_or_else(|| "must be more than 0 and at most 1,000,000/h".into())
}

pub(crate) fn run_door_simulate(arguments: &Arguments) -> anyhow::Result<Exit> {
    arguments.output.check()?;
    let crowd = Crowd::new(arguments.count, arguments.people, arguments.seed)?;
    let opened = arguments.scenario.open()?;
    let OpenedScenario { scenario, name, .. } = &opened;
    let queue = simulate(scenario, name, &crowd);
    let overloaded = queue.overloaded;
    let mut record = opened.record();
    record.queue = Some(queue);
    record.warnings.clone_from(&scenario.notes);
    arguments.output.put(&record)?;
    Ok(if overloaded { Exit::Missed } else { Exit::Done })
}
