//! What an agent kept of a case, and shows of it to a coordinator that draws a sample of its own.

use serde::{Deserialize, Serialize};

use crate::material::{KeyMaterial, Output, Sha256Hash};

/// Holds an agent to the results that it kept of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// How many it kept.
    pub count: u64,
    /// The root of the hash tree over them, by key, thread and operation.
    pub root: Sha256Hash,
}

/// What a coordinator drew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownResults {
    /// What the agent's inputs came from; another one for each case, and told only after it.
    pub nonce: [u8; 32],
    /// What was drawn of each lane, in the order of the plan.
    pub lanes: Vec<ShownLane>,
}

/// What was drawn of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLane {
    /// The keys of these results.
    pub keys: Vec<ShownKey>,
    /// In the order in which they were asked for.
    pub results: Vec<ShownResult>,
}

/// A key, as far as everybody may know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownKey {
    /// Its number in the lane.
    pub number: u32,
    /// Its public half. Never a secret value.
    pub material: KeyMaterial,
}

/// A result, and what shows that it is one that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownResult {
    /// The result, with the operation that it is of.
    pub output: Output,
    /// Its neighbours on the way to the root.
    pub path: Vec<Sha256Hash>,
}
