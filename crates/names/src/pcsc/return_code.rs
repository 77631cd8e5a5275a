//! Return codes of PC/SC, by the names of pcsclite.h, and what to do about them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A return code that is not SCARD_S_SUCCESS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PcscCode(pub u32);

macro_rules! codes {
    ($($constant:ident = $value:literal, $name:literal, $hint:expr;)*) => {
        #[allow(missing_docs)]
        impl PcscCode {
            $(pub const $constant: Self = Self($value);)*

            /// The name in pcsclite.h; `None` for a code that it does not have.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }

            /// What the user can do about it.
            #[must_use]
            pub const fn hint(self) -> Option<&'static str> {
                match self.0 {
                    $($value => $hint,)*
                    _ => None,
                }
            }
        }
    };
}

const START: Option<&str> =
    Some("start the service: systemctl start pcscd.socket, or as root: pcscd --foreground");
const INSERT: Option<&str> = Some("put a card into the reader, or name another with --reader");

codes! {
    INTERNAL_ERROR = 0x8010_0001, "SCARD_F_INTERNAL_ERROR", Some("pcscd's log says more");
    CANCELLED = 0x8010_0002, "SCARD_E_CANCELLED", None;
    INVALID_HANDLE = 0x8010_0003, "SCARD_E_INVALID_HANDLE", Some("pcscd was restarted in mid-run: run this again");
    INVALID_PARAMETER = 0x8010_0004, "SCARD_E_INVALID_PARAMETER", None;
    NO_MEMORY = 0x8010_0006, "SCARD_E_NO_MEMORY", None;
    INSUFFICIENT_BUFFER = 0x8010_0008, "SCARD_E_INSUFFICIENT_BUFFER", Some("the card or its driver answers more than the command asked for");
    UNKNOWN_READER = 0x8010_0009, "SCARD_E_UNKNOWN_READER", Some("tapstone pcsc --list-readers shows the readers");
    TIMEOUT = 0x8010_000A, "SCARD_E_TIMEOUT", None;
    SHARING_VIOLATION = 0x8010_000B, "SCARD_E_SHARING_VIOLATION", Some("another program has the reader for itself: end it, or wait longer with --wait");
    NO_SMARTCARD = 0x8010_000C, "SCARD_E_NO_SMARTCARD", INSERT;
    UNKNOWN_CARD = 0x8010_000D, "SCARD_E_UNKNOWN_CARD", None;
    PROTO_MISMATCH = 0x8010_000F, "SCARD_E_PROTO_MISMATCH", Some("the card offers neither T=0 nor T=1, or was reset in between: run this again");
    NOT_READY = 0x8010_0010, "SCARD_E_NOT_READY", None;
    INVALID_VALUE = 0x8010_0011, "SCARD_E_INVALID_VALUE", None;
    COMM_ERROR = 0x8010_0013, "SCARD_F_COMM_ERROR", Some("the connection to pcscd broke: is it still running?");
    NOT_TRANSACTED = 0x8010_0016, "SCARD_E_NOT_TRANSACTED", Some("the driver could not exchange the command with the card: was it removed?");
    READER_UNAVAILABLE = 0x8010_0017, "SCARD_E_READER_UNAVAILABLE", Some("the reader was unplugged");
    NO_SERVICE = 0x8010_001D, "SCARD_E_NO_SERVICE", START;
    SERVICE_STOPPED = 0x8010_001E, "SCARD_E_SERVICE_STOPPED", START;
    UNEXPECTED = 0x8010_001F, "SCARD_E_UNEXPECTED", None;
    UNSUPPORTED_FEATURE = 0x8010_0022, "SCARD_E_UNSUPPORTED_FEATURE", None;
    NO_READERS_AVAILABLE = 0x8010_002E, "SCARD_E_NO_READERS_AVAILABLE", Some("plug a reader in; pcscd's log says whether it has a driver for it");
    UNSUPPORTED_CARD = 0x8010_0065, "SCARD_W_UNSUPPORTED_CARD", None;
    UNRESPONSIVE_CARD = 0x8010_0066, "SCARD_W_UNRESPONSIVE_CARD", Some("the card does not answer the reset: clean its contacts, or try another reader");
    UNPOWERED_CARD = 0x8010_0067, "SCARD_W_UNPOWERED_CARD", None;
    RESET_CARD = 0x8010_0068, "SCARD_W_RESET_CARD", Some("another program reset the card: end it and run this again");
    REMOVED_CARD = 0x8010_0069, "SCARD_W_REMOVED_CARD", INSERT;
    SECURITY_VIOLATION = 0x8010_006A, "SCARD_W_SECURITY_VIOLATION", Some("pcscd's access rules (polkit) forbid it to this user");
}

impl fmt::Display for PcscCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:08X}", self.0),
        }
    }
}

impl fmt::Debug for PcscCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_by_the_names_of_pcsclite_h() {
        assert_eq!(PcscCode(0x8010_000C).to_string(), "SCARD_E_NO_SMARTCARD");
        assert_eq!(format!("{:?}", PcscCode::TIMEOUT), "SCARD_E_TIMEOUT");
        assert_eq!(PcscCode(0x8010_0FFF).to_string(), "0x80100FFF");
        assert_eq!(PcscCode(0x8010_0FFF).hint(), None);
    }
}
