//! Promises held against figures, and what the exit code says of them.

use tapstone_record::{Claim, Verdict};
use tapstone_testing::{hold, undisturbed};

use crate::support::{Outcome, Tapstone};

/// A claim about one thread and a service of a millisecond: below 1,000/s.
fn judge(claim: &str, code: i32) -> Claim {
    only_claim(&measure(claim).exits(code))
}

fn measure(claim: &str) -> Outcome {
    let run = Tapstone::on(&[("SERVICE", "1ms"), ("WAIT", "sleep")]);
    run.args("--no-verify --threads 1 --seconds 1 --claim").arg(claim).quietly().run()
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
        assert_eq!(outcome.exit, Some(0), "{}", outcome.stderr);
        assert_eq!(claim.operation, "rsa1024.sign");
        let measured = claim.measured.unwrap().estimate;
        hold((600.0..1000.0).contains(&measured), measured)
    };
    // A quiet machine loses no more than the timer's slack of each millisecond.
    undisturbed(0.0, 0.4, || measure("rsa1024.sign >= 500/s"), within);
}

#[test]
fn a_claim_that_is_missed_is_told_by_the_exit_code() {
    for claim in ["rsa1024.sign >= 5000/s", "rsa1024.sign p50 <= 500us"] {
        // An interval can be wide on a machine that stands still; the claim is never met.
        undisturbed(
            0.0,
            0.4,
            || measure(claim),
            |outcome| {
                let judged = only_claim(outcome);
                assert_ne!(judged.verdict, Verdict::Met, "{judged:?}");
                assert_eq!(outcome.exit, Some(1), "{}", outcome.stderr);
                hold(judged.verdict == Verdict::Missed, format_args!("{judged:?}"))
            },
        );
    }
}

#[test]
fn a_claim_that_is_undecided_is_not_met() {
    // A second holds a thousand operations, of which ten are above p99.9 only in ten seconds.
    let claim = judge("rsa1024.sign p99.9 <= 1s", 1);
    assert_eq!((claim.verdict, claim.measured), (Verdict::Undecided, None));
}

#[test]
fn a_claim_about_what_could_not_be_measured_is_not_done() {
    let run = Tapstone::on(&[("FAIL_AFTER", "CKR_FUNCTION_FAILED/1")]).args("--threads 1");
    let run = run.args("--no-verify --seconds 0.2 --claim").arg("rsa1024.sign >= 1/s");
    let claims = run.run().exits(2).record().claims;
    assert_eq!(claims[0].verdict, Verdict::Undecided);
}
