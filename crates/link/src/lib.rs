//! Bytes to time, by the formulas of the standards.
//!
//! A link between a card and a reader: how long a command and its response are on the way, when
//! neither side is slower than it has to be. What the card computes in between is not in it. The
//! formulas are those of ISO/IEC 7816-3:2006 for contacts and of ISO/IEC 14443-2 to -4:2018
//! without contacts. Behind a reader: Wiegand (SIA AC-01), OSDP (SIA OSDP v2, IEC 60839-11-5) and
//! IP. Each names its standard. Nothing here reads a clock or does any I/O.
#![forbid(unsafe_code)]

mod contact;
mod contactless;
mod error;
mod hop;
mod ip;
mod osdp;
mod wiegand;

use serde::Deserialize;
use tapstone_measure::units::Nanos;

pub use contact::{Contact, ContactLink, RedundancyCode, TransmissionProtocol};
pub use contactless::{BitRate, Contactless, ContactlessLink, InterfaceType};
pub use error::LinkError;
pub use hop::Hop;
pub use ip::{Ip, IpLink};
pub use osdp::{Osdp, OsdpLink};
pub use wiegand::{Wiegand, WiegandLink};

/// A link between a card and a reader.
///
/// In TOML `kind = "contact"` or `kind = "contactless"`, beside the fields of [`Contact`] or
/// [`Contactless`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Link {
    /// Contacts: ISO 7816-3.
    Contact(ContactLink),
    /// A field: ISO 14443.
    Contactless(ContactlessLink),
}

impl Link {
    /// From the first bit of the command to the last bit of the response, without the time that
    /// the card takes in between. `response_bytes` counts SW1 and SW2.
    #[must_use]
    pub fn exchange(&self, command_bytes: usize, response_bytes: usize) -> Nanos {
        match self {
            Self::Contact(link) => link.exchange(command_bytes, response_bytes),
            Self::Contactless(link) => link.exchange(command_bytes, response_bytes),
        }
    }

    /// How long a card may compute before it must ask for more time.
    #[must_use]
    pub fn waiting_time(&self) -> Nanos {
        match self {
            Self::Contact(link) => link.waiting_time(),
            Self::Contactless(link) => link.waiting_time(),
        }
    }

    /// What one request for more time costs on the link: bytes that would not be sent otherwise.
    #[must_use]
    pub fn waiting_time_extension(&self) -> Nanos {
        match self {
            Self::Contact(link) => link.waiting_time_extension(),
            Self::Contactless(link) => link.waiting_time_extension(),
        }
    }

    /// What a computation of this length costs on the link in requests for more time: one for each
    /// waiting time that passes.
    #[must_use]
    pub fn waiting_time_extensions(&self, computing: Nanos) -> Nanos {
        // A computation of exactly one waiting time is in time.
        let count = computing.0.saturating_sub(1) / self.waiting_time().0.max(1);
        Nanos(self.waiting_time_extension().0.saturating_mul(count))
    }
}

/// So many bits or elementary time units at this rate.
fn transfer_time(units: u64, per_second: f64) -> Nanos {
    Nanos((units as f64 * 1e9 / per_second).round() as u64)
}

/// How many blocks of at most `size` bytes carry so many bytes; an empty message takes one.
fn blocks(bytes: usize, size: usize) -> u64 {
    bytes.div_ceil(size).max(1) as u64
}
