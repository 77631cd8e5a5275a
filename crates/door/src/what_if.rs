//! Which changes reach a target: each alone, and all sets of those that go together.

use tapstone_measure::units::Nanos;
use tapstone_record::{Projection, WaterfallStep, WhatIf, WhatIfChange, WhatIfSet};
use thiserror::Error;

use crate::budget::{named, verdict};
use crate::change::{PathChange, apply};
use crate::millis::Millis;
use crate::path::AuthenticationPath;
use crate::probability::probability_of_target;
use crate::scenario::{Projected, Scenario};

/// The target, what is ruled out, and how many answers are wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfQuestion {
    /// What a transaction may take; without it, the scenario's own target.
    pub target: Option<Nanos>,
    /// Changes that cannot be made, by name or kind.
    pub without: Vec<String>,
    /// How many sets are wanted at most.
    pub sets: usize,
    /// For the probability of meeting the target.
    pub seed: u64,
}

/// A change that the scenario does not have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no change {name:?}\nhint: {}", known.join(", "))]
pub struct UnknownChange {
    /// The name asked for.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

/// More sets than this are not looked at: a scenario with so many changes has to leave some out.
const MOST_SETS: usize = 300_000;

/// Whether a saving is one, and not the rounding of a sum.
const NOTHING: Millis = Millis(1e-6);

/// Looks for the changes that reach a target; `name` is what the scenario was called by. Sentences
/// that a reader should know are beside the answer.
///
/// # Errors
/// When a change that cannot be made is not known.
pub fn what_if(
    scenario: &Scenario,
    name: &str,
    question: &WhatIfQuestion,
) -> Result<(WhatIf, Vec<String>), UnknownChange> {
    let target = question.target.map_or(scenario.target, Millis::from);
    let changes = possible(scenario, &question.without)?;
    let base = scenario.path.total_with_self_check();
    let mut search =
        ChangeSearch { changes: &changes, target, found: Vec::new(), best: None, looked: 0 };
    search.from(0, &mut Vec::new(), &scenario.path);
    let mut found = std::mem::take(&mut search.found);
    found.retain(|set| is_minimal(&scenario.path, &changes, set, target));
    found.sort_by(|one, other| {
        rank(&changes, one)
            .cmp(&rank(&changes, other))
            .then_with(|| one.total.0.total_cmp(&other.total.0))
    });
    // Of alternatives for the same things only the best is told.
    let mut told: Vec<Vec<&str>> = Vec::new();
    found.retain(|set| {
        let mut about: Vec<&str> = set.members.iter().map(|at| changes[*at].about()).collect();
        about.sort_unstable();
        let new = !told.contains(&about);
        told.extend(new.then_some(about));
        new
    });
    let show = |set: &ChangeSet| self::set(scenario, &changes, set, target, question.seed);
    let best = search.best.clone().unwrap_or(ChangeSet { members: Vec::new(), total: base });
    let answer = WhatIf {
        scenario: named(scenario, name),
        operation: scenario.operation.clone(),
        base_ns: base.nanos(),
        target_ns: Nanos(target.nanos() as u64),
        considered: changes.iter().map(|change| alone(scenario, &changes, change)).collect(),
        sets_found: found.len() as u64,
        sets: found.iter().take(question.sets).map(show).collect(),
        fastest: show(&best),
        projections: projections(scenario),
    };
    let mut notes = scenario.notes.clone();
    if search.looked >= MOST_SETS {
        notes.push(format!(
            "only the first {MOST_SETS} sets of changes were looked at: leave some out with --without"
        ));
    }
    Ok((answer, notes))
}

/// Those that are not ruled out.
fn possible(scenario: &Scenario, without: &[String]) -> Result<Vec<PathChange>, UnknownChange> {
    let meant =
        |change: &PathChange, name: &String| &change.id == name || change.kind.name() == name;
    for name in without {
        if !scenario.changes.iter().any(|change| meant(change, name)) {
            let known = scenario.changes.iter().map(|change| change.id.clone()).collect();
            return Err(UnknownChange { name: name.clone(), known });
        }
    }
    let possible = scenario.changes.iter();
    let possible = possible.filter(|change| !without.iter().any(|name| meant(change, name)));
    Ok(possible.cloned().collect())
}

/// Some changes, by their places, and what is left with them.
#[derive(Clone)]
struct ChangeSet {
    members: Vec<usize>,
    total: Millis,
}

struct ChangeSearch<'a> {
    changes: &'a [PathChange],
    target: Millis,
    found: Vec<ChangeSet>,
    best: Option<ChangeSet>,
    looked: usize,
}

