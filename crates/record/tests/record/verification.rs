//! What a sample of results leaves possible.

use tapstone_record::{OwnSample, SampleFindings, Verification, Verifier};

fn share_left(eligible: u64, checked: u64, wrong: u64) -> Option<f64> {
    let found = Verification::new(eligible, checked, wrong, Verifier::Software);
    found.largest_wrong_share.map(|share| share.0)
}

#[test]
fn a_sample_without_a_wrong_result_bounds_their_share() {
    // Were 4.87 % wrong, 60 results would all be right with a probability of 5 %.
    let share = share_left(1_000, 60, 0).unwrap();
    assert!(((1.0 - share).powi(60) - 0.05).abs() < 1e-12, "{share}");
    assert!((share - 0.048_703).abs() < 1e-6, "{share}");
    assert!((share_left(1_000, 1, 0).unwrap() - 0.95).abs() < 1e-12);
    assert_eq!(share_left(60, 60, 0), Some(0.0), "all were checked");
    assert_eq!(share_left(1_000, 0, 0), None, "nothing was checked");
    assert_eq!(share_left(1_000, 60, 1), None, "one was wrong");
}

#[test]
fn a_result_that_was_not_shown_as_committed_leaves_an_agent_unproven() {
    let with = |unproven| {
        let found = SampleFindings { checked: 60, wrong: 0, unproven };
        Verification {
            own_sample: Some(OwnSample::new(1_000, 60, found)),
            ..Verification::new(1_000, 60, 0, Verifier::Agent)
        }
    };
    assert!(!with(0).is_unproven() && with(1).is_unproven() && with(2).is_unproven());
    assert!(with(0).own_sample.unwrap().largest_wrong_share.is_some());
    assert_eq!(with(1).own_sample.unwrap().largest_wrong_share, None);
    assert!(!Verification::new(1_000, 60, 0, Verifier::Software).is_unproven(), "no sample");
}
