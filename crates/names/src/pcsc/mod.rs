//! Names of PC/SC as pcsc-lite spells them: functions and return codes, and the reader that is none.
//!
//! ```
//! use tapstone_names::pcsc::{PcscCode, PcscFailure, PcscFunction};
//!
//! let failure = PcscFailure { call: PcscFunction::Connect, code: PcscCode::NO_SMARTCARD };
//! assert_eq!(failure.to_string(), "SCardConnect: SCARD_E_NO_SMARTCARD");
//! assert!(failure.code.hint().is_some());
//! ```

mod function;
mod return_code;

pub use self::function::{PcscFailure, PcscFunction};
pub use self::return_code::PcscCode;

/// How names of vsmartcard's readers begin: such a reader is emulated, whatever its card says.
pub const VIRTUAL_READER: &str = "Virtual PCD";
