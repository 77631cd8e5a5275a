//! What repeated reads and repeated searches have in common: a token is asked for what is known.
//!
//! The units that go are the calls of the repetitions. What the program does with each answer, up to
//! its next call, may go with them, and so may the time for which other threads waited for a lock
//! meanwhile.

use std::collections::BTreeSet;

use tapstone_measure::units::Nanos;

use super::scene::{FindingPlace, Remedy, Scene, Waste};
use super::stretches::Stretches;
use super::token_calls::{around, blocked};
use super::{Finding, FindingKind, Removed, words};
use crate::owners::Owner;

/// Once is needed, twice can be two parts of a program, and from then on it is a habit.
pub(super) const FEWEST: u64 = 3;
/// Where more of the repetitions follow the end of a session or a login, a cache would help with few.
const MOST_STALE: f64 = 0.1;

/// Repetitions that came through one function of a module.
pub(super) struct Repetitions<'a> {
    layer: Owner,
    count: u64,
    stale: u64,
    units: Vec<Removed>,
    perhaps: Vec<Removed>,
    /// How many calls may be repetitions besides, and how long they took.
    perhaps_too: (u64, Nanos),
    callers: BTreeSet<&'a str>,
}

/// A question that was asked again, and what asking it took.
pub(super) struct Repetition<'a> {
    /// The calls that it took, all of one thread.
    pub(super) units: Vec<Removed>,
    pub(super) thread: usize,
    pub(super) end: Nanos,
    /// A session ended before it, or somebody logged in or out: a cache would be empty.
    pub(super) is_stale: bool,
    pub(super) caller: &'a str,
}

impl<'a> Repetitions<'a> {
    pub(super) fn new(layer: Owner) -> Self {
        Self {
            layer,
            count: 0,
            stale: 0,
            units: Vec::new(),
            perhaps: Vec::new(),
            perhaps_too: (0, Nanos::ZERO),
            callers: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, scene: &Scene<'_>, one: Repetition<'a>) {
        self.count += 1;
        self.stale += u64::from(one.is_stale);
        let start = one.units.first().map_or(one.end, |unit| unit.start);
        let whole = Removed { thread: one.thread, start, end: one.end };
        self.perhaps.extend(around(scene, &whole));
        self.units.extend(one.units);
        self.callers.insert(one.caller);
    }

    /// A call between them of which it is not known whether it is a repetition.
    pub(super) fn add_perhaps(&mut self, scene: &Scene<'_>, call: &Removed) {
        self.perhaps_too.0 += 1;
        self.perhaps_too.1 += call.end - call.start;
        self.perhaps.extend(around(scene, call));
        self.perhaps.push(*call);
    }

    /// These, and the time of others that go with them.
    pub(super) fn beside(mut self, others: Self) -> Self {
        self.units.extend(others.units);
        self.perhaps.extend(others.perhaps);
        self.callers.extend(others.callers);
        self
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// What all of them took.
    pub(super) fn time(&self) -> Nanos {
        self.units.iter().map(|unit| unit.end - unit.start).sum()
    }

    /// When any thread repeated.
    pub(super) fn stretches(&self) -> Stretches {
        self.units.iter().map(|unit| (unit.start, unit.end)).collect()
    }

    /// Whether a cache would often be empty.
    pub(super) fn are_stale(&self) -> bool {
        self.stale as f64 > MOST_STALE * self.count as f64
    }

    /// What `seen` says of them, as a finding; `None` where they take too little.
    pub(super) fn report(
        self,
        scene: &Scene<'_>,
        kind: FindingKind,
        place: FindingPlace<'_>,
        seen: Vec<String>,
        remedy: Remedy,
    ) -> Option<Finding> {
        let blocked = blocked(scene, place.module, &self.stretches());
        let blocked_for: Nanos = blocked.iter().map(|wait| wait.end - wait.start).sum();
        let mut evidence = seen;
        if blocked_for > Nanos::ZERO {
            evidence.push(format!(
                "other threads waited {blocked_for} for a lock meanwhile; whether that goes too \
                 depends on what else holds it"
            ));
        }
        if let (calls @ 1.., time) = self.perhaps_too {
            evidence.push(format!(
                "{} between them are made again, too, of values that are not compared: {time}, at \
                 the high end",
                words::counted(calls, "read")
            ));
        }
        evidence.push(words::called(place.module, self.callers));
        let mut finding = scene.report(Waste {
            kind,
            place,
            layer: self.layer,
            count: self.count,
            removed: self.units,
            evidence,
            remedy,
        })?;
        finding.perhaps = self.perhaps;
        finding.perhaps.extend(blocked);
        Some(finding)
    }
}
