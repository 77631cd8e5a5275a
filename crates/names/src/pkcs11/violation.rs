//! Answers that PKCS #11 does not allow, by names of their own: the call returned `CKR_OK`, so no
//! return code names them.
//!
//! A violation travels where return codes do. It takes numbers that no module can claim: whoever
//! calls a module turns such a code into [`Violation::ReservedCode`] ([`Rv::from_module`]).

use std::fmt;

use super::Rv;

/// What an answer breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A length that the buffer does not have, in bytes.
    BeyondBuffer(Numbers),
    /// A length that this operation's result cannot have, in bytes.
    WrongLength(Numbers),
    /// More elements than there was room for: objects, slots, mechanisms.
    BeyondRoom(Numbers),
    /// `CKR_OK`, and the buffer holds what it held before.
    NothingWritten,
    /// The buffer's end holds what it held before.
    PartlyWritten,
    /// The input is not what it was.
    InputChanged,
    /// `CK_INVALID_HANDLE` for a new object or session.
    InvalidHandle,
    /// A handle that another live object or session has.
    LiveHandle,
    /// A null pointer instead of a table.
    NullPointer,
    /// A return code that PKCS #11 does not have, and that is a violation's number here.
    ReservedCode,
}

/// What was returned, and what was offered or possible. `None`: not known any more.
pub type Numbers = Option<(Amount, Amount)>;

/// A number that a module gave, as far as 24 bits hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(u32);

impl Amount {
    const BITS: u32 = 24;
    /// `CK_UNAVAILABLE_INFORMATION`, which is all ones.
    const ALL_ONES: u32 = (1 << Self::BITS) - 1;
    const MORE: u32 = Self::ALL_ONES - 1;
    const UNKNOWN: u32 = Self::ALL_ONES - 2;
    const MOST: u32 = Self::ALL_ONES - 3;

    /// Packs a `CK_ULONG` that a module gave: exact while it fits, or else what kind of large it is.
    #[must_use]
    pub fn new(value: u64) -> Self {
        match value {
            u64::MAX => Self(Self::ALL_ONES),
            value if value > u64::from(Self::MOST) => Self(Self::MORE),
            value => Self(value as u32),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Self::ALL_ONES => f.write_str("~0UL"),
            Self::MORE => write!(f, "of more than {}", Self::MOST),
            number => write!(f, "{number}"),
        }
    }
}

/// The first byte of a violation's number.
const MARK: u64 = 0xF6;

impl Violation {
    /// With what was returned, and what was offered or possible.
    #[must_use]
    pub fn numbers(returned: u64, offered: u64) -> Numbers {
        Some((Amount::new(returned), Amount::new(offered)))
    }

    /// The same without its numbers, by which violations are counted.
    #[must_use]
    pub const fn kind(self) -> Self {
        match self {
            Self::BeyondBuffer(_) => Self::BeyondBuffer(None),
            Self::WrongLength(_) => Self::WrongLength(None),
            Self::BeyondRoom(_) => Self::BeyondRoom(None),
            other => other,
        }
    }

    /// As it travels among return codes.
    #[must_use]
    pub fn code(self) -> Rv {
        let unknown = Some((Amount(Amount::UNKNOWN), Amount(Amount::UNKNOWN)));
        let (kind, numbers): (u64, Numbers) = match self {
            Self::BeyondBuffer(numbers) => (1, numbers.or(unknown)),
            Self::WrongLength(numbers) => (2, numbers.or(unknown)),
            Self::BeyondRoom(numbers) => (3, numbers.or(unknown)),
            Self::NothingWritten => (4, None),
            Self::PartlyWritten => (5, None),
            Self::InputChanged => (6, None),
            Self::InvalidHandle => (7, None),
            Self::LiveHandle => (8, None),
            Self::NullPointer => (9, None),
            Self::ReservedCode => (10, None),
        };
        let (first, second) = numbers.unwrap_or((Amount(0), Amount(0)));
        Rv(MARK << 56 | kind << 48 | u64::from(first.0) << Amount::BITS | u64::from(second.0))
    }

