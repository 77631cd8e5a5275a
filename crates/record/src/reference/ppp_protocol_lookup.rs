//! ppp: a network program before and after it stopped looking up a protocol for every packet.

use serde::{Deserialize, Deserializer};
use tapstone_measure::compare::Percent;

use super::series::{Conclusion, Figure, Item, Value};
use super::{Figures, Reference};
use crate::figures::{Fraction, Provenance, Seconds};

pub(super) const NAME: &str = "ppp-protocol-lookup";
pub(super) const TEXT: &str = include_str!("../../../../reference/ppp-protocol-lookup.toml");

/// The figures of ppp.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PppProtocolLookup {
    /// Who published it.
    source: String,
    /// 512 blocks of 1 KiB through ssh over the link.
    pub transfer: Transfer,
    /// What calls cost on the source's machine.
    #[serde(rename = "cost_ns")]
    pub cost: CallCost,
}

/// The same transfer before and after.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// With a lookup for every packet.
    pub before: ProgramTimes,
    /// With a lookup only when its result is used.
    pub after: ProgramTimes,
    /// What the source says was gained.
    pub claims: TransferClaims,
}

/// What time(1) says of a program.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramTimes {
    /// Processor time in user mode.
    #[serde(rename = "user_s")]
    pub user: Seconds,
    /// Processor time in the kernel.
    #[serde(rename = "system_s")]
    pub system: Seconds,
    /// Wall time, published as minutes and seconds.
    #[serde(deserialize_with = "minutes_and_seconds")]
    pub wall: Seconds,
    /// The share of a processor.
    pub cpu_percent: Percent,
}

impl ProgramTimes {
    /// Processor time of both kinds: what the source calls overhead.
    #[must_use]
    pub fn processor(&self) -> Seconds {
        Seconds(self.user.0 + self.system.0)
    }
}

/// What the source says was gained.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferClaims {
    /// In the kernel, in words.
    pub system_overhead: String,
    /// In all.
    pub overall_overhead_saved_percent: Percent,
}

/// What calls cost.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCost {
    /// A function call, in nanoseconds.
    pub function_call: f64,
    /// A system call, in nanoseconds.
    pub system_call: f64,
}

impl Transfer {
    /// The part of the processor time, user and system, that the change saved.
    #[must_use]
    pub fn processor_saved(&self) -> Fraction {
        saved(self.before.processor(), self.after.processor())
    }

    /// The part of the kernel's time that it saved.
    #[must_use]
    pub fn system_saved(&self) -> Fraction {
        saved(self.before.system, self.after.system)
    }

    /// The part of the time in user mode that it saved.
    #[must_use]
    pub fn user_saved(&self) -> Fraction {
        saved(self.before.user, self.after.user)
    }

    /// By which part the share of a processor fell.
    #[must_use]
    pub fn share_saved(&self) -> Fraction {
        Fraction(1.0 - self.after.cpu_percent.0 / self.before.cpu_percent.0)
    }

    /// The part of the wall time that it saved.
    #[must_use]
    pub fn wall_saved(&self) -> Fraction {
        saved(self.before.wall, self.after.wall)
    }
}

fn saved(before: Seconds, after: Seconds) -> Fraction {
    Fraction(1.0 - after.0 / before.0)
}

impl PppProtocolLookup {
    /// The program before and after, by its wall time.
    pub(super) fn series(&self) -> Vec<Item> {
        let item = |name, of: &ProgramTimes| {
            let wall = Figure::published("command.ppp-transfer", Value::WallSeconds(of.wall));
            Item::new(name, vec![wall])
        };
        vec![
            item("a lookup for every packet", &self.transfer.before),
            item("a lookup on demand", &self.transfer.after),
        ]
    }

    pub(super) fn conclusions(&self) -> Vec<Conclusion> {
        let Transfer { before, after, claims } = &self.transfer;
        let percent = |part: Fraction| format!("{:.1} %", 100.0 * part.0);
        let of = &self.transfer;
        let overall = format!(
            "{} less user and system time together, {:.3} to {:.3} s; it is not the user time ({}), \
             the system time ({}), the wall time ({}) or the share of a processor ({})",
            percent(of.processor_saved()),
            before.processor().0,
            after.processor().0,
            percent(of.user_saved()),
            percent(of.system_saved()),
            percent(of.wall_saved()),
            percent(of.share_saved()),
        );
        vec![
            Conclusion::new(
                "system time",
                claims.system_overhead.clone(),
                format!("{} less", percent(of.system_saved())),
            ),
            Conclusion::new(
                "overhead in all",
                format!("{:.0} % less", claims.overall_overhead_saved_percent.0),
                overall,
            ),
            Conclusion::new("wall time", "nothing", format!("{} less", percent(of.wall_saved()))),
        ]
    }
}

/// `2:00.31`: minutes and seconds, as the shell's `time` prints them.
fn minutes_and_seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Seconds, D::Error> {
    let text = String::deserialize(input)?;
    let parts = text.split_once(':').and_then(|(minutes, seconds)| {
        Some((minutes.parse::<u32>().ok()?, seconds.parse::<f64>().ok()?))
    });
    let (minutes, seconds) =
        parts.ok_or_else(|| serde::de::Error::custom("write minutes and seconds: 2:00.31"))?;
    Ok(Seconds(60.0 * f64::from(minutes) + seconds))
}

pub(super) fn reference() -> Reference {
    let figures: PppProtocolLookup =
        toml::from_str(TEXT).expect("the file is compiled in, and a test reads it");
    Reference {
        name: NAME,
        source: figures.source.clone(),
        provenance: Provenance::Published,
        figures: Figures::PppProtocolLookup(figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In tenths of a percent.
    fn permille(part: Fraction) -> f64 {
        (1000.0 * part.0).round()
    }

    #[test]
    fn the_overhead_saved_is_user_and_system_time_together_and_nothing_else() {
        let Figures::PppProtocolLookup(ppp) = reference().figures else { panic!("another") };
        let of = &ppp.transfer;
        assert_eq!((of.before.wall, of.after.wall), (Seconds(120.31), Seconds(86.06)));
        assert_eq!(of.claims.overall_overhead_saved_percent, Percent(38.0));
        assert_eq!(permille(of.processor_saved()), 377.0, "5.226 to 3.255 s");
        let others = [of.user_saved(), of.system_saved(), of.wall_saved(), of.share_saved()];
        assert_eq!(others.map(permille), [262.0, 512.0, 285.0, 140.0]);
        let claimed = |part: Fraction| (100.0 * part.0).round() == 38.0;
        assert!(claimed(of.processor_saved()) && !others.into_iter().any(claimed));
    }

    #[test]
    fn the_conclusions_say_which_figures_give_it() {
        let Figures::PppProtocolLookup(ppp) = reference().figures else { panic!("another") };
        let conclusions = ppp.conclusions();
        let overall = conclusions.iter().find(|it| it.says == "38 % less").unwrap();
        assert!(overall.computed.starts_with("37.7 % less user and system time together"));
    }
}
