//! What all detectors have in common, and how their tests ask them.

use super::scene::Scene;
use super::*;
use crate::operation::Operation;

/// What one detector finds in a whole run.
pub(super) fn whole(timeline: &Timeline, detector: fn(&Scene<'_>) -> Vec<Finding>) -> Vec<Finding> {
    detector(&Scene::new(timeline, &Operations::whole(timeline)))
}

/// What it finds in operations.
pub(super) fn each(
    operation: &str,
    timeline: &Timeline,
    detector: fn(&Scene<'_>) -> Vec<Finding>,
) -> Vec<Finding> {
    let operation: Operation = operation.parse().unwrap();
    detector(&Scene::new(timeline, &Operations::of(&operation, timeline, &[])))
}

/// The only one.
pub(super) fn only(mut findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

/// A finding's figures: per operation, count, time and share in per mille.
pub(super) fn figures(finding: &Finding) -> (f64, u64, Nanos, u64) {
    let share = (finding.share * 1e3).round() as u64;
    (finding.per_operation, finding.count, finding.time, share)
}

pub(super) fn trial(finding: &Finding) -> Option<String> {
    finding.trial.as_ref().map(Fix::to_string)
}
