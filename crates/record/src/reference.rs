//! Figures that others have published, shipped as data to compare new measurements with.
//!
//! The files lie in the workspace's `reference` folder, one for each source, and are compiled in.

mod hsm_speed;

use thiserror::Error;

pub use hsm_speed::{HsmSpeed, RateClaim, RecordsSigned, Sca6000};

use crate::figures::Provenance;

/// What one source has published.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The name that it is loaded by.
    pub name: &'static str,
    /// Who published it, and where.
    pub source: String,
    /// Always [`Provenance::Published`]: whoever shows a figure of it says so.
    pub provenance: Provenance,
    /// The figures.
    pub figures: Figures,
}

/// The figures of a source, in the shape of that source.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Figures {
    /// hsm-speed on SCA6000 cards.
    HsmSpeed(HsmSpeed),
}

/// The references that there are.
pub const NAMES: &[&str] = &[hsm_speed::NAME];

/// The reference of this name.
///
/// # Errors
/// When there is none: the error lists those that there are.
pub fn load(name: &str) -> Result<Reference, UnknownReference> {
    match name {
        hsm_speed::NAME => Ok(hsm_speed::reference()),
        _ => Err(UnknownReference { name: name.to_owned() }),
    }
}

/// There is no reference of this name.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("there is no reference \"{name}\"\nhint: known references are {}", NAMES.join(", "))]
pub struct UnknownReference {
    /// The name asked for.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_loads_and_says_where_it_is_from() {
        for name in NAMES {
            let reference = load(name).unwrap();
            assert_eq!(reference.name, *name);
            assert_eq!(reference.provenance, Provenance::Published);
            assert!(!reference.source.is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let text = load("hsm-slow").unwrap_err().to_string();
        assert!(
            text.contains("\"hsm-slow\"") && text.ends_with("hint: known references are hsm-speed")
        );
    }
}