impl ChangeSearch<'_> {
    /// All sets that go on from this one with changes from `next` on.
    fn from(&mut self, next: usize, members: &mut Vec<usize>, path: &AuthenticationPath) {
        let total = path.total_with_self_check();
        self.looked += 1;
        if self.best.as_ref().is_none_or(|best| total + NOTHING < best.total) {
            self.best = Some(ChangeSet { members: members.clone(), total });
        }
        if total <= self.target {
            self.found.push(ChangeSet { members: members.clone(), total });
        }
        for at in next..self.changes.len() {
            let change = &self.changes[at];
            let excluded = members.iter().any(|member| self.changes[*member].excludes(change));
            if excluded || self.looked >= MOST_SETS {
                continue;
            }
            let changed = apply(path, std::slice::from_ref(change));
            members.push(at);
            self.from(at + 1, members, &changed);
            members.pop();
        }
    }
}

/// Whether every one of its changes is needed.
fn is_minimal(
    path: &AuthenticationPath,
    changes: &[PathChange],
    set: &ChangeSet,
    target: Millis,
) -> bool {
    (0..set.members.len()).all(|left_out| {
        let rest = set.members.iter().enumerate().filter(|(at, _)| *at != left_out);
        let rest: Vec<PathChange> = rest.map(|(_, member)| changes[*member].clone()).collect();
        apply(path, &rest).total_with_self_check() > target
    })
}

/// The cheapest first, and of those the one with the fewest changes.
fn rank(changes: &[PathChange], set: &ChangeSet) -> (u64, usize) {
    (effort(changes, set), set.members.len())
}

fn effort(changes: &[PathChange], set: &ChangeSet) -> u64 {
    set.members.iter().map(|member| u64::from(changes[*member].effort)).sum()
}

fn alone(scenario: &Scenario, changes: &[PathChange], change: &PathChange) -> WhatIfChange {
    let changed = apply(&scenario.path, std::slice::from_ref(change));
    let saves = scenario.path.total_with_self_check() - changed.total_with_self_check();
    let excluded = changes.iter().filter(|other| change.excludes(other));
    WhatIfChange {
        change: change.id.clone(),
        what: change.what.clone(),
        saves_ns: saves.nanos(),
        effort: change.effort,
        condition: change.condition.clone(),
        provenance: change.provenance,
        excludes: excluded.map(|other| other.id.clone()).collect(),
    }
}

/// A set as a waterfall: each change after those before it.
fn set(
    scenario: &Scenario,
    changes: &[PathChange],
    set: &ChangeSet,
    target: Millis,
    seed: u64,
) -> WhatIfSet {
    let mut path = scenario.path.clone();
    let mut waterfall = Vec::new();
    for member in &set.members {
        let before = path.total_with_self_check();
        path = apply(&path, std::slice::from_ref(&changes[*member]));
        let left = path.total_with_self_check();
        waterfall.push(WaterfallStep {
            change: changes[*member].id.clone(),
            saves_ns: (before - left).nanos(),
            left_ns: left.nanos(),
        });
    }
    WhatIfSet {
        waterfall,
        total_ns: set.total.nanos(),
        effort: effort(changes, set),
        verdict: verdict(set.total, target),
        chance: probability_of_target(&path, target, seed),
    }
}

