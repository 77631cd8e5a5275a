//! `tapstone door`: PIV authentication at a door.

mod budget;
mod measure;
mod scenario;
mod simulate;
mod what_if;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::interrupt;

/// Measure and model PIV authentication at a door.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Authenticate a real card as a door does, in several ways, and say where the time goes
    Measure(Box<measure::Arguments>),
    /// A process that talks to the card for the controller; not for people
    #[command(hide = true)]
    Worker,
    Budget(Box<budget::Arguments>),
    WhatIf(Box<what_if::Arguments>),
    Simulate(Box<simulate::Arguments>),
}

pub(crate) fn run_door(arguments: &Arguments) -> anyhow::Result<Exit> {
    if !matches!(arguments.verb, Verb::Measure(_) | Verb::Worker) {
        interrupt::finish_files_first()?;
    }
    match &arguments.verb {
        Verb::Measure(arguments) => measure::run_door_measure(arguments),
        Verb::Worker => Ok(tapstone_door_measure::serve().map(|()| Exit::Done)?),
        Verb::Budget(arguments) => budget::run_door_budget(arguments),
        Verb::WhatIf(arguments) => what_if::run_door_what_if(arguments),
        Verb::Simulate(arguments) => simulate::run_door_simulate(arguments),
    }
}
