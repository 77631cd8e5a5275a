//! JCOP cards: the operations of a trusted-execution firmware on four Java Cards.

use serde::Deserialize;

use super::series::{Conclusion, Figure, Item, Value};
use super::{Figures, Reference};
use crate::figures::{Provenance, Range, Seconds};

pub(super) const NAME: &str = "jcop-cards";
pub(super) const TEXT: &str = include_str!("../../../../reference/jcop-cards.toml");

/// The figures of the JCOP cards.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JcopCards {
    /// Who published it.
    source: String,
    /// The cards, in the order of the source.
    #[serde(rename = "card")]
    pub cards: Vec<JcopCard>,
}

/// One card.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JcopCard {
    /// Its model, as the source names it.
    pub name: String,
    /// Its shape.
    pub form: CardForm,
    /// What its operations took.
    pub seconds: JcopTimes,
}

/// The shape of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CardForm {
    /// A whole card (ISO 7810 ID-1).
    Card,
    /// A small one (ID-000), here in a USB token.
    Sim,
}

/// Mean times of the source's eleven operations. Which APDUs each sends is told in the file.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JcopTimes {
    /// One APDU that returns the firmware's version.
    pub simple_apdu: Seconds,
    /// 490 bytes sent and released.
    pub post_buffer: Seconds,
    /// 3DES, 24 bytes.
    pub devchip_decrypt_3des: Seconds,
    /// 3DES, 120 bytes.
    pub devchip_decrypt_3des_long: Seconds,
    /// RSA 2048, one block.
    pub devchip_decrypt_rsa_long: Seconds,
    /// A program of 3 instructions loaded and run.
    pub blank_sec: Seconds,
    /// The same, encrypted under 3DES.
    pub blank_bound_secpack_3des: Seconds,
    /// The same, encrypted under RSA.
    pub blank_bound_secpack_rsa: Seconds,
    /// About 1,000 interpreted instructions.
    pub vm_perf: Seconds,
    /// The same, encrypted under 3DES.
    pub vm_perf_bound_3des: Seconds,
    /// The same, encrypted under RSA.
    pub vm_perf_bound_rsa: Seconds,
}

impl JcopTimes {
    /// All operations, by the source's names.
    #[must_use]
    pub const fn all(&self) -> [(&'static str, Seconds); 11] {
        [
            ("simple_apdu", self.simple_apdu),
            ("post_buffer", self.post_buffer),
            ("devchip_decrypt_3des", self.devchip_decrypt_3des),
            ("devchip_decrypt_3des_long", self.devchip_decrypt_3des_long),
            ("devchip_decrypt_rsa_long", self.devchip_decrypt_rsa_long),
            ("blank_sec", self.blank_sec),
            ("blank_bound_secpack_3des", self.blank_bound_secpack_3des),
            ("blank_bound_secpack_rsa", self.blank_bound_secpack_rsa),
            ("vm_perf", self.vm_perf),
            ("vm_perf_bound_3des", self.vm_perf_bound_3des),
            ("vm_perf_bound_rsa", self.vm_perf_bound_rsa),
        ]
    }
}

impl JcopCard {
    /// The time of each operation over that of another card: above 1, this one is slower.
    pub fn ratios_to<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = f64> + 'a {
        let pairs = self.seconds.all().into_iter().zip(other.seconds.all());
        pairs.map(|((_, mine), (_, theirs))| mine.0 / theirs.0)
    }

    /// How much longer RSA takes than 3DES, at the long size.
    #[must_use]
    pub fn rsa_to_3des_long(&self) -> f64 {
        self.seconds.devchip_decrypt_rsa_long.0 / self.seconds.devchip_decrypt_3des_long.0
    }

    /// Whether its chip is of the JCOP41 line.
    #[must_use]
    pub fn is_jcop41(&self) -> bool {
        self.name.contains("JCOP41")
    }
}

impl JcopCards {
    /// The cards of the JCOP41 line.
    #[must_use]
    pub fn jcop41(&self) -> Vec<&JcopCard> {
        self.cards.iter().filter(|card| card.is_jcop41()).collect()
    }

    /// The cards of the line before it, JCOP31.
    #[must_use]
    pub fn jcop31(&self) -> Vec<&JcopCard> {
        self.cards.iter().filter(|card| !card.is_jcop41()).collect()
    }

    /// The smallest and the largest ratio of any operation of some cards to another card's.
    #[must_use]
    pub fn ratio_range(cards: &[&JcopCard], to: &JcopCard) -> Option<Range> {
        range(cards.iter().flat_map(|card| card.ratios_to(to)))
    }

