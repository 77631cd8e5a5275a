//! How a card is spoken to, and the answer to reset that offers it (ISO/IEC 7816-3).

use std::fmt;

use serde::Deserialize;

/// The longest answer to reset (ISO 7816-3, 8.2.1: TS and at most 32 characters).
pub(crate) const LONGEST_ATR: usize = 33;

/// The transmission protocol whose ways the response lengths follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Transmission {
    /// Characters (ISO 7816-3, 12.2): a command either sends or fetches data, so a response to a
    /// command with data is fetched by GET RESPONSE, and a wrong Le is answered by 6Cxx.
    #[serde(rename = "T=0")]
    T0,
    /// Blocks (ISO 7816-3, 12.3) and contactless cards: Le is a limit.
    #[default]
    #[serde(rename = "T=1")]
    T1,
}

/// As profiles write it.
impl fmt::Display for Transmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::T0 => "T=0",
            Self::T1 => "T=1",
        })
    }
}
