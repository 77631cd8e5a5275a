//! The command `tapstone`: one file per verb, each of them thin.
//!
//! Data goes to standard output, everything else to standard error. The exit code is 0 when it is
//! done, 1 when a claim, a budget or a threshold was missed, 2 when something could not be measured.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ab;
mod agent;
mod card;
mod card_controller;
mod command_line;
mod compare;
mod completions;
mod demo;
#[cfg(test)]
mod documented;
mod door;
mod environment;
mod exit;
mod failure;
mod help;
mod hosts;
mod import;
mod interrupt;
mod live;
mod machine_load;
mod manual;
mod nats;
mod output;
mod pcsc;
mod print;
mod progress;
mod removed_options;
mod report;
mod running_pcscd;
mod samples;
mod targets;
mod token;
mod trace;
mod trial;
mod values;
mod vcard;
mod version;
mod workload;

use std::env;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::print::{out, say};

/// A performance laboratory for hardware-backed cryptography.
#[derive(Debug, Parser)]
#[command(name = "tapstone", version, long_version = version::BUILD_FACTS)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List PKCS#11 modules, their tokens and what those offer
    Targets(targets::Arguments),
    /// Measure how fast a PKCS#11 token or HSM is
    Token(Box<token::Arguments>),
    /// Offer this machine's targets to a load from many machines
    Agent(agent::Arguments),
    /// List the agents that are there
    Hosts(hosts::Arguments),
    /// Be a smart card in a virtual reader of pcscd
    Vcard(vcard::Arguments),
    /// Measure what a smart card costs, command by command
    Card(Box<card::Arguments>),
    /// Measure the calls of PC/SC, one by one
    Pcsc(pcsc::Arguments),
    /// A process that talks to PC/SC for the controller; not for people
    #[command(hide = true)]
    CardWorker,
    /// Measure and model PIV authentication at a door
    Door(door::Arguments),
    /// Run a program and say where its time goes
    Trace(trace::Arguments),
    /// Try a fix on the unmodified program, and measure what it brings
    Trial(trial::Arguments),
    /// Compare two whole commands, run interleaved
    Ab(ab::Arguments),
    /// Compare two records, or a record with published figures
    Compare(compare::Arguments),
    /// Show records: as one page for a browser, or on the terminal
    Report(report::Arguments),
    /// Show everything on a software token and a virtual card, and make one page of it
    Demo(demo::Arguments),
    /// Make a record of the result file of another program
    Import(import::Arguments),
    /// Print completions of verbs and options for a shell
    Completions(completions::Arguments),
    /// Write the manual pages for a package; not for people
    #[command(hide = true)]
    Manual(manual::Arguments),
    /// A process that loads a module for the controller; not for people
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    if tapstone_files::standard_output_was_closed() {
        return print::without_output();
    }
    if let Err(error) = interrupt::survive_file_limits() {
        say!("error: signals cannot be handled: {error}");
        return Exit::NotMeasured.into();
    }
    let arguments = match typed_arguments() {
        Ok(arguments) => arguments,
        Err(error) => return tell(&error),
    };
    let outcome = match arguments.verb {
        Verb::Targets(arguments) => targets::run_targets(&arguments),
        Verb::Token(arguments) => token::run_token(*arguments),
        Verb::Agent(arguments) => agent::run_agent(&arguments),
        Verb::Hosts(arguments) => hosts::run_hosts(&arguments),
        Verb::Vcard(arguments) => vcard::run_vcard(&arguments),
        Verb::Card(arguments) => card::run_card(&arguments),
        Verb::Pcsc(arguments) => pcsc::run_pcsc(&arguments),
        Verb::CardWorker => tapstone_card::worker::serve().map(|()| Exit::Done).map_err(Into::into),
        Verb::Door(arguments) => door::run_door(&arguments),
        Verb::Trace(arguments) => trace::run_trace(&arguments),
        Verb::Trial(arguments) => trial::run_trial(&arguments),
        Verb::Ab(arguments) => ab::run_ab(&arguments),
        Verb::Compare(arguments) => compare::run_compare(&arguments),
        Verb::Report(arguments) => report::run_report(&arguments),
        Verb::Demo(arguments) => demo::run_demo(&arguments),
        Verb::Import(arguments) => import::run_import(&arguments),
        Verb::Completions(arguments) => {
            completions::run_completions(&arguments, Arguments::command())
        }
        Verb::Manual(arguments) => {
            manual::write_manual(&arguments, help::arranged(Arguments::command()))
        }
        Verb::Worker => tapstone_token::worker::serve().map(|()| Exit::Done).map_err(Into::into),
    };
    let exit = outcome.unwrap_or_else(|error| {
        say!("error: {}", Failure(&error));
        Exit::NotMeasured
    });
    print::exit_code(exit)
}

/// What the user typed, by the definitions as the help arranges them.
fn typed_arguments() -> Result<Arguments, clap::Error> {
    let definitions = || help::arranged(Arguments::command());
    let typed = definitions().try_get_matches().map_err(|error| {
        let definitions = definitions();
        let error = help::with_suggestion(error, &definitions, env::args_os());
        let error = help::without_hidden_verbs(error, &definitions);
        removed_options::with_successor(error, env::args_os().skip(1))
    })?;
    Arguments::from_arg_matches(&typed)
}

/// Help, the version, or what is wrong with the arguments.
fn tell(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let colours = match error.use_stderr() {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let text = if colours { text.ansi().to_string() } else { text.to_string() };
    match error.use_stderr() {
        true => print::to_error(format_args!("{text}")),
        false => out!("{text}"),
    }
    print::exit_code(if error.exit_code() == 0 { Exit::Done } else { Exit::NotMeasured })
}
