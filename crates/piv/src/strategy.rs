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
}

impl Strategy {
    /// All of them, the plain one first.
    pub const ALL: [Self; 5] =
        [Self::Plain, Self::NoChuid, Self::KnownCard, Self::Overlap, Self::BackgroundValidation];

    /// As options and cases spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::NoChuid => "no-chuid",
            Self::KnownCard => "known-card",
            Self::Overlap => "overlap",
            Self::BackgroundValidation => "background-validation",
        }
    }

    /// What must hold for it to be as safe as the plain one.
    #[must_use]
    pub const fn condition(self) -> &'static str {
        match self {
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
