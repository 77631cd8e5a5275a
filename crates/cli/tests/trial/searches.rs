//! A search that is made again: what keeping its answer brings, beside what was predicted.

use std::process::Command;

use tapstone_record::{Behaviour, Change};
use tapstone_testing::hold;

use crate::softhsm::Hsm;
use crate::support::undisturbed;
use crate::{fixtures, run, trial, turn};

/// The client signs 200 times, and searches its key before each.
#[test]
fn a_search_that_is_kept_brings_what_was_predicted() {
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
    let command = [searcher.to_str().unwrap(), &module, "200", "--prepared"];
    let tried = || trial("cache-find", "--rounds 20", &variables, &command);
    undisturbed(0.0, 1.0, tried, |trial| {
        hold(trial.verdict == Change::Faster, format_args!("{trial:?}"))?;
        let predicted = trial.predicted.unwrap();
        let saved = trial.before_ns.estimate - trial.after_ns.estimate;
        let is_held = (predicted.low..=predicted.high).contains(&saved);
        hold(is_held, format_args!("saved {saved}: {trial:?}"))
    });
}

/// Objects are made and destroyed between searches: nothing is kept, and nothing is different.
#[test]
fn a_search_after_a_change_goes_to_the_token() {
    let _turn = turn();
    let Some((searcher, hsm)) = fixtures::built("searcher").zip(Hsm::new()) else { return };
    let module = hsm.module().display().to_string();
    let configuration = hsm.path("softhsm2.conf").display().to_string();
    let variables = [("SOFTHSM2_CONF", configuration.as_str())];
    let command = [searcher.to_str().unwrap(), &module, "20", "--change"];
    let outcome =
        run("trial", "--fix cache-find --rounds 3 --allow-writes", &variables, &command).exits(0);
    let trial = &crate::record(&outcome).trials[0];
    assert_eq!(trial.behaviour, Behaviour::Same, "{trial:?}");
    assert_eq!(trial.changed, Some(0), "{trial:?}");
}
