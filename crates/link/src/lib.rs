//! Transfer times of links, by the formulas of their standards. No I/O and no clock.
//!
//! A [`Link`] is between a card and a reader: contacts (ISO/IEC 7816-3:2006) or a field (ISO/IEC
//! 14443-2 to -4:2018). A [`Hop`] is any link from the card to the door, so also Wiegand (SIA AC-01),
//! OSDP (SIA OSDP v2, IEC 60839-11-5) and TCP/IP. The time is that of the bytes alone, when neither side
//! is slower than it has to be. What the card computes in between is not in it.
//!
//! Parameters are checked when they are read, so every link that exists has a time. By contact with
//! the defaults of the standard, one character takes 12 elementary time units (etu) of 372 clock
//! cycles:
//!
//! ```
//! use tapstone_link::Link;
//!
//! let link: Link = toml::from_str("kind = 'contact'\nprotocol = 'T=0'\nclock_hz = 3_720_000")?;
//! // A case 1 command of T=0: a header of 5 bytes to the card, 2 bytes of status word back.
//! assert_eq!(link.exchange(4, 2).0, (5 + 2) * 12 * 100_000);
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! Long messages are split into blocks. A higher bit rate saves the bits, but not the turnaround
//! between frames:
//!
//! ```
//! use tapstone_link::{Contactless, ContactlessLink};
//!
//! let at = |kbit: u16| -> Result<ContactlessLink, tapstone_link::LinkError> {
//!     let parameters = Contactless {
//!         kind: Default::default(),
//!         kbit_per_second: kbit.try_into()?,
//!         fsc: 256,
//!         fsd: 256,
//!         cid: false,
//!         nad: false,
//!         fwi: 4,
//!     };
//!     parameters.try_into()
//! };
//! let slow = at(106)?.exchange(20, 1000);
//! let fast = at(848)?.exchange(20, 1000);
//! assert!(fast < slow && slow.0 < 8 * fast.0);
//! assert!(at(115).is_err(), "no bit rate of ISO 14443-2");
//! # Ok::<(), tapstone_link::LinkError>(())
//! ```
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
    /// A card by its contacts (ISO/IEC 7816-3).
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
