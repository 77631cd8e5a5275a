//! PIN and PUK: what they look like, and their retry counters (SP 800-73-5 part 2, 2.4.3).

use std::fmt;

use tapstone_apdu::StatusWord;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The length of a PIN or PUK as it is sent.
pub(super) const LENGTH: usize = 8;

const PADDING: u8 = 0xFF;

/// A PIN or PUK as it is sent: 8 bytes, padded with FF.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(super) struct PinSecret([u8; LENGTH]);

impl PinSecret {
    /// A PIN: 6 to 8 digits and the padding.
    pub(super) fn pin(bytes: &[u8]) -> Option<Self> {
        let sent = <[u8; LENGTH]>::try_from(bytes).ok()?;
        let digits = sent.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let padded = sent[digits..].iter().all(|byte| *byte == PADDING);
        (digits >= 6 && padded).then_some(Self(sent))
    }

    /// A PUK: any 8 bytes.
    pub(super) fn puk(bytes: &[u8]) -> Option<Self> {
        <[u8; LENGTH]>::try_from(bytes).ok().map(Self)
    }

    /// What a person types, padded; `None` when it is longer than 8 bytes.
    pub(super) fn padded(text: &[u8]) -> Option<[u8; LENGTH]> {
        let mut padded = [PADDING; LENGTH];
        padded.get_mut(..text.len())?.copy_from_slice(text);
        Some(padded)
    }
}

impl fmt::Debug for PinSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A PIN or PUK on the card with its retry counter.
#[derive(Debug)]
pub(super) struct PinReference {
    secret: PinSecret,
    tries: u8,
    left: u8,
}

impl PinReference {
    /// With so many tries before it is blocked.
    pub(super) fn new(secret: PinSecret, tries: u8) -> Self {
        Self { secret, tries, left: tries }
    }

    /// How many tries are left; blocked when none.
    pub(super) fn state(&self) -> StatusWord {
        if self.is_blocked() { StatusWord::BLOCKED } else { StatusWord::tries_left(self.left) }
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.left == 0
    }

    /// Compares, which costs a try or gives all of them back. Not to be asked when blocked.
    pub(super) fn check(&mut self, given: &[u8]) -> Result<(), StatusWord> {
        if self.is_blocked() {
            return Err(StatusWord::BLOCKED);
        }
        if self.secret.0 == given {
            self.left = self.tries;
            return Ok(());
        }
        self.left -= 1;
        Err(StatusWord::tries_left(self.left))
    }

    /// Puts another in its place, with all tries.
    pub(super) fn replace(&mut self, secret: PinSecret) {
        self.secret = secret;
        self.left = self.tries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_6_to_8_digits_and_padding() {
        for good in [b"123456\xFF\xFF", b"1234567\xFF", b"12345678"] {
            assert!(PinSecret::pin(good).is_some(), "{good:?}");
        }
        for bad in [&b"12345\xFF\xFF\xFF"[..], b"123456", b"123\xFF4567", b"12345a\xFF\xFF", b""] {
            assert!(PinSecret::pin(bad).is_none(), "{bad:?}");
        }
        assert_eq!(PinSecret::padded(b"123456"), Some(*b"123456\xFF\xFF"));
        assert_eq!(PinSecret::padded(b"123456789"), None);
    }

    #[test]
    fn nothing_of_it_is_printed() {
        let reference = PinReference::new(PinSecret(*b"87654321"), 3);
        assert!(!format!("{reference:?}").contains("56"), "{reference:?}");
    }
}
