//! What a module is told when it is initialised: a text of its own, in `pReserved` of
//! CK_C_INITIALIZE_ARGS.

use std::ffi::{CString, NulError};
use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Arguments of a module, such as NSS's `configdir='sql:/etc/pki/nssdb' flags=readOnly`.
///
/// They may hold a secret, so they are never printed, stand in no record and are wiped when
/// dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct ModuleArguments(String);

impl ModuleArguments {
    /// Takes the text as it is.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text as C_Initialize takes it, in `pReserved`.
    ///
    /// # Errors
    /// When a zero stands in the text, which would cut it off.
    pub(crate) fn as_c_text(&self) -> Result<CString, NulError> {
        CString::new(self.0.as_str())
    }
}

impl fmt::Debug for ModuleArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModuleArguments(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_them_is_printed() {
        let arguments = ModuleArguments::new("configdir=/x password=geheim".to_owned());
        assert_eq!(format!("{arguments:?}"), "ModuleArguments(…)");
        assert!(ModuleArguments::new("a\0b".to_owned()).as_c_text().is_err());
    }
}
