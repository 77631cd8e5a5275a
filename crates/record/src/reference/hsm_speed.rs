//! hsm-speed: RSA signatures on three SCA6000 cards, against the rate of their data sheet.

use serde::Deserialize;
use tapstone_measure::units::{PerSecond, thousands};

use super::series::{Conclusion, Figure, Item, Value};
use super::{Figures, Reference};
use crate::figures::{Provenance, Seconds};

pub(super) const NAME: &str = "hsm-speed";
pub(super) const TEXT: &str = include_str!("../../../../reference/hsm-speed.toml");

/// The figures of hsm-speed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HsmSpeed {
    /// Who published it.
    source: String,
    /// On Sun's SCA6000 cards in a Sun Fire T2000 (32 hardware threads).
    pub sca6000: Sca6000,
}

/// RSA-1024 private-key operations on SCA6000 cards.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sca6000 {
    /// What the data sheet promises.
    pub claim: RateClaim,
    /// One card, asked by one thread.
    #[serde(rename = "one_thread_per_second")]
    pub one_thread: PerSecond,
    /// One card, asked by as many threads as raise its rate.
    #[serde(rename = "one_card_many_threads_per_second")]
    pub one_card_many_threads: PerSecond,
    /// Three cards together.
    #[serde(rename = "three_cards_per_second")]
    pub three_cards: PerSecond,
    /// The job that the rate is enough for.
    pub records: RecordsSigned,
}

/// A rate that a data sheet promises.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateClaim {
    /// The operation, in the data sheet's words.
    pub operation: String,
    /// The length of the key's modulus, in bits.
    pub key_bits: u32,
    /// The rate, in operations per second.
    pub per_second: PerSecond,
    /// For how many cards together.
    pub cards: u32,
}

/// DNS records signed in one go.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordsSigned {
    /// How many.
    pub count: u64,
    /// In fewer minutes than this.
    pub minutes_less_than: u32,
}

impl Sca6000 {
    /// The rate that the data sheet promises of one card.
    #[must_use]
    pub fn claimed_by_card(&self) -> PerSecond {
        PerSecond(self.claim.per_second.0 / f64::from(self.claim.cards))
    }

    /// How long the three cards take for the records.
    #[must_use]
    pub fn time_for_records(&self) -> Seconds {
        Seconds(self.records.count as f64 / self.three_cards.0)
    }
}

impl HsmSpeed {
    /// Rates as `rsa1024.sign`. How many threads "many" are, the source does not say.
    pub(super) fn series(&self) -> Vec<Item> {
        let item = |name, rate: PerSecond| {
            let figure = Figure::published("rsa1024.sign", Value::PerSecond(rate));
            Item::new(name, vec![figure.of_any_concurrency()])
        };
        let Sca6000 { one_thread, one_card_many_threads, three_cards, .. } = self.sca6000;
        let alone = Figure::published("rsa1024.sign", Value::PerSecond(one_thread));
        vec![
            Item::new("one card, one thread", vec![alone]),
            item("data sheet, one card", self.sca6000.claimed_by_card()),
            item("one card, many threads", one_card_many_threads),
            item("three cards", three_cards),
        ]
    }

    pub(super) fn conclusions(&self) -> Vec<Conclusion> {
        let of = &self.sca6000;
        vec![
            Conclusion::new(
                "a card keeps its data sheet's promise",
                format!("{} promised, {} measured", of.claim.per_second, of.one_card_many_threads),
                format!(
                    "{:.1} % of what was promised",
                    100.0 * of.one_card_many_threads.0 / of.claimed_by_card().0
                ),
            ),
            Conclusion::new(
                "records signed by three cards",
                format!(
                    "{} in less than {} minutes",
                    thousands(of.records.count),
                    of.records.minutes_less_than
                ),
                format!("{:.0} s", of.time_for_records().0),
            ),
            Conclusion::new(
                "many threads against one",
                "nothing",
                format!("×{:.2}", of.one_card_many_threads.0 / of.one_thread.0),
            ),
        ]
    }
}

pub(super) fn reference() -> Reference {
    let figures: HsmSpeed =
        toml::from_str(TEXT).expect("the file is compiled in, and a test reads it");
    Reference {
        name: NAME,
        source: figures.source.clone(),
        provenance: Provenance::Published,
        figures: Figures::HsmSpeed(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source's conclusions follow from its figures.
    #[test]
    fn its_arithmetic_holds() {
        let Figures::HsmSpeed(HsmSpeed { sca6000, .. }) = reference().figures else {
            panic!("another reference")
        };
        let claimed = sca6000.claimed_by_card().0;
        assert!(
            sca6000.one_card_many_threads.0 >= claimed,
            "a card keeps its data sheet's promise"
        );
        assert!(sca6000.three_cards.0 / 3.0 >= claimed, "and so does each of three");

        let seconds = sca6000.time_for_records().0;
        assert!(seconds < 60.0 * f64::from(sca6000.records.minutes_less_than));
        assert_eq!(seconds.round(), 178.0);

        let speedup = sca6000.one_card_many_threads.0 / sca6000.one_thread.0;
        assert_eq!(speedup, 8.25, "one thread waits, and leaves the card idle");
    }
}
