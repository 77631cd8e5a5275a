//! One view of all references, for comparing: named items with figures by operation, and what the
//! source concludes.

use serde::{Deserialize, Serialize};
use tapstone_measure::units::PerSecond;
use tapstone_record::{Concurrency, Provenance, Quantity, Seconds};

use crate::document::Document;
use crate::expression::{self, ExpressionError};
use crate::template::fill_in;

/// A thing that a source has figures of: a card, a device, a version of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedItem {
    /// What the source calls it.
    pub name: String,
    /// Its figures, one for each operation.
    pub figures: Vec<PublishedFigure>,
}

/// A published figure, under the name that Tapstone gives to the operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedFigure {
    /// The operation, as in a record: `card.simple_apdu`.
    pub operation: String,
    /// The figure, with its unit.
    pub value: PublishedValue,
    /// How many workers; `None` when the source does not say.
    pub concurrency: Option<Concurrency>,
    /// [`Provenance::Published`], or [`Provenance::Derived`] where it was computed from published
    /// figures.
    pub provenance: Provenance,
}

/// A figure with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValue {
    /// The mean time of one operation.
    MeanSeconds(Seconds),
    /// Operations completed per second.
    PerSecond(PerSecond),
    /// The wall time of a whole program.
    WallSeconds(Seconds),
}

impl PublishedValue {
    /// What it is a figure of.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Self::MeanSeconds(_) => Quantity::Latency,
            Self::PerSecond(_) => Quantity::Throughput,
            Self::WallSeconds(_) => Quantity::WallTime,
        }
    }

    /// In the unit of [`PublishedValue::quantity`]: nanoseconds, or operations per second.
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
pub struct SourceConclusion {
    /// What the conclusion is about.
    pub subject: String,
    /// What the source says.
    pub says: String,
    /// What follows from its figures.
    pub computed: String,
}

/// What a file holds besides its figures: `source`, `[[item]]` and `[[conclusion]]`. What these
/// show are still expressions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct View {
    pub(crate) source: String,
    item: Vec<ItemEntry>,
    conclusion: Vec<ConclusionEntry>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemEntry {
    /// A template of the item's name.
    name: String,
    /// The path of a list: there is one item for each of its elements, and the paths of the name
    /// and the figures begin there.
    each: Option<String>,
    figures: Vec<FigureEntry>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureEntry {
    operation: String,
    value: ValueEntry,
    #[serde(default)]
    workers: Workers,
    #[serde(default = "published")]
    provenance: Provenance,
}

/// What is measured, and the expression that gives it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ValueEntry {
    MeanSeconds(String),
    PerSecond(String),
    WallSeconds(String),
}

/// How many workers made a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Workers {
    #[default]
    One,
    /// The source does not say.
    Unknown,
}

const fn published() -> Provenance {
    Provenance::Published
}

/// All three are templates.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionEntry {
    subject: String,
    says: String,
    computed: String,
}

impl View {
    pub(crate) fn items(&self, document: &Document) -> Result<Vec<PublishedItem>, ExpressionError> {
        let mut items = Vec::new();
        for entry in &self.item {
            match &entry.each {
                None => items.push(entry.item_from(document)?),
                Some(path) => {
                    for element in document.elements(path)? {
                        items.push(entry.item_from(&element)?);
                    }
                }
            }
        }
        Ok(items)
    }

    pub(crate) fn conclusions(
        &self,
        document: &Document,
    ) -> Result<Vec<SourceConclusion>, ExpressionError> {
        let filled = |entry: &ConclusionEntry| {
            Ok(SourceConclusion {
                subject: fill_in(document, &entry.subject)?,
                says: fill_in(document, &entry.says)?,
                computed: fill_in(document, &entry.computed)?,
            })
        };
        self.conclusion.iter().map(filled).collect()
    }
}

impl ItemEntry {
    fn item_from(&self, document: &Document) -> Result<PublishedItem, ExpressionError> {
        let figures = self.figures.iter().map(|figure| figure.figure_from(document));
        Ok(PublishedItem {
            name: fill_in(document, &self.name)?,
            figures: figures.collect::<Result<_, _>>()?,
        })
    }
}

impl FigureEntry {
    fn figure_from(&self, document: &Document) -> Result<PublishedFigure, ExpressionError> {
        let number = |expression: &str| expression::number(document, expression);
        let value = match &self.value {
            ValueEntry::MeanSeconds(of) => PublishedValue::MeanSeconds(Seconds(number(of)?)),
            ValueEntry::PerSecond(of) => PublishedValue::PerSecond(PerSecond(number(of)?)),
            ValueEntry::WallSeconds(of) => PublishedValue::WallSeconds(Seconds(number(of)?)),
        };
        let concurrency = match self.workers {
            Workers::One => Some(Concurrency::ONE),
            Workers::Unknown => None,
        };
        let Self { operation, provenance, .. } = self;
        let operation = operation.clone();
        Ok(PublishedFigure { operation, value, concurrency, provenance: *provenance })
    }
}