/// What the source expects beside what the model gives, against the scenario's own target.
fn projections(scenario: &Scenario) -> Vec<Projection> {
    let base = scenario.path.total_with_self_check();
    let computed = |with: &[String], of: Projected| {
        let meant = |change: &&PathChange| with.contains(&change.id);
        let made: Vec<PathChange> = scenario.changes.iter().filter(meant).cloned().collect();
        let total = apply(&scenario.path, &made).total_with_self_check();
        match of {
            Projected::Saving => base - total,
            Projected::Total => total,
            Projected::Still => total - scenario.target,
        }
    };
    scenario
        .projections
        .iter()
        .map(|projection| Projection {
            says: projection.says.clone(),
            changes: projection.with.clone(),
            published_ns: projection.published.nanos(),
            computed_ns: computed(&projection.with, projection.of).nanos(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> WhatIfQuestion {
        WhatIfQuestion { target: None, without: Vec::new(), sets: 5, seed: 1 }
    }

    fn ask(question: &WhatIfQuestion) -> WhatIf {
        let scenario = Scenario::shipped("hid-rsa2048").unwrap();
        what_if(&scenario, "hid-rsa2048", question).unwrap().0
    }

    #[test]
    fn the_projections_of_the_source_come_out() {
        let answer = ask(&question());
        assert_eq!(answer.base_ns, 4078e6);
        let tenths = |ns: f64| (ns / 1e8).round() / 10.0;
        let computed: Vec<(&str, f64, f64)> = answer
            .projections
            .iter()
            .map(|it| (it.says.as_str(), tenths(it.published_ns), tenths(it.computed_ns)))
            .collect();
        // The source starts from "about 4 s", and we from 4078 ms: 0.1 s remains of it.
        let expected = [
            ("ECC saves", 1.1, 1.1),
            ("with ECC it takes", 2.9, 3.0),
            ("authentication in the controller saves", 0.4, 0.4),
            ("still to find with both", 1.0, 1.1),
        ];
        assert_eq!(computed, expected);
        let ecc = answer.considered.iter().find(|it| it.change == "algorithm:ecc-p256").unwrap();
        assert_eq!(ecc.saves_ns, 1080e6, "the difference of 3.25 s and 2.17 s");
        let controller =
            answer.considered.iter().find(|it| it.change == "controller-side").unwrap();
        assert_eq!(controller.saves_ns, 414e6);
    }

    #[test]
    fn sets_reach_the_target_and_nothing_in_them_is_idle() {
        let scenario = Scenario::shipped("hid-rsa2048").unwrap();
        let (answer, _) =
            what_if(&scenario, "x", &WhatIfQuestion { sets: 1000, ..question() }).unwrap();
        assert!(!answer.sets.is_empty());
        let by_id = |id: &str| scenario.changes.iter().find(|change| change.id == id).unwrap();
        for set in &answer.sets {
            let made: Vec<PathChange> =
                set.waterfall.iter().map(|step| by_id(&step.change).clone()).collect();
            assert!(set.total_ns <= 1500e6, "{set:?}");
            let last = set.waterfall.last().unwrap();
            assert_eq!(last.left_ns, set.total_ns);
            let saved: f64 = set.waterfall.iter().map(|step| step.saves_ns).sum();
            assert!((answer.base_ns - saved - set.total_ns).abs() < 20.0, "{set:?}");
            for one in &made {
                assert!(made.iter().all(|other| !one.excludes(other)), "{set:?}");
            }
        }
        let efforts: Vec<u64> = answer.sets.iter().map(|set| set.effort).collect();
        assert!(efforts.is_sorted(), "{efforts:?}");
        assert!(
            answer.fastest.total_ns
                <= answer.sets.iter().map(|set| set.total_ns).fold(f64::MAX, f64::min)
        );
    }

    #[test]
    fn what_is_ruled_out_is_in_no_set() {
        let without = vec!["known-card".to_owned(), "bit-rate".to_owned()];
        let answer = ask(&WhatIfQuestion { without, sets: 1000, ..question() });
        let used = |name: &str| {
            let steps = answer.sets.iter().chain([&answer.fastest]).flat_map(|set| &set.waterfall);
            let mut ids = steps.map(|step| step.change.as_str());
            ids.any(|id| id.starts_with(name))
        };
        assert!(!used("known-card") && !used("bit-rate"));
        let scenario = Scenario::shipped("hid-rsa2048").unwrap();
        let unknown = WhatIfQuestion { without: vec!["magic".into()], ..question() };
        let error = what_if(&scenario, "x", &unknown).unwrap_err().to_string();
        assert!(error.contains("\"magic\"\nhint: algorithm:ecc-p256"), "{error}");
    }
}
