//! A PIV card at a door: where the seconds go, and five cards at a contact reader.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::series::{Conclusion, Figure, Item, Value};
use super::{Figures, Reference};
use crate::figures::{Fraction, Provenance, Seconds};

pub(super) const NAME: &str = "piv-door";
pub(super) const TEXT: &str = include_str!("../../../../reference/piv-door.toml");

/// A length of time in milliseconds, as this source publishes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub f64);

impl Millis {
    /// The same length in seconds.
    #[must_use]
    pub fn seconds(self) -> Seconds {
        Seconds(self.0 / 1e3)
    }
}

/// The figures of a PIV card at a door.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PivDoor {
    /// Who published it.
    source: String,
    /// PKI authentication with RSA 2048, part by part.
    pub rsa2048: DoorParts,
    /// Not in the parts.
    #[serde(rename = "extra_ms")]
    pub extra: DoorExtra,
    /// Measured at a door, card detected to Wiegand transfer complete, 10 runs each.
    #[serde(rename = "measured_cak_seconds")]
    pub measured_cak: MeasuredCak,
    /// What a transaction may take.
    #[serde(rename = "target_ms")]
    pub target: DoorTarget,
    /// The source's own projections.
    #[serde(rename = "what_if_ms")]
    pub what_if: DoorWhatIf,
    /// Sizes that matter.
    pub facts: DoorFacts,
    /// Totals of five cards by contact: connect, select, read the CHUID, verify the PIN, sign.
    #[serde(rename = "contact_cards_ms")]
    pub contact_cards: BTreeMap<String, Millis>,
}

/// An authentication taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorParts {
    /// On the way from one part to the next.
    #[serde(rename = "transfer_ms")]
    pub transfer: DoorTransfer,
    /// Inside the parts.
    #[serde(rename = "processing_ms")]
    pub processing: DoorProcessing,
}

/// Time on the way.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorTransfer {
    /// Card to reader.
    pub card_reader: Millis,
    /// Reader to the PKI authentication module (PAM).
    pub reader_pam: Millis,
    /// PAM to controller, by Wiegand.
    pub pam_controller: Millis,
    /// Controller to door.
    pub controller_door: Millis,
}

impl DoorTransfer {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Millis {
        let Self { card_reader, reader_pam, pam_controller, controller_door } = self;
        Millis(card_reader.0 + reader_pam.0 + pam_controller.0 + controller_door.0)
    }
}

/// Time inside the parts.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorProcessing {
    /// The card.
    pub card: Millis,
    /// The PKI authentication module.
    pub pam: Millis,
    /// The controller.
    pub controller: Millis,
}

impl DoorProcessing {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Millis {
        Millis(self.card.0 + self.pam.0 + self.controller.0)
    }
}

impl DoorParts {
    /// The whole authentication.
    #[must_use]
    pub fn total(&self) -> Millis {
        Millis(self.transfer.total().0 + self.processing.total().0)
    }
}

/// What the parts leave out.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorExtra {
    /// The card's check of its own cryptography, after power-up.
    pub card_crypto_self_check: Millis,
}

/// PKI-CAK as measured, by algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCak {
    /// RSA 2048.
    pub rsa2048: MeanOfRuns,
    /// ECC P-256.
    pub ecc_p256: MeanOfRuns,
}

/// The mean of ten runs, from a log that resolves 0.1 s.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanOfRuns {
    /// The mean.
    pub mean: Seconds,
    /// What the source puts behind ±; it does not say what it is.
    pub plus_minus: Seconds,
}

/// What a transaction may take.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorTarget {
    /// At most.
    pub transaction_max: Millis,
}

/// What the source expects of changes.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorWhatIf {
    /// ECC instead of RSA saves this.
    pub ecc_saving: Millis,
    /// Authentication in the controller saves this.
    pub authentication_in_controller_saving: Millis,
    /// What remains with ECC.
    pub ecc_total_expected: Millis,
    /// What is still to be found.
    pub still_to_find: Millis,
}

/// Sizes that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorFacts {
    /// An RSA certificate, about.
    pub rsa_certificate_bytes: u32,
    /// The lengths of identifiers.
    pub identifier_bits: [u32; 2],
}

