//! pcsc-lite: one PC/SC call, and whole programs, before and after a hidden sleep was removed.

use serde::Deserialize;

use super::series::{Conclusion, Figure, Item, Value};
use super::{Figures, Reference};
use crate::figures::{Provenance, Seconds};

pub(super) const NAME: &str = "pcsc-lite";
pub(super) const TEXT: &str = include_str!("../../../../reference/pcsc-lite.toml");

/// The figures of pcsc-lite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PcscLite {
    /// Who published it.
    source: String,
    /// SCardEndTransaction alone.
    pub end_transaction: EndTransaction,
    /// `pkcs11-tool --list-objects` as a whole.
    pub list_objects: ListObjects,
}

/// 100 pairs of SCardBeginTransaction and SCardEndTransaction, of which only the latter was timed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndTransaction {
    /// With the sleep.
    #[serde(rename = "before_mean_s")]
    pub before_mean: Seconds,
    /// Without it.
    #[serde(rename = "after_mean_s")]
    pub after_mean: Seconds,
    /// What the source says was gained, from means that it does not round.
    pub speedup: f64,
    /// What else it saw.
    pub note: String,
}

impl EndTransaction {
    /// What was gained, from the rounded means.
    #[must_use]
    pub fn speedup_of_rounded_means(&self) -> f64 {
        self.before_mean.0 / self.after_mean.0
    }
}

/// Wall times of a shell loop around a program, by card.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListObjects {
    /// On a card that is itself slow.
    pub gpk8000: Loop,
    /// On a card that is fast.
    pub yubikey5: Loop,
}

/// A shell loop around a program.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loop {
    /// How often the program ran.
    pub rounds: u32,
    /// The whole loop, with the sleep.
    #[serde(rename = "before_s")]
    pub before: Seconds,
    /// The whole loop, without it.
    #[serde(rename = "after_s")]
    pub after: Seconds,
    /// What the source says was gained.
    pub speedup: f64,
}

impl Loop {
    /// What was gained: 3.26 is 3.26 times as fast.
    #[must_use]
    pub fn computed_speedup(&self) -> f64 {
        self.before.0 / self.after.0
    }

    fn one_round(&self, whole: Seconds) -> Value {
        Value::WallSeconds(Seconds(whole.0 / f64::from(self.rounds)))
    }
}

impl PcscLite {
    /// The version with the sleep, and the first without it.
    pub(super) fn series(&self) -> Vec<Item> {
        let programs = |one: fn(&Loop) -> Seconds| {
            let loops =
                [("gpk8000", self.list_objects.gpk8000), ("yubikey5", self.list_objects.yubikey5)];
            loops.map(|(card, of)| {
                let operation = format!("command.pkcs11-tool-list-objects.{card}");
                Figure::published(operation, of.one_round(one(&of))).derived()
            })
        };
        let item = |name, mean: Seconds, whole: fn(&Loop) -> Seconds| {
            let call = Figure::published("pcsc.end_transaction", Value::MeanSeconds(mean));
            Item::new(name, [call].into_iter().chain(programs(whole)).collect())
        };
        vec![
            item("pcsc-lite 1.8.25", self.end_transaction.before_mean, |of| of.before),
            item("without the sleep", self.end_transaction.after_mean, |of| of.after),
        ]
    }

    pub(super) fn conclusions(&self) -> Vec<Conclusion> {
        let call = &self.end_transaction;
        let program = |subject, of: &Loop| {
            Conclusion::new(
                subject,
                format!("×{:.2}", of.speedup),
                format!(
                    "×{:.2}, from the wall time of {} runs: {:.2} and {:.2} s",
                    of.computed_speedup(),
                    of.rounds,
                    of.before.0,
                    of.after.0
                ),
            )
        };
        vec![
            Conclusion::new(
                "SCardEndTransaction",
                format!("×{:.0}, from unrounded means", call.speedup),
                format!("×{:.0}, from the rounded means", call.speedup_of_rounded_means()),
            ),
            program("pkcs11-tool on a GPK8000", &self.list_objects.gpk8000),
            program("pkcs11-tool on a YubiKey 5", &self.list_objects.yubikey5),
        ]
    }
}

pub(super) fn reference() -> Reference {
    let figures: PcscLite =
        toml::from_str(TEXT).expect("the file is compiled in, and a test reads it");
    Reference {
        name: NAME,
        source: figures.source.clone(),
        provenance: Provenance::Published,
        figures: Figures::PcscLite(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> PcscLite {
        let Figures::PcscLite(figures) = reference().figures else { panic!("another reference") };
        figures
    }

    #[test]
    fn the_gain_on_the_call_follows_from_the_rounded_means_within_three_percent() {
        let call = figures().end_transaction;
        assert_eq!(call.speedup, 647.0);
        assert_eq!(call.speedup_of_rounded_means().round(), 632.0);
        assert!((call.speedup_of_rounded_means() / call.speedup - 1.0).abs() < 0.03);
    }

    #[test]
    fn the_gain_on_whole_programs_is_the_sources() {
        let ListObjects { gpk8000, yubikey5 } = figures().list_objects;
        for (of, says) in [(gpk8000, 1.02), (yubikey5, 3.26)] {
            assert_eq!(of.speedup, says);
            assert_eq!((of.computed_speedup() * 100.0).round() / 100.0, says);
        }
    }

    #[test]
    fn a_round_of_a_program_is_a_part_of_its_loop() {
        let series = figures().series();
        let value = |item: usize, figure: usize| series[item].figures[figure].value;
        assert_eq!(value(0, 1), Value::WallSeconds(Seconds(2.334)));
        assert_eq!(value(1, 2), Value::WallSeconds(Seconds(0.0302)));
        assert_eq!(series[1].figures[2].provenance, Provenance::Derived);
    }
}
