//! A door as a model: what changes would bring, and how people wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tapstone_measure::units::Nanos;

use crate::budget::{Probability, ScenarioName};
use crate::claim::Verdict;
use crate::figures::{Estimate, Fraction, Latency, Provenance};

/// Which changes to a transaction reach a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The scenario that is changed.
    pub scenario: ScenarioName,
    /// The transaction, for example `door.pki-cak`.
    pub operation: String,
    /// What it takes unchanged, with all that whoever stands there waits for, in nanoseconds.
    pub base_ns: f64,
    /// What it may take, in nanoseconds.
    #[schemars(with = "u64")]
    pub target_ns: Nanos,
    /// The changes that were considered.
    pub considered: Vec<WhatIfChange>,
    /// The sets that reach the target and of which nothing can be left out, cheapest first. Of
    /// alternatives for the same things (links of a part, bit rates) only the best is there.
    pub sets: Vec<WhatIfSet>,
    /// How many such sets there are; `sets` may hold fewer.
    pub sets_found: u64,
    /// The set that takes the least time, whether it reaches the target or not.
    pub fastest: WhatIfSet,
    /// What `fastest` still takes, the longest part first: what holds a target up that no set
    /// reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RemainingPart>,
    /// By how much `fastest` misses the target, in nanoseconds; absent where it reaches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_ns: Option<f64>,
    /// What the source of the scenario itself expects of changes, beside what the model gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projections: Vec<Projection>,
}

/// A change on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfChange {
    /// Its name: a kind, and behind a colon which of several.
    pub change: String,
    /// What it is, in words.
    pub what: String,
    /// What it saves when nothing else is changed, in nanoseconds.
    pub saves_ns: f64,
    /// How much work it is, in points: a setting is 1, software 2, wiring 4, cards for everybody 8,
    /// unless the scenario says otherwise.
    pub effort: u32,
    /// What must hold for it to be secure, or possible at all.
    pub condition: String,
    /// How well its saving is known.
    pub provenance: Provenance,
    /// The changes that cannot be made beside it.
    pub excludes: Vec<String>,
    /// The change without which it cannot be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// The parts that it makes faster, and how that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ChangedPart>,
}

/// A part of the path that a change makes faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedPart {
    /// The component, or the pair of components with the link between them.
    pub component: String,
    /// What the change saves there, in nanoseconds.
    pub saves_ns: f64,
    /// The bytes that are sent there before and after; absent where the bytes are not what changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<[u64; 2]>,
    /// How the saving is known.
    pub basis: SavingBasis,
}

/// How a saving is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SavingBasis {
    /// By the formula of the link, from what is sent.
    Bytes,
    /// What is left of a published total when all that is known was taken from it: nothing else
    /// explains it.
    Remainder,
    /// By a figure or a formula of its own.
    Figure,
}

/// What a part of the path still takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemainingPart {
    /// The component, or the pair of components with the link between them.
    pub component: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// Its part of the whole.
    pub share: Fraction,
}

/// Changes that are made together, and the time that they reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfSet {
    /// The changes, in the order in which they were applied.
    pub waterfall: Vec<WaterfallStep>,
    /// What the transaction takes with all of them, in nanoseconds.
    pub total_ns: f64,
    /// The sum of their efforts, in points.
    pub effort: u64,
    /// Whether the mean reaches the target.
    pub verdict: Verdict,
    /// How probable it is that it reaches the target; absent where nothing is known of the spread of any part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<Probability>,
}

/// One change of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaterfallStep {
    /// The name of the change that this step makes.
    pub change: String,
    /// What it saves after those before it, in nanoseconds.
    pub saves_ns: f64,
    /// What the transaction then takes, in nanoseconds.
    pub left_ns: f64,
}

/// What a source expects of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Projection {
    /// The sentence of the source, in its own words.
    pub statement: String,
    /// The changes that it speaks of.
    pub changes: Vec<String>,
    /// Its figure, in nanoseconds.
    pub published_ns: f64,
    /// The same by the model, in nanoseconds.
    pub computed_ns: f64,
}