    /// The later JCOP41 revisions over the first, v2.2.
    #[must_use]
    pub fn between_revisions(&self) -> Option<Range> {
        let jcop41 = self.jcop41();
        let (first, later) = jcop41.split_first()?;
        Self::ratio_range(later, first)
    }

    /// JCOP31 over JCOP41 v2.2.
    #[must_use]
    pub fn jcop31_to_jcop41(&self) -> Option<Range> {
        Self::ratio_range(&self.jcop31(), self.jcop41().first()?)
    }

    /// RSA over 3DES at the long size, on these cards.
    #[must_use]
    pub fn rsa_to_3des_long(cards: &[&JcopCard]) -> Option<Range> {
        range(cards.iter().map(|card| card.rsa_to_3des_long()))
    }

    /// Mean latencies as `card.simple_apdu` and so on.
    pub(super) fn series(&self) -> Vec<Item> {
        let figures = |card: &JcopCard| {
            let times = card.seconds.all().into_iter();
            times
                .map(|(name, seconds)| {
                    Figure::published(format!("card.{name}"), Value::MeanSeconds(seconds))
                })
                .collect()
        };
        self.cards.iter().map(|card| Item::new(&card.name, figures(card))).collect()
    }

    pub(super) fn conclusions(&self) -> Vec<Conclusion> {
        let times = |range: Option<Range>| {
            range.map_or_else(String::new, |Range { low, high }| {
                if low == high {
                    format!("{low:.1} times")
                } else {
                    format!("{low:.2} to {high:.2} times")
                }
            })
        };
        vec![
            Conclusion::new(
                "between revisions of JCOP41",
                "1.5 to 2 times",
                times(self.between_revisions()),
            ),
            Conclusion::new(
                "JCOP31 to JCOP41 v2.2",
                "2 to 4 times",
                times(self.jcop31_to_jcop41()),
            ),
            Conclusion::new(
                "RSA to 3DES, long, on JCOP41",
                "4 to 8 times",
                times(Self::rsa_to_3des_long(&self.jcop41())),
            ),
            Conclusion::new(
                "RSA to 3DES, long, on JCOP31",
                "3 times",
                times(Self::rsa_to_3des_long(&self.jcop31())),
            ),
        ]
    }
}

/// From the smallest to the largest; `None` of nothing.
fn range(values: impl Iterator<Item = f64>) -> Option<Range> {
    let wider =
        |range: Range, value: f64| Range { low: range.low.min(value), high: range.high.max(value) };
    values.map(|value| Range { low: value, high: value }).reduce(|all, one| wider(all, one.low))
}

pub(super) fn reference() -> Reference {
    let figures: JcopCards =
        toml::from_str(TEXT).expect("the file is compiled in, and a test reads it");
    Reference {
        name: NAME,
        source: figures.source.clone(),
        provenance: Provenance::Published,
        figures: Figures::JcopCards(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards() -> JcopCards {
        let Figures::JcopCards(cards) = reference().figures else { panic!("another reference") };
        cards
    }

    fn rounded(range: Option<Range>, decimals: i32) -> (f64, f64) {
        let Range { low, high } = range.unwrap();
        let round = |value: f64| (value * 10f64.powi(decimals)).round() / 10f64.powi(decimals);
        (round(low), round(high))
    }

    #[test]
    fn revisions_of_one_chip_differ_more_than_the_post_says() {
        assert_eq!(rounded(cards().between_revisions(), 2), (1.03, 3.28), "post: 1.5-2");
    }

    #[test]
    fn jcop31_is_slower_by_more_than_the_post_says() {
        assert_eq!(rounded(cards().jcop31_to_jcop41(), 1), (2.0, 10.7), "post: 2-4");
    }

    #[test]
    fn rsa_against_3des_at_the_long_size() {
        let cards = cards();
        let jcop41 = JcopCards::rsa_to_3des_long(&cards.jcop41());
        assert_eq!(rounded(jcop41, 1), (4.9, 9.2), "post: 4-8");
        let jcop31 = JcopCards::rsa_to_3des_long(&cards.jcop31());
        assert_eq!(rounded(jcop31, 1), (3.1, 3.1), "post: 3");
    }

    /// The post's own order: what is called v2.2 is the fastest in every operation.
    #[test]
    fn the_first_card_is_the_fastest_in_everything() {
        let cards = cards();
        assert_eq!(cards.cards.len(), 4);
        assert_eq!(cards.cards[0].name, "NXP JCOP41 v2.2/72k");
        for card in &cards.cards[1..] {
            assert!(card.ratios_to(&cards.cards[0]).all(|ratio| ratio > 1.0), "{}", card.name);
        }
    }
}
