//! The PIN: raw bytes of any length that are never printed and are wiped when dropped, and
//! [where it comes from](PinSource).
//!
//! ```
//! use tapstone_pin::PinSource;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("pin");
//! std::fs::write(&path, "1234\n")?;
//! let pin = PinSource::File(path).read()?.expect("a file gives a PIN");
//! assert_eq!(pin.expose(), b"1234");
//! assert_eq!(format!("{pin:?}"), "Pin(…)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod source;

use std::fmt;

pub use self::source::{PinError, PinSource, PinWarning};

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What C_Login is given. Some HSMs expect `user:password`, so nothing is assumed of the bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Pin(Vec<u8>);

impl Pin {
    /// Takes the bytes as they are.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Takes what a file or a descriptor holds: one trailing newline is not part of the PIN.
    #[must_use]
    pub fn from_file_contents(mut bytes: Vec<u8>) -> Self {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Self(bytes)
    }

    /// For the one call that needs it.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is a PIN of no characters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_one_newline_and_prints_nothing() {
        let pin = Pin::from_file_contents(b"user:password\n\n".to_vec());
        assert_eq!(pin.expose(), b"user:password\n");
        assert_eq!(format!("{pin:?}"), "Pin(…)");
    }
}
