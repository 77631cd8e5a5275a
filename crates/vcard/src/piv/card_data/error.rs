//! What can be wrong with card data.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::piv::key::PivAlgorithm;

/// Why there is no card data.
#[derive(Debug, Error)]
pub enum CardDataError {
    /// A file or folder could not be read or written.
    #[error(
        "cannot {action} {}: {source}\nhint: check that the path exists and belongs to you",
        path.display()
    )]
    File {
        /// What was tried: `read` or `write`.
        action: &'static str,
        /// The path of the file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing that a card could hold.
    #[error(
        "{} holds no object and no key of a PIV card\n\
         hint: card data is a folder with files such as chuid.bin or \
         card_authentication_9e.der; to have a card made, name one that does not exist",
        path.display()
    )]
    Empty {
        /// The path of the folder or file.
        path: PathBuf,
    },
    /// A name that no object has.
    #[error(
        "{} is no object and no key of a PIV card\nhint: known names are {known}",
        path.display()
    )]
    UnknownName {
        /// The file, or the name below the TOML file.
        path: PathBuf,
        /// All names of objects and keys, with commas between.
        known: String,
    },
    /// Longer than any card's.
    #[error(
        "{} has {bytes} bytes, more than the {limit} that an object can have\n\
         hint: this is probably another file under an object's name",
        path.display()
    )]
    TooLong {
        /// The path of the file.
        path: PathBuf,
        /// The length of the content in bytes.
        bytes: usize,
        /// The greatest length in bytes.
        limit: usize,
    },
    /// Not a private key of PIV.
    #[error(
        "{} is no private key of a PIV card: {why}\n\
         hint: keys are PKCS #8 in DER without a password, as from \
         `openssl pkcs8 -topk8 -nocrypt -outform DER`",
        path.display()
    )]
    Key {
        /// The path of the file.
        path: PathBuf,
        /// What the library said.
        why: String,
    },
    /// Not a PIN or PUK.
    #[error(
        "{} does not hold a {name}\nhint: a pin has 6 to 8 digits, a puk 1 to 8 characters",
        path.display()
    )]
    Pin {
        /// The path of the file.
        path: PathBuf,
        /// Which of the two: `pin` or `puk`.
        name: &'static str,
    },
    /// The file is not TOML as card data is.
    #[error(
        "{} is no card data: {why}\n\
         hint: card data is a folder, or TOML with pin, puk and [files] in hex",
        path.display()
    )]
    Toml {
        /// The path of the file.
        path: PathBuf,
        /// Line, field and problem, as the TOML reader tells them.
        why: String,
    },
    /// The card that is there is another than was asked for.
    #[error(
        "the card in {} is another: {what}\n\
         hint: name another folder, or remove this one to have the card made anew",
        path.display()
    )]
    Unlike {
        /// The path of the folder or file.
        path: PathBuf,
        /// In what certificate and key differ.
        what: String,
    },
    /// The timing profile has no price for a key's work, which would seem to take no time.
    #[error(
        "key {reference:02X} is {algorithm}, and the profile {profile} does not price \"{work}\"\n\
         hint: price it under [work], or give the key an algorithm that is priced, as \
         card_data = {{ card = \"rsa2048\" }}"
    )]
    Unpriced {
        /// The key's reference: 9A, 9C, 9D or 9E (SP 800-73-5, Part 1).
        reference: u8,
        /// The algorithm of the key.
        algorithm: PivAlgorithm,
        /// The name of the profile.
        profile: String,
        /// The name that `[work]` knows it by.
        work: &'static str,
    },
    /// The CHUID cannot have the wanted length.
    #[error(
        "a CHUID cannot have {wanted} bytes\n\
         hint: the shortest signed one has {shortest}, and SP 800-73-5 allows {longest}"
    )]
    ChuidLength {
        /// What was asked for.
        wanted: usize,
        /// The length in bytes without a filler.
        shortest: usize,
        /// By SP 800-73-5 part 1, appendix A.
        longest: usize,
    },
    /// A key or certificate could not be made.
    #[error("cannot make {what}: {why}\nhint: this is a defect of Tapstone, please report it")]
    Make {
        /// What could not be made.
        what: &'static str,
        /// What the library said.
        why: String,
    },
}
