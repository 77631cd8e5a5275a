//! The status word of a response: ISO 7816-4, section 5.6.

use std::fmt;

/// SW1 in the high byte, SW2 in the low byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusWord(pub u16);

impl StatusWord {
    /// The command was carried out in full.
    pub const OK: Self = Self(0x9000);
    /// The data field has the wrong length.
    pub const WRONG_LENGTH: Self = Self(0x6700);
    /// Security status not satisfied: a PIN or a key is needed first.
    pub const SECURITY_NOT_SATISFIED: Self = Self(0x6982);
    /// The PIN or key is blocked.
    pub const BLOCKED: Self = Self(0x6983);
    /// Conditions of use not satisfied.
    pub const CONDITIONS_NOT_SATISFIED: Self = Self(0x6985);
    /// The data field is wrong.
    pub const WRONG_DATA: Self = Self(0x6A80);
    /// The card does not have this function.
    pub const FUNCTION_NOT_SUPPORTED: Self = Self(0x6A81);
    /// File, object or application not found.
    pub const NOT_FOUND: Self = Self(0x6A82);
    /// Not enough memory space in the file.
    pub const NO_ROOM: Self = Self(0x6A84);
    /// P1 or P2 is wrong.
    pub const WRONG_PARAMETERS: Self = Self(0x6A86);
    /// The key or the data that the parameters refer to is not there.
    pub const REFERENCE_NOT_FOUND: Self = Self(0x6A88);
    /// The card does not have this instruction (INS).
    pub const UNKNOWN_INSTRUCTION: Self = Self(0x6D00);
    /// The card does not have this class (CLA).
    pub const UNKNOWN_CLASS: Self = Self(0x6E00);
    /// The card gives no precise diagnosis.
    pub const UNKNOWN: Self = Self(0x6F00);

    /// So many bytes more can be fetched by GET RESPONSE; 256 or more are written as 0.
    #[must_use]
    pub const fn more(bytes: usize) -> Self {
        Self(0x6100 | if bytes < 256 { bytes as u16 } else { 0 })
    }

    /// The PIN was wrong, or an empty VERIFY asked: so many tries are left (0 to 15).
    #[must_use]
    pub const fn tries_left(tries: u8) -> Self {
        Self(0x63C0 | (tries & 0x0F) as u16)
    }

    /// How many bytes more GET RESPONSE brings, when the word says so: 1 to 256.
    #[must_use]
    pub const fn bytes_to_fetch(self) -> Option<usize> {
        match self.0 {
            0x6100 => Some(256),
            0x6101..=0x61FF => Some((self.0 & 0xFF) as usize),
            _ => None,
        }
    }

    /// The Le that the card wants instead, when the word says so: 1 to 256.
    #[must_use]
    pub const fn exact_length(self) -> Option<usize> {
        match self.0 {
            0x6C00 => Some(256),
            0x6C01..=0x6CFF => Some((self.0 & 0xFF) as usize),
            _ => None,
        }
    }

    /// How many tries the PIN has left, when the word says so.
    #[must_use]
    pub const fn tries(self) -> Option<u8> {
        match self.0 {
            0x63C0..=0x63CF => Some((self.0 & 0x0F) as u8),
            0x6983 => Some(0),
            _ => None,
        }
    }

