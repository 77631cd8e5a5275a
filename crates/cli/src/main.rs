//! The command `tapstone`: one file per verb, each of them thin.
//!
//! Data goes to standard output, everything else to standard error. The exit code is 0 when it is
//! done, 1 when a claim, a budget or a threshold was missed, 2 when something could not be measured.
#![forbid(unsafe_code)]

mod environment;
mod exit;
mod interrupt;
mod machine_load;
mod output;
mod progress;
mod samples;
mod targets;
mod token;
mod values;

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
    /// A process that loads a module for the lab; not for people
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        Verb::Targets(arguments) => targets::run(&arguments),
        Verb::Token(arguments) => token::run(*arguments),
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
