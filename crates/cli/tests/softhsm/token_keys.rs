//! `--token-keys`: keys on the token while they are used, and gone after whatever happens.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use tapstone_record::{Outcome, StoppedBy};

use crate::support::{Hsm, Running, assert_all_verified, eventually};

/// How long a run may take to make its keys.
const KEYS: Duration = Duration::from_secs(60);

#[test]
fn they_are_on_the_token_during_the_run_and_gone_after_it() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--token-keys --op rsa2048.sign --seconds 5").start();
    wait_until_it_measures(&hsm);
    let during = leftovers(&hsm);
    let outcome = run.wait().exits(0);
    assert!(hsm.objects().is_empty());

    let classes: Vec<&str> = during.keys().map(String::as_str).collect();
    assert_eq!(classes, ["CKO_PRIVATE_KEY", "CKO_PUBLIC_KEY"]);
    assert!(during.values().all(|label| label.starts_with("tapstone-")), "{during:?}");
    let row = outcome.row();
    let key = row.key.clone().unwrap();
    assert_eq!((key.token, key.count), (Some(true), 1));
    assert_eq!(leftovers(&hsm), BTreeMap::new());
}

#[test]
fn session_keys_never_reach_the_token() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--op rsa2048.sign --count 500").start();
    let reached = eventually(Duration::from_secs(1), || !hsm.objects().is_empty());
    let row = run.wait().exits(0).row();
    assert!(!reached);
    assert_eq!(row.key.as_ref().unwrap().token, Some(false));
    assert_all_verified(&row);
}

#[test]
fn every_key_of_every_process_is_removed() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--token-keys --op aes256-gcm.encrypt --op ecdsa-p256.sign");
    let run = run.args("--keys 3 --processes 2 --count 40").run().exits(0);
    for row in run.record().results {
        let key = row.key.as_ref().unwrap();
        assert_eq!((key.token, key.count), (Some(true), 6), "{}", row.operation);
        assert_all_verified(&row);
    }
    assert!(hsm.objects().is_empty());
}

#[test]
fn they_are_gone_after_an_operation_that_the_token_refuses() {
    let Some(hsm) = Hsm::new() else { return };
    let run = hsm.tapstone().args("--token-keys --op rsa2048.decrypt.oaep-sha256 --count 4");
    let row = run.run().exits(2).row();
    assert_eq!(row.status.outcome, Outcome::Unsupported);
    assert_eq!(row.status.step.as_deref(), Some("C_DecryptInit"));
    assert!(hsm.objects().is_empty());
}

#[test]
fn they_are_gone_after_an_interrupt_and_what_was_measured_is_kept() {
    let Some(hsm) = Hsm::new() else { return };
    for signal in [Signal::INT, Signal::TERM] {
        let run = start_long_run(&hsm);
        run.signal(signal);
        let outcome = run.wait().exits(2);
        assert!(hsm.objects().is_empty(), "{signal:?}");

        let record = outcome.record();
        let row = outcome.row();
        assert_eq!(row.status.outcome, Outcome::Ok);
        assert_eq!(row.stopped_by, Some(StoppedBy::Interrupted));
        assert!(row.window.unwrap().seconds.0 < 60.0, "of an hour: {:?}", row.window);
        let verification = row.verification.unwrap();
        assert_eq!((verification.eligible, verification.wrong), (row.completed, 0));
        assert!(row.completed > 0 && verification.checked > 0, "{verification:?}");
        let said = record.warnings.iter().any(|warning| warning.contains("interrupted"));
        assert!(said, "{:?}", record.warnings);
    }
}

/// Operations that end after the window are not in it: time in calls fits into the window.
#[test]
fn an_interrupted_window_holds_only_what_ended_in_it() {
    let Some(hsm) = Hsm::new() else { return };
    let run = start_long_run(&hsm);
    run.signal(Signal::INT);
    let row = run.wait().exits(2).row();
    let busy = row.busy_share.unwrap().0;
    assert!(busy <= 1.005, "{busy} of the window in calls");
}

/// For an hour, so that slices of the window are as long as they get: half a second.
fn start_long_run(hsm: &Hsm) -> Running {
    let run = hsm.tapstone().args("--token-keys --op rsa2048.sign --duration 1h").start();
    wait_until_it_measures(hsm);
    run
}

fn wait_until_it_measures(hsm: &Hsm) {
    assert!(eventually(KEYS, || hsm.objects().len() == 2), "a key pair is on the token");
    // Inputs, trial, warm-up and notices take a tenth of a second together, on an idle machine.
    std::thread::sleep(Duration::from_secs(2));
}

/// What another `tapstone` finds on the token: label by class.
fn leftovers(hsm: &Hsm) -> BTreeMap<String, String> {
    let found = hsm.tapstone().args("--leftovers --format json").without_record().run().exits(0);
    let found: Vec<serde_json::Value> = serde_json::from_str(&found.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    found.iter().map(|key| (text(&key["class"]), text(&key["label"]))).collect()
}
