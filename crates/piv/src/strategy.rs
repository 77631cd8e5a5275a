//! The ways to authenticate a card faster, and what each of them asks of security.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How PKI-CAK is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Strategy {
    /// Everything, one after the other.
    Plain,
    /// The CHUID is not read: the identifier is the certificate's.
    NoChuid,
    /// The public key was registered after one full reading.
    KnownCard,
    /// The card signs while the host validates the path.
    Overlap,
    /// Path and revocation were checked beforehand.
    BackgroundValidation,
    /// Commands and responses are whole: nothing is chained, and nothing fetched in pieces.
    ExtendedLength,
    /// A registered key, and nothing is chained.
    KnownCardExtendedLength,
    /// The card signs while the host validates, and nothing is chained.
    OverlapExtendedLength,
    /// A registered key, whose path is looked at again while the card signs.
    KnownCardOverlap,
    /// A registered key, whose path is looked at again while the card signs, and nothing is chained.
    KnownCardOverlapExtendedLength,
}

/// How long a command and its response may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLengths {
    /// Short: what is longer is chained and fetched by GET RESPONSE (ISO/IEC 7816-4, 5.3.3).
    #[default]
    Short,
    /// Extended: in one (ISO/IEC 7816-4, 5.2).
    Extended,
}

impl Strategy {
    /// All of them, the plain one first.
    pub const ALL: [Self; 5] =
        [Self::Plain, Self::NoChuid, Self::KnownCard, Self::Overlap, Self::BackgroundValidation];

    /// Everything that a relying system can combine, the plain one first.
    pub const COMBINATIONS: [Self; 8] = [
        Self::Plain,
        Self::KnownCard,
        Self::Overlap,
        Self::ExtendedLength,
        Self::KnownCardExtendedLength,
        Self::OverlapExtendedLength,
        Self::KnownCardOverlap,
        Self::KnownCardOverlapExtendedLength,
    ];

    /// The order of the dialogue, whatever the length of its commands.
    #[must_use]
    pub const fn way(self) -> Self {
        match self {
            Self::ExtendedLength => Self::Plain,
            Self::KnownCardExtendedLength
            | Self::KnownCardOverlap
            | Self::KnownCardOverlapExtendedLength => Self::KnownCard,
            Self::OverlapExtendedLength => Self::Overlap,
            way => way,
        }
    }

    /// How long its commands may be.
    #[must_use]
    pub const fn lengths(self) -> CommandLengths {
        match self {
            Self::ExtendedLength
            | Self::KnownCardExtendedLength
            | Self::OverlapExtendedLength
            | Self::KnownCardOverlapExtendedLength => CommandLengths::Extended,
            _ => CommandLengths::Short,
        }
    }

    /// Whether the stored path of a registered key is looked at while the card signs.
    pub(crate) const fn rechecks_meanwhile(self) -> bool {
        matches!(self, Self::KnownCardOverlap | Self::KnownCardOverlapExtendedLength)
    }

    /// As options and cases spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::NoChuid => "no-chuid",
            Self::KnownCard => "known-card",
            Self::Overlap => "overlap",
            Self::BackgroundValidation => "background-validation",
            Self::ExtendedLength => "extended-length",
            Self::KnownCardExtendedLength => "known-card+extended-length",
            Self::OverlapExtendedLength => "overlap+extended-length",
            Self::KnownCardOverlap => "known-card+overlap",
            Self::KnownCardOverlapExtendedLength => "known-card+overlap+extended-length",
        }
    }

    /// What must hold for it to be as safe as the plain one.
    #[must_use]
    pub const fn condition(self) -> &'static str {
        match self {
            Self::ExtendedLength => {
                "safe, because the same is read and checked; possible where card, reader and its \
                 driver take extended length fields (ISO/IEC 7816-4, 5.2), which SP 800-73-5 does \
                 not ask of a card"
            }
            Self::KnownCardExtendedLength => "what known-card and extended-length each ask for",
            Self::OverlapExtendedLength => "what overlap and extended-length each ask for",
            Self::KnownCardOverlap => {
                "what known-card asks for; nothing is opened before the stored path was looked at \
                 again and the signature is good"
            }
            Self::KnownCardOverlapExtendedLength => {
                "what known-card+overlap and extended-length each ask for"
            }
            Self::Plain => {
                "everything, one after the other: certificate, path, challenge, CHUID; the yardstick"
            }
            Self::NoChuid => {
                "safe where access is decided by the FASC-N or UUID that the certificate carries; a \
                 CHUID of another card cannot be noticed, because it is not read"
            }
            Self::KnownCard => {
                "safe as long as the register of keys is protected like the list of those who may \
                 enter; a key enters it only after one full reading that was granted; the card \
                 signs a fresh challenge each time, and the stored certificates' validity and \
                 revocation are checked again each time; a miss, a bad signature or a stored \
                 certificate that is no longer good leads to a full reading"
            }
            Self::Overlap => {
                "safe as long as nothing is opened before both have ended well: the card signs for \
                 a certificate that may turn out to be worthless, and the decision is the and of \
                 both"
            }
            Self::BackgroundValidation => {
                "safe as long as a revocation may take effect as late as the age limit; the \
                 certificate is read and its key challenged each time, its bytes must be those that \
                 were checked, and validity is checked again; an older check is made anew at the \
                 door"
            }
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_extended_where_the_name_says_so() {
        for strategy in Strategy::ALL.into_iter().chain(Strategy::COMBINATIONS) {
            let is_extended = strategy.name().contains("extended-length");
            let lengths =
                if is_extended { CommandLengths::Extended } else { CommandLengths::Short };
            assert_eq!(strategy.lengths(), lengths, "{}", strategy.name());
        }
    }
}
