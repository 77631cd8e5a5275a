//! Figures that others have published, shipped as data to compare new measurements with.
//!
//! The files lie in the workspace's `reference` folder, one for each source, and are compiled in.
//! Each has types in the shape of its source, with the arithmetic that the source's conclusions
//! rest on; [`Reference::series`] and [`Reference::conclusions`] are the view that all share.

mod hsm_speed;
mod jcop_cards;
mod pcsc_lite;
mod piv_door;
mod ppp_protocol_lookup;
mod series;

use thiserror::Error;

pub use hsm_speed::{HsmSpeed, RateClaim, RecordsSigned, Sca6000};
pub use jcop_cards::{CardForm, JcopCard, JcopCards, JcopTimes};
pub use pcsc_lite::{EndTransaction, ListObjects, Loop, PcscLite};
pub use piv_door::{
    DoorExtra, DoorFacts, DoorParts, DoorProcessing, DoorTarget, DoorTransfer, DoorWhatIf,
    MeanOfRuns, MeasuredCak, Millis, PivDoor,
};
pub use ppp_protocol_lookup::{
    CallCost, PppProtocolLookup, ProgramTimes, Transfer, TransferClaims,
};
pub use series::{Conclusion, Figure, Item, Value};

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
    /// Four JCOP cards.
    JcopCards(JcopCards),
    /// pcsc-lite with and without a hidden sleep.
    PcscLite(PcscLite),
    /// A PIV card at a door.
    PivDoor(PivDoor),
    /// ppp with and without a lookup for every packet.
    PppProtocolLookup(PppProtocolLookup),
}

impl Reference {
    /// Its figures by item (card, device, version) and operation, for comparing.
    #[must_use]
    pub fn series(&self) -> Vec<Item> {
        match &self.figures {
            Figures::HsmSpeed(of) => of.series(),
            Figures::JcopCards(of) => of.series(),
            Figures::PcscLite(of) => of.series(),
            Figures::PivDoor(of) => of.series(),
            Figures::PppProtocolLookup(of) => of.series(),
        }
    }

    /// What the source concludes, beside what its figures give when computed.
    #[must_use]
    pub fn conclusions(&self) -> Vec<Conclusion> {
        match &self.figures {
            Figures::HsmSpeed(of) => of.conclusions(),
            Figures::JcopCards(of) => of.conclusions(),
            Figures::PcscLite(of) => of.conclusions(),
            Figures::PivDoor(of) => of.conclusions(),
            Figures::PppProtocolLookup(of) => of.conclusions(),
        }
    }
}

/// The references that there are.
pub const NAMES: &[&str] = &[
    hsm_speed::NAME,
    jcop_cards::NAME,
    pcsc_lite::NAME,
    piv_door::NAME,
    ppp_protocol_lookup::NAME,
];

/// The reference of this name.
///
/// # Errors
/// When there is none: the error lists those that there are.
pub fn load(name: &str) -> Result<Reference, UnknownReference> {
    match name {
        hsm_speed::NAME => Ok(hsm_speed::reference()),
        jcop_cards::NAME => Ok(jcop_cards::reference()),
        pcsc_lite::NAME => Ok(pcsc_lite::reference()),
        piv_door::NAME => Ok(piv_door::reference()),
        ppp_protocol_lookup::NAME => Ok(ppp_protocol_lookup::reference()),
        _ => Err(UnknownReference { name: name.to_owned() }),
    }
}

/// The file of the reference of this name, as it is in the folder `reference`.
///
/// # Errors
/// When there is none.
pub fn text(name: &str) -> Result<&'static str, UnknownReference> {
    match name {
        hsm_speed::NAME => Ok(hsm_speed::TEXT),
        jcop_cards::NAME => Ok(jcop_cards::TEXT),
        pcsc_lite::NAME => Ok(pcsc_lite::TEXT),
        piv_door::NAME => Ok(piv_door::TEXT),
        ppp_protocol_lookup::NAME => Ok(ppp_protocol_lookup::TEXT),
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
    fn every_reference_can_be_compared_with_and_concludes_something() {
        for name in NAMES {
            let reference = load(name).unwrap();
            let figures: Vec<Figure> =
                reference.series().into_iter().flat_map(|item| item.figures).collect();
            assert!(!figures.is_empty() && !reference.conclusions().is_empty(), "{name}");
            for figure in figures {
                assert!(figure.value.in_unit_of_quantity() > 0.0, "{name}: {figure:?}");
                assert_ne!(figure.provenance, Provenance::Measured);
            }
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let text = load("hsm-slow").unwrap_err().to_string();
        assert!(text.contains("\"hsm-slow\""), "{text}");
        assert!(text.ends_with(&format!("hint: known references are {}", NAMES.join(", "))));
    }
}
