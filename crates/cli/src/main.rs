//! The command `tapstone`: one file per verb, each of them thin.
//!
//! Data goes to standard output, everything else to standard error. The exit code is 0 when it is
//! done, 1 when a claim, a budget or a threshold was missed, 2 when something could not be measured.
#![forbid(unsafe_code)]

mod ab;
mod card;
mod card_lab;
mod compare;
mod environment;
mod exit;
mod import;
mod interrupt;
mod machine_load;
mod output;
mod pcsc;
mod progress;
mod samples;
mod targets;
mod token;
mod trace;
mod trial;
mod values;
mod vcard;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// A performance laboratory for hardware-backed cryptography.
#[derive(Debug, Parser)]
#[command(name = "tapstone", version, max_term_width = 100, disable_help_subcommand = true)]
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
    /// Be a smart card in a virtual reader of pcscd
    Vcard(vcard::Arguments),
    /// Measure what a smart card costs, command by command
    Card(Box<card::Arguments>),
    /// Measure the calls of PC/SC, one by one
    Pcsc(pcsc::Arguments),
    /// A process that talks to PC/SC for the lab; not for people
    #[command(hide = true)]
    CardWorker,
    /// Run a program and say where its time goes
    Trace(trace::Arguments),
    /// Try a fix on the unmodified program, and measure what it brings
    Trial(trial::Arguments),
    /// Compare two whole commands, run in turns
    Ab(ab::Arguments),
    /// Compare two records, or a record with published figures
    Compare(compare::Arguments),
    /// Make a record of the result file of another program
    Import(import::Arguments),
    /// A process that loads a module for the lab; not for people
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Targets(arguments) => targets::run(&arguments),
        Verb::Token(arguments) => token::run(*arguments),
        Verb::Vcard(arguments) => vcard::run(&arguments),
        Verb::Card(arguments) => card::run(&arguments),
        Verb::Pcsc(arguments) => pcsc::run(&arguments),
        Verb::CardWorker => tapstone_card::worker::serve().map(|()| Exit::Done).map_err(Into::into),
        Verb::Trace(arguments) => trace::run(&arguments),
        Verb::Trial(arguments) => trial::run(&arguments),
        Verb::Ab(arguments) => ab::run(&arguments),
        Verb::Compare(arguments) => compare::run(&arguments),
        Verb::Import(arguments) => import::run(&arguments),
        Verb::Worker => tapstone_token::worker::serve().map(|()| Exit::Done).map_err(Into::into),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("error: {error:#}");
            Exit::NotMeasured.into()
        }
    }
}