    /// Whether the command was carried out: 9000, 61xx, or a warning (62xx, 63xx without a
    /// counter).
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self.0, 0x9000 | 0x6100..=0x62FF)
    }

    /// What the word means, by ISO 7816-4 table 6 and SP 800-73-5 part 2, section 2.4.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self.0 {
            0x9000 => "done",
            0x6100..=0x61FF => "more data to fetch by GET RESPONSE",
            0x6281 => "part of the data may be corrupted",
            0x6282 => "end of file reached before Le bytes were read",
            0x6283 => "selected file deactivated",
            0x6285 => "selected file in termination state",
            0x6200..=0x62FF => "warning, memory unchanged",
            0x63C0 => "verification failed, no try left",
            0x63C1..=0x63CF => "verification failed, tries left",
            0x6300..=0x63FF => "warning, memory changed",
            0x6400..=0x64FF => "execution error, memory unchanged",
            0x6581 => "memory failure",
            0x6500..=0x65FF => "execution error, memory changed",
            0x6600..=0x66FF => "security-related issue",
            0x6700..=0x67FF => "wrong length",
            0x6881 => "logical channel not supported",
            0x6882 => "secure messaging not supported",
            0x6883 => "last command of the chain expected",
            0x6884 => "command chaining not supported",
            0x6800..=0x68FF => "function of the class byte not supported",
            0x6981 => "command incompatible with the file structure",
            0x6982 => "security status not satisfied",
            0x6983 => "authentication method blocked",
            0x6984 => "reference data not usable",
            0x6985 => "conditions of use not satisfied",
            0x6986 => "command not allowed, no current file",
            0x6987 => "secure messaging data object missing",
            0x6988 => "secure messaging data object incorrect",
            0x6999 => "applet selection failed",
            0x6900..=0x69FF => "command not allowed",
            0x6A80 => "incorrect parameter in the data field",
            0x6A81 => "function not supported",
            0x6A82 => "file, object or application not found",
            0x6A83 => "record not found",
            0x6A84 => "not enough memory",
            0x6A85 => "Lc inconsistent with the structure",
            0x6A86 => "incorrect P1 or P2",
            0x6A87 => "Lc inconsistent with P1 and P2",
            0x6A88 => "referenced data not found",
            0x6A89 => "file already exists",
            0x6A8A => "name already exists",
            0x6A00..=0x6AFF => "wrong parameters",
            0x6B00..=0x6BFF => "wrong P1 or P2",
            0x6C00..=0x6CFF => "wrong Le, the exact length is in SW2",
            0x6D00..=0x6DFF => "instruction not supported",
            0x6E00..=0x6EFF => "class not supported",
            0x6F00..=0x6FFF => "no precise diagnosis",
            _ => "not a status word of ISO 7816-4",
        }
    }
}

/// Four hexadecimal digits, as every specification writes it.
impl fmt::Display for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04X}", self.0)
    }
}

