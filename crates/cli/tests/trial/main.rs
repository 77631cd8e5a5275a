//! `tapstone trial` on real programs: waste that is found, the fix that is tried, and the gain that
//! is measured beside the one that was predicted.
//!
//! Without a C compiler, pcscd or its virtual readers the tests that need them skip, and say so.
#![allow(clippy::unwrap_used, reason = "tests; clippy.toml reaches only functions marked as such")]

mod cards;
#[path = "../fixtures/mod.rs"]
#[allow(dead_code, reason = "each of these programs needs a part of it")]
mod fixtures;
mod guards;
mod keeps;
mod programs;
mod reads;
#[path = "../run/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod run;
mod searcher;
mod searches;
#[path = "../softhsm/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod softhsm;
#[path = "../card/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of these programs needs a part of it")]
mod support;
mod twins;

use std::sync::{Mutex, MutexGuard, PoisonError};

use support::{Outcome, Tapstone};
use tapstone_record::{Behaviour, Change, Finding, Record, Trial};
use tapstone_testing::{Held, hold};

/// One at a time: what is measured is not to meet another.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `tapstone VERB OPTIONS --output record.json -- COMMAND`.
fn run(verb: &str, options: &str, variables: &[(&str, &str)], command: &[&str]) -> Outcome {
    let mut run =
        Tapstone::new(verb).args(options).args("--output record.json --").without_record();
    for (name, value) in variables {
        run = run.env(name, value);
    }
    for word in command {
        run = run.arg(word);
    }
    run.run()
}

#[track_caller]
fn record(outcome: &Outcome) -> Record {
    Record::read(outcome.record_path()).unwrap()
}

/// The only trial of a run that ended well.
#[track_caller]
fn trial(fix: &str, options: &str, variables: &[(&str, &str)], command: &[&str]) -> Trial {
    let options = format!("--fix {fix} {options}");
    let outcome = run("trial", &options, variables, command).exits(0);
    let mut trials = record(&outcome).trials;
    assert_eq!(trials.len(), 1);
    let trial = trials.remove(0);
    assert_eq!(trial.behaviour, Behaviour::Same, "{:?}", trial.differences);
    println!("{trial:?}");
    trial
}

/// The finding that names this fix.
#[track_caller]
fn finding(findings: &[Finding], fix: &str) -> Finding {
    let found = findings.iter().find(|finding| finding.trial.as_deref() == Some(fix));
    found.unwrap_or_else(|| panic!("no {fix} in {findings:#?}")).clone()
}

/// What a trial saved in each run, in nanoseconds.
fn saved(trial: &Trial) -> f64 {
    trial.before_ns.estimate - trial.after_ns.estimate
}

/// Of what is predicted, a fix saves at most so much more or less.
const PREDICTED: f64 = 0.15;

/// It is faster, and saved what its untouched rounds predicted.
fn as_predicted(trial: &Trial) -> Held {
    hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
    let predicted = trial.predicted.unwrap();
    let ratio = saved(trial) / f64::midpoint(predicted.low, predicted.high);
    let within = (ratio - 1.0).abs() < PREDICTED;
    hold(within, format_args!("saved {ratio} times what was predicted: {trial:?}"))
}
