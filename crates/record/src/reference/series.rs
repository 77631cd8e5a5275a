//! One view of all references, for comparing: named items, each with figures by operation.

use serde::Serialize;
use tapstone_measure::units::PerSecond;

use crate::comparison::Quantity;
use crate::figures::{Provenance, Seconds};
use crate::load::Concurrency;

/// A thing that a source has figures of: a card, a device, a version of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// What the source calls it.
    pub name: String,
    /// Its figures, one for each operation.
    pub figures: Vec<Figure>,
}

impl Item {
    pub(super) fn new(name: impl Into<String>, figures: Vec<Figure>) -> Self {
        Self { name: name.into(), figures }
    }
}

/// A published figure, under the name that Tapstone gives to the operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The operation, as in a record: `card.simple_apdu`.
    pub operation: String,
    /// The figure.
    pub value: Value,
    /// How many workers; `None` when the source does not say.
    pub concurrency: Option<Concurrency>,
    /// [`Provenance::Published`], or [`Provenance::Derived`] where it was computed from published
    /// figures.
    pub provenance: Provenance,
}

impl Figure {
    /// As published, for one worker.
    pub(super) fn published(operation: impl Into<String>, value: Value) -> Self {
        let concurrency = Some(Concurrency::ONE);
        Self { operation: operation.into(), value, concurrency, provenance: Provenance::Published }
    }

    /// The same, computed rather than published.
    pub(super) fn derived(self) -> Self {
        Self { provenance: Provenance::Derived, ..self }
    }

    /// The same, by an unknown number of workers.
    pub(super) fn of_any_concurrency(self) -> Self {
        Self { concurrency: None, ..self }
    }
}

/// A figure with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// The mean time of one operation.
    MeanSeconds(Seconds),
    /// Operations completed per second.
    PerSecond(PerSecond),
    /// The wall time of a whole program.
    WallSeconds(Seconds),
}

impl Value {
    /// What it is a figure of.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::MeanSeconds(_) => Quantity::Latency,
            Self::PerSecond(_) => Quantity::Throughput,
            Self::WallSeconds(_) => Quantity::WallTime,
        }
    }

    /// In the unit of [`Value::quantity`]: nanoseconds, or operations per second.
    #[must_use]
    pub fn in_unit_of_quantity(self) -> f64 {
        match self {
            Self::MeanSeconds(Seconds(seconds)) | Self::WallSeconds(Seconds(seconds)) => {
                seconds * 1e9
            }
            Self::PerSecond(PerSecond(rate)) => rate,
        }
    }
}

/// What a source concludes, beside what its figures give when computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conclusion {
    /// About what.
    pub subject: String,
    /// What the source says.
    pub says: String,
    /// What follows from its figures.
    pub computed: String,
}

impl Conclusion {
    pub(super) fn new(subject: &str, says: impl Into<String>, computed: impl Into<String>) -> Self {
        Self { subject: subject.into(), says: says.into(), computed: computed.into() }
    }
}