    fn from_code(code: Rv) -> Option<Self> {
        if code.0 >> 56 != MARK {
            return None;
        }
        let amount = |bits: u64| Amount(bits as u32 & Amount::ALL_ONES);
        let first = amount(code.0 >> Amount::BITS);
        let second = amount(code.0);
        let numbers = (first.0 != Amount::UNKNOWN).then_some((first, second));
        Some(match code.0 >> 48 & 0xFF {
            1 => Self::BeyondBuffer(numbers),
            2 => Self::WrongLength(numbers),
            3 => Self::BeyondRoom(numbers),
            4 => Self::NothingWritten,
            5 => Self::PartlyWritten,
            6 => Self::InputChanged,
            7 => Self::InvalidHandle,
            8 => Self::LiveHandle,
            9 => Self::NullPointer,
            _ => Self::ReservedCode,
        })
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeyondBuffer(Some((returned, offered))) => {
                return write!(f, "returned length {returned} for a buffer of {offered}");
            }
            Self::WrongLength(Some((returned, possible))) => {
                return write!(f, "returned length {returned} for a result of {possible}");
            }
            Self::BeyondRoom(Some((returned, room))) => {
                return write!(f, "returned count {returned} with room for {room}");
            }
            Self::BeyondBuffer(None) => "returned a length beyond the buffer",
            Self::WrongLength(None) => "returned a length that the result cannot have",
            Self::BeyondRoom(None) => "returned a count beyond the room",
            Self::NothingWritten => "returned CKR_OK without output",
            Self::PartlyWritten => "left the end of its output unwritten",
            Self::InputChanged => "changed its input",
            Self::InvalidHandle => "returned CK_INVALID_HANDLE for what it made",
            Self::LiveHandle => "returned a handle that is in use",
            Self::NullPointer => "returned CKR_OK with a null pointer",
            Self::ReservedCode => "returned a code that PKCS #11 does not have",
        })
    }
}

impl Rv {
    /// A code as a module returned it: none can be taken for a violation that was found here.
    #[must_use]
    pub fn from_module(code: u64) -> Self {
        let code = Self(code);
        if code == Self::NOT_IN_FUNCTION_LIST || code.violation().is_some() {
            return Violation::ReservedCode.code();
        }
        code
    }

    /// The violation that this stands for, if it is no return code.
    #[must_use]
    pub fn violation(self) -> Option<Violation> {
        Violation::from_code(self)
    }

    /// What failures are counted by: a violation without its numbers, of which a module can give
    /// any; else the code itself.
    #[must_use]
    pub fn kind(self) -> Self {
        self.violation().map_or(self, |violation| violation.kind().code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_travel_as_codes_and_say_what_was_returned() {
        let length = |returned| Violation::BeyondBuffer(Violation::numbers(returned, 256));
        for (violation, words) in [
            (length(1_000_256), "returned length 1000256 for a buffer of 256"),
            (length(u64::MAX), "returned length ~0UL for a buffer of 256"),
            (length(u64::MAX - 1), "returned length of more than 16777212 for a buffer of 256"),
            (length(u64::MAX).kind(), "returned a length beyond the buffer"),
            (
                Violation::WrongLength(Violation::numbers(0, 64)),
                "returned length 0 for a result of 64",
            ),
            (Violation::BeyondRoom(Violation::numbers(3, 2)), "returned count 3 with room for 2"),
            (Violation::NothingWritten, "returned CKR_OK without output"),
            (Violation::PartlyWritten, "left the end of its output unwritten"),
            (Violation::InputChanged, "changed its input"),
            (Violation::InvalidHandle, "returned CK_INVALID_HANDLE for what it made"),
            (Violation::LiveHandle, "returned a handle that is in use"),
            (Violation::NullPointer, "returned CKR_OK with a null pointer"),
            (Violation::ReservedCode, "returned a code that PKCS #11 does not have"),
        ] {
            assert_eq!(violation.code().violation(), Some(violation));
            assert_eq!(violation.code().to_string(), words);
            assert_eq!(violation.code().kind().to_string(), violation.kind().to_string());
            assert!(!violation.code().is_pin() && !violation.code().is_lost());
        }
    }

    #[test]
    fn a_module_cannot_name_a_violation() {
        let forged = Violation::WrongLength(Violation::numbers(1, 2)).code().0;
        for code in [forged, Rv::NOT_IN_FUNCTION_LIST.0] {
            assert_eq!(Rv::from_module(code), Violation::ReservedCode.code());
        }
        for code in [0x30, 0x8000_0102, u64::MAX, 0xFFFF_FFFF_8000_0102] {
            assert_eq!(Rv::from_module(code), Rv(code));
            assert_eq!(Rv(code).violation(), None);
            assert_eq!(Rv(code).kind(), Rv(code));
        }
    }
}
