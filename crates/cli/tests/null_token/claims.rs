//! Promises held against figures, and what the exit code says of them.

use tapstone_record::{Claim, Verdict};
use tapstone_testing::{hold, undisturbed};

use crate::support::{Outcome, Tapstone};

fn measure(claim: &str) -> Outcome {
    let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]);
    run.args("--no-verify --threads 1 --seconds 0.4 --claim").arg(claim).quietly().run()
}

fn only_claim(outcome: &Outcome) -> Claim {
    let mut claims = outcome.record().claims;
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

#[test]
fn a_claim_that_is_met_is_done() {
    let within = |outcome: &Outcome| {
        let claim = only_claim(outcome);
        hold(claim.verdict == Verdict::Met, format_args!("{claim:?}"))?;
        hold(outcome.exit == Some(0), &outcome.stderr)?;
        assert_eq!(claim.operation, "rsa1024.sign");
        hold(claim.rounds.len() >= 5, format_args!("{claim:?}"))?;
        assert!(claim.arithmetic.contains("rounds"), "{claim:?}");
        let measured = claim.measured.unwrap().estimate;
        hold((600.0..1000.0).contains(&measured), measured)
    };
    // A quiet machine loses no more than the timer's slack of each millisecond.
    undisturbed(0.0, 0.4, || measure("rsa1024.sign >= 500/s"), within);
}

/// Measures a claim about one thread and a service of a millisecond, so below 1,000/s, and holds its
/// verdict while the machine is quiet: one that is busy with others makes a claim void.
fn is_judged(claim: &str, verdict: Verdict, code: i32) {
    let within = |outcome: &Outcome| {
        let claim = only_claim(outcome);
        assert_ne!(claim.verdict, Verdict::Met, "{claim:?}");
        hold((claim.verdict, outcome.exit) == (verdict, Some(code)), format_args!("{claim:?}"))
    };
    undisturbed(0.0, 0.4, || measure(claim), within);
}

#[test]
fn a_claim_that_is_missed_is_told_by_the_exit_code() {
    is_judged("rsa1024.sign >= 5000/s", Verdict::Missed, 1);
    is_judged("rsa1024.sign p50 <= 500us", Verdict::Missed, 1);
}

#[test]
fn a_claim_that_is_undecided_is_not_met() {
    // A round holds 400 operations, of which ten would have to lie above p99.9.
    is_judged("rsa1024.sign p99.9 <= 1s", Verdict::Undecided, 1);
}

#[test]
fn a_claim_about_what_could_not_be_measured_is_not_done() {
    let run = Tapstone::on(&[("FAIL_AFTER", "CKR_FUNCTION_FAILED/1")]).args("--threads 1");
    let run = run.args("--no-verify --seconds 0.2 --claim").arg("rsa1024.sign >= 1/s");
    let claims = run.run().exits(2).record().claims;
    assert_eq!(claims[0].verdict, Verdict::Void);
}

#[test]
fn rounds_are_at_least_five_and_as_many_as_asked() {
    let run = || {
        let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]).args("--no-verify");
        let run = run.args("--threads 1 --seconds 0.1 --rounds 7 --precision 50%");
        run.args("--claim").arg("rsa1024.sign >= 1/s").quietly().run()
    };
    let within = |outcome: &Outcome| {
        let claim = only_claim(outcome);
        // No further round is made once others disturbed one.
        hold(claim.rounds.len() == 7, format_args!("{claim:?}"))
    };
    undisturbed(0.0, 0.4, run, within);
    let few = Tapstone::on(&[]).args("--rounds 4 --claim").arg("rsa1024.sign >= 1/s").run();
    assert!(few.exits(2).stderr.contains("from 5 to 1000"));
}

#[test]
fn a_claim_about_the_most_is_judged_over_rounds_of_the_best_level() {
    let home = tempfile::tempdir().unwrap();
    let engine = home.path().join("engine");
    let settings =
        [("SERVICE", "2ms"), ("WAIT", "sleep"), ("ENGINE_FILE", engine.to_str().unwrap())];
    let run = || {
        let run = Tapstone::on(&settings).args("--no-verify --seconds 0.2 --max-processes 2");
        run.arg("--claim").arg("rsa1024.sign >= 450/s").run()
    };
    let within = |outcome: &Outcome| {
        let record = outcome.record();
        let knee = record.knee.as_ref().unwrap();
        let claim = &record.claims[0];
        hold(claim.verdict == Verdict::Met, format_args!("{claim:?}"))?;
        hold(claim.rounds.len() >= 5, format_args!("{claim:?}"))?;
        assert!(!knee.levels.is_empty() && record.results.len() == 1);
        hold(claim.rounds.iter().all(|rate| *rate <= 505.0), format_args!("{claim:?}"))
    };
    undisturbed(0.0, 0.4, run, within);
}

#[test]
fn a_claim_about_wrong_results_is_void() {
    let run = Tapstone::on(&[("MODEL", "honest"), ("WRONG", "3")]).args("--threads 1");
    let claim =
        only_claim(&run.args("--seconds 0.3 --claim").arg("rsa1024.sign >= 1/s").run().exits(2));
    assert_eq!(claim.verdict, Verdict::Void);
    assert!(claim.arithmetic.contains("results were wrong"), "{claim:?}");
}

#[test]
fn a_claim_about_a_case_with_failures_is_void() {
    let run = Tapstone::on(&[("FAIL", "CKR_FUNCTION_FAILED/7")]).args("--threads 1 --no-verify");
    let claim =
        only_claim(&run.args("--seconds 0.3 --claim").arg("rsa1024.sign >= 1/s").run().exits(2));
    assert_eq!(claim.verdict, Verdict::Void);
    assert!(claim.arithmetic.contains("operations failed"), "{claim:?}");
}
