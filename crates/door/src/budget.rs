//! The path as a budget: its parts, their shares, and whether the whole keeps to its target.

use tapstone_measure::units::Nanos;
use tapstone_record::{
    Budget, BudgetPart, Estimate, Fraction, PartKind, Provenance, ScenarioName, Verdict,
};

use crate::millis::Millis;
use crate::path::{PathPart, Role};
use crate::probability::probability_of_target;
use crate::scenario::Scenario;

/// The scenario as a budget; `name` is what it was called by.
#[must_use]
pub fn budget(scenario: &Scenario, name: &str, seed: u64) -> Budget {
    let path = &scenario.path;
    let total = path.total();
    let whole = path.total_with_self_check();
    let part = |part: &PathPart| self::part(part, total);
    let is_extra = |part: &&PathPart| part.role == Role::SelfCheck;
    let mut parts: Vec<BudgetPart> =
        path.parts.iter().filter(|part| !is_extra(part)).filter(has_time).map(part).collect();
    let overlapped = path.overlapped();
    if overlapped > Millis::ZERO {
        parts.push(saved(overlapped, total));
    }
    let self_check: Vec<BudgetPart> = path.parts.iter().filter(is_extra).map(part).collect();
    Budget {
        operation: scenario.operation.clone(),
        total_ns: total.exactly(),
        limit_ns: Some(Nanos(scenario.target.nanos() as u64)),
        verdict: Some(verdict(whole, scenario.target)),
        parts,
        scenario: Some(named(scenario, name)),
        total_with_self_check_ns: (!self_check.is_empty()).then(|| whole.exactly()),
        self_check,
        probability: probability_of_target(path, scenario.target, seed),
    }
}

pub(crate) fn named(scenario: &Scenario, name: &str) -> ScenarioName {
    ScenarioName { name: name.to_owned(), title: scenario.title.clone() }
}

pub(crate) fn verdict(total: Millis, target: Millis) -> Verdict {
    if total <= target { Verdict::Met } else { Verdict::Missed }
}

/// A component that nothing is said of takes no line. A link without time does: it was looked at.
fn has_time(part: &&PathPart) -> bool {
    !part.pieces.is_empty()
}

fn part(part: &PathPart, total: Millis) -> BudgetPart {
    BudgetPart {
        component: part.name.clone(),
        kind: part.role.kind(),
        time_ns: part.mean().exactly(),
        share: share(part.mean(), total),
        by_formula_ns: part.mean_by_formula().map(Millis::nanos),
        provenance: part.provenance,
        source: part.source.clone(),
    }
}

/// Time that two parts take together, and the sum would count twice.
fn saved(overlapped: Millis, total: Millis) -> BudgetPart {
    let Estimate { estimate, .. } = overlapped.exactly();
    BudgetPart {
        component: "overlap".into(),
        kind: PartKind::Waiting,
        time_ns: Estimate { estimate: -estimate, low: -estimate, high: -estimate },
        share: share(Millis(-overlapped.0), total),
        by_formula_ns: None,
        provenance: Provenance::Derived,
        source: None,
    }
}

pub(crate) fn share(of: Millis, total: Millis) -> Fraction {
    Fraction(if total.0 > 0.0 { of.0 / total.0 } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_taken_from_the_sum() {
        let overlap = saved(Millis(250.0), Millis(1_000.0));
        let time = overlap.time_ns;
        assert_eq!((time.low, time.estimate, time.high), (-250e6, -250e6, -250e6));
        assert_eq!(overlap.share.0, -0.25);
        assert_eq!(share(Millis(1.0), Millis::ZERO).0, 0.0, "of nothing there is no part");
    }
}
