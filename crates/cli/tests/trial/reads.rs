//! Attributes that are read again: what keeping them brings, and that nothing else changes.

use std::process::Command;

use tapstone_record::{Behaviour, Change};
use tapstone_testing::hold;

use crate::softhsm::Hsm;
use crate::support::undisturbed;
use crate::{fixtures, run, trial, turn};

/// The client signs 100 times, and reads three attributes of its key twenty times before each.
#[test]
fn attributes_that_are_kept_bring_what_was_predicted() {
    let _turn = turn();
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let module = hsm.module().display().to_string();
    let configuration = hsm.path("softhsm2.conf").display().to_string();
    let variables = [("SOFTHSM2_CONF", configuration.as_str())];
    let prepare = Command::new(&searcher)
        .args([&module, "1", "--prepare"])
        .env("SOFTHSM2_CONF", &configuration)
        .status();
    assert!(prepare.unwrap().success());
    let client = searcher.to_str().unwrap();
    let command = [client, &module, "100", "--prepared", "--keep", "--read", "20"];
    let tried = || trial("cache-attributes", "--rounds 20", &variables, &command);
    undisturbed(0.0, 1.0, tried, |trial| {
        hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
        let saved = trial.before_ns.estimate - trial.after_ns.estimate;
        let predicted = trial.predicted.unwrap();
        hold(saved > 0.0 && saved <= predicted.high, format_args!("saved {saved}: {trial:?}"))
    });
}

/// A label that changes, lengths, too little room, and a value that is refused: all is as without
/// the fix.
#[test]
fn what_is_read_after_a_change_comes_from_the_token() {
    let _turn = turn();
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let module = hsm.module().display().to_string();
    let configuration = hsm.path("softhsm2.conf").display().to_string();
    let variables = [("SOFTHSM2_CONF", configuration.as_str())];
    let command = [searcher.to_str().unwrap(), &module, "20", "--keep", "--relabel"];
    let options = "--fix cache-attributes --rounds 3 --allow-writes";
    let outcome = run("trial", options, &variables, &command).exits(0);
    let trial = &crate::record(&outcome).trials[0];
    assert_eq!(trial.behaviour, Behaviour::Same, "{trial:?}");
    // Two of three reads of the label, and of its length, in each of 20 steps and three rounds.
    assert_eq!(trial.changed, Some(2 * 2 * 20 * 3), "{trial:?}");
}