impl PivDoor {
    /// The fastest card by contact.
    #[must_use]
    pub fn fastest_contact_card(&self) -> Option<(&str, Millis)> {
        let cards = self.contact_cards.iter().map(|(name, total)| (name.as_str(), *total));
        cards.min_by(|one, other| one.1.0.total_cmp(&other.1.0))
    }

    /// By how much each of the others exceeds the fastest, as a part of the fastest.
    #[must_use]
    pub fn contact_excess(&self) -> Vec<(&str, Fraction)> {
        let Some((fastest, least)) = self.fastest_contact_card() else { return Vec::new() };
        let others = self.contact_cards.iter().filter(|(name, _)| *name != fastest);
        others.map(|(name, total)| (name.as_str(), Fraction(total.0 / least.0 - 1.0))).collect()
    }

    /// Five contact cards as `card.piv-contact`, and the door by algorithm as `door.pki-cak`.
    pub(super) fn series(&self) -> Vec<Item> {
        let mut items: Vec<Item> = self
            .contact_cards
            .iter()
            .map(|(name, total)| {
                let value = Value::MeanSeconds(total.seconds());
                let name = name.replace('_', " ");
                Item::new(name, vec![Figure::published("card.piv-contact", value)])
            })
            .collect();
        let algorithms =
            [("RSA 2048", self.measured_cak.rsa2048), ("ECC P-256", self.measured_cak.ecc_p256)];
        items.extend(algorithms.map(|(name, of)| {
            Item::new(name, vec![Figure::published("door.pki-cak", Value::MeanSeconds(of.mean))])
        }));
        items
    }

    pub(super) fn conclusions(&self) -> Vec<Conclusion> {
        let transfer = self.rsa2048.transfer.total().0;
        let processing = self.rsa2048.processing.total().0;
        let excess: Vec<String> = self
            .contact_excess()
            .iter()
            .map(|(_, excess)| format!("{:.0} %", 100.0 * excess.0))
            .collect();
        vec![
            Conclusion::new(
                "RSA 2048 at the door",
                "1011 ms of transfer and 2667 ms of processing: 3678 ms",
                format!(
                    "{transfer} ms of transfer and {processing} ms of processing: {} ms",
                    self.rsa2048.total().0
                ),
            ),
            Conclusion::new(
                "with the card's self-check",
                "about 4 s",
                format!("{} ms", self.rsa2048.total().0 + self.extra.card_crypto_self_check.0),
            ),
            Conclusion::new(
                "contact cards over the fastest",
                "94, 54, 66 and 66 %",
                excess.join(", "),
            ),
        ]
    }
}

pub(super) fn reference() -> Reference {
    let figures: PivDoor =
        toml::from_str(TEXT).expect("the file is compiled in, and a test reads it");
    Reference {
        name: NAME,
        source: figures.source.clone(),
        provenance: Provenance::Published,
        figures: Figures::PivDoor(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> PivDoor {
        let Figures::PivDoor(door) = reference().figures else { panic!("another reference") };
        door
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let parts = door().rsa2048;
        let sums = [parts.transfer.total(), parts.processing.total(), parts.total()];
        assert_eq!(sums, [Millis(1011.0), Millis(2667.0), Millis(3678.0)]);
        let with_self_check = parts.total().0 + door().extra.card_crypto_self_check.0;
        assert_eq!((with_self_check / 1e3).round(), 4.0, "the source: about 4 s");
    }

    #[test]
    fn four_contact_cards_exceed_the_fastest_as_the_source_says() {
        let door = door();
        assert_eq!(door.fastest_contact_card(), Some(("card_1", Millis(1291.0))));
        let percent: Vec<f64> =
            door.contact_excess().iter().map(|(_, excess)| (100.0 * excess.0).round()).collect();
        assert_eq!(percent, [94.0, 54.0, 66.0, 66.0]);
    }

    #[test]
    fn the_projections_follow_from_one_another() {
        let PivDoor { what_if, target, rsa2048, .. } = door();
        let kept = rsa2048.total().0 - what_if.ecc_saving.0;
        assert!((kept - what_if.ecc_total_expected.0).abs() < 350.0, "{kept}: about 2900 ms");
        let left = what_if.ecc_total_expected.0
            - what_if.authentication_in_controller_saving.0
            - what_if.still_to_find.0;
        assert_eq!(left, target.transaction_max.0);
    }
}
