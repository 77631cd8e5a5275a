//! Modules that crash, hang, fail and lie: what was measured before stays, and is told apart.

use tapstone_record::{CaseResult, Outcome as Ended, StoppedBy};
use tapstone_testing::{Held, hold, undisturbed};

use crate::support::{Outcome, Tapstone};

fn sign(variables: &[(&str, &str)]) -> Tapstone {
    Tapstone::on(variables).args("--op rsa1024.sign --no-verify")
}

/// A case that says at which call it ended, and how.
fn ended_at(row: &CaseResult, outcome: Ended, step: &str, code: &str) {
    let status = &row.status;
    assert_eq!(
        (status.outcome, status.step.as_deref(), status.code.as_deref()),
        (outcome, Some(step), Some(code))
    );
}

/// One error, which names the call and ends with advice.
fn told(outcome: &Outcome, words: &str) {
    assert_eq!(outcome.stderr.matches("error: ").count(), 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
}

#[test]
fn a_crash_in_c_initialize_ends_the_run() {
    let outcome = sign(&[("CRASH", "C_Initialize")]).run().exits(2);
    told(&outcome, "(SIGSEGV) during C_Initialize");
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_crash_while_a_key_is_made_is_a_row_that_failed() {
    let outcome = sign(&[("CRASH", "C_GenerateKeyPair")]).args("--seconds 1").run().exits(2);
    ended_at(&outcome.row(), Ended::Failed, "C_GenerateKeyPair", "crashed");
    told(&outcome, "(SIGSEGV) during C_GenerateKeyPair");
}

#[test]
fn a_crash_in_the_warm_up_is_a_row_that_failed() {
    let model = [("SERVICE", "1ms"), ("CRASH", "C_SignInit/10")];
    let outcome = sign(&model).args("--seconds 1").run().exits(2);
    ended_at(&outcome.row(), Ended::Failed, "C_SignInit", "crashed");
    told(&outcome, "(SIGSEGV) during C_SignInit");
}

#[test]
fn a_crash_in_the_window_keeps_what_was_measured() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("CRASH", "C_Sign/1000")];
    let measure = || sign(&model).args("--seconds 20").quietly().run().exits(2);
    undisturbed(0.0, RATE, measure, |outcome| kept(outcome, "crashed", "(SIGSEGV) during C_Sign"));
}

#[test]
fn a_hang_in_the_window_keeps_what_was_measured() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("HANG", "C_Sign/1000")];
    let measure = || sign(&model).args("--seconds 20 --timeout 2s").quietly().run().exits(2);
    let says = "no answer within 2s during C_Sign";
    undisturbed(0.0, RATE, measure, |outcome| kept(outcome, "timeout", says));
}

/// Of 1,000 a second a timer's slack and a busy machine may take so much.
const RATE: f64 = 0.4;

/// Some 900 of the 1,000 operations of a millisecond fell into the window; the last slice of it
/// was lost with the process.
fn kept(outcome: &Outcome, code: &str, says: &str) -> Held {
    let row = outcome.row();
    ended_at(&row, Ended::Partial, "C_Sign", code);
    assert_eq!(row.stopped_by, Some(StoppedBy::Failures));
    told(outcome, says);
    hold((400..1000).contains(&row.completed), format_args!("{} of some 900", row.completed))?;
    // The mean service is 1 ms and the timer's slack: the rate is not thinned by what was lost.
    let rate = row.throughput.unwrap().estimate;
    hold((600.0..1000.0).contains(&rate), format_args!("{rate}/s"))
}

#[test]
fn a_hang_in_c_initialize_ends_the_run() {
    let outcome = sign(&[("HANG", "C_Initialize")]).args("--timeout 1s").run().exits(2);
    told(&outcome, "no answer within 1s during C_Initialize");
}

