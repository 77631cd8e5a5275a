//! A PIN on its way to the card.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A PIN, padded with FF to 8 bytes (SP 800-73-5 part 1, 3.2.1). It is never shown, and wiped when
/// dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct PivPin([u8; 8]);

impl PivPin {
    /// As typed; `None` of none or more than 8 bytes.
    #[must_use]
    pub fn new(typed: &[u8]) -> Option<Self> {
        let mut padded = [0xFF; 8];
        padded.get_mut(..typed.len()).filter(|place| !place.is_empty())?.copy_from_slice(typed);
        Some(Self(padded))
    }

    /// As the card takes it.
    #[must_use]
    pub const fn padded(&self) -> &[u8; 8] {
        &self.0
    }
}
