//! The way to a card, as small as it can be.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Something that answers command APDUs.
pub trait CardConnection {
    /// Sends one command. The response, status word included, replaces what is in `response`.
    ///
    /// # Errors
    /// When the card, or the way to it, is gone.
    fn transmit(&mut self, command: &[u8], response: &mut Vec<u8>) -> Result<(), CardLost>;
}

/// No answer: the card, or the way to it, is gone.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[error("{call}: {code}")]
pub struct CardLost {
    /// The call that failed: `SCardTransmit`.
    pub call: String,
    /// What it returned: `SCARD_W_REMOVED_CARD`.
    pub code: String,
}
