//! Which changes reach a target: each alone, and all sets of those that go together.

use std::collections::BTreeMap;

use tapstone_measure::units::Nanos;
use tapstone_record::{
    ChangedPart, Projection, RemainingPart, SavingBasis, WaterfallStep, WhatIf, WhatIfChange,
    WhatIfSet,
};

use crate::budget::{named, share, verdict};
use crate::change::{self, ChangeKind, PathChange, apply};
use crate::millis::Millis;
use crate::path::{AuthenticationPath, PathPart};
use crate::probability::probability_of_target;
use crate::scenario::{ChangesError, Projected, PublishedProjection, Scenario};

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

/// More sets than this are not looked at: a scenario with so many changes has to leave some out.
const MOST_SETS: usize = 300_000;

/// Whether a saving is one, and not the rounding of a sum.
const NOTHING: Millis = Millis(1e-6);

/// Looks for the changes that reach a target; `name` is what the scenario was called by. Sentences
/// that a reader should know are beside the answer.
///
/// # Errors
/// When a change that cannot be made is not known, or was made.
pub fn what_if(
    scenario: &Scenario,
    name: &str,
    question: &WhatIfQuestion,
) -> Result<(WhatIf, Vec<String>), ChangesError> {
    let target = question.target.map_or(scenario.target, Millis::from);
    let changes = possible(scenario, &question.without)?;
    let base = scenario.path.total_with_self_check();
    let considered: Vec<WhatIfChange> =
        changes.iter().map(|change| alone(scenario, &changes, change)).collect();
    let changes = best_alternatives(&changes, &considered);
    let mut search = ChangeSearch { changes: &changes, target, found: Vec::new(), looked: 0 };
    search.from(0, &mut Vec::new(), &scenario.path);
    let mut found = std::mem::take(&mut search.found);
    let best = fastest(&scenario.path, &changes);
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
    let answer = WhatIf {
        scenario: named(scenario, name),
        operation: scenario.operation.clone(),
        base_ns: base.nanos(),
        target_ns: Nanos(target.nanos() as u64),
        considered,
        sets_found: found.len() as u64,
        sets: found.iter().take(question.sets).map(show).collect(),
        fastest: show(&best),
        left: left(&scenario.path, &changes, &best),
        missing_ns: (best.total > target).then(|| (best.total - target).nanos()),
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
fn possible(scenario: &Scenario, without: &[String]) -> Result<Vec<PathChange>, ChangesError> {
    let meant =
        |change: &PathChange, name: &String| &change.id == name || change.kind.name() == name;
    for name in without {
        let is_among = |changes: &[PathChange]| changes.iter().any(|change| meant(change, name));
        if is_among(&scenario.changes) {
            continue;
        }
        if is_among(&scenario.made) {
            return Err(ChangesError::Made(name.clone()));
        }
        if !is_among(&scenario.spent) {
            return Err(ChangesError::unknown(name, &scenario.changes));
        }
    }
    let mut possible = scenario.changes.clone();
    possible.retain(|change| !without.iter().any(|name| meant(change, name)));
    change::leave_out_orphans(&mut possible);
    Ok(possible)
}

/// Of alternatives for the same thing, those of which no other saves more at no more effort: what
/// reaches a target with the slower one reaches it with the faster one too.
fn best_alternatives(changes: &[PathChange], considered: &[WhatIfChange]) -> Vec<PathChange> {
    let saved = |change: &PathChange| {
        let of = considered.iter().find(|considered| considered.change == change.id);
        of.map_or(0.0, |considered| considered.saves_ns)
    };
    let is_worse = |one: &PathChange, other: &PathChange| {
        one.about() == other.about()
            && one.excludes(other)
            && one.needs == other.needs
            && other.effort <= one.effort
            && saved(other) > saved(one)
    };
    let best = |one: &&PathChange| !changes.iter().any(|other| is_worse(one, other));
    changes.iter().filter(best).cloned().collect()
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
    looked: usize,
}

impl ChangeSearch<'_> {
    /// All sets that go on from this one with changes from `next` on, as far as they can be of use:
    /// what goes on from a set that reaches the target holds something that can be left out, and
    /// where not even all that is left reaches it, nothing does.
    fn from(&mut self, next: usize, members: &mut Vec<usize>, path: &AuthenticationPath) {
        let total = path.total_with_self_check();
        self.looked += 1;
        if total <= self.target {
            self.found.push(ChangeSet { members: members.clone(), total });
            return;
        }
        if self.with_all_from(next, members, path) > self.target {
            return;
        }
        for at in next..self.changes.len() {
            if self.looked >= MOST_SETS {
                return;
            }
            let change = &self.changes[at];
            if !can_join(self.changes, members, change) {
                continue;
            }
            let changed = apply(path, std::slice::from_ref(change));
            members.push(at);
            self.from(at + 1, members, &changed);
            members.pop();
        }
    }

    /// No set that goes on from here is faster than all that is left together, even where the one
    /// excludes the other. Of alternatives the last one made stands: whichever saves most is made
    /// again.
    fn with_all_from(&self, next: usize, members: &[usize], path: &AuthenticationPath) -> Millis {
        let excluded =
            |change: &&PathChange| members.iter().any(|at| self.changes[*at].excludes(change));
        let left = self.changes[next..].iter().filter(|change| !excluded(change));
        let left: Vec<PathChange> = left.cloned().collect();
        let together = apply(path, &left);
        let total = together.total_with_self_check();
        let mut again: BTreeMap<&str, Millis> = BTreeMap::new();
        for change in left.iter().filter(|one| left.iter().any(|other| one.excludes(other))) {
            let as_last = apply(&together, std::slice::from_ref(change)).total_with_self_check();
            let most = again.entry(change.about()).or_insert(Millis::ZERO);
            *most = Millis(most.0.max((total - as_last).0));
        }
        total - again.into_values().sum()
    }
}

/// Whether a change goes together with those that are made.
fn can_join(changes: &[PathChange], members: &[usize], change: &PathChange) -> bool {
    let mut made = members.iter().map(|at| &changes[*at]);
    let has_needed = |needed: &String| members.iter().any(|at| &changes[*at].id == needed);
    made.all(|member| !member.excludes(change)) && change.needs.as_ref().is_none_or(has_needed)
}

/// The set that takes the least time. No change makes a path slower, so a change that excludes none
/// of those to come is made; only between alternatives is there a choice.
fn fastest(path: &AuthenticationPath, changes: &[PathChange]) -> ChangeSet {
    let mut best = ChangeSet { members: Vec::new(), total: path.total_with_self_check() };
    choose(path, changes, 0, &mut Vec::new(), &mut best);
    // What brings nothing beside the others is no part of it.
    let made = |members: &[usize]| -> Vec<PathChange> {
        members.iter().map(|at| changes[*at].clone()).collect()
    };
    let mut at = best.members.len();
    while at > 0 {
        at -= 1;
        let rest: Vec<usize> = without_and_its_dependents(changes, &best.members, at);
        let total = apply(path, &made(&rest)).total_with_self_check();
        if total.0 <= best.total.0 + NOTHING.0 {
            best = ChangeSet { members: rest, total };
            at = at.min(best.members.len());
        }
    }
    best
}

fn choose(
    path: &AuthenticationPath,
    changes: &[PathChange],
    next: usize,
    members: &mut Vec<usize>,
    best: &mut ChangeSet,
) {
    let Some(change) = changes.get(next) else {
        let total = path.total_with_self_check();
        if total + NOTHING < best.total {
            *best = ChangeSet { members: members.clone(), total };
        }
        return;
    };
    let is_alternative = changes[next + 1..].iter().any(|later| change.excludes(later));
    if !can_join(changes, members, change) {
        return choose(path, changes, next + 1, members, best);
    }
    members.push(next);
    let changed = apply(path, std::slice::from_ref(change));
    choose(&changed, changes, next + 1, members, best);
    members.pop();
    if is_alternative {
        choose(path, changes, next + 1, members, best);
    }
}

/// The members but for one of them, and for those that need it.
fn without_and_its_dependents(
    changes: &[PathChange],
    members: &[usize],
    left_out: usize,
) -> Vec<usize> {
    let gone = changes[members[left_out]].id.as_str();
    let stays = |(at, member): (usize, &usize)| {
        let depends = changes[*member].needs.as_deref() == Some(gone);
        (at != left_out && !depends).then_some(*member)
    };
    members.iter().enumerate().filter_map(stays).collect()
}

/// What the path still takes with a set, the longest part first.
fn left(path: &AuthenticationPath, changes: &[PathChange], set: &ChangeSet) -> Vec<RemainingPart> {
    let made: Vec<PathChange> = set.members.iter().map(|at| changes[*at].clone()).collect();
    let path = apply(path, &made);
    let total = path.total_with_self_check();
    let mut left: Vec<(String, Millis)> =
        path.parts.iter().map(|part| (part.name.clone(), part.mean())).collect();
    left.retain(|(_, time)| *time > NOTHING);
    left.sort_by(|one, other| other.1.0.total_cmp(&one.1.0));
    let part = |(component, time): (String, Millis)| RemainingPart {
        component,
        time_ns: time.nanos(),
        share: share(time, total),
    };
    left.into_iter().map(part).collect()
}

/// Whether every one of its changes is needed.
fn is_minimal(
    path: &AuthenticationPath,
    changes: &[PathChange],
    set: &ChangeSet,
    target: Millis,
) -> bool {
    (0..set.members.len()).all(|left_out| {
        let rest = without_and_its_dependents(changes, &set.members, left_out);
        let rest: Vec<PathChange> = rest.iter().map(|at| changes[*at].clone()).collect();
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
    // One that needs another is told beside it.
    let needed = changes.iter().find(|other| change.needs.as_ref() == Some(&other.id));
    let base = needed.map_or_else(
        || scenario.path.clone(),
        |needed| apply(&scenario.path, std::slice::from_ref(needed)),
    );
    let changed = apply(&base, std::slice::from_ref(change));
    let saves = base.total_with_self_check() - changed.total_with_self_check();
    let excluded = changes.iter().filter(|other| change.excludes(other));
    WhatIfChange {
        change: change.id.clone(),
        what: change.what.clone(),
        saves_ns: saves.nanos(),
        effort: change.effort,
        condition: change.condition.clone(),
        provenance: change.provenance,
        excludes: excluded.map(|other| other.id.clone()).collect(),
        needs: change.needs.clone(),
        parts: changed_parts(change, &base, &changed),
    }
}

/// Where a change saves, and how that is known.
fn changed_parts(
    change: &PathChange,
    before: &AuthenticationPath,
    after: &AuthenticationPath,
) -> Vec<ChangedPart> {
    let part = |old: &PathPart| {
        let new = after.parts.iter().find(|new| new.name == old.name);
        let saves = old.mean() - new.map_or(Millis::ZERO, PathPart::mean);
        let bytes = [old.bytes(), new.map_or(0, PathPart::bytes)];
        let is_by_bytes = new.is_some() && bytes[0] != bytes[1];
        let basis = match change.kind {
            _ if is_by_bytes => SavingBasis::Bytes,
            ChangeKind::Algorithm => SavingBasis::Remainder,
            _ => SavingBasis::Figure,
        };
        (saves > NOTHING).then(|| ChangedPart {
            component: old.name.clone(),
            saves_ns: saves.nanos(),
            bytes: is_by_bytes.then_some(bytes),
            basis,
        })
    };
    before.parts.iter().filter_map(part).collect()
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
        probability: probability_of_target(&path, target, seed),
    }
}

/// What the source expects beside what the model gives, against the scenario's own target.
fn projections(scenario: &Scenario) -> Vec<Projection> {
    let until = |path: &AuthenticationPath, last: &Option<String>| match last {
        None => path.total_with_self_check(),
        Some(last) => {
            let end = path.parts.iter().position(|part| &part.name == last);
            path.parts[..end.map_or(0, |at| at + 1)].iter().map(PathPart::mean).sum()
        }
    };
    let computed = |projection: &PublishedProjection| {
        let meant = |change: &&PathChange| projection.with.contains(&change.id);
        let made: Vec<PathChange> = scenario.changes.iter().filter(meant).cloned().collect();
        let total = until(&apply(&scenario.path, &made), &projection.until);
        match projection.of {
            Projected::Saving => until(&scenario.path, &projection.until) - total,
            Projected::Total => total,
            Projected::Still => total - scenario.target,
        }
    };
    scenario
        .projections
        .iter()
        .map(|projection| Projection {
            statement: projection.says.clone(),
            changes: projection.with.clone(),
            published_ns: projection.published.nanos(),
            computed_ns: computed(projection).nanos(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