impl fmt::Debug for StatusWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_carry_a_number_give_it() {
        assert_eq!(StatusWord::more(300), StatusWord(0x6100));
        assert_eq!(StatusWord(0x6100).bytes_to_fetch(), Some(256));
        assert_eq!(StatusWord(0x6C20).exact_length(), Some(32));
        assert_eq!(StatusWord::tries_left(3).tries(), Some(3));
        assert_eq!(StatusWord::BLOCKED.tries(), Some(0));
        assert_eq!(StatusWord::OK.tries(), None);
    }

    /// ISO 7816-4, 5.6: SW2 of 61xx and 6Cxx is a length, of which 256 is written as 0.
    #[test]
    fn lengths_in_status_words_are_1_to_256() {
        let words = [1, 255, 256, 257].map(StatusWord::more);
        assert_eq!(words.map(|word| word.0), [0x6101, 0x61FF, 0x6100, 0x6100]);
        let fetched = |word| StatusWord(word).bytes_to_fetch();
        assert_eq!([0x6101, 0x61FF, 0x6100].map(fetched), [Some(1), Some(255), Some(256)]);
        assert_eq!([0x60FF, 0x6200, 0x6C10, 0x9000].map(fetched), [None; 4]);
        let exact = |word| StatusWord(word).exact_length();
        assert_eq!([0x6C01, 0x6CFF, 0x6C00].map(exact), [Some(1), Some(255), Some(256)]);
        assert_eq!([0x6BFF, 0x6D00, 0x6110, 0x9000].map(exact), [None; 4]);
    }

    #[test]
    fn tries_are_those_of_a_verification() {
        assert_eq!(StatusWord::tries_left(3), StatusWord(0x63C3));
        assert_eq!(StatusWord::tries_left(0x1F), StatusWord(0x63CF), "4 bits");
        let tries = |word| StatusWord(word).tries();
        assert_eq!(
            [0x63C0, 0x63C1, 0x63CF, 0x6983].map(tries),
            [Some(0), Some(1), Some(15), Some(0)]
        );
        assert_eq!([0x6300, 0x63BF, 0x63D0, 0x6982].map(tries), [None; 4]);
    }

    #[test]
    fn success_is_done_more_or_a_warning() {
        let success = |word| StatusWord(word).is_success();
        assert_eq!([0x9000, 0x6100, 0x61FF, 0x6200, 0x62FF].map(success), [true; 5]);
        assert_eq!([0x60FF, 0x6300, 0x63C1, 0x6982, 0x9001].map(success), [false; 5]);
    }

    /// ISO 7816-4, tables 6 and 7: the ends of each range, and single words.
    #[test]
    fn words_mean_what_the_standard_says() {
        let meanings: [(&str, &[u16]); 43] = [
            ("done", &[0x9000]),
            ("more data to fetch by GET RESPONSE", &[0x6100, 0x61FF]),
            ("part of the data may be corrupted", &[0x6281]),
            ("end of file reached before Le bytes were read", &[0x6282]),
            ("selected file deactivated", &[0x6283]),
            ("selected file in termination state", &[0x6285]),
            ("warning, memory unchanged", &[0x6200, 0x6280, 0x6284, 0x62FF]),
            ("verification failed, no try left", &[0x63C0]),
            ("verification failed, tries left", &[0x63C1, 0x63CF]),
            ("warning, memory changed", &[0x6300, 0x63BF, 0x63D0, 0x63FF]),
            ("execution error, memory unchanged", &[0x6400, 0x64FF]),
            ("memory failure", &[0x6581]),
            ("execution error, memory changed", &[0x6500, 0x6582, 0x65FF]),
            ("security-related issue", &[0x6600, 0x66FF]),
            ("wrong length", &[0x6700, 0x67FF]),
            ("logical channel not supported", &[0x6881]),
            ("secure messaging not supported", &[0x6882]),
            ("last command of the chain expected", &[0x6883]),
            ("command chaining not supported", &[0x6884]),
            ("function of the class byte not supported", &[0x6800, 0x6880, 0x6885, 0x68FF]),
            ("command incompatible with the file structure", &[0x6981]),
            ("security status not satisfied", &[0x6982]),
            ("authentication method blocked", &[0x6983]),
            ("reference data not usable", &[0x6984]),
            ("conditions of use not satisfied", &[0x6985]),
            ("command not allowed, no current file", &[0x6986]),
            ("secure messaging data object missing", &[0x6987]),
            ("secure messaging data object incorrect", &[0x6988]),
            ("applet selection failed", &[0x6999]),
            ("command not allowed", &[0x6900, 0x6980, 0x6989, 0x69FF]),
            ("incorrect parameter in the data field", &[0x6A80]),
            ("function not supported", &[0x6A81]),
            ("file, object or application not found", &[0x6A82]),
            ("record not found", &[0x6A83]),
            ("not enough memory", &[0x6A84]),
            ("Lc inconsistent with the structure", &[0x6A85]),
            ("incorrect P1 or P2", &[0x6A86]),
            ("Lc inconsistent with P1 and P2", &[0x6A87]),
            ("referenced data not found", &[0x6A88]),
            ("wrong parameters", &[0x6A00, 0x6A7F, 0x6A8B, 0x6AFF]),
            ("wrong P1 or P2", &[0x6B00, 0x6BFF]),
            ("wrong Le, the exact length is in SW2", &[0x6C00, 0x6CFF]),
            ("not a status word of ISO 7816-4", &[0x0000, 0x60FF, 0x7000, 0x9001, 0xFFFF]),
        ];
        for (meaning, words) in meanings {
            for word in words {
                assert_eq!(StatusWord(*word).meaning(), meaning, "{word:04X}");
            }
        }
        assert_eq!(StatusWord(0x6A89).meaning(), "file already exists");
        assert_eq!(StatusWord(0x6A8A).meaning(), "name already exists");
        let whole_ranges = [
            (0x6D00, "instruction not supported"),
            (0x6E00, "class not supported"),
            (0x6F00, "no precise diagnosis"),
        ];
        for (first, meaning) in whole_ranges {
            assert_eq!([first, first + 0xFF].map(|word| StatusWord(word).meaning()), [meaning; 2]);
        }
    }

    #[test]
    fn every_word_has_a_meaning() {
        for word in 0..=u16::MAX {
            assert!(!StatusWord(word).meaning().is_empty());
        }
        assert_eq!(
            format!("{:?}", StatusWord::NOT_FOUND),
            "6A82 (file, object or application not found)"
        );
    }
}