#[test]
fn one_hanging_thread_of_four_ends_the_row() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("HANG", "C_Sign/2000")];
    let outcome = sign(&model).args("--threads 4 --seconds 20 --timeout 1s").run().exits(2);
    let row = outcome.row();
    ended_at(&row, Ended::Partial, "C_Sign", "timeout");
    assert!(row.completed > 1000, "{}", row.completed);
}

#[test]
fn a_worker_gives_up_after_so_many_failures() {
    let model = [("SERVICE", "1ms"), ("WAIT", "sleep"), ("FAIL_AFTER", "CKR_DEVICE_ERROR/500")];
    let outcome = sign(&model).args("--seconds 20 --max-failures 20").run().exits(2);
    let row = outcome.row();
    ended_at(&row, Ended::Partial, "C_Sign", "CKR_DEVICE_ERROR");
    assert_eq!(row.stopped_by, Some(StoppedBy::Failures));
    assert_eq!(row.failed, [("CKR_DEVICE_ERROR".to_owned(), 20)].into());
    assert!((300..500).contains(&row.completed), "{}", row.completed);
}

#[test]
fn a_success_starts_the_count_of_failures_again() {
    let model = [("SERVICE", "100us"), ("FAIL", "CKR_DEVICE_ERROR/2")];
    let outcome = sign(&model).args("--count 100 --max-failures 2").run().exits(2);
    let row = outcome.row();
    ended_at(&row, Ended::Partial, "C_Sign", "CKR_DEVICE_ERROR");
    assert_eq!(row.stopped_by, Some(StoppedBy::Count));
    assert_eq!(row.failed, [("CKR_DEVICE_ERROR".to_owned(), 50)].into());
}

#[test]
fn an_operation_that_never_works_is_a_row_without_figures() {
    let model = [("FAIL_AFTER", "CKR_FUNCTION_FAILED/1")];
    let row = sign(&model).args("--seconds 1").run().exits(2).row();
    assert_ne!(row.status.outcome, Ended::Ok);
    assert_eq!(row.status.step.as_deref(), Some("C_Sign"));
    assert_eq!(row.status.code.as_deref(), Some("CKR_FUNCTION_FAILED"));
    assert_eq!((row.completed, row.throughput), (0, None));
}

#[test]
fn wrong_results_are_found_and_fail_the_run() {
    let model = [("MODEL", "honest"), ("WRONG", "3")];
    let run = Tapstone::on(&model).args("--op rsa1024.sign --count 30");
    let row = run.run().exits(2).row();
    let verification = row.verification.unwrap();
    // Of 30 in a row, whichever comes first.
    assert_eq!((verification.eligible, verification.checked, verification.wrong), (30, 30, 10));
    assert!(row.warnings.iter().any(|text| text.contains("10 of 30 checked results were wrong")));
}

#[test]
fn the_rows_after_a_crash_are_measured() {
    let run = Tapstone::on(&[("CRASH", "C_Sign/200"), ("SERVICE", "1ms")]);
    let suite = run.path("suite.toml");
    let rows = ["rsa1024.sign", "sha256.digest", "random"]
        .map(|name| format!("[[case]]\noperation = \"{name}\"\n"));
    std::fs::write(&suite, format!("name = \"three\"\n{}", rows.concat())).unwrap();
    // Until so many are done: after half a second a busy machine may not have come to the crash.
    let outcome = run.args("--no-verify --count 400 --suite").arg(suite).run().exits(2);
    let results = outcome.record().results;
    let outcomes: Vec<_> =
        results.iter().map(|row| (row.operation.as_str(), row.status.outcome)).collect();
    // Whether the window was open when it crashed is up to the machine.
    ended_at(&results[0], results[0].status.outcome, "C_Sign", "crashed");
    assert_ne!(results[0].status.outcome, Ended::Ok);
    assert_eq!(outcomes[1..], [("sha256.digest", Ended::Ok), ("random", Ended::Ok)]);
    assert!(results[1..].iter().all(|row| row.completed > 0 && row.throughput.is_some()));
}
