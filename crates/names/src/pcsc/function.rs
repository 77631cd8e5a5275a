//! The functions of PC/SC that Tapstone calls, by name: what a worker that hangs was doing.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PcscCode;

macro_rules! calls {
    ($($name:ident),* $(,)?) => {
        /// A function of PC/SC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum PcscFunction {
            $(#[allow(missing_docs)] $name,)*
        }

        impl PcscFunction {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in the standard.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("SCard", stringify!($name)),)*
                }
            }
        }
    };
}

calls! {
    EstablishContext, ReleaseContext, IsValidContext, ListReaders, Connect, Reconnect, Disconnect,
    BeginTransaction, EndTransaction, Status, GetStatusChange, Control, GetAttrib, Transmit, Cancel,
}

impl PcscFunction {
    /// The call with this number, as a worker's board keeps it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for PcscFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A call that did not return SCARD_S_SUCCESS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{call}: {code}")]
pub struct PcscFailure {
    /// The function that was called.
    pub call: PcscFunction,
    /// The code that it returned.
    pub code: PcscCode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_agree() {
        for (number, function) in PcscFunction::ALL.iter().enumerate() {
            assert_eq!(PcscFunction::from_number(number as u8), Some(*function));
        }
        assert_eq!(PcscFunction::from_number(255), None);
        assert_eq!(format!("{:>16}", PcscFunction::Transmit), "   SCardTransmit");
    }
}
