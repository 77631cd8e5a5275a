//! Wiegand: SIA AC-01-1996.10, "Access Control Standard TransmissionProtocol for the 26-bit Wiegand Reader
//! Interface", and the longer cards that panels read in the same way.
//!
//! A pulse on one of two wires is a bit. Nothing is acknowledged, so a message travels one way, and
//! is over when no further pulse has come for an interval.

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::error::{LinkError, require};

/// A Wiegand line whose parameters were checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Wiegand")]
pub struct WiegandLink(Wiegand);

/// The parameters of a Wiegand line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiegand {
    /// The bits of a message: 26 in the standard, 200 for a whole FASC-N.
    pub bits: u32,
    /// From the start of a pulse to the start of the next.
    pub interval_us: u32,
}

/// Pulses of 20 to 100 µs, 200 µs to 20 ms apart.
const INTERVALS_US: std::ops::RangeInclusive<u32> = 200..=20_000;

impl TryFrom<Wiegand> for WiegandLink {
    type Error = LinkError;

    fn try_from(line: Wiegand) -> Result<Self, LinkError> {
        let hint = "26 to 256; a FASC-N has 200, a GUID 128";
        require((1..=4096).contains(&line.bits), "bits", line.bits, "no message is so long", hint)?;
        require(
            INTERVALS_US.contains(&line.interval_us),
            "interval_us",
            line.interval_us,
            "SIA AC-01 has pulses 200 µs to 20 ms apart",
            "200 to 20000; 2000 is usual",
        )?;
        Ok(Self(line))
    }
}

impl WiegandLink {
    /// The parameters that were checked.
    #[must_use]
    pub const fn parameters(&self) -> &Wiegand {
        &self.0
    }

    /// One message: an interval for each bit, of which the last tells that it is over.
    #[must_use]
    pub fn message(&self) -> Nanos {
        Nanos(u64::from(self.0.bits) * u64::from(self.0.interval_us) * 1000)
    }
}