/// People at a door, simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The scenario of the door.
    pub scenario: ScenarioName,
    /// How many people came.
    pub arrivals: u64,
    /// How many of them are not in the figures: those who came before the queue had settled.
    pub warm_up_arrivals: u64,
    /// How many came per hour, as it was asked for.
    pub arrivals_per_hour: f64,
    /// The seed of the simulation's random numbers: the same one gives the same queue.
    pub seed: u64,
    /// How many doors there are, each with a queue of its own, at one controller.
    #[serde(default = "one_door")]
    pub doors: u32,
    /// How many can pass per minute at most: one after the other without a gap.
    pub capacity_per_minute: f64,
    /// How many did pass per minute.
    pub throughput_per_minute: Estimate,
    /// The part of the time in which the door was in use.
    pub utilisation: Fraction,
    /// The same with its interval, over stretches of the simulated time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_interval: Option<Estimate>,
    /// Whether at least as many come as can pass. The queue then grows without bound, unless
    /// people leave it (`left_queue`); where it grows, `wait_ns` and `time_in_system_ns` have neither mean
    /// nor quantiles.
    pub overloaded: bool,
    /// Waiting for one's turn, in nanoseconds.
    pub wait_ns: Latency,
    /// From coming to having passed, in nanoseconds.
    pub time_in_system_ns: Latency,
    /// The part of all people who gave up, at the door or in the queue.
    pub gave_up: Estimate,
    /// The part of all people who left the queue because it was too long; absent where nobody
    /// does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_queue: Option<Estimate>,
    /// The part of all readings that ended because the card was taken away too early.
    pub removed_early: Estimate,
    /// How often each person who came to their turn tried to have the card read.
    pub attempts_per_person: f64,
    /// The same with its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_interval: Option<Estimate>,
    /// The controller that several doors share; absent where there is one door.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<SharedStation>,
    /// The people by the kind of card that they hold; empty where all hold the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<CardKindFigures>,
    /// The mean wait by a formula of queueing theory, where one holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<QueueFormula>,
    /// How many people a queue of this load needs to settle. Where fewer came, waiting time, time in
    /// system and their intervals cannot be relied on. Absent where people leave the queue, and
    /// where it grows without bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals_needed: Option<u64>,
}

/// The mean wait by a formula of queueing theory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueFormula {
    /// Which one: `M/M/1`, `M/D/1` or `M/G/1`.
    pub name: String,
    /// The mean wait, in nanoseconds.
    pub mean_wait_ns: f64,
    /// The mean time in system, in nanoseconds; absent where somebody gives up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_time_in_system_ns: Option<f64>,
    /// The part of the time in which the door is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<Fraction>,
    /// By how many standard errors of the simulation the simulated mean is above it.
    pub standard_errors: f64,
}

/// What several doors share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedStation {
    /// The part of the time in which it works.
    pub utilisation: Estimate,
    /// How long a door waits until it is answered, in nanoseconds, without the answering itself.
    pub wait_ns: Latency,
}

/// The people who hold one kind of card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardKindFigures {
    /// The kind, as the scenario calls it.
    pub name: String,
    /// The part of all people who came to a turn with one.
    pub share: Estimate,
    /// The mean of its authentication, in nanoseconds.
    pub authentication_ns: f64,
    /// From coming to having passed, in nanoseconds.
    pub time_in_system_ns: Latency,
    /// The part of them who gave up at the door.
    pub gave_up: Estimate,
}

const fn one_door() -> u32 {
    1
}

/// What a model of the door says of an authentication, beside what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelPrediction {
    /// The case that was measured.
    pub operation: String,
    /// The scenario of the model.
    pub scenario: ScenarioName,
    /// The changes that were made to it: those of the card, and those of the strategy.
    pub changes: Vec<String>,
    /// What the model says, in nanoseconds.
    pub predicted_ns: f64,
    /// The mean that was measured, in nanoseconds.
    pub measured_ns: Estimate,
    /// By which part of the measured time the prediction is above it.
    pub relative_error: f64,
}
