//! Return codes, by the names that PKCS #11 gives them, and what a user can do about them.

use std::fmt;

use cryptoki_sys::*;
use serde::{Deserialize, Serialize};

/// A `CK_RV` other than `CKR_OK`, or the number of a [`Violation`](super::Violation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rv(pub u64);

/// The names of PKCS #11 3.2, section 6 ("General data types", `CK_RV`).
macro_rules! names {
    ($code:expr, $($name:ident),* $(,)?) => {
        match $code {
            $($name => Some(stringify!($name)),)*
            _ => None,
        }
    };
}

impl Rv {
    /// The module's list of functions has no such function, so that no code was returned. The
    /// number is none that a module can mean: the standard's codes have 32 bits.
    pub const NOT_IN_FUNCTION_LIST: Self = Self(1 << 63);

    /// `Ok` for `CKR_OK`.
    ///
    /// # Errors
    /// Any other code.
    #[inline]
    pub fn check(code: CK_RV) -> Result<(), Self> {
        if code == CKR_OK { Ok(()) } else { Err(Self::from_module(code)) }
    }

    /// The name in the standard, when it is not a vendor's own code.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        if self == Self::NOT_IN_FUNCTION_LIST {
            return Some("NOT_IN_FUNCTION_LIST");
        }
        names!(
            self.0 as CK_RV,
            CKR_OK,
            CKR_CANCEL,
            CKR_HOST_MEMORY,
            CKR_SLOT_ID_INVALID,
            CKR_GENERAL_ERROR,
            CKR_FUNCTION_FAILED,
            CKR_ARGUMENTS_BAD,
            CKR_NO_EVENT,
            CKR_NEED_TO_CREATE_THREADS,
            CKR_CANT_LOCK,
            CKR_ATTRIBUTE_READ_ONLY,
            CKR_ATTRIBUTE_SENSITIVE,
            CKR_ATTRIBUTE_TYPE_INVALID,
            CKR_ATTRIBUTE_VALUE_INVALID,
            CKR_ACTION_PROHIBITED,
            CKR_DATA_INVALID,
            CKR_DATA_LEN_RANGE,
            CKR_DEVICE_ERROR,
            CKR_DEVICE_MEMORY,
            CKR_DEVICE_REMOVED,
            CKR_ENCRYPTED_DATA_INVALID,
            CKR_ENCRYPTED_DATA_LEN_RANGE,
            CKR_AEAD_DECRYPT_FAILED,
            CKR_FUNCTION_CANCELED,
            CKR_FUNCTION_NOT_PARALLEL,
            CKR_FUNCTION_NOT_SUPPORTED,
            CKR_KEY_HANDLE_INVALID,
            CKR_KEY_SIZE_RANGE,
            CKR_KEY_TYPE_INCONSISTENT,
            CKR_KEY_NOT_NEEDED,
            CKR_KEY_CHANGED,
            CKR_KEY_NEEDED,
            CKR_KEY_INDIGESTIBLE,
            CKR_KEY_FUNCTION_NOT_PERMITTED,
            CKR_KEY_NOT_WRAPPABLE,
            CKR_KEY_UNEXTRACTABLE,
            CKR_MECHANISM_INVALID,
            CKR_MECHANISM_PARAM_INVALID,
            CKR_OBJECT_HANDLE_INVALID,
            CKR_OPERATION_ACTIVE,
            CKR_OPERATION_NOT_INITIALIZED,
            CKR_PIN_INCORRECT,
            CKR_PIN_INVALID,
            CKR_PIN_LEN_RANGE,
            CKR_PIN_EXPIRED,
            CKR_PIN_LOCKED,
            CKR_SESSION_CLOSED,
            CKR_SESSION_COUNT,
            CKR_SESSION_HANDLE_INVALID,
            CKR_SESSION_PARALLEL_NOT_SUPPORTED,
            CKR_SESSION_READ_ONLY,
            CKR_SESSION_EXISTS,
            CKR_SESSION_READ_ONLY_EXISTS,
            CKR_SESSION_READ_WRITE_SO_EXISTS,
            CKR_SIGNATURE_INVALID,
            CKR_SIGNATURE_LEN_RANGE,
            CKR_TEMPLATE_INCOMPLETE,
            CKR_TEMPLATE_INCONSISTENT,
            CKR_TOKEN_NOT_PRESENT,
            CKR_TOKEN_NOT_RECOGNIZED,
            CKR_TOKEN_WRITE_PROTECTED,
            CKR_UNWRAPPING_KEY_HANDLE_INVALID,
            CKR_UNWRAPPING_KEY_SIZE_RANGE,
            CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT,
            CKR_USER_ALREADY_LOGGED_IN,
            CKR_USER_NOT_LOGGED_IN,
            CKR_USER_PIN_NOT_INITIALIZED,
            CKR_USER_TYPE_INVALID,
            CKR_USER_ANOTHER_ALREADY_LOGGED_IN,
            CKR_USER_TOO_MANY_TYPES,
            CKR_WRAPPED_KEY_INVALID,
            CKR_WRAPPED_KEY_LEN_RANGE,
            CKR_WRAPPING_KEY_HANDLE_INVALID,
            CKR_WRAPPING_KEY_SIZE_RANGE,
            CKR_WRAPPING_KEY_TYPE_INCONSISTENT,
            CKR_RANDOM_SEED_NOT_SUPPORTED,
            CKR_RANDOM_NO_RNG,
            CKR_DOMAIN_PARAMS_INVALID,
            CKR_CURVE_NOT_SUPPORTED,
            CKR_BUFFER_TOO_SMALL,
            CKR_SAVED_STATE_INVALID,
            CKR_INFORMATION_SENSITIVE,
            CKR_STATE_UNSAVEABLE,
            CKR_CRYPTOKI_NOT_INITIALIZED,
            CKR_CRYPTOKI_ALREADY_INITIALIZED,
            CKR_MUTEX_BAD,
            CKR_MUTEX_NOT_LOCKED,
            CKR_NEW_PIN_MODE,
            CKR_NEXT_OTP,
            CKR_EXCEEDED_MAX_ITERATIONS,
            CKR_FIPS_SELF_TEST_FAILED,
            CKR_LIBRARY_LOAD_FAILED,
            CKR_PIN_TOO_WEAK,
            CKR_PUBLIC_KEY_INVALID,
            CKR_FUNCTION_REJECTED,
            CKR_TOKEN_RESOURCE_EXCEEDED,
            CKR_OPERATION_CANCEL_FAILED,
            CKR_KEY_EXHAUSTED,
            CKR_PENDING,
            CKR_SESSION_ASYNC_NOT_SUPPORTED,
            CKR_SEED_RANDOM_REQUIRED,
            CKR_OPERATION_NOT_VALIDATED,
            CKR_TOKEN_NOT_INITIALIZED,
            CKR_PARAMETER_SET_NOT_SUPPORTED,
        )
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        if self == Self::NOT_IN_FUNCTION_LIST {
            return Some("no interface that the module offers has this function");
        }
        if self.violation().is_some() {
            return Some("the module breaks PKCS #11: tell its maker, and trust no figure of it");
        }
        Some(match self.0 as CK_RV {
            CKR_PIN_INCORRECT => "the PIN was tried once and is wrong; nothing else was tried",
            CKR_PIN_LOCKED => "the PIN is locked; only the security officer can unlock it",
            CKR_PIN_EXPIRED => "the PIN has expired and must be changed first",
            CKR_PIN_LEN_RANGE => "the PIN is too short or too long for this token",
            CKR_SESSION_COUNT => {
                "the token allows no more sessions: use fewer threads or processes"
            }
            CKR_TOKEN_WRITE_PROTECTED | CKR_SESSION_READ_ONLY => {
                "the token is write-protected: only session keys can be used"
            }
            CKR_TOKEN_NOT_PRESENT | CKR_DEVICE_REMOVED => {
                "the token is gone: check the connection; --reconnect goes on when it comes back"
            }
            CKR_USER_NOT_LOGGED_IN => "give a PIN: --pin-file, --pin-env, --pin-fd or --pin-prompt",
            CKR_USER_ALREADY_LOGGED_IN => "another application is logged in to this token",
            CKR_DEVICE_MEMORY => {
                "the token is full: `--leftovers` shows keys that a killed run left"
            }
            CKR_MECHANISM_INVALID => {
                "the token lacks this mechanism: `tapstone targets` lists its own"
            }
            CKR_KEY_SIZE_RANGE => "the token does not do keys of this size",
            CKR_CANT_LOCK => {
                "the module cannot be used by several threads: use --processes instead"
            }
            _ => return None,
        })
    }

    /// The device or the session behind it is gone; opening a new session may help.
    #[must_use]
    pub fn is_lost(self) -> bool {
        matches!(
            self.0 as CK_RV,
            CKR_DEVICE_REMOVED
                | CKR_DEVICE_ERROR
                | CKR_TOKEN_NOT_PRESENT
                | CKR_SESSION_HANDLE_INVALID
                | CKR_SESSION_CLOSED
                | CKR_USER_NOT_LOGGED_IN
                | CKR_CRYPTOKI_NOT_INITIALIZED
                | CKR_OBJECT_HANDLE_INVALID
                | CKR_KEY_HANDLE_INVALID
        )
    }

    /// The token objects to how an object was asked for, not to what was asked: another template may
    /// do. Modules say so with general codes too.
    #[must_use]
    pub fn is_about_template(self) -> bool {
        matches!(
            self.0 as CK_RV,
            CKR_TEMPLATE_INCONSISTENT
                | CKR_TEMPLATE_INCOMPLETE
                | CKR_ATTRIBUTE_VALUE_INVALID
                | CKR_ATTRIBUTE_TYPE_INVALID
                | CKR_ATTRIBUTE_READ_ONLY
                | CKR_SESSION_READ_ONLY
                | CKR_GENERAL_ERROR
                | CKR_FUNCTION_FAILED
        )
    }

    /// The token has judged a PIN and refused it: never try again.
    #[must_use]
    pub fn is_pin(self) -> bool {
        self.name().is_some_and(|name| name.starts_with("CKR_PIN_"))
    }
}

