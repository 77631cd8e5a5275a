//! Names of PKCS #11 3.2: functions, return codes and mechanisms.
//!
//! ```
//! use tapstone_names::pkcs11::{Pkcs11Failure, Pkcs11Function, Rv};
//!
//! let failure = Pkcs11Failure { call: Pkcs11Function::C_Login, code: Rv(0xA0) };
//! assert_eq!(failure.to_string(), "C_Login: CKR_PIN_INCORRECT");
//! assert!(failure.code.is_pin(), "a refused PIN is never tried again");
//! ```

mod arguments;
mod function;
mod mechanism;
mod return_code;
mod violation;

pub use self::arguments::{
    FirstArgument, changes_token, first_argument, makes_object, makes_object_by_mechanism,
    takes_mechanism,
};
pub use self::function::{Pkcs11Failure, Pkcs11Function};
pub use self::mechanism::mechanism_name;
pub use self::return_code::Rv;
pub use self::violation::{Amount, Numbers, Violation};
