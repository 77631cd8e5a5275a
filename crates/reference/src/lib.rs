//! Figures that others have published, shipped as data to compare new measurements with.
//!
//! The files lie in the workspace's `reference` folder, one for each source, and are compiled in.
//! A figure is addressed by its path in the file, and arithmetic on figures is written with such
//! paths; no source needs code of its own. `reference/README.md` describes the files.
//!
//! ```
//! let door = tapstone_reference::load("piv-door")?;
//!
//! let card = door.number("rsa2048.processing_ms.card")?;
//! assert_eq!(card, 1367.0);
//!
//! // `*` stands for every value of a table or a list.
//! let transfer = door.number("sum(rsa2048.transfer_ms.*)")?;
//! assert_eq!(transfer, 1011.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What a source measured is in [`Reference::items`], under the names that Tapstone gives to
//! operations; what it concludes is in [`Reference::conclusions`], beside what its figures give:
//!
//! ```
//! use tapstone_reference::PublishedValue;
//!
//! let hsm = tapstone_reference::load("hsm-speed")?;
//! let three_cards = hsm.items().into_iter().find(|item| item.name == "three cards").unwrap();
//! assert_eq!(three_cards.figures[0].operation, "rsa1024.sign");
//! assert_eq!(three_cards.figures[0].value.in_unit_of_quantity(), 39_353.0);
//!
//! let records = &hsm.conclusions()[1];
//! assert_eq!(records.says, "7,000,000 in less than 3 minutes");
//! assert_eq!(records.computed, "178 s");
//! # Ok::<(), tapstone_reference::UnknownReference>(())
//! ```
#![forbid(unsafe_code)]

mod document;
mod expression;
mod template;
mod view;

#[cfg(test)]
mod published;

use tapstone_record::Provenance;
use thiserror::Error;

pub use self::document::{PathError, PublishedTime};
pub use self::expression::ExpressionError;
pub use self::view::{PublishedFigure, PublishedItem, PublishedValue, SourceConclusion};

use self::document::Document;
use self::view::View;

/// The files, by name.
const FILES: &[(&str, &str)] = &[
    ("hsm-speed", include_str!("../../../reference/hsm-speed.toml")),
    ("jcop-cards", include_str!("../../../reference/jcop-cards.toml")),
    ("pcsc-lite", include_str!("../../../reference/pcsc-lite.toml")),
    ("piv-door", include_str!("../../../reference/piv-door.toml")),
    ("ppp-protocol-lookup", include_str!("../../../reference/ppp-protocol-lookup.toml")),
];

/// What one source has published.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The name that it is loaded by.
    pub name: &'static str,
    /// Who published it, and where.
    pub source: String,
    /// Always [`Provenance::Published`]: whoever shows a figure of it says so.
    pub provenance: Provenance,
    document: Document,
    view: View,
}

impl Reference {
    /// What an expression over the file's figures gives: a path alone (`sca6000.claim.cards`), or
    /// arithmetic (`+ - * /`, parentheses, `sum`, `min`, `max`).
    ///
    /// The unit is that of the figures; their names say it.
    ///
    /// # Errors
    /// When it is no expression, a path leads to no figure, or there is more than one value.
    pub fn number(&self, expression: &str) -> Result<f64, ExpressionError> {
        expression::number(&self.document, expression)
    }

    /// All that an expression gives, in the order of the file's lists and of its tables' keys.
    ///
    /// # Errors
    /// As [`Reference::number`], but that more than one value is right.
    pub fn numbers(&self, expression: &str) -> Result<Vec<f64>, ExpressionError> {
        expression::numbers(&self.document, expression)
    }

    /// The time at a path, whose words tell its unit: `_ms`, `_us` or `_seconds` at the end of one.
    ///
    /// # Errors
    /// When the path leads to no figure, or to one that is no time.
    pub fn time(&self, path: &str) -> Result<PublishedTime, PathError> {
        self.document.time(path)
    }

    /// Its figures by item (card, device, version) and operation, for comparing.
    #[must_use]
    pub fn items(&self) -> Vec<PublishedItem> {
        self.view.items(&self.document).expect("the file is compiled in, and a test reads it")
    }

    /// What the source concludes, beside what its figures give when computed.
    #[must_use]
    pub fn conclusions(&self) -> Vec<SourceConclusion> {
        self.view.conclusions(&self.document).expect("the file is compiled in, and a test reads it")
    }
}

/// The names of all references, in alphabetical order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// The reference of this name.
///
/// # Errors
/// When there is none: the error lists those that there are.
pub fn load(name: &str) -> Result<Reference, UnknownReference> {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return Err(UnknownReference { name: name.to_owned() });
    };
    let read = "the file is compiled in, and a test reads it";
    let view: View = toml::from_str(text).expect(read);
    let document = Document::new(toml::from_str(text).expect(read));
    let source = view.source.clone();
    Ok(Reference { name, source, provenance: Provenance::Published, document, view })
}

/// There is no reference of this name.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("there is no reference \"{name}\"\nhint: known references are {}", names().join(", "))]
pub struct UnknownReference {
    /// The name asked for.
    pub name: String,
}