impl fmt::Display for Rv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(violation) = self.violation() {
            return write!(f, "{violation}");
        }
        match self.name() {
            Some(name) => f.pad(name),
            None if self.0 >= CKR_VENDOR_DEFINED as u64 => {
                write!(f, "CKR_VENDOR_DEFINED+0x{:X}", self.0 - CKR_VENDOR_DEFINED as u64)
            }
            None => write!(f, "CKR_0x{:X}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_go_by_the_standards_names() {
        assert_eq!(Rv(0xA0).to_string(), "CKR_PIN_INCORRECT");
        assert_eq!(Rv(0x8000_0102).to_string(), "CKR_VENDOR_DEFINED+0x102");
        assert_eq!(Rv(0x9999).to_string(), "CKR_0x9999");
        assert_eq!(Rv(0x8000_0000).to_string(), "CKR_VENDOR_DEFINED+0x0");
        assert_eq!(format!("{:>20}|", Rv(0xA0)), "   CKR_PIN_INCORRECT|");
        assert!(Rv(0xA4).is_pin() && !Rv(0x30).is_pin());
        assert!(!Rv(0x8000_00A4).is_pin(), "a vendor's own code judges no PIN");
    }

    #[test]
    fn only_ckr_ok_is_no_failure() {
        assert_eq!(Rv::check(CKR_OK), Ok(()));
        assert_eq!(Rv::check(CKR_CANCEL), Err(Rv(1)));
        assert_eq!(Rv::check(CK_RV::MAX), Err(Rv(CK_RV::MAX)));
    }

    #[test]
    fn another_template_may_do_where_the_token_objects_to_this_one() {
        for code in [
            CKR_TEMPLATE_INCONSISTENT,
            CKR_TEMPLATE_INCOMPLETE,
            CKR_ATTRIBUTE_VALUE_INVALID,
            CKR_ATTRIBUTE_TYPE_INVALID,
            CKR_ATTRIBUTE_READ_ONLY,
            CKR_SESSION_READ_ONLY,
            CKR_GENERAL_ERROR,
            CKR_FUNCTION_FAILED,
        ] {
            assert!(Rv(code as u64).is_about_template(), "{}", Rv(code as u64));
        }
        for code in [CKR_OK, CKR_MECHANISM_INVALID, CKR_DEVICE_REMOVED, CKR_PIN_INCORRECT] {
            assert!(!Rv(code as u64).is_about_template(), "{}", Rv(code as u64));
        }
    }

    /// A new session may help, or none will: a wrong answer makes a run go on, or end, in vain.
    #[test]
    fn devices_and_sessions_that_are_gone_are_told_from_other_failures() {
        for lost in [
            CKR_DEVICE_REMOVED,
            CKR_DEVICE_ERROR,
            CKR_TOKEN_NOT_PRESENT,
            CKR_SESSION_HANDLE_INVALID,
            CKR_SESSION_CLOSED,
            CKR_USER_NOT_LOGGED_IN,
            CKR_CRYPTOKI_NOT_INITIALIZED,
            CKR_OBJECT_HANDLE_INVALID,
            CKR_KEY_HANDLE_INVALID,
        ] {
            assert!(Rv(lost).is_lost(), "{}", Rv(lost));
        }
        for other in [CKR_OK, CKR_PIN_INCORRECT, CKR_DEVICE_MEMORY, CKR_FUNCTION_FAILED] {
            assert!(!Rv(other).is_lost(), "{}", Rv(other));
        }
    }

    #[test]
    fn hints_say_what_to_do() {
        let hinted = (0..0x300).map(Rv).filter_map(|code| Some((code, code.hint()?)));
        let page: Vec<String> = hinted.map(|(code, hint)| format!("{code}: {hint}")).collect();
        insta::assert_snapshot!(page.join("\n"));
    }
}
