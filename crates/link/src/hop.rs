//! Any link on the way from a card to a door.

use serde::Deserialize;
use tapstone_measure::units::Nanos;

use crate::{ContactLink, ContactlessLink, IpLink, OsdpLink, WiegandLink};

/// A link between two components of a path: a card's, or one behind the reader.
///
/// In TOML `kind` is `contact`, `contactless`, `wiegand`, `osdp` or `ip`, beside the fields of that
/// link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Hop {
    /// A card by its contacts (ISO/IEC 7816-3).
    Contact(ContactLink),
    /// A field: ISO 14443.
    Contactless(ContactlessLink),
    /// Wiegand lines behind a reader (SIA AC-01).
    Wiegand(WiegandLink),
    /// SIA OSDP v2, IEC 60839-11-5.
    Osdp(OsdpLink),
    /// A network behind the reader or the controller (TCP/IP).
    Ip(IpLink),
}

impl Hop {
    /// A command towards the card and its response away from it. Wiegand knows one direction and
    /// one length: its message goes out when there is anything to say away from the card.
    #[must_use]
    pub fn exchange(&self, command_bytes: usize, response_bytes: usize) -> Nanos {
        match self {
            Self::Contact(link) => link.exchange(command_bytes, response_bytes),
            Self::Contactless(link) => link.exchange(command_bytes, response_bytes),
            Self::Wiegand(_) if response_bytes == 0 => Nanos::ZERO,
            Self::Wiegand(line) => line.message(),
            Self::Osdp(line) => line.exchange(command_bytes, response_bytes),
            Self::Ip(path) => path.exchange(command_bytes, response_bytes),
        }
    }

    /// In a few words: `OSDP 115200 baud, secure channel`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Contact(link) => {
                let of = link.parameters();
                let mhz = f64::from(of.clock_hz) / 1e6;
                format!("ISO 7816-3, F/D {}/{} at {mhz} MHz", of.f, of.d)
            }
            Self::Contactless(link) => {
                let of = link.parameters();
                let kbit = of.kbit_per_second.per_second_thousands();
                format!("ISO 14443 type {:?}, {kbit} kbit/s, frames of {} bytes", of.kind, of.fsc)
            }
            Self::Wiegand(line) => {
                let of = line.parameters();
                let ms = f64::from(of.interval_us) / 1e3;
                format!("Wiegand, {} bits every {ms} ms", of.bits)
            }
            Self::Osdp(line) => {
                let of = line.parameters();
                let secure = if of.secure_channel { ", secure channel" } else { "" };
                format!("OSDP, {} baud{secure}", of.baud)
            }
            Self::Ip(path) => {
                let of = path.parameters();
                let ms = f64::from(of.round_trip_us) / 1e3;
                format!("IP, {ms} ms round trip, {} Mbit/s", of.bits_per_second as f64 / 1e6)
            }
        }
    }
}
