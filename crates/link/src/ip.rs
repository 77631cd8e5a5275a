//! IP: TCP (RFC 9293) over Ethernet (IEEE 802.3), as far as time goes: round trips and bytes.

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::error::{LinkError, require};
use crate::{blocks, transfer_time};

/// A network path whose parameters were checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Ip")]
pub struct IpLink(Ip);

/// The parameters of a network path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ip {
    /// There and back for a small packet, in microseconds.
    pub round_trip_us: u32,
    /// Bits per second of the narrowest part.
    pub bits_per_second: u64,
    /// Round trips before the first byte of each message: 0 for a connection that stays open, 1
    /// for a new one of TCP, 2 with TLS 1.3 on it (RFC 8446, section 2).
    #[serde(default)]
    pub setup_round_trips: u8,
}

/// IPv4 (20) and TCP (20) without options.
const HEADERS: u64 = 40;
/// Preamble (8), addresses and type (14), check sequence (4), gap (12): IEEE 802.3.
const ETHERNET: u64 = 38;
/// An Ethernet frame of 1500 bytes less the headers.
const SEGMENT: usize = 1460;

impl TryFrom<Ip> for IpLink {
    type Error = LinkError;

    fn try_from(path: Ip) -> Result<Self, LinkError> {
        let why = "nobody waits so long";
        let trip = path.round_trip_us;
        require(trip <= 60_000_000, "round_trip_us", trip, why, "200 in a building, 20000 afar")?;
        let rate = path.bits_per_second;
        let why = "slower than any modem";
        require(rate >= 300, "bits_per_second", rate, why, "100000000 for 100 Mbit/s")?;
        Ok(Self(path))
    }
}

impl IpLink {
    /// The parameters that were checked.
    #[must_use]
    pub const fn parameters(&self) -> &Ip {
        &self.0
    }

    /// A request and its answer, either of which may be empty: one way takes half a round trip.
    #[must_use]
    pub fn exchange(&self, request_bytes: usize, answer_bytes: usize) -> Nanos {
        let Ip { round_trip_us, bits_per_second, setup_round_trips } = self.0;
        let ways = [request_bytes, answer_bytes].into_iter().filter(|bytes| *bytes > 0);
        let halves = ways.clone().count() as u64 + 2 * u64::from(setup_round_trips);
        let on_wire: u64 =
            ways.map(|bytes| bytes as u64 + blocks(bytes, SEGMENT) * (HEADERS + ETHERNET)).sum();
        transfer_time(8 * on_wire, bits_per_second as f64)
            + Nanos(halves * u64::from(round_trip_us) * 1000 / 2)
    }
}
